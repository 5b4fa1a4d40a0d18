"""A consortium file with one client more, or with other numbers for one, each with a comment.

Comments, order and spacing of the file stay, and so do the numbers of all other clients. A comment
at the end of a line whose number changes moves to a line of its own above it, unless it says where
the old number came from.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item, Table

from fedaccord.checks import normalised
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.files.consortium import build_consortium
from fedaccord.files.ranges import Range
from fedaccord.files.reading import TOML_LIMIT, load_toml, parse_toml, read_text
from fedaccord.game.slot import slots_per_year


class Entry(NamedTuple):
    """A number of a client or its range, and where it came from."""

    value: float | Range
    comment: str


Entries = Mapping[str, Entry]
"""By field, `valuation` and `cost_per_sample` among them."""
Shared = Mapping[str, Any]
"""What the numbers rest on and all clients share: `slot`, `currency` and `rounds`."""

_NOTES = {
    "slot": "one training of the model from start to end; all amounts are for one slot",
    "currency": "of all amounts",
    "rounds": "rounds of federated averaging in one slot",
}
_OURS = "interview"
"""How a comment begins that says where a number came from."""


def new_file(name: str, entries: Entries, shared: Shared) -> str:
    """The text of a consortium file with this client alone."""
    lines = [f"{key} = {_text(value)}  # {_NOTES[key]}" for key, value in shared.items()]
    return "\n".join([*lines, "", client_text(name, entries)])


def client_text(name: str, entries: Entries) -> str:
    """A `[[clients]]` table."""
    lines = [f"{key} = {_text(entry.value)}  # {entry.comment}" for key, entry in entries.items()]
    return "\n".join(["[[clients]]", f"name = {_text(name)}", *lines, ""])


def with_client(path: str | Path, name: str, entries: Entries, shared: Shared) -> str:
    """The text of the consortium file at `path` with this client added, or its numbers replaced.

    Of what all clients share, only `slot` and `currency` are added if they are missing.

    Raises:
        InvalidInput: if the file is wrong, or shares something else.
    """
    path = Path(path)
    build_consortium(load_toml(path), path)
    changed = with_client_in(read_text(path, TOML_LIMIT), name, entries, shared, path)
    build_consortium(parse_toml(changed, str(path)), path)
    return changed


def with_client_in(
    text: str, name: str, entries: Entries, shared: Shared, source: str | Path = "consortium.toml"
) -> str:
    """As `with_client`, for a file's text. Other clients may still lack numbers."""
    path = Path(source)
    before = parse_toml(text, str(path))
    document = _parsed(text, path)
    _check_shared(before, shared, path)
    try:
        n = _position(before, normalised(name))
        if n is not None:
            listed: Any = document["clients"]
            listed[n] = _with_entries(listed[n], entries)
            changed = tomlkit.dumps(document)
        elif before.get("clients"):
            changed = _with_another(document, client_text(name, entries))
        else:
            changed = f"{text.rstrip()}\n\n{client_text(name, entries)}".lstrip()
    except TOMLKitError as error:
        raise _cannot_be_rewritten(error, path) from None
    changed = _with_shared(changed, {key: shared[key] for key in shared if key not in before})
    if "\r\n" in text:
        changed = re.sub(r"(?<!\r)\n", "\r\n", changed)
    _check_others(before, parse_toml(changed, str(path)), normalised(name), path)
    return changed


def check_has_tables(path: Path) -> None:
    """Refuse a consortium file to which no client could be added."""
    build_consortium(load_toml(path), path)
    _parsed(read_text(path, TOML_LIMIT), path)


def client_in(data: Mapping[str, Any], name: str) -> Any:
    """What a consortium file says of a client; None if it is not there."""
    n = _position(data, normalised(name))
    return None if n is None else data["clients"][n]


def _name_of(client: Any) -> str:
    """The name in a client's table, which may be anything yet."""
    return normalised(str(client.get("name", "")).strip()) if isinstance(client, dict) else ""


def _position(data: Mapping[str, Any], name: str) -> int | None:
    """Where a client stands; None if it is new."""
    names = [_name_of(each) for each in data.get("clients", [])]
    return names.index(name) if name in names else None


def _parsed(text: str, path: Path) -> tomlkit.TOMLDocument:
    """The document of a file, whose clients must be tables."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise _cannot_be_rewritten(error, path) from None
    clients = document.get("clients")
    if clients is None:
        return document
    if isinstance(clients, str):
        raise InvalidInput(f"takes its clients from {clients}; add the numbers there", str(path))
    if not isinstance(clients, AoT):
        raise InvalidInput(
            "lists its clients in brackets; write them as [[clients]] tables, so that each number "
            "can have a comment",
            str(path),
        )
    return document


def _cannot_be_rewritten(error: TOMLKitError, path: Path) -> InvalidInput:
    return InvalidInput(f"cannot be rewritten: {error}", str(path))


def _check_shared(data: Mapping[str, Any], shared: Shared, path: Path) -> None:
    """Refuse numbers that are for another slot or in another currency than the file's."""
    for key, value in shared.items():
        meant = slots_per_year if key == "slot" else lambda text: text
        if meant(data.get(key, value)) != meant(value):
            wrong = f"is {_text(data[key])} in this file, but {_text(value)} in the answers"
            raise InvalidInput(wrong, str(path), field=key)


# --- Changing a table ----------------------------------------------------------------------


def _with_entries(client: Table, entries: Entries) -> Table:
    """A client's table with these numbers, each where it was, and new ones after its last key."""
    left = dict(entries)
    body = list(client.value.body)
    last = max(n for n, (key, _) in enumerate(body) if key is not None)
    table = tomlkit.table()
    for n, (key, item) in enumerate(body):
        # the cost takes the place of the figures of a machine
        field = "" if key is None else key.key.partition(".")[0]
        field = "cost_per_sample" if field == "cpu" and "cost_per_sample" in entries else field
        if field not in entries:
            table.append(key, item)  # without a key it is a comment or an empty line
        else:
            _append_comments(table, item)
            if field in left:
                _append(table, field, left.pop(field))
        if n == last:
            for other, entry in left.items():
                _append(table, other, entry)
    return table


def _append(table: Table, field: str, entry: Entry) -> None:
    """Append a number with its comment."""
    number = tomlkit.value(_text(entry.value))
    number.comment(entry.comment)
    number.trivia.comment_ws = "  "
    table.append(field, number)


def _append_comments(table: Table, old: Item) -> None:
    """Append the comments on numbers that are replaced, each on a line of its own."""
    for said in re.findall(r"#[ \t]*([^\r\n]*)", f"{old.trivia.comment}\n{old.as_string()}"):
        if not said.startswith(_OURS):
            table.add(tomlkit.comment(said))


def _with_another(document: tomlkit.TOMLDocument, client: str) -> str:
    """The document with one more table after the last client."""
    listed: Any = document["clients"]
    mark = f'name = "client {len(listed)} is to follow"'
    listed.append(tomlkit.parse(mark))
    marked = tomlkit.dumps(document)
    start = marked.rindex("[[", 0, marked.index(mark))
    before, after = marked[:start].rstrip(), marked[marked.index(mark) + len(mark) :].lstrip()
    return f"{before}\n\n{client}" + (f"\n{after}" if after else "")


def _with_shared(text: str, missing: Shared) -> str:
    """The text with these keys after the line that says how many rounds there are, or on top."""
    if not missing:
        return text
    lines = "".join(f"{key} = {_text(value)}  # {_NOTES[key]}\n" for key, value in missing.items())
    rounds = re.search(r"(?m)^[ \t]*rounds[ \t]*=.*\n", text)
    place = rounds.end() if rounds else 0
    return text[:place] + lines + text[place:]


def _check_others(before: dict[str, Any], after: dict[str, Any], name: str, path: Path) -> None:
    """Make sure that everything else is as it was."""

    def others(data: dict[str, Any]) -> list[Any]:
        return [each for each in data.get("clients", []) if _name_of(each) != name]

    same = {key: after.get(key) for key in before} | {"clients": None} == before | {"clients": None}
    if not same or others(before) != others(after):
        raise FedaccordError(f"{path}: cannot be changed without changing something else")


def _text(value: Any) -> str:
    """A value in TOML; a number as the shortest text that reads back as the same."""
    if isinstance(value, Range):
        ends = ", ".join(f"{key} = {_text(end)}" for key, end in value.to_dict().items())
        return f"{{ {ends} }}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # printable: JSON's escapes will do
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1e15)
    return f"{int(value):_}" if whole else repr(float(value))
