"""A law of the loss with four terms against the paper's: one large consortium, a batch, laws."""

from collections.abc import Iterator

import numpy as np

import fedaccord as fa
from benchmarks.consortia import fresh, random_consortium, random_fields
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower
from fedaccord.game.law import Law
from fedaccord.game.law_rows import stacked
from fedaccord.numbers import FloatArray

CLIENTS = 1_000_000
CONSORTIA, CLIENTS_EACH = 10_000, 100
LAWS, FEW = 1_000, 100
SHARES = np.array([0.4, 0.3, 0.2, 0.1])
SHIFTS = np.array([0.02, 0.2, 1.0, 5.0])


def mixture(total: float, values: FloatArray = SHARES) -> Law:
    """Four terms with the slope of the paper's law at this total."""
    shift = total * SHIFTS
    slope = float(Law.paper(50).slope(total))
    return Law.mixture(values * slope / float(Law.mixture(SHARES, shift).slope(total)), shift)


def run() -> Iterator[Row]:
    yield _one()
    yield _batch()
    yield _robust()


def _one() -> Row:
    consortium = random_consortium(1, CLIENTS)
    law = mixture(fa.solve_equilibrium(consortium).total)
    ours, paper = race(
        Contestant(fa.solve_agreement, prepare=lambda: fresh(consortium).with_law(law)),
        Contestant(fa.solve_agreement, prepare=lambda: fresh(consortium)),
        repeats=5,
    )
    return slower(
        "law",
        f"individual agreement of {CLIENTS:,} clients under a law of four terms",
        "the paper's law",
        ours,
        paper,
        target=4.0,
        note="the time includes the equilibrium",
    )


def _batch() -> Row:
    fields = random_fields(3, CONSORTIA, CLIENTS_EACH)
    law = mixture(float(fa.solve_batch(**fields).equilibrium_total.mean()))
    ours, paper = race(
        Contestant(lambda _: fa.solve_batch(**fields, law=law)),
        Contestant(lambda _: fa.solve_batch(**fields)),
        repeats=5,
    )
    return slower(
        "law",
        f"{CONSORTIA:,} individual agreements of {CLIENTS_EACH} clients under a law of four terms",
        "the paper's law",
        ours,
        paper,
        target=4.0,
        note="one call each",
    )


def _robust() -> Row:
    consortium = fa.paper_consortium(FEW)
    total = fa.solve_equilibrium(consortium).total
    rng = np.random.default_rng(4)
    laws = [mixture(total, SHARES * np.exp(0.05 * rng.normal(size=4))) for _ in range(LAWS)]
    fitted, rows = consortium.with_law(mixture(total)), stacked(laws)
    [ours] = race(Contestant(lambda _: fa.solve_agreement(fitted, laws=[rows])), repeats=5)
    found = fa.solve_agreement(fitted, laws=[rows])
    part = found.total / fa.solve_agreement(fitted).total
    return Row(
        "law",
        f"individual agreement of {FEW} clients that holds for {LAWS:,} laws",
        "one second",
        value=ours.wall,
        target=1.0,
        unit="s",
        ours=ours,
        note=f"{part:.4f} of the total for the fitted law alone",
    )
