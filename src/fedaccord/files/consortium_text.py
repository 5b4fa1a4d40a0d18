"""A consortium file with another law, or other numbers for some clients, and all else as it was.

Comments, order and spacing stay; only the numbers change. There are two exceptions. A cost that was
described by `cpu` becomes a number. And if the clients are in a spreadsheet, the new text has them
as tables instead, so that it stands alone and the spreadsheet is not touched.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Table

from fedaccord.checks import normalised
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import description_text, load_consortium
from fedaccord.game.consortium import Client

Numbers = Mapping[str, float]
"""Numbers of a client by field, `valuation` and `cost_per_sample` among them."""


def with_numbers(
    path: str | Path,
    clients: Mapping[str, Numbers],
    comments: Sequence[str] = (),
    *,
    text: str | None = None,
) -> str:
    """The text of the consortium file at `path`, with these numbers for the clients called so.

    The comments go to the top. They replace those that an earlier call put there, which are known
    by the first words of their first line. `text` is what else the file is to say by then.
    """
    path = Path(path)
    consortium = load_consortium(path)
    changes = {consortium.names[consortium.index(name)]: each for name, each in clients.items()}
    text, document = _parsed(path, text)
    listed: Any = document["clients"]
    if isinstance(listed, str):
        document.remove("clients")
        written = [_client_text(client, changes.get(client.name, {})) for client in consortium]
        changed = "\n".join([tomlkit.dumps(document).rstrip() + "\n", *written])
    else:
        for n, client in enumerate(listed):
            if numbers := changes.get(normalised(client["name"])):
                _change(listed, n, numbers)
        changed = tomlkit.dumps(document)
    return _commented(changed, comments, "\r\n" if "\r\n" in text else "\n")


def with_law(
    path: str | Path,
    law: Mapping[str, Any],
    comments: Sequence[str] = (),
    clients: Sequence[str] | None = None,
) -> str:
    """The text of the consortium file at `path` with this `[law]` table, and all else as it was.

    In a table that is there already, comments stay, and so do resamples and seed if both laws are
    measured. The comments that are given go to the top, as with `with_numbers`. With `clients` all
    others are left out, and so are states, which may be about them.
    """
    text, document = _parsed(Path(path))
    if clients is not None:
        document = _of_clients(document, Path(path), clients)
    table: Any = document.get("law")
    if table is None:
        table = tomlkit.table()
    stays = ("resamples", "seed") if table.get("kind") == law["kind"] == "measured" else ()
    for key in [key for key in table if key not in law and key not in stays]:
        del table[key]
    for key, value in law.items():
        table[key] = value
    if "law" not in document:
        document.append("law", table)
    newline = "\r\n" if "\r\n" in text else "\n"
    return _commented(_spaced(tomlkit.dumps(document), newline), comments, newline)


def _of_clients(
    document: tomlkit.TOMLDocument, path: Path, names: Sequence[str]
) -> tomlkit.TOMLDocument:
    """The document with these clients alone, as tables, and without states."""
    for key in ("states", "transitions"):
        document.pop(key, None)
    listed: Any = document["clients"]
    if isinstance(listed, str):
        document.remove("clients")
        own = [_client_text(client, {}) for client in load_consortium(path) if client.name in names]
        return tomlkit.parse("\n".join([tomlkit.dumps(document).rstrip() + "\n", *own]))
    for n in reversed(range(len(listed))):
        if normalised(listed[n]["name"]) not in names:
            del listed[n]
    return document


def _spaced(text: str, newline: str) -> str:
    """The text with an empty line before the law's table, and an end to its last line."""
    text = text.replace(f"{newline}[law]", f"{newline}{newline}[law]")
    text = text.replace(newline * 3 + "[law]", newline * 2 + "[law]")
    return text if text.endswith(newline) else text + newline


def _parsed(path: Path, text: str | None = None) -> tuple[str, tomlkit.TOMLDocument]:
    """The text of a file, unless it is given, and what it says with all comments."""
    text = description_text(path) if text is None else text
    try:
        return text, tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(f"cannot be rewritten: {error}", str(path)) from None


def _change(clients: Any, n: int, numbers: Numbers) -> None:
    """Put the numbers into the n-th client, each where it is or where `cpu` was."""
    client = clients[n]
    if "cpu" in client and "cost_per_sample" in numbers:
        if isinstance(clients, AoT):
            client = clients[n] = _without_cpu(client, numbers["cost_per_sample"])
        else:
            del client["cpu"]
    for field, value in numbers.items():
        client[field] = float(value)


def _without_cpu(client: Table, cost_per_sample: float) -> Table:
    """A client's table with its cost in the place of `cpu`, also if that was a table or dotted."""
    table = tomlkit.table()
    for key, item in client.value.body:
        if key is None:
            table.append(None, item)  # a comment or an empty line
        elif key.key.partition(".")[0] != "cpu":
            table.append(key, item)
        elif "cost_per_sample" not in table:
            table.append("cost_per_sample", cost_per_sample)
    return table


def _commented(text: str, comments: Sequence[str], newline: str) -> str:
    """The text with the comments on top, in the place of an earlier version of them."""
    if not comments:
        return text
    start = " ".join(comments[0].split()[:2])
    if text.startswith(f"# {start}"):
        text = text.partition(newline * 2)[2]
    lines = [f"# {comment}" for comment in comments]
    return newline.join([*lines, "", ""]) + text.lstrip("\r\n")


# --- Clients that were in a spreadsheet ----------------------------------------------------


def _client_text(client: Client, numbers: Numbers) -> str:
    changed: dict[str, Any] = dict(numbers)
    client = replace(client, **changed)
    fields = [
        "[[clients]]",
        f"name = {json.dumps(client.name, ensure_ascii=False)}",  # printable: JSON's escapes do
        f"valuation = {_number(client.valuation)}",
        f"cost_per_sample = {_number(client.cost_per_sample)}",
        f"samples = {_number(client.samples)}",
    ]
    if client.communication_cost:
        fields.append(f"communication_cost = {_number(client.communication_cost)}")
    if client.discount_factor is not None:
        fields.append(f"discount_factor = {_number(client.discount_factor)}")
    if client.quality != 1:
        fields.append(f"quality = {_number(client.quality)}")
    return "\n".join(fields) + "\n"


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return (
        str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
    )
