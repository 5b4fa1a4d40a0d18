"""How each client did on its own test under a profile, over all seeds.

The intervals are about the seeds and about the choice of test examples (`estimates`): an own test
is often small. They are not about the training examples, which are those that the clients have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.numbers import FloatArray
from fedaccord.record import Record
from fedaccord.training.estimates import Estimate, estimate_gain, estimate_measure

if TYPE_CHECKING:
    from fedaccord.training.records import TrainingRun


@dataclass(frozen=True, eq=False)
class ClientScore(Record):
    """A client's model at the end, on its own test."""

    name: str
    test_examples: int
    """In its own test."""
    accuracy: Estimate
    """Or what the task is measured by: concordance."""
    accuracy_gain: Estimate
    """Against the first profile, without fine-tuning: seed by seed, example by example."""
    fine_tuned: Estimate | None = None
    """After fine-tuning; None without."""
    fine_tuned_gain: Estimate | None = None
    """Of the fine-tuned model, against the same as `accuracy_gain`."""

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "test_examples": self.test_examples,
            "accuracy": self.accuracy,
            "accuracy_gain": self.accuracy_gain,
            "fine_tuned": self.fine_tuned,
            "fine_tuned_gain": self.fine_tuned_gain,
        }

    def flat(self) -> dict[str, Any]:
        """One row of a table: each estimate as a mean and a half width."""
        row: dict[str, Any] = {"name": self.name, "test_examples": self.test_examples}
        for field in ("accuracy", "accuracy_gain", "fine_tuned", "fine_tuned_gain"):
            found = getattr(self, field)
            row[field] = None if found is None else found.mean
            row[f"{field}_half_width"] = None if found is None else found.half_width
        return row


def client_scores(
    runs: "Sequence[TrainingRun]",
    first: "Sequence[TrainingRun]",
    names: Sequence[str] = (),
    weights: Sequence[float] = (),
) -> tuple[ClientScore, ...]:
    """The scores of a profile, given its runs and those of the first profile, one per seed.

    `weights` are those of the measure on the clients' own tests (`Measure.weight`); 1 without.
    """
    clients = range(len(runs[0].own_errors))
    weights = weights or [1.0] * len(clients)
    gains, tuned_gains = own_gains(first, runs, weights), fine_tuned_gains(first, runs, weights)
    if runs[0].profile == first[0].profile:  # against itself, which is known for sure
        gains = [Estimate(gain.mean, 0.0) for gain in gains]
    return tuple(
        ClientScore(
            name=names[n] if n < len(names) else f"client-{n + 1}",
            test_examples=len(runs[0].own_errors[n]),
            accuracy=estimate_measure(_errors(runs, n), weights[n]),
            accuracy_gain=gains[n],
            fine_tuned=estimate_measure(_tuned(runs, n), weights[n]) if tuned_gains else None,
            fine_tuned_gain=tuned_gains[n] if tuned_gains else None,
        )
        for n in clients
    )


def own_gains(
    before: "Sequence[TrainingRun]", after: "Sequence[TrainingRun]", weights: Sequence[float]
) -> list[Estimate]:
    """What each client gains on its own test by the one profile against the other."""
    return [
        estimate_gain(_errors(before, n), _errors(after, n), weight)
        for n, weight in enumerate(weights)
    ]


def fine_tuned_gains(
    before: "Sequence[TrainingRun]", after: "Sequence[TrainingRun]", weights: Sequence[float]
) -> list[Estimate]:
    """The same if it fine-tunes the model of the latter; none if nobody did."""
    if not after[0].tuned_errors:
        return []
    return [
        estimate_gain(_errors(before, n), _tuned(after, n), weight)
        for n, weight in enumerate(weights)
    ]


def _errors(runs: "Sequence[TrainingRun]", client: int) -> FloatArray:
    """By seed and test example."""
    return np.array([run.own_errors[client] for run in sorted(runs, key=lambda run: run.seed)])


def _tuned(runs: "Sequence[TrainingRun]", client: int) -> FloatArray:
    return np.array([run.tuned_errors[client] for run in sorted(runs, key=lambda run: run.seed)])
