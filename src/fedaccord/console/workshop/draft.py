"""A consortium file that is being worked on, and the address that contains it.

The workshop keeps nothing: the text of the file, packed, is a part of every address. So each state
can be bookmarked and sent, the browser's back button undoes, and two tabs do not disturb each
other. Only a file that is too long for an address is kept here, and its address works here only.
"""

import base64
import hashlib
import warnings
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from fedaccord.checks import shown
from fedaccord.errors import FileNote, InvalidInput
from fedaccord.files.consortium import build_consortium
from fedaccord.files.reading import parse_toml
from fedaccord.game.consortium import Consortium

LONGEST = 24_000
"""Characters of a packed file in an address; about a thousand members."""
LARGEST = 4 * 1024 * 1024
"""Bytes of a file."""
_KEPT = 50
_KEPT_MARK = "~"

_kept: dict[str, str] = {}


@dataclass(frozen=True)
class Draft:
    """The text of a consortium file."""

    text: str

    @property
    def packed(self) -> str:
        """The text as a part of an address."""
        packed = base64.urlsafe_b64encode(zlib.compress(self.text.encode(), 9)).decode().rstrip("=")
        if len(packed) <= LONGEST:
            return packed
        digest = hashlib.sha256(self.text.encode()).hexdigest()[:32]
        _kept.pop(digest, None)
        _kept[digest] = self.text
        while len(_kept) > _KEPT:
            del _kept[next(iter(_kept))]
        return _KEPT_MARK + digest

    @property
    def travels(self) -> bool:
        """Whether its address works on other machines, too."""
        return not self.packed.startswith(_KEPT_MARK)

    @property
    def data(self) -> dict[str, Any]:
        """What the TOML says, right or wrong, if it needs no other file."""
        data = parse_toml(self.text, "consortium.toml")
        _check_alone(data)
        return data

    @property
    def consortium(self) -> Consortium:
        """What the file describes; `InvalidInput` has everything that is wrong with it."""
        return _read(self.text)

    @property
    def is_complete(self) -> bool:
        """Whether it describes a consortium, with nothing wrong and nothing missing."""
        try:
            return bool(self.consortium)
        except InvalidInput:
            return False


def unpack(packed: str) -> Draft:
    r"""The draft in an address.

    >>> draft = Draft('name = "Six"\n')
    >>> unpack(draft.packed) == draft
    True
    """
    if packed.startswith(_KEPT_MARK):
        text = _kept.get(packed[1:])
        if text is None:
            raise HTTPException(404, "this address is about a file that is no longer here")
        return Draft(text)
    try:
        content = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(content, LARGEST).decode("utf-8")
        if not unpacking.eof:
            raise ValueError("it is too large, or cut off")
    except (ValueError, zlib.error):
        raise HTTPException(404, "this address is not whole; copy all of it") from None
    return Draft(text)


@lru_cache(maxsize=64)
def _read(text: str) -> Consortium:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileNote)
        return build_consortium(Draft(text).data, Path("consortium.toml"))


def _check_alone(data: dict[str, Any]) -> None:
    """Refuse a file that names others: an address may come from anybody, and opens no file here."""
    clients = data.get("clients")
    if isinstance(clients, str):
        raise InvalidInput(
            f"takes its members from the file {shown(clients)}, which the page does not open; "
            "upload that table itself",
            field="clients",
        )
    tables = [data, *(clients if isinstance(clients, list) else [])]
    for table in (each for outer in tables if isinstance(outer, dict) for each in _laws(outer)):
        if "curve" in table:
            raise InvalidInput(
                f"names the file {shown(table['curve'])}, which the page does not open; use the "
                "command line for this consortium, or write the fitted law into the file as "
                'kind = "power"',
                field="curve",
            )


def _laws(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in (table, table.get("law")) if isinstance(each, dict)]
