"""Agreements over ranges of all numbers against plain ones, for one large consortium."""

from collections.abc import Iterator

import fedaccord as fa
from benchmarks.consortia import fresh, random_consortium
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower

CLIENTS = 1_000_000


def run() -> Iterator[Row]:
    yield _against(fa.Reversion())
    yield _against(fa.Suspension())


def _against(punishment: fa.Reversion | fa.Suspension) -> Row:
    consortium = random_consortium(1, CLIENTS)

    def solve(one: fa.Consortium) -> fa.Agreement:
        return fa.solve_agreement(one, objective="most data", punishment=punishment)

    ours, plain = race(
        Contestant(solve, prepare=lambda: fresh(consortium).within(0.3)),
        Contestant(solve, prepare=lambda: fresh(consortium)),
        repeats=5,
    )
    return slower(
        "ranges",
        f"individual agreement of {CLIENTS:,} clients, ratios known to 30 %, {punishment}",
        "exact numbers",
        ours,
        plain,
        target=2.0,
        note="the time includes the equilibrium",
    )
