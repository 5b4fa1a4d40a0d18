"""Agreements made for measured laws, under a true law that is known because it made the curve.

The curves are simulated: a true law at thirteen sizes, ten seeds, noise that neighbouring sizes
share as nested subsets do. An agreement is made for what was fitted, and judged by the truth.

`python -m benchmarks.simulated_calibrations` writes the table of docs/explanation/predictions.md
and the file beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fedaccord as fa
from benchmarks.consortia import six_hospitals
from benchmarks.predictions import PAGE
from benchmarks.row import Row
from benchmarks.tables import markdown, put_on_page, write_csv
from fedaccord.agreement.laws import held_under
from fedaccord.game.curve import LEVEL, Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law, laws_of

FILE = PAGE.with_name("simulated-agreements.csv")
BAND_FILE = PAGE.with_name("simulated-bands.csv")
LARGEST = 116_000.0
"""What the six hospitals have together."""
SIZES = np.round(LARGEST / np.sqrt(2.0) ** np.arange(12, -1, -1))
TRUTHS = {
    "shifted power": Law.power(40.0, 0.6, 3_000.0, 0.1),
    "X^-0.3": Law.power(7.0, 0.3),
    "X^-0.5": Law.power(13.0, 0.5, floor=0.2),
    "two bends": Law.mixture([0.6, 0.3], [2_000.0, 60_000.0], 2.0, 0.05),
}
AGREEMENTS = 25
"""Curves for each truth that agreements are made for."""
BANDS = 100
"""The same for bands, which take less time."""
SEEDS = 10
RESAMPLES = 200
NOISE = 0.4
"""The standard deviation of a run at the equilibrium, over the gain of the best agreement."""
TOGETHER = 0.8
"""The correlation of the noise at neighbouring sizes."""
ROBUST = f"all {RESAMPLES} laws"
MADE_FOR: dict[str, dict[str, Any]] = {
    "the fit": {"robust": False},
    "the fit, margin 0.05": {"robust": False, "margin": 0.05},
    "the fit, margin 0.1": {"robust": False, "margin": 0.1},
    ROBUST: {},
}


@dataclass(frozen=True)
class Outcome:
    """What one kind of agreement was worth under one truth, over many curves."""

    truth: str
    made_for: str
    curves: int
    exists: int
    holds: int
    """How many of those that exist hold under the truth."""
    total: float
    """Their mean total, over that of the best agreement for the truth."""


@dataclass(frozen=True)
class Coverage:
    """How many bands contain the true fall from the equilibrium to the best agreement."""

    truth: str
    curves: int
    covered: int
    by_resampling: int
    """The same by resampling alone: as if noise were known, and without the mirror image."""


@dataclass(frozen=True)
class Simulation:
    """A truth, the hospitals under it, and the laws that are fitted to simulated curves."""

    name: str
    truth: Law
    hospitals: fa.Consortium
    start: float
    """The total at the equilibrium."""
    best: float
    """The total of the best agreement."""
    laws: list[Law]

    @property
    def fall(self) -> float:
        """The true fall between the two."""
        return float(self.truth.fall(self.start, self.best - self.start))


def simulated_curve(truth: Law, noise: float, total: float, seed: list[int]) -> Curve:
    """A curve with this noise of a run at a total; noise falls as the root of the size."""
    rng = np.random.default_rng(seed)
    steps = np.abs(np.subtract.outer(np.arange(SIZES.size), np.arange(SIZES.size)))
    drawn = np.linalg.cholesky(TOGETHER**steps) @ rng.standard_normal((SIZES.size, SEEDS))
    spread = noise * np.sqrt(total / SIZES)
    values = (truth.loss(SIZES) + (spread * drawn.T)).T
    return Curve(SIZES, range(SEEDS), np.maximum(values, 0.0))


def simulate(name: str, curves: int) -> Simulation:
    """Fit a law to each of so many curves of a truth."""
    truth, stream = TRUTHS[name], list(TRUTHS).index(name)
    hospitals = six_hospitals(truth)
    start, best = fa.solve_equilibrium(hospitals).total, fa.solve_agreement(hospitals).total
    noise = NOISE * float(truth.fall(start, best - start))
    laws = [
        fit_law(simulated_curve(truth, noise, start, [k, stream]), resamples=RESAMPLES)
        for k in range(curves)
    ]
    return Simulation(name, truth, hospitals, start, best, laws)


def outcomes_of(simulation: Simulation) -> Iterator[Outcome]:
    """What becomes of each kind of agreement under the truth."""
    for made_for, options in MADE_FOR.items():
        found = [
            fa.solve_agreement(simulation.hospitals.with_law(law), **options)
            for law in simulation.laws
        ]
        made = [one for one in found if one.exists]
        holds = sum(held_under(one, simulation.truth).held for one in made)
        total = float(np.mean([one.total for one in made])) / simulation.best if made else np.nan
        yield Outcome(simulation.name, made_for, len(found), len(made), holds, total)


def coverage_of(simulation: Simulation) -> Coverage:
    """How often the band of the fall contains it."""
    start, best = simulation.start, simulation.best
    covered = by_resampling = 0
    for law in simulation.laws:
        assert law.evidence is not None
        bands = (
            law.evidence.band_of_fall(start, best),
            _band_by_resampling(law.evidence.curve, start, best),
        )
        inside = [bool(low <= simulation.fall <= high) for low, high in bands]
        covered, by_resampling = covered + inside[0], by_resampling + inside[1]
    return Coverage(simulation.name, len(simulation.laws), covered, by_resampling)


def _band_by_resampling(curve: Curve, start: float, best: float) -> tuple[float, float]:
    """The band that resampling alone gives."""
    rng = np.random.default_rng(0)
    drawn = curve.seed_factors @ rng.standard_normal((len(curve.seeds), RESAMPLES))
    falls = laws_of(curve, curve.mean[:, np.newaxis] + drawn).fall(start, best - start)
    low, high = np.quantile(falls, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def measure_all() -> tuple[list[Outcome], list[Coverage]]:
    """All truths."""
    outcomes = [one for name in TRUTHS for one in outcomes_of(simulate(name, AGREEMENTS))]
    return outcomes, [coverage_of(simulate(name, BANDS)) for name in TRUTHS]


def run() -> list[Row]:
    outcomes, bands = measure_all()
    agreements = [
        Row(
            "simulated_calibrations",
            f"agreements made for {made_for} that hold under the truth",
            f"{len(TRUTHS)} true laws, {AGREEMENTS} curves each",
            value=sum(one.holds for one in kind) / max(sum(one.exists for one in kind), 1),
            sense="at least",
            target=0.95 if made_for == ROBUST else None,
            unit="of them",
        )
        for made_for in MADE_FOR
        if (kind := [one for one in outcomes if one.made_for == made_for])
    ]
    inside = sum(one.covered for one in bands) / sum(one.curves for one in bands)
    against = f"{len(TRUTHS)} true laws, {BANDS} curves each"
    what = "90 % bands that contain the true fall"
    covered = Row("simulated_calibrations", what, against, inside, "at least", 0.85, "of them")
    return [*agreements, covered]


def tables(outcomes: Sequence[Outcome], bands: Sequence[Coverage]) -> dict[str, str]:
    """The tables of the page, by name."""
    rows = [
        _line(made_for, [one for one in outcomes if one.made_for == made_for])
        for made_for in MADE_FOR
    ]
    headings = ["made for", "exists", "holds under the truth", "by truth", "total / best total"]
    inside = [
        [
            one.truth,
            one.curves,
            f"{one.covered / one.curves:.2f}",
            f"{one.by_resampling / one.curves:.2f}",
        ]
        for one in bands
    ]
    return {
        "simulated": markdown(headings, rows),
        "coverage": markdown(["truth", "curves", "inside", "by resampling alone"], inside),
    }


def _line(made_for: str, kind: Sequence[Outcome]) -> list[str]:
    exists = sum(one.exists for one in kind)
    holds = [one.holds / one.exists for one in kind if one.exists]
    totals = [one.total for one in kind if one.exists]
    return [
        made_for,
        f"{exists} of {sum(one.curves for one in kind)}",
        f"{sum(one.holds for one in kind) / exists:.2f}",
        f"{min(holds):.2f} to {max(holds):.2f}",
        f"{min(totals):.3f} to {max(totals):.3f}",
    ]


def main() -> None:
    outcomes, bands = measure_all()
    write_csv(FILE, outcomes)
    write_csv(BAND_FILE, bands)
    put_on_page(PAGE, tables(outcomes, bands))


if __name__ == "__main__":
    main()
