"""Several profiles, trained on the same data with the same seeds: which is better, and how surely.

Runs with the same seed share their data and their initial model, so profiles are compared seed by
seed: the interval of the difference is often much narrower than those of the two accuracies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.record import Columns, Record, Tables, columns_of, rows_of
from fedaccord.training.client_scores import ClientScore, client_scores
from fedaccord.training.estimates import Estimate, estimate
from fedaccord.training.records import ALONE

if TYPE_CHECKING:
    from fedaccord.training.course import Course
    from fedaccord.training.records import AloneRecord, SlotRecord, TrainingRun

__all__ = [
    "AloneScore",
    "Comparison",
    "Estimate",
    "ProfileScore",
    "alone_scores",
    "compare_runs",
    "estimate",
]


@dataclass(frozen=True, eq=False)
class ProfileScore(Record):
    """How one profile did at the end, over all seeds."""

    profile: str
    total: float
    """Examples trained on in a slot, on average."""
    loss: Estimate
    accuracy: Estimate
    accuracy_gain: Estimate
    """Against the first profile, seed by seed."""
    clients: tuple[ClientScore, ...] = ()
    """How each client did on its own test; empty without own tests."""

    def _facts(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "total": self.total,
            "loss": self.loss,
            "accuracy": self.accuracy,
            "accuracy_gain": self.accuracy_gain,
            "clients": self.clients,
        }


@dataclass(frozen=True, eq=False)
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
        return compare_runs(self.runs, self.course.names, self.own_weights)

    @cached_property
    def alone(self) -> list[AloneScore]:
        """How the clients did that were on their own, by profile and slot."""
        return alone_scores(self.runs)

    @property
    def measure(self) -> str:
        """What accuracies are: "accuracy", or "concordance"."""
        return self.course.model.task.measure.name

    @cached_property
    def own_weights(self) -> list[float]:
        """Of the measure, on each client's own test (`Measure.weight`); none without own tests."""
        tests = self.course.partition(self.runs[0].seed).tests
        return [self.course.model.weight(own) for own in tests]

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
            "measure": self.measure,
            "engine": self.engine,
            "optimiser": self.course.optimiser,
            "scale": self.course.scale,
        }

    def _tables(self) -> Tables:
        own = {"clients": self._clients} if self.scores[0].clients else {}
        return {"profiles": self._profiles, "rounds": self._rounds, **own}

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

    def _clients(self) -> Columns:
        rows = [
            {"profile": score.profile, **own.flat()}
            for score in self.scores
            for own in score.clients
        ]
        return columns_of(rows)

    def _rounds(self) -> Columns:
        return columns_of(
            [
                {"profile": run.profile, "seed": run.seed, **row}
                for run in self.runs
                for row in rows_of(run._rounds())
            ]
        )


def compare_runs(
    runs: "Sequence[TrainingRun]", names: Sequence[str] = (), own_weights: Sequence[float] = ()
) -> list[ProfileScore]:
    """The final scores of each profile, in the order in which the profiles first occur.

    `names` are those of the clients; without them they are numbered. `own_weights` are needed for
    own tests by another measure than accuracy (`Measure.weight`).
    """
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
            clients=client_scores(group, groups[runs[0].profile], names, own_weights),
        )
        for profile, group in groups.items()
    ]


def alone_scores(runs: "Sequence[TrainingRun]") -> list[AloneScore]:
    """The scores of each client that was on its own, in each such slot."""
    found: dict[tuple[str, int, str], list[tuple[SlotRecord, AloneRecord]]] = {}
    for run in runs:
        for slot in run.slots:
            if slot.phase == ALONE:
                continue  # nobody is out, and the scores are those of the clients
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
