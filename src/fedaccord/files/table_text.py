"""A consortium file with another table of clients, as a form sends it, and all else as it was.

Comments, order and spacing stay, and so does every number that did not change. A comment beside a
number that changes stays, too, unless it says that the old number came from an interview.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item, Table

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.files.ranges import Range
from fedaccord.files.reading import parse_toml

Value = float | str | Range | Mapping[str, float | str] | list[str] | None
"""A number, text, a range, a law, a machine's figures or words; None removes what was there."""
_LONGEST = 1_000_000
"""Characters of a file that is rewritten: tomlkit is thorough, and slow."""
_FROM_INTERVIEW = re.compile(r"#\s*interview")
_INSTEAD = {"valuation": ("ratio",), "cost_per_sample": ("cpu",), "cpu": ("cost_per_sample",)}
"""What a key takes the place of."""
_CANNOT = "this file cannot be changed without changing something else in it"


class TableRow(NamedTuple):
    """A client of the new table."""

    was: int | None
    """Its position in the file so far; None for a new client."""
    changes: Mapping[str, Value]
    """What is new or other than it was, by key."""


def with_table(text: str, shared: Mapping[str, Value], rows: Sequence[TableRow]) -> str:
    r"""The text of a consortium file with these changes; clients that no row keeps are removed.

    >>> text = 'rounds = 5 # few\n\n[[clients]]\nname = "A"\nsamples = 3\n'
    >>> changed = [TableRow(0, {"samples": 40_000.0}), TableRow(None, {"name": "B"})]
    >>> print(with_table(text, {"discount_factor": 0.5}, changed))
    rounds = 5 # few
    discount_factor = 0.5
    <BLANKLINE>
    [[clients]]
    name = "A"
    samples = 40_000
    <BLANKLINE>
    [[clients]]
    name = "B"
    <BLANKLINE>
    """
    if len(text) > _LONGEST:
        raise InvalidInput(f"is too long to be changed here: more than {_LONGEST:,} characters")
    before = parse_toml(text, "consortium.toml")
    try:
        document = tomlkit.parse(text)
        _change_shared(document, shared)
        added = _change_clients(document, rows)
        changed = _spaced(tomlkit.dumps(document), added)
    except TOMLKitError as error:
        raise InvalidInput(f"cannot be rewritten: {error}") from None
    if "\r\n" in text:
        changed = re.sub(r"(?<!\r)\n", "\r\n", changed)
    _check(before, parse_toml(changed, "consortium.toml"), shared, rows)
    return changed


def without_keys(text: str, places: Sequence[Sequence[str | int]]) -> str:
    r"""The text of a consortium file without the keys to which these ways lead.

    >>> print(without_keys('rounds = 5 # few\nfoo = 1\n', [("foo",)]))
    rounds = 5 # few
    <BLANKLINE>
    """
    meant: Any = parse_toml(text, "consortium.toml")
    try:
        document: Any = tomlkit.parse(text)
        for *way, key in places:
            for whole in (meant, document):
                reduce(getitem, way, whole).pop(key)
        changed = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise InvalidInput(f"cannot be rewritten: {error}") from None
    if parse_toml(changed, "consortium.toml") != meant:
        raise FedaccordError(_CANNOT)
    return changed


def _change_shared(document: Any, shared: Mapping[str, Value]) -> None:
    """Put the values in, new ones after the last key that all clients share."""
    for key, value in shared.items():
        _put(document, key, value)


def _change_clients(document: Any, rows: Sequence[TableRow]) -> list[str]:
    """Change and remove clients where they are; return the texts of those to add at the end."""
    listed: Any = document.get("clients", [])
    kept = [row for row in rows if row.was is not None]
    for row in kept:
        for key, value in row.changes.items():
            for other in _INSTEAD.get(key, ()) if value is not None else ():
                listed[row.was].pop(other, None)
            _put(listed[row.was], key, value)
    positions = {row.was for row in kept}
    for n in reversed(range(len(listed))):
        if n not in positions:
            del listed[n]
    new = [row.changes for row in rows if row.was is None]
    if not isinstance(listed, AoT) and listed:  # a list in brackets
        for changes in new:
            listed.append(_inline(changes))
        return []
    if not listed and "clients" in document:
        document.remove("clients")
    return [_client_text(changes) for changes in new]


def _put(table: Any, key: str, value: Value) -> None:
    """Set a key, and keep the comment beside it; or remove it."""
    if value is None:
        table.pop(key, None)
        return
    item = tomlkit.value(as_toml(value))
    old = table.get(key)
    if isinstance(old, Table):  # what follows a header stays behind it
        table.remove(key)
    if isinstance(old, Item) and _FROM_INTERVIEW.match(old.trivia.comment):
        old.trivia.comment = old.trivia.comment_ws = ""
    table[key] = item


def _inline(changes: Mapping[str, Value]) -> Any:
    table = tomlkit.inline_table()
    for key, value in changes.items():
        if value is not None:
            table.append(key, tomlkit.value(as_toml(value)))
    return table


def _client_text(changes: Mapping[str, Value]) -> str:
    lines = [f"{key} = {as_toml(value)}" for key, value in changes.items() if value is not None]
    return "\n".join(["[[clients]]", *lines, ""])


_LAST_CLIENT = 'name = "the clients to add"'


def _spaced(text: str, added: Sequence[str]) -> str:
    """The text with the new clients after the others, an empty line before each."""
    if not added:
        return text
    document: Any = tomlkit.parse(text)
    if "clients" not in document:
        return "\n".join([text.rstrip("\n") + "\n" if text.strip() else "", *added]).lstrip("\n")
    document["clients"].append(tomlkit.parse(_LAST_CLIENT))
    marked = tomlkit.dumps(document)
    start = marked.rindex("[[", 0, marked.index(_LAST_CLIENT))
    before = marked[:start].rstrip()
    after = marked[marked.index(_LAST_CLIENT) + len(_LAST_CLIENT) :].lstrip()
    return "\n\n".join([before, "\n".join(added), *([after] if after else [])])


def _check(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    shared: Mapping[str, Value],
    rows: Sequence[TableRow],
) -> None:
    """Make sure that the new text says what was meant, and all else is as it was."""
    meant = _changed({key: each for key, each in before.items() if key != "clients"}, shared)
    is_same = {key: each for key, each in after.items() if key != "clients"} == meant
    ordered = [row for row in rows if row.was is not None]
    ordered += [row for row in rows if row.was is None]
    old = before.get("clients", [])
    clients = [_changed({} if row.was is None else old[row.was], row.changes) for row in ordered]
    if not is_same or after.get("clients", []) != clients:
        raise FedaccordError(_CANNOT)


def _changed(table: Mapping[str, Any], changes: Mapping[str, Value]) -> dict[str, Any]:
    """A table after some changes, as a TOML reader would say it."""
    result = dict(table)
    for key, value in changes.items():
        result.pop(key, None)
        if value is None:
            continue
        for other in _INSTEAD.get(key, ()):
            result.pop(other, None)
        result[key] = parse_toml(f"value = {as_toml(value)}", "")["value"]
    return result


def as_toml(value: Any) -> str:
    """A value in TOML; a number as the shortest text that reads back as the same.

    >>> as_toml(42_000.0), as_toml(0.0042), as_toml(Range(1, 2, 4))
    ('42_000', '0.0042', '{ low = 1, likely = 2, high = 4 }')
    """
    if isinstance(value, Range):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {as_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1e15)
    return f"{int(value):_}" if whole else repr(float(value))
