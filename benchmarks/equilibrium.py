"""The equilibrium of a million clients against sorting a million numbers."""

import numpy as np

import fedaccord as fa
from benchmarks.consortia import fresh, random_consortium
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower

CLIENTS = 1_000_000
REPEATS = 15


def run() -> list[Row]:
    consortium = random_consortium(1, CLIENTS)
    numbers = np.random.default_rng(2).random(CLIENTS)
    ours, sort = race(
        Contestant(fa.solve_equilibrium, prepare=lambda: fresh(consortium)),
        Contestant(lambda _: np.sort(numbers)),
        repeats=REPEATS,
    )
    equilibrium = fa.solve_equilibrium(consortium)
    note = f"{equilibrium.free_riders:,} free riders; building the consortium is not timed"
    return [
        slower(
            "equilibrium",
            f"equilibrium of {CLIENTS:,} clients",
            "numpy.sort of as many floats",
            ours,
            sort,
            target=3.0,
            note=note,
        )
    ]
