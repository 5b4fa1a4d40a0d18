"""The equilibrium of a million clients against sorting a million numbers."""

import numpy as np

import fedaccord as fa
from benchmarks.consortia import fresh, random_consortium
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower

CLIENTS = 1_000_000
REPEATS = 15
QUICK_SORT = "numpy.sort of as many floats"
"""It uses the widest instructions of a processor, if NumPy thinks that they are quicker there."""
STABLE_SORT = "a stable numpy.sort of as many floats"
"""It uses none of them, so that ratios to it say the same on many machines."""


def run() -> list[Row]:
    consortium = random_consortium(1, CLIENTS)
    numbers = np.random.default_rng(2).random(CLIENTS)
    ours, sort, stable_sort = race(
        Contestant(fa.solve_equilibrium, prepare=lambda: fresh(consortium)),
        Contestant(lambda _: np.sort(numbers)),
        Contestant(lambda _: np.sort(numbers, kind="stable")),
        repeats=REPEATS,
    )
    equilibrium = fa.solve_equilibrium(consortium)
    note = f"{equilibrium.free_riders:,} free riders; building the consortium is not timed"
    what = f"equilibrium of {CLIENTS:,} clients"
    return [
        slower("equilibrium", what, QUICK_SORT, ours, sort, target=3.0, note=note),
        slower("equilibrium", what, STABLE_SORT, ours, stable_sort),
    ]
