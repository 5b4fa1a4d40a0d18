"""Where the numbers of a consortium file came from: its digest, and the comments beside them.

A report has to stand alone: whoever reads it must be able to tell which file it was made from, and
what was known of each number. A comment at the end of a line belongs to the number before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item, Table

from fedaccord.files.reading import MEGABYTE, TOML_LIMIT, read_text

_MOST_COMMENTS = MEGABYTE
"""Bytes of a file whose comments are read: tomlkit is thorough, and slow."""


@dataclass(frozen=True)
class Note:
    """A comment beside a number."""

    whose: str
    """The client's name; empty for what all share."""
    field: str
    value: str
    """As the file has it."""
    comment: str


@dataclass(frozen=True)
class Source:
    """A file, and the SHA-256 digest of its bytes."""

    name: str
    digest: str


@dataclass(frozen=True)
class Provenance:
    """The files that a consortium was read from, and the comments beside its numbers."""

    sources: tuple[Source, ...]
    notes: tuple[Note, ...]


def provenance_of(path: Path) -> Provenance | None:
    """The provenance of a consortium file that was read without a mistake; None for a pipe."""
    if not path.is_file():
        return None
    source = _source(path)
    document = _parsed(read_text(path, TOML_LIMIT))
    if document is None:
        return Provenance((source,), ())
    others = [path.parent / name for name in _files_named_in(document)]
    beside = tuple(_source(each) for each in dict.fromkeys(others) if each.is_file())
    return Provenance((source, *beside), tuple(_notes(document)))


def provenance_of_text(text: str, name: str) -> Provenance:
    """The same of a text that is not in a file, or not yet."""
    source, document = Source(name, sha256(text.encode()).hexdigest()), _parsed(text)
    return Provenance((source,), () if document is None else tuple(_notes(document)))


def _parsed(text: str) -> Any:
    """The text with its comments; None if they cannot be read."""
    if len(text) > _MOST_COMMENTS:
        return None
    try:
        return tomlkit.parse(text)
    except TOMLKitError:  # Python's reader accepted it, and nobody needs the comments
        return None


def _source(path: Path) -> Source:
    return Source(path.name, sha256(path.read_bytes()).hexdigest())


def _files_named_in(document: Any) -> Iterator[str]:
    """The client table and the curves that a consortium file names."""
    if isinstance(clients := document.get("clients"), str):
        yield str(clients)
    tables = [document, *(clients if isinstance(clients, list) else [])]
    for table in [each for outer in tables for each in (outer, outer.get("law"))]:
        if isinstance(table, dict) and "curve" in table:
            yield str(table["curve"])


def _notes(document: Any) -> Iterator[Note]:
    clients = document.get("clients")
    shared = {key: value for key, value in document.items() if key != "clients"}
    yield from _of_table(shared, "")
    if isinstance(clients, AoT):
        for client in clients:
            yield from _of_table(client, str(client.get("name", "")))


def _of_table(table: Any, whose: str, inside: str = "") -> Iterator[Note]:
    for key, value in table.items():
        if isinstance(value, Table):
            yield from _of_table(value, whose, f"{inside}{key}.")
        elif isinstance(value, Item) and value.trivia.comment:
            comment = value.trivia.comment.lstrip("# ").strip()
            yield Note(whose, inside + key, value.as_string(), comment)
