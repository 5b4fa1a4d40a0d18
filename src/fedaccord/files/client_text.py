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
from fedaccord.files.consortium import build_consortium, load_consortium
from fedaccord.files.reading import TOML_LIMIT, load_toml, parse_toml, read_text
from fedaccord.game.consortium import Consortium
from fedaccord.game.slot import slots_per_year


class Entry(NamedTuple):
    """A number of a client, and where it came from."""

    value: float
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
    consortium = check_has_tables(path)
    before = load_toml(path)
    _check_shared(before, shared, path)
    text = read_text(path, TOML_LIMIT)
    try:
        document = tomlkit.parse(text)
        listed: Any = document["clients"]
        if normalised(name) in consortium.names:
            n = consortium.index(name)
            listed[n] = _with_entries(listed[n], entries)
            changed = tomlkit.dumps(document)
        else:
            changed = _with_another(document, client_text(name, entries))
    except TOMLKitError as error:
        raise InvalidInput(f"cannot be rewritten: {error}", str(path)) from None
    changed = _with_shared(changed, {key: shared[key] for key in shared if key not in before})
    if "\r\n" in text:
        changed = re.sub(r"(?<!\r)\n", "\r\n", changed)
    _check_others(before, parse_toml(changed, str(path)), normalised(name), path)
    return changed


def check_has_tables(path: Path) -> Consortium:
    """The consortium in the file at `path`, whose clients must be tables."""
    consortium = load_consortium(path)
    clients = tomlkit.parse(read_text(path, TOML_LIMIT))["clients"]
    if isinstance(clients, str):
        raise InvalidInput(f"takes its clients from {clients}; add the numbers there", str(path))
    if not isinstance(clients, AoT):
        raise InvalidInput(
            "lists its clients in brackets; write them as [[clients]] tables, so that each number "
            "can have a comment",
            str(path),
        )
    return consortium


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
    body = [(key, item) for key, item in client.value.body]
    last = max(n for n, (key, _) in enumerate(body) if key is not None)
    table = tomlkit.table()
    for n, (key, item) in enumerate(body):
        field = "" if key is None else key.key.partition(".")[0]
        if key is None:
            table.append(None, item)  # a comment or an empty line
        elif field in left:
            _append(table, field, left.pop(field), item)
        elif field == "cpu" and "cost_per_sample" in entries:
            if "cost_per_sample" in left:
                _append(table, "cost_per_sample", left.pop("cost_per_sample"), item)
        else:
            table.append(key, item)
        if n == last:
            for other, entry in left.items():
                _append(table, other, entry, None)
    return table


def _append(table: Table, field: str, entry: Entry, old: Item | None) -> None:
    """Append a number with its comment, and before it the comment that the old number had."""
    said = old.trivia.comment if old is not None else ""
    if said and not said.lstrip("# ").startswith(_OURS):
        table.add(tomlkit.comment(said.lstrip("# ")))
    number = tomlkit.value(_text(entry.value))
    number.comment(entry.comment)
    number.trivia.comment_ws = "  "
    table.append(field, number)


def _with_another(document: tomlkit.TOMLDocument, client: str) -> str:
    """The document with one more table after the last client."""
    listed: Any = document["clients"]
    mark = f"fedaccord-{len(listed)}"
    listed.append(tomlkit.item({"name": mark}))
    marked = tomlkit.dumps(document)
    start = marked.index(f'[[clients]]\nname = "{mark}"\n')
    end = marked.index("\n", marked.index(mark)) + 1
    before, after = marked[:start].rstrip("\r\n"), marked[end:].lstrip("\r\n")
    return f"{before}\n\n{client}" + (f"\n{after}" if after else "")


def _with_shared(text: str, missing: Shared) -> str:
    """The text with these keys after the line that says how many rounds there are."""
    if not missing:
        return text
    lines = "".join(f"{key} = {_text(value)}  # {_NOTES[key]}\n" for key, value in missing.items())
    return re.sub(r"(?m)^([ \t]*rounds[ \t]*=.*\n)", lambda found: found[1] + lines, text, count=1)


def _check_others(before: dict[str, Any], after: dict[str, Any], name: str, path: Path) -> None:
    """Make sure that the new text is a consortium, in which all others are as they were."""
    build_consortium(after, path)

    def others(data: dict[str, Any]) -> list[Any]:
        return [each for each in data["clients"] if normalised(each["name"]) != name]

    same = {key: after.get(key) for key in before} | {"clients": None} == before | {"clients": None}
    if not same or others(before) != others(after):
        raise FedaccordError(f"{path}: cannot be changed without changing something else")


def _text(value: Any) -> str:
    """A value in TOML; a number as the shortest text that reads back as the same."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # printable: JSON's escapes will do
    whole = float(value).is_integer() and abs(value) < 1e15
    return f"{int(value):_}" if whole else repr(float(value))
