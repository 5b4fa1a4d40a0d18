"""Several profiles, trained on the same data with the same seeds: which is better, and how surely.

Runs with the same seed share their data and their initial model, so profiles are compared seed by
seed: the interval of the difference is often much narrower than those of the two accuracies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.record import Columns, Record, Tables, columns_of, rows_of

if TYPE_CHECKING:
    from fedaccord.training.course import AloneRecord, Course, SlotRecord, TrainingRun

CONFIDENCE = 0.95
"""Of all intervals."""


@dataclass(frozen=True)
class Estimate(Record):
    """A mean over seeds, plus or minus `half_width` (NaN for a single seed)."""

    mean: float
    half_width: float

    def _facts(self) -> dict[str, Any]:
        return {"mean": self.mean, "half_width": self.half_width}


@dataclass(frozen=True)
class ProfileScore(Record):
    """How one profile did at the end, over all seeds."""

    profile: str
    total: float
    """Examples trained on in a slot, on average."""
    loss: Estimate
    accuracy: Estimate
    accuracy_gain: Estimate
    """Against the first profile, seed by seed."""

    def _facts(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "total": self.total,
            "loss": self.loss,
            "accuracy": self.accuracy,
            "accuracy_gain": self.accuracy_gain,
        }


@dataclass(frozen=True)
class AloneScore(Record):
    """How the model of a client on its own did in a slot, over all seeds, beside the others'."""

    profile: str
    slot: int
    client: str
    total: int
    """The examples that it trained on."""
    accuracy: Estimate
    """Of its own model."""
    others: Estimate
    """Of the model that the others trained in this slot."""
    old: Estimate | None
    """Of the last model that it received from them; None if it never did."""

    def _facts(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "slot": self.slot,
            "client": self.client,
            "total": self.total,
            "accuracy": self.accuracy,
            "others": self.others,
            "old": self.old,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Record):
    """Runs of a consortium's profiles on one course."""

    consortium: str
    course: "Course"
    engine: str
    runs: tuple["TrainingRun", ...]

    @cached_property
    def scores(self) -> list[ProfileScore]:
        """How each profile did."""
        return compare_runs(self.runs)

    @cached_property
    def alone(self) -> list[AloneScore]:
        """How the clients did that were on their own, by profile and slot."""
        return alone_scores(self.runs)

    @property
    def seeds(self) -> int:
        """Runs of each profile."""
        return len({run.seed for run in self.runs})

    def of(self, profile: str) -> "list[TrainingRun]":
        """The runs of a profile, one for each seed."""
        return [run for run in self.runs if run.profile == profile]

    def to_dict(self) -> dict[str, Any]:
        """The score of each profile, and every run."""
        return {
            **self._facts(),
            "profiles": [score.to_dict() for score in self.scores],
            "alone": [score.to_dict() for score in self.alone],
            "runs": [run.to_dict() for run in self.runs],
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "dataset": self.course.model.dataset.name,
            "task": self.course.model.task.name,
            "engine": self.engine,
            "scale": self.course.scale,
        }

    def _tables(self) -> Tables:
        return {"profiles": self._profiles, "rounds": self._rounds}

    def _profiles(self) -> Columns:
        columns: dict[str, list[Any]] = {
            "profile": [score.profile for score in self.scores],
            "total": [score.total for score in self.scores],
        }
        for name in ("loss", "accuracy", "accuracy_gain"):
            estimates = [getattr(score, name) for score in self.scores]
            columns[name] = [estimate.mean for estimate in estimates]
            columns[f"{name}_half_width"] = [estimate.half_width for estimate in estimates]
        return columns

    def _rounds(self) -> Columns:
        return columns_of(
            [
                {"profile": run.profile, "seed": run.seed, **row}
                for run in self.runs
                for row in rows_of(run._rounds())
            ]
        )


def compare_runs(runs: "Sequence[TrainingRun]") -> list[ProfileScore]:
    """The final scores of each profile, in the order in which the profiles first occur."""
    groups: dict[str, list[TrainingRun]] = {run.profile: [] for run in runs}
    for run in sorted(runs, key=lambda run: run.seed):
        groups[run.profile].append(run)
    first = {run.seed: run.final.accuracy for run in groups[runs[0].profile]}
    return [
        ProfileScore(
            profile=profile,
            total=float(np.mean([slot.total for run in group for slot in run.slots])),
            loss=estimate([run.final.loss for run in group]),
            accuracy=estimate([run.final.accuracy for run in group]),
            accuracy_gain=estimate([run.final.accuracy - first[run.seed] for run in group]),
        )
        for profile, group in groups.items()
    ]


def alone_scores(runs: "Sequence[TrainingRun]") -> list[AloneScore]:
    """The scores of each client that was on its own, in each such slot."""
    found: dict[tuple[str, int, str], list[tuple[SlotRecord, AloneRecord]]] = {}
    for run in runs:
        for slot in run.slots:
            for record in slot.alone:
                place = (run.profile, slot.slot, record.name)
                found.setdefault(place, []).append((slot, record))
    return [
        AloneScore(
            *place,
            total=records[0][1].total,
            accuracy=estimate([record.final.accuracy for _, record in records]),
            others=estimate([slot.final.accuracy for slot, _ in records]),
            old=_old([record for _, record in records]),
        )
        for place, records in found.items()
    ]


def _old(records: "Sequence[AloneRecord]") -> Estimate | None:
    accuracies = [record.old.accuracy for record in records if record.old is not None]
    return estimate(accuracies) if accuracies else None


def estimate(values: Sequence[float]) -> Estimate:
    """The mean and its 95 % interval, by Student's t: seeds are few.

    >>> spread = estimate([0.8, 0.9, 1.0])
    >>> round(spread.mean, 3), round(spread.half_width, 3)
    (0.9, 0.248)
    """
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, nan)
    spread = float(np.std(values, ddof=1)) / sqrt(len(values))
    return Estimate(mean, float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread)
