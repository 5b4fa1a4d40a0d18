"""Quality weights for the game: how many samples of the average member one of a client's is worth.

In the game samples count by their quality, X = sum of q_n x_n. Measured, the quality of a client's
x samples beside a base of B samples of others is what the law A says about how much further the
loss falls with them,

    q = (A^-1(A(B) + L_with - L_without) - B) / x,

with both losses from the same seeds and test examples. A client has one quality only if it does not
depend on the base. So it is measured at two, all that the others have and half of it, and where
these differ by more than noise there is no weight: wrong labels and missing classes look like that,
noisy inputs do not. Where both are below 0, the data does harm, and is best left out.

The noise of q is about that of the difference of losses over the slope of the law times x: a client
with few samples changes little, and nothing can be said about what each of them is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput
from fedaccord.game.law import Law
from fedaccord.membership.group_scores import COMMON, GroupScores
from fedaccord.membership.measuring import Run, Told, judge_runs
from fedaccord.membership.shapley import leave_one_out_weights
from fedaccord.numbers import FloatArray
from fedaccord.record import Record, Value
from fedaccord.training.estimates import CONFIDENCE

if TYPE_CHECKING:
    from fedaccord.training.course import Course

Verdict: TypeAlias = Literal["usable", "leave it out", "depends on the rest", "too uncertain"]
WIDEST = 1.0
"""Of the weight itself: an interval that is wider says too little to be used."""


@dataclass(frozen=True, eq=False)
class QualityWeight(Record):
    """What one of a client's samples is worth, in samples of the average member."""

    name: str
    samples: float
    bases: tuple[float, float]
    """The samples of others that it was measured beside: all of theirs, and half."""
    at_bases: tuple[float, float]
    """The weight at each."""
    value: float
    """The mean of the two."""
    low: float
    high: float
    """The ends of its interval."""
    verdict: Verdict

    @property
    def usable(self) -> bool:
        """Whether it can be put into a consortium file."""
        return self.verdict == "usable"

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "samples": self.samples,
            "bases": list(self.bases),
            "at_bases": list(self.at_bases),
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, eq=False)
class Change(Value):
    """What a client's data does to the loss, with it less without it, at both bases."""

    by_seed: FloatArray
    """By base and seed."""
    by_example: FloatArray
    """By base and test example."""

    def drawn(self, number: int, rng: np.random.Generator) -> FloatArray:
        """The change as other seeds and examples could have given it, by base and draw.

        Student's t in both directions at once: what is common to the two bases stays so.
        """
        parts = [
            (part - part.mean(axis=1, keepdims=True)) / np.sqrt(part.shape[1] * (part.shape[1] - 1))
            for part in (self.by_seed, self.by_example)
        ]
        factors = np.hstack(parts)
        freedom = self.by_seed.shape[1] - 1
        wider = np.sqrt(freedom / rng.chisquare(freedom, number))
        noise = factors @ rng.standard_normal((factors.shape[1], number))
        return np.asarray(self.mean[:, np.newaxis] + noise * wider)

    @property
    def mean(self) -> FloatArray:
        """At each base."""
        return np.asarray(self.by_seed.mean(axis=1))


def measure_quality(
    course: Course, scores: GroupScores, law: Law, progress: Told | None = None
) -> tuple[QualityWeight, ...]:
    """The quality of each client's samples by a measured law; some trainings are needed for that.

    `scores` must have everyone, and everyone but each client. The law says by its measure whether
    losses or errors are compared.
    """
    if law.evidence is None or law.is_personal:
        raise InvalidInput("must be one measured law for all clients", field="law")
    every = _values(scores, law.measure)
    without = leave_one_out_weights(scores.members)
    halves = _half_bases(course, scores.seeds, law.measure, progress)
    sizes = np.array([len(own) for own in course.partition(scores.seeds[0]).draw(1)])
    samples = sizes / course.scale
    weights = []
    for n, name in enumerate(course.names):
        full = np.tensordot(without[n], every, axes=1)
        change = Change(
            np.stack([full.mean(axis=1), halves[n].mean(axis=1)]),
            np.stack([full.mean(axis=0), halves[n].mean(axis=0)]),
        )
        others = float(samples.sum() - samples[n])
        half = float(sum(size // 2 for m, size in enumerate(sizes.tolist()) if m != n))
        bases = np.array([others, half / course.scale])
        who = (str(name), float(samples[n]))
        weights.append(quality_of(*who, bases, change, law, seed=n))
    return tuple(weights)


def _values(scores: GroupScores, measure: str) -> npt.NDArray[np.float64]:
    """By group, seed and example of the common test: losses or errors."""
    values = (scores.losses if measure == "loss" else scores.errors)[:, :, scores.tests[COMMON]]
    return np.asarray(values, dtype=np.float64)


def _half_bases(
    course: Course, seeds: Sequence[int], measure: str, progress: Told | None
) -> list[FloatArray]:
    """For each client, by seed and example: what it does to the loss of half of the others."""
    runs = []
    for seed in seeds:
        held = course.partition(seed).draw(1)
        for n, own in enumerate(held):
            halved = [share[: len(share) // 2] for share in held]
            runs.append(Run([*halved[:n], own[:0], *halved[n + 1 :]], seed))
            runs.append(Run([*halved[:n], own, *halved[n + 1 :]], seed))
    common = len(course.model.dataset.test_labels)
    values = np.array(
        [
            (judged.losses if measure == "loss" else judged.errors)[:common]
            for judged in judge_runs(course, runs, progress)
        ]
    )
    by_run = values.reshape(len(seeds), -1, 2, common)  # seed, client, without or with it
    return [by_run[:, n, 1] - by_run[:, n, 0] for n in range(by_run.shape[1])]


def quality_of(
    name: str, samples: float, bases: FloatArray, change: Change, law: Law, *, seed: int = 0
) -> QualityWeight:
    """The weight of a client's samples, given what they change, with its interval."""
    assert law.evidence is not None
    laws, number = law.evidence.resampled, law.evidence.resamples
    drawn = np.stack(
        [
            _worth(laws, base, changes[:, np.newaxis])[:, 0]
            for base, changes in zip(
                bases, change.drawn(number, np.random.default_rng(seed)), strict=True
            )
        ]
    )
    drawn = drawn / samples
    found = [_worth(law, *at) / samples for at in zip(bases, change.mean, strict=True)]
    at_bases = (float(found[0]), float(found[1]))
    value = float(np.mean(at_bases))
    low, high = _ends(drawn.mean(axis=0))
    with np.errstate(invalid="ignore"):
        apart = _ends(np.nan_to_num(drawn[0] - drawn[1], posinf=np.inf, neginf=-np.inf))
    harm = all(_ends(each)[1] <= 0 for each in drawn)
    verdict: Verdict = "usable"
    if harm:
        verdict = "leave it out"
    elif not apart[0] <= 0 <= apart[1]:
        verdict = "depends on the rest"
    elif not (low > 0 and high - low <= WIDEST * value < np.inf):
        verdict = "too uncertain"
    ends = (float(bases[0]), float(bases[1]))
    return QualityWeight(
        name, samples, ends, at_bases, value, min(low, value), max(high, value), verdict
    )


def _worth(law: Law, base: float, change: npt.ArrayLike) -> FloatArray:
    """How many samples beside the base change the loss by so much; infinite below the floor."""
    return np.asarray(law.reach(law.loss(base) + np.asarray(change)) - base)


def _ends(drawn: FloatArray) -> tuple[float, float]:
    """The ends of the interval; draws may be infinite, which no interpolation survives."""
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    return float(low), float(high)
