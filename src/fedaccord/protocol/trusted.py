"""Where an earlier verification of a ledger ended, so that the next one can go on from there.

It is believed by whoever wrote it for himself, and by nobody else. It says what a server knows at
that entry, which is little between two slots.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.ledger.chain import Head
from fedaccord.protocol.signatures import SignaturesSoFar
from fedaccord.protocol.state import State


@dataclass(frozen=True)
class Trusted:
    """A ledger up to an entry, as it was found to be in order."""

    head: Head
    at: str
    """When that entry was written."""
    slots: int
    state: State
    """What a server knows then: it is between two slots."""
    signatures: SignaturesSoFar
    format: Literal[1] = 1


_ADAPTER = TypeAdapter(Trusted)


def trusted_text(trusted: Trusted) -> bytes:
    """As its owner keeps it in a private file."""
    return _ADAPTER.dump_json(trusted)


def load_trusted(path: Path) -> Trusted:
    """What an earlier verification wrote."""
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", str(path)) from None
    except (ValidationError, FedaccordError):
        raise InvalidInput(
            "is not a checkpoint of this fedaccord: remove it, and verify all of the ledger",
            str(path),
        ) from None
