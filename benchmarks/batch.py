"""Many consortia in one call against one call for each."""

from collections.abc import Iterator

import numpy as np

import fedaccord as fa
from benchmarks.consortia import Fields, random_fields
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster
from fedaccord.agreement.agreement import SolvedKind

CONSORTIA, CLIENTS = 10_000, 100
ONE_BY_ONE = 200
"""How many of them are solved one by one; the time for all is extrapolated."""


def run() -> Iterator[Row]:
    yield _compare("individual")
    yield _compare("uniform")


def _compare(kind: SolvedKind) -> Row:
    fields = random_fields(3, CONSORTIA, CLIENTS)

    def all_at_once(_: object) -> object:
        return fa.solve_batch(**fields, kind=kind)

    def one_by_one(_: object = None) -> list[float]:
        some = (fa.Consortium(**_row(fields, n)) for n in range(ONE_BY_ONE))
        return [fa.solve_agreement(one, kind).total for one in some]

    ours, theirs = race(Contestant(all_at_once), Contestant(one_by_one), repeats=5)
    totals = fa.solve_batch(**fields, kind=kind).total[:ONE_BY_ONE]
    apart = float(np.abs(totals / one_by_one() - 1.0).max())
    return faster(
        "batch",
        f"{CONSORTIA:,} {kind} agreements of {CLIENTS} clients in one call",
        "one call each",
        ours,
        theirs.extrapolated(ONE_BY_ONE / CONSORTIA),
        target=30.0,
        note=f"both from the same arrays; {ONE_BY_ONE} solved one by one, extrapolated; "
        f"totals differ by at most {apart:.0e}",
    )


def _row(fields: Fields, n: int) -> Fields:
    return {key: values[n] if np.ndim(values) else values for key, values in fields.items()}
