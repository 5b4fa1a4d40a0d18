"""Rows of a table by the clients they are about, in the order of a consortium."""

from difflib import get_close_matches

import numpy as np
import numpy.typing as npt

from fedaccord.game.client_table import ClientTable, check_names
from fedaccord.game.consortium import Consortium
from fedaccord.game.mistakes import Mistakes, shown


def rows_in_order(
    given: ClientTable, consortium: Consortium, mistakes: Mistakes, lacking: str
) -> npt.NDArray[np.int64]:
    """The row of each client; each must have just one, and -1 stands for none.

    `lacking` says what a client without a row lacks.
    """
    check_names(given, mistakes)
    positions = {name: n for n, name in enumerate(consortium.names)}
    rows = np.full(consortium.size, -1, dtype=np.int64)
    for k, name in enumerate(given.names):
        n = positions.get(name or "")
        if n is not None:
            rows[n] = k if rows[n] < 0 else rows[n]  # a name given twice is a mistake already
        elif name:
            nobody = f"no client is called {shown(name)}{_hint(name, consortium)}"
            given.add(mistakes, k, "name", nobody)
    for n in np.flatnonzero(rows < 0).tolist():
        mistakes.add("", f"{shown(consortium.names[n])} has no {lacking}", len(given.names))
    return rows


def _hint(name: str, consortium: Consortium) -> str:
    """The client that was meant, perhaps; among very many it would take too long to look."""
    near = get_close_matches(name, consortium.names, n=1) if consortium.size <= 1000 else []
    return f"; did you mean {near[0]!r}?" if near else ""
