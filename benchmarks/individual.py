"""The individual agreement of a million clients: its time against a sort, and its memory."""

import tracemalloc

import numpy as np

import fedaccord as fa
from benchmarks.consortia import fresh, random_consortium
from benchmarks.equilibrium import QUICK_SORT, STABLE_SORT
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower

CLIENTS = 1_000_000
REPEATS = 7


def run() -> list[Row]:
    consortium = random_consortium(1, CLIENTS)
    numbers = np.random.default_rng(2).random(CLIENTS)
    ours, sort, stable_sort = race(
        Contestant(fa.solve_agreement, prepare=lambda: fresh(consortium)),
        Contestant(lambda _: np.sort(numbers)),
        Contestant(lambda _: np.sort(numbers, kind="stable")),
        repeats=REPEATS,
    )
    what = f"individual agreement of {CLIENTS:,} clients"
    agreement = fa.solve_agreement(consortium)
    note = f"{agreement.ratio:.2f} times the equilibrium's data; the time includes the equilibrium"
    return [
        slower("individual", what, QUICK_SORT, ours, sort, target=60.0, note=note),
        slower("individual", what, STABLE_SORT, ours, stable_sort),
        Row(
            "individual",
            f"{what}, memory",
            "one array of as many floats",
            value=peak_memory(fresh(consortium)) / numbers.nbytes,
            target=20.0,
            unit="arrays",
            note="peak allocation while solving (tracemalloc)",
        ),
    ]


def peak_memory(consortium: fa.Consortium) -> int:
    """Peak number of bytes allocated while the agreement is computed."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        fa.solve_agreement(consortium)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
