"""The types of a consortium's clients, from a file: how long each takes, what training costs it."""

from pathlib import Path

import numpy as np

from fedaccord.errors import InvalidInput
from fedaccord.game.arrays import plain
from fedaccord.game.client_table import read_csv
from fedaccord.game.consortium import Consortium
from fedaccord.game.matching import rows_in_order
from fedaccord.game.mistakes import Mistakes

_RULES = {"delay": "0 or more", "cost_per_sample": "more than 0"}


def load_types(path: str | Path, consortium: Consortium) -> dict[str, tuple[float, ...]]:
    """The columns `delay` and `cost_per_sample` of a CSV file, in the order of the clients.

    Beside `name` the file has one of them or both; what it has not is not in the answer, and
    `Contract(**load_types(...))` takes its own rule for it.
    """
    path = Path(path)
    mistakes = Mistakes(str(path))
    try:
        given = read_csv(path, mistakes, [], list(_RULES))
        if not given.numbers:
            raise InvalidInput("line 1: column 'delay' or 'cost_per_sample' is missing")
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None
    for field, values in given.numbers.items():
        least = values >= 0 if field == "delay" else values > 0
        for k in np.flatnonzero(~least).tolist():
            if given.place(k, field) not in mistakes and given.names[k] is not None:
                got = "none" if np.isnan(values[k]) else plain(values[k])
                given.add(mistakes, k, field, f"must be {_RULES[field]}, got {got}")
    rows = rows_in_order(given, consortium, mistakes, "line")
    if mistakes:
        raise mistakes.error()
    return {field: tuple(values[rows].tolist()) for field, values in given.numbers.items()}
