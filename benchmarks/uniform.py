"""The uniform agreement against the paper's scan over all levels (Algorithm 2)."""

from collections.abc import Iterator

import fedaccord as fa
from benchmarks.consortia import fresh
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster
from benchmarks.scan import scan_levels

CLIENTS = 100
AT_ONCE = 20
"""How often ours is solved in one timed run: once is too short to time accurately."""
ONE_IN = 50
"""The scan checks one in this many levels, since all of them would take too long."""


def run() -> Iterator[Row]:
    small = fa.paper_consortium(clients=CLIENTS, samples=10_000)
    # A game with 100 times the data is the same game when the ratios are 100^1.5 times as large.
    large = fa.paper_consortium(clients=CLIENTS, samples=1_000_000, cost_per_sample=0.985e-11)
    yield _compare(small, 1, 100.0)
    yield _compare(large, ONE_IN, 10_000.0)


def _compare(consortium: fa.Consortium, step: int, target: float) -> Row:
    def solve(prepared: list[fa.Consortium]) -> None:
        for one in prepared:
            fa.solve_agreement(one, kind="uniform")

    def scan(prepared: fa.Consortium) -> tuple[int, int]:
        return scan_levels(fa.solve_equilibrium(prepared), step=step)

    ours, theirs = race(
        Contestant(solve, prepare=lambda: [fresh(consortium) for _ in range(AT_ONCE)]),
        Contestant(scan, prepare=lambda: fresh(consortium)),
        repeats=5,
    )
    agreement = fa.solve_agreement(consortium, kind="uniform")
    level = agreement.level or 0.0
    # all levels from just below ours to the top: the largest of all is among them
    scanned, _ = scan_levels(agreement.equilibrium, start=max(1, int(level) - 100))
    note = f"level {level:,.1f}, the scan's {scanned:,}"
    if abs(level - scanned) > 1.0:
        note += ": they do NOT agree"
    if step > 1:
        theirs = theirs.extrapolated(1 / step)
        note += f"; its time is extrapolated from one level in {step}"
    samples = f"{consortium.samples[0]:,.0f}"
    return faster(
        "uniform",
        f"uniform agreement, {CLIENTS} clients of {samples} samples",
        "the paper's scan of all levels",
        ours.each(AT_ONCE),
        theirs,
        target=target,
        note=note,
    )
