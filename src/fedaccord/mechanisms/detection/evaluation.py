"""Every detector against every disguise, with few and with many free riders.

Two ways for the server to go about it:

- *round*: it has nothing but the updates of the round. The detector is fitted on them, free riders
  and all, and as many are dropped as there are free riders: the server is given their number, which
  is the best case for it.
- *reference*: it has updates that are known to be honest, from clients that it trusts or from data
  of its own. The detector is fitted on one half of them, the other half sets the threshold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any, Literal, TypeAlias

from fedaccord.checks import unknown
from fedaccord.errors import InvalidInput
from fedaccord.mechanisms.detection.dagmm import Dagmm
from fedaccord.mechanisms.detection.detector import (
    Detector,
    Verdict,
    by_percentile,
    by_reference,
    fewest_scores,
    judge,
)
from fedaccord.mechanisms.detection.disguises import Disguise
from fedaccord.mechanisms.detection.ecod import Ecod
from fedaccord.mechanisms.detection.setting import Round, Setting

FittedOn = Literal["round", "reference"]


@dataclass(frozen=True)
class Outcome:
    """How one detector did in one round."""

    detector: str
    fitted_on: FittedOn
    disguise: str
    free_riders: int
    seed: int
    verdict: Verdict


def evaluate(
    setting: Setting,
    detectors: Mapping[str, Callable[[int], Detector]],
    disguises: Mapping[str, Disguise],
    free_riders: Sequence[int],
    *,
    false_alarms: float = 0.05,
    repeats: int = 1,
) -> Iterator[Outcome]:
    """One outcome after another, as they are worked out; each repeat has the next seed.

    Detectors are made from a seed, as those in DETECTORS are.
    """
    for count in free_riders:
        setting.check(count)
    _check_reference(setting.reference, false_alarms)
    for seed in range(setting.seed, setting.seed + repeats):
        made = {name: make(seed) for name, make in detectors.items()}
        for disguise, count in product(disguises, free_riders):
            given = replace(setting, seed=seed).play(count, disguises[disguise])
            for name, detector in made.items():
                for fitted_on, verdict in _verdicts(detector, given, false_alarms):
                    yield Outcome(name, fitted_on, disguise, count, seed, verdict)


def _check_reference(updates: int, false_alarms: float) -> None:
    """Refuse at once what would be refused after the first training."""
    fewest = fewest_scores(false_alarms)
    needed = max(2 * fewest - 1, 2)  # the half for the threshold is the larger one
    if 0 < updates < needed:
        raise InvalidInput(
            f"reference: must be {needed} or more, or 0, got {updates}: half of these updates set "
            f"the threshold, which takes at least {fewest} for {false_alarms:.3g} false alarms"
        )


def _verdicts(
    detector: Detector, given: Round, false_alarms: float
) -> Iterator[tuple[FittedOn, Verdict]]:
    scores = detector.fit(given.updates).scores(given.updates)
    honest = 100.0 * float(1.0 - given.free_riders.mean())
    yield "round", judge(scores, given.free_riders, by_percentile(scores, honest))
    if len(given.reference):
        half = len(given.reference) // 2
        fitted = detector.fit(given.reference[:half])
        threshold = by_reference(fitted.scores(given.reference[half:]), false_alarms)
        yield "reference", judge(fitted.scores(given.updates), given.free_riders, threshold)


DETECTORS: dict[str, Callable[[int], Detector]] = {
    "dagmm": lambda seed: Dagmm(seed=seed),
    "std-dagmm": lambda seed: Dagmm(deviation=True, seed=seed),
    "ecod": lambda _: Ecod(),
}


def find_detector(name: str) -> Callable[[int], Detector]:
    """How a built-in detector is made from a seed."""
    if name not in DETECTORS:
        raise InvalidInput(f"there is no detector called {name!r}: {unknown(name, DETECTORS)}")
    return DETECTORS[name]


Record: TypeAlias = dict[str, Any]
Case: TypeAlias = tuple[str, int, str, str]
"""Disguise, number of free riders, detector, and what it was fitted on."""

_TITLES = {"dagmm": "DAGMM", "std-dagmm": "STD-DAGMM", "ecod": "ECOD"}
_WAYS = ("round", "reference")


def record_of(outcome: "Outcome") -> Record:
    """One outcome, as JSON has it."""
    verdict = outcome.verdict
    return {
        "disguise": outcome.disguise,
        "free_riders": outcome.free_riders,
        "detector": outcome.detector,
        "fitted_on": outcome.fitted_on,
        "seed": outcome.seed,
        "auc": verdict.area,
        "precision": verdict.precision,
        "recall": verdict.recall,
        "dropped": verdict.dropped,
        "dropped_contributors": verdict.dropped_contributors,
    }


def means_by_case(records: Iterable[Record]) -> dict[Case, list[str]]:
    """AUC, precision, recall and wrongly dropped contributors of each case."""
    cases: dict[Case, list[Record]] = {}
    for one in records:
        case = (one["disguise"], one["free_riders"], one["detector"], one["fitted_on"])
        cases.setdefault(case, []).append(one)
    return {case: _means(group) for case, group in cases.items()}


def _means(records: Sequence[Record]) -> list[str]:
    """The means over the repeats; of the precision, over those in which anyone was dropped."""
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


def markdown_tables(records: Iterable[Record]) -> tuple[str, str]:
    """The AUC of each case; and its precision, recall and wrongly dropped contributors."""
    means = means_by_case(records)
    return _markdown(means, slice(0, 1)), _markdown(means, slice(1, None))


def _markdown(means: dict[Case, list[str]], shown: slice) -> str:
    """A row for each disguise and number, a column for each detector and what it was fitted on."""
    rows = dict.fromkeys((disguise, riders) for disguise, riders, _, _ in means)
    tried = dict.fromkeys((detector, way) for _, _, detector, way in means)
    columns = sorted(tried, key=lambda column: _WAYS.index(column[1]))
    head = [f"{_TITLES.get(detector, detector)}, {way}" for detector, way in columns]
    lines = [f"| disguise | free riders | {' | '.join(head)} |", "|---" * (2 + len(columns)) + "|"]
    for disguise, riders in rows:
        cells = [" / ".join(means[disguise, riders, *column][shown]) for column in columns]
        lines.append(f"| `{disguise}` | {riders} | {' | '.join(cells)} |")
    return "\n".join(lines)
