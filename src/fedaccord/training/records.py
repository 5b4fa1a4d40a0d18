"""What a training leaves behind: scores round by round, slot by slot, and of clients alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables, columns_of, jsonable, rows_of

if TYPE_CHECKING:
    from fedaccord.training.task import Parameters

POOLED, ALONE = "pooled", "alone"
"""Phases of slots in which clients do not train together: all data is in one place, or everyone
trains by itself. Any other phase is that of a consortium."""


@dataclass(frozen=True)
class Score:
    """How well a model does on some test examples."""

    loss: float
    accuracy: float
    """The task's measure: accuracy, or concordance."""


@dataclass(frozen=True, eq=False, repr=False)
class AloneRecord(Record):
    """What a client trained on its own in one slot, and how well its model did."""

    client: int
    """Its position."""
    name: str
    total: int
    """The examples that it trained on in each round."""
    rounds: tuple[Score, ...]
    """After each round."""
    old: Score | None
    """The last model that it received from the others; None if it never did."""
    own: Score | None = None
    """At the end of the slot, on its own test; None without one."""

    @property
    def final(self) -> Score:
        """At the end of the slot."""
        return self.rounds[-1]

    def to_dict(self) -> dict[str, Any]:
        """The client and its model, with the scores after each round."""
        return {
            "client": self.name,
            "total": self.total,
            "rounds": rows_of(_by_round(self.rounds)),
            "test_loss": jsonable(self.final.loss),
            "test_accuracy": jsonable(self.final.accuracy),
            "old_accuracy": None if self.old is None else jsonable(self.old.accuracy),
            "own_accuracy": None if self.own is None else jsonable(self.own.accuracy),
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "client": self.name,
            "total": self.total,
            "test_loss": self.final.loss,
            "test_accuracy": self.final.accuracy,
            "old_accuracy": None if self.old is None else self.old.accuracy,
        }

    def _tables(self) -> Tables:
        return {"rounds": lambda: _by_round(self.rounds)}


@dataclass(frozen=True, eq=False, repr=False)
class SlotRecord(Record):
    """What was trained in one slot, and how well the model did."""

    slot: int
    """Counted from 1."""
    phase: str
    total: int
    """X, the examples trained on in each round."""
    rounds: tuple[Score, ...]
    """After each round; empty if nobody contributed."""
    final: Score
    """At the end of the slot."""
    suspended: tuple[str, ...] = ()
    """The clients that were suspended, and took no part."""
    alone: tuple[AloneRecord, ...] = ()
    """What they trained on their own."""
    own: tuple[Score, ...] = ()
    """Of the model that each client has at the end, on its own test; empty without own tests. It is
    the slot's model, or the client's own one if it is alone."""
    tuned: tuple[Score, ...] = ()
    """The same after fine-tuning; empty without it."""

    def to_dict(self) -> dict[str, Any]:
        """The slot, with the scores after each of its rounds."""
        return {
            "slot": self.slot,
            "phase": self.phase,
            "total": self.total,
            "suspended": list(self.suspended),
            "rounds": rows_of(self._rounds()),
            "test_loss": jsonable(self.final.loss),
            "test_accuracy": jsonable(self.final.accuracy),
            "alone": [record.to_dict() for record in self.alone],
            "own_accuracy": jsonable([score.accuracy for score in self.own]),
            "fine_tuned_accuracy": jsonable([score.accuracy for score in self.tuned]),
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "slot": self.slot,
            "phase": self.phase,
            "total": self.total,
            "test_loss": self.final.loss,
            "test_accuracy": self.final.accuracy,
        }

    def _tables(self) -> Tables:
        return {"rounds": self._rounds}

    def _rounds(self) -> Columns:
        return _by_round(self.rounds)


def _by_round(scores: Sequence[Score]) -> Columns:
    return {
        "round": range(1, len(scores) + 1),
        "loss": [score.loss for score in scores],
        "accuracy": [score.accuracy for score in scores],
    }


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRun(Record):
    """A profile trained with a seed."""

    profile: str
    seed: int
    slots: tuple[SlotRecord, ...]
    parameters: "Parameters"
    """Of the global model at the end; the initial ones if everyone trained alone."""
    own_errors: tuple[FloatArray, ...] = ()
    """Of each client's model at the end, for each example of its own test; see `Measure`."""
    tuned_errors: tuple[FloatArray, ...] = ()
    """The same after fine-tuning."""

    @property
    def phase(self) -> str:
        """Of the last slot."""
        return self.slots[-1].phase

    @property
    def final(self) -> Score:
        """How well the global model does at the end."""
        return self.slots[-1].final

    def to_dict(self) -> dict[str, Any]:
        """The run, slot by slot. The parameters and the errors are left out."""
        return {
            "profile": self.profile,
            "seed": self.seed,
            "slots": [slot.to_dict() for slot in self.slots],
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "seed": self.seed,
            "slots": len(self.slots),
            "test_loss": self.final.loss,
            "test_accuracy": self.final.accuracy,
        }

    def _tables(self) -> Tables:
        return {"slots": self._slots, "rounds": self._rounds, "alone": self._alone}

    def _alone(self) -> Columns:
        records = [(slot.slot, record._facts()) for slot in self.slots for record in slot.alone]
        facts = ("client", "total", "test_loss", "test_accuracy", "old_accuracy")
        columns = {fact: [record[fact] for _, record in records] for fact in facts}
        return {"slot": [slot for slot, _ in records], **columns}

    def _slots(self) -> Columns:
        return columns_of([slot._facts() for slot in self.slots])

    def _rounds(self) -> Columns:
        return columns_of(
            [
                {"slot": slot.slot, "phase": slot.phase, "total": slot.total, **row}
                for slot in self.slots
                for row in rows_of(slot._rounds())
            ]
        )
