"""Every detector against every disguise, with few and with many free riders.

The server can fit a detector in two ways:

- *round*: it has only the updates of the round. The detector is fitted to them, including those of
  the free riders, and as many clients are dropped as there are free riders: the server is told
  their number, which is the best case for it.
- *reference*: it has updates that are known to be honest, from clients that it trusts or from its
  own data. The detector is fitted to one half of them; the other half sets the threshold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any, Literal, TypeAlias

from fedaccord.checks import unknown
from fedaccord.errors import InvalidInput
from fedaccord.mechanisms.detection.detector import (
    DetectionQuality,
    Detector,
    by_percentile,
    by_reference,
    fewest_scores,
    measure,
)
from fedaccord.mechanisms.detection.methods import Dagmm, Ecod
from fedaccord.mechanisms.detection.setting import DetectionSetting, Disguise, ObservedRound
from fedaccord.plugins import find, names_in

FittedOn = Literal["round", "reference"]


@dataclass(frozen=True)
class DetectionResult:
    """How one detector did in one round."""

    detector: str
    fitted_on: FittedOn
    disguise: str
    free_riders: int
    seed: int
    quality: DetectionQuality

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "disguise": self.disguise,
            "free_riders": self.free_riders,
            "detector": self.detector,
            "fitted_on": self.fitted_on,
            "seed": self.seed,
            "auc": self.quality.area,
            "precision": self.quality.precision,
            "recall": self.quality.recall,
            "dropped": self.quality.dropped,
            "dropped_contributors": self.quality.dropped_contributors,
        }


def evaluate(
    setting: DetectionSetting,
    detectors: Mapping[str, Callable[[int], Detector]],
    disguises: Mapping[str, Disguise],
    free_riders: Sequence[int],
    *,
    false_alarms: float = 0.05,
    repeats: int = 1,
) -> Iterator[DetectionResult]:
    """Measure each detector in each case, one result after another; each repeat has the next seed.

    A detector is made from a seed, as those in `DETECTORS` are.
    """
    for count in free_riders:
        setting.check(count)
    _check_reference(setting.reference, false_alarms)
    for seed in range(setting.seed, setting.seed + repeats):
        made = {name: make(seed) for name, make in detectors.items()}
        for disguise, count in product(disguises, free_riders):
            observed = replace(setting, seed=seed).observe(count, disguises[disguise])
            for name, detector in made.items():
                for fitted_on, quality in _measured(detector, observed, false_alarms):
                    yield DetectionResult(name, fitted_on, disguise, count, seed, quality)


def _check_reference(updates: int, false_alarms: float) -> None:
    """Refuse at once what would otherwise be refused after the first training."""
    fewest = fewest_scores(false_alarms)
    needed = max(2 * fewest - 1, 2)  # the half for the threshold is the larger one
    if 0 < updates < needed:
        raise InvalidInput(
            f"must be {needed} or more, or 0, got {updates}: half of these updates set the "
            f"threshold, which requires at least {fewest} for {false_alarms:.3g} false alarms",
            field="reference",
        )


def _measured(
    detector: Detector, given: ObservedRound, false_alarms: float
) -> Iterator[tuple[FittedOn, DetectionQuality]]:
    scores = detector.fit(given.updates).scores(given.updates)
    honest = 100.0 * float(1.0 - given.free_riders.mean())
    yield "round", measure(scores, given.free_riders, by_percentile(scores, honest))
    if len(given.reference):
        half = len(given.reference) // 2
        fitted = detector.fit(given.reference[:half])
        threshold = by_reference(fitted.scores(given.reference[half:]), false_alarms)
        yield "reference", measure(fitted.scores(given.updates), given.free_riders, threshold)


DETECTORS: dict[str, Callable[[int], Detector]] = {
    "dagmm": lambda seed: Dagmm(seed=seed),
    "std-dagmm": lambda seed: Dagmm(deviation=True, seed=seed),
    "ecod": lambda _: Ecod(),
}
"""The built-in detectors, each made from a seed."""


def detector_names() -> list[str]:
    """The names of all detectors: built-in ones, then those of installed packages."""
    return names_in("detectors", DETECTORS)


def find_detector(name: str) -> Callable[[int], Detector]:
    """The function that makes this detector from a seed.

    Another package declares its detector by an entry point of the group `fedaccord.detectors`: a
    class or function that takes a seed.
    """
    found = find("detectors", name, DETECTORS)
    if found is None:
        known = unknown(name, detector_names())
        raise InvalidInput(f"there is no detector called {name!r}: {known}")
    return found


Row: TypeAlias = dict[str, Any]
Case: TypeAlias = tuple[str, int, str, str]
"""Disguise, number of free riders, detector, and what it was fitted to."""

_TITLES = {"dagmm": "DAGMM", "std-dagmm": "STD-DAGMM", "ecod": "ECOD"}
_WAYS = ("round", "reference")


def means_by_case(records: Iterable[Row]) -> dict[Case, list[str]]:
    """AUC, precision, recall and wrongly dropped contributors of each case."""
    cases: dict[Case, list[Row]] = {}
    for one in records:
        case = (one["disguise"], one["free_riders"], one["detector"], one["fitted_on"])
        cases.setdefault(case, []).append(one)
    return {case: _means(group) for case, group in cases.items()}


def _means(records: Sequence[Row]) -> list[str]:
    """The means over the repeats; for the precision, over those in which anyone was dropped."""
    cells = []
    for field, digits in (
        ("auc", 2),
        ("precision", 2),
        ("recall", 2),
        ("dropped_contributors", 1),
    ):
        known = [record[field] for record in records if record[field] is not None]
        cells.append(f"{fmean(known):.{digits}f}" if known else "–")
    return cells


def markdown_tables(records: Iterable[Row]) -> tuple[str, str]:
    """Two tables: the AUC of each case; and precision, recall and wrongly dropped contributors."""
    means = means_by_case(records)
    return _markdown(means, slice(0, 1)), _markdown(means, slice(1, None))


def _markdown(means: dict[Case, list[str]], shown: slice) -> str:
    """A row for each disguise and number, a column for each detector and what it was fitted to."""
    rows = dict.fromkeys((disguise, riders) for disguise, riders, _, _ in means)
    tried = dict.fromkeys((detector, way) for _, _, detector, way in means)
    columns = sorted(tried, key=lambda column: _WAYS.index(column[1]))
    head = [f"{_TITLES.get(detector, detector)}, {way}" for detector, way in columns]
    lines = [f"| disguise | free riders | {' | '.join(head)} |", "|---" * (2 + len(columns)) + "|"]
    for disguise, riders in rows:
        cells = [" / ".join(means[disguise, riders, *column][shown]) for column in columns]
        lines.append(f"| `{disguise}` | {riders} | {' | '.join(cells)} |")
    return "\n".join(lines)
