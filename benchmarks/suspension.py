"""Solving with suspension against solving with reversion: a million clients, and a batch."""

from collections.abc import Callable, Iterator

import fedaccord as fa
from benchmarks.consortia import fresh, random_consortium, random_fields
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower

CLIENTS = 1_000_000
CONSORTIA, CLIENTS_EACH = 10_000, 100
REPEATS = 7


def run() -> Iterator[Row]:
    consortium = random_consortium(1, CLIENTS)
    fields = random_fields(3, CONSORTIA, CLIENTS_EACH)

    def one(given: fa.Consortium, punishment: fa.Reversion | fa.Suspension) -> object:
        return fa.solve_agreement(given, objective="most data", punishment=punishment)

    def batch(_: object, punishment: fa.Reversion | fa.Suspension) -> object:
        return fa.solve_batch(**fields, punishment=punishment)

    yield _compare(f"individual agreement of {CLIENTS:,} clients", one, lambda: fresh(consortium))
    yield _compare(f"{CONSORTIA:,} agreements of {CLIENTS_EACH} clients in one call", batch)


def _compare(
    what: str, solve: Callable[..., object], prepare: Callable[[], object] = lambda: None
) -> Row:
    suspension, reversion = race(
        Contestant(lambda given: solve(given, fa.Suspension(1)), prepare),
        Contestant(lambda given: solve(given, fa.Reversion()), prepare),
        repeats=REPEATS,
    )
    return slower(
        "suspension",
        f"{what} with suspension",
        "the same with reversion",
        suspension,
        reversion,
        target=1.2,
        note="most data; one slot of suspension, reversion for ever",
    )
