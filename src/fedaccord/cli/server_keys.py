"""The option for the server's key, with which everything that is added to its ledger is signed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fedaccord.signing.keys import Key

KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        show_default=False,
        help="The server's private key, if the ledger is signed (default: keys/signing.key beside "
        "the ledger).",
    ),
]


def server_key(place: str, key: Path | None) -> "Key | None":
    """The key with which the server signs what is added to its ledger."""
    from fedaccord.signing.keys import load_key

    usual = Path(place).parent / "keys" / "signing.key"
    if key is None and ("://" in place or not usual.is_file()):
        return None
    return load_key(key or usual)
