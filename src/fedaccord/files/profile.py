"""Profile files: who contributes what, matched with the clients of a consortium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedaccord.checks import normalised, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.reading import Mistakes, load_json
from fedaccord.files.tables import ClientTable, finite_number, read_csv, rows_in_order
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray, as_text


def read_entries(data: Any, mistakes: Mistakes) -> ClientTable:
    """The names and contributions in any of the forms that a JSON profile may have."""
    path = ""
    for key, form in (("agreement", dict), ("clients", list)):
        if isinstance(data, dict) and isinstance(data.get(key), form):
            data, path = data[key], f"{path}.{key}".lstrip(".")
    if isinstance(data, dict):
        entries = [{"name": name, "contribution": amount} for name, amount in data.items()]
    elif isinstance(data, list):
        entries = [entry if isinstance(entry, dict) else {} for entry in data]
    else:
        raise InvalidInput("must be a list or an object of the clients' contributions")
    names = [_name(entry) for entry in entries]
    amounts = np.array([finite_number(entry.get("contribution")) for entry in entries])

    def place(n: int, field: str) -> str:
        return shown(names[n]) if isinstance(data, dict) else f"{path}[{n}].{field}"

    table = ClientTable(names, {"contribution": amounts}, place, lambda n: place(n, "name"))
    for n, entry in enumerate(entries):
        if names[n] is None:
            mistakes.add(Problem("name", "is missing", place(n, "name")), n)
        if "contribution" not in entry:
            table.add(mistakes, n, "contribution", "is missing")
        elif np.isnan(amounts[n]):
            wrong = f"must be a finite number, got {shown(entry['contribution'])}"
            table.add(mistakes, n, "contribution", wrong)
    return table


def _name(entry: dict[str, Any]) -> str | None:
    name = entry.get("name")
    return normalised(name.strip()) if isinstance(name, str) else None


def in_order(given: ClientTable, consortium: Consortium, mistakes: Mistakes) -> FloatArray:
    """The contributions in the order of the consortium's clients, exactly one for each."""
    rows = rows_in_order(given, consortium, mistakes, "contribution")
    profile = np.append(given.numbers["contribution"], np.nan)[rows]  # row -1 is the last, NaN
    outside = (profile < 0) | (profile > consortium.samples)
    for n in np.flatnonzero(outside).tolist():
        most = as_text(consortium.samples[n])
        wrong = f"must be from 0 to {most}, got {as_text(profile[n])}"
        given.add(mistakes, int(rows[n]), "contribution", wrong)
    if mistakes:
        raise mistakes.error()
    profile.flags.writeable = False
    return profile


def load_profile(path: str | Path, consortium: Consortium) -> FloatArray:
    """The contributions in a file, in the order of the consortium's clients.

    Args:
        path: CSV with the columns name and contribution; or JSON: a list of objects with the keys
            name and contribution, an object {name: contribution}, or the JSON that
            `fedaccord solve` prints.
        consortium: The clients, each of which must have exactly one contribution in the file.

    Raises:
        InvalidInput: with every problem found in the file, each with its place.
    """
    path = Path(path)
    mistakes = Mistakes(str(path))
    try:
        if path.suffix.lower() == ".json":
            given = read_entries(load_json(path), mistakes)
        else:
            given = read_csv(path, mistakes, ["contribution"])
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None
    return in_order(given, consortium, mistakes)
