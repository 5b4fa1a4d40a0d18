"""Every detector against every disguise, with few and with many free riders.

Two ways for the server to go about it:

- *round*: it has nothing but the updates of the round. The detector is fitted on them, free riders
  and all, and as many are dropped as there are free riders: the server is given their number, which
  is the best case for it.
- *reference*: it has updates that are known to be honest, from clients that it trusts or from data
  of its own. The detector is fitted on one half of them, the other half sets the threshold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from fedaccord.baselines.detection.dagmm import Dagmm
from fedaccord.baselines.detection.detector import Detector
from fedaccord.baselines.detection.disguises import Disguise
from fedaccord.baselines.detection.ecod import Ecod
from fedaccord.baselines.detection.setting import Round, Setting
from fedaccord.baselines.detection.threshold import by_percentile, by_reference, fewest_scores
from fedaccord.baselines.detection.verdict import Verdict, judge
from fedaccord.errors import InvalidInput
from fedaccord.game.mistakes import unknown

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
