"""Slot after slot (paper, section 2.3): the model carries over, the data is redrawn.

What each client contributes in each slot comes from outside, as plain numbers: an equilibrium, an
agreement that all keep to, or the contributions of a match in which someone slips.

A client may be on its own for some slots, because it is suspended. It then trains a model alone,
from the same initial parameters as the consortium did, and goes on with it for as long as it is on
its own. It could start from the last model that it received instead, but that model contains the
others' samples: what a client can do *alone* would not be seen. How well the last model still does
is recorded beside it.

>>> import numpy as np
>>> from fedaccord.data.dataset import load_dataset
>>> from fedaccord.data.partition import RandomPartition
>>> from fedaccord.training.task import find_task
>>> digits = load_dataset("digits")
>>> course = Course(
...     model=Model(find_task("softmax"), digits),
...     partition=lambda seed: RandomPartition(digits, [300, 200], seed),
...     rounds=20,
... )
>>> run = train(course, np.array([[300, 10.5], [300, 0]]), seed=7)
>>> [slot.total for slot in run.slots]
[310, 300]
>>> run.slots[0].rounds[0].accuracy < run.final.accuracy
True
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedaccord.data.partition import Indices, Partition
from fedaccord.data.scale import examples_for
from fedaccord.errors import InvalidInput
from fedaccord.record import Columns, Record, Tables, columns_of, jsonable, rows_of
from fedaccord.training.engine import (
    Engine,
    GradientStep,
    LocalEpochs,
    TrainingFailed,
    TrainingPlan,
)
from fedaccord.training.task import Model, Parameters
from fedaccord.training.vectorised.engine import VectorisedEngine


@dataclass(frozen=True)
class Score:
    """How well a model does on the test examples."""

    loss: float
    accuracy: float


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True)
class RunState:
    """How far a run has come: all that it needs to resume."""

    slots: tuple[SlotRecord, ...]
    """The slots that are over."""
    rounds: tuple[Score, ...]
    """The rounds of the next one that are over."""
    parameters: Parameters
    alone: dict[int, Parameters] = field(default_factory=dict)
    """The models of the clients that are on their own."""


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRun(Record):
    """A profile trained with a seed."""

    profile: str
    seed: int
    slots: tuple[SlotRecord, ...]
    parameters: Parameters
    """Of the global model at the end."""

    @property
    def final(self) -> Score:
        """How well the global model does at the end."""
        return self.slots[-1].final

    def to_dict(self) -> dict[str, Any]:
        """The run, slot by slot. The parameters are left out."""
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


@dataclass(frozen=True, eq=False)
class Course:
    """What all runs have in common, whatever is contributed."""

    model: Model
    partition: Callable[[int], Partition]
    """Who has which examples, given the seed of a run."""
    rounds: int
    """G, in each slot."""
    local: GradientStep | LocalEpochs = field(default_factory=GradientStep)
    scale: float = 1.0
    """Examples for each sample that is contributed."""
    names: Sequence[str] = ()
    """The clients' names, for messages."""


class RunStore(Protocol):
    """Keeps the state of a run, so that it can be resumed."""

    def load(self) -> RunState | None:
        """The state to resume from; None to start at the beginning."""
        ...

    def save(self, state: RunState, *, at_once: bool = False) -> None:
        """Keep the state: now, or when the last save is long enough ago."""
        ...


AfterRound = Callable[[int, int, Score], None]
"""Called after each round with the slot, the round and the score."""


def train(
    course: Course,
    contributions: npt.ArrayLike,
    phases: Sequence[str] | None = None,
    *,
    alone: npt.ArrayLike | None = None,
    profile: str = "",
    seed: int = 0,
    engine: Engine | None = None,
    store: RunStore | None = None,
    progress: AfterRound | None = None,
) -> TrainingRun:
    """Train slot after slot, with a row of contributions for each.

    The seed decides the first parameters, who has which examples, and the mini-batches: runs with
    the same seed differ only in what is contributed. With a store, a run that was interrupted
    resumes where it was. `alone` has a row for each slot as well: how many samples each client
    trains on by itself, 0 for the clients that are not on their own.
    """
    amounts = _amounts(course, contributions)
    apart = np.zeros_like(amounts) if alone is None else _amounts(course, alone, "alone")
    if apart.shape != amounts.shape:
        raise InvalidInput(f"must be {amounts.shape}, got {apart.shape}", field="alone")
    engine = engine or VectorisedEngine()
    phases = phases or ["cooperating"] * len(amounts)
    if len(phases) != len(amounts):
        raise InvalidInput(f"contributions of {len(amounts)} slots, but {len(phases)} phases")
    partition = course.partition(seed)
    state = (store.load() if store else None) or RunState((), (), course.model.start(seed))
    for slot in range(len(state.slots) + 1, len(amounts) + 1):
        drawn = partition.draw(slot)
        plan = _plan(course, drawn, amounts[slot - 1], seed, slot)
        if plan is not None:
            state = _finish(engine, plan, state, store, progress)
        plans = _plans_alone(course, drawn, apart[slot - 1], seed, slot)
        state = _closed(state, course, slot, phases[slot - 1], plan)
        state = _trained_alone(engine, plans, state)
        if store is not None:
            store.save(state, at_once=True)
    return TrainingRun(profile, seed, state.slots, state.parameters)


def with_alone(
    course: Course,
    slots: Sequence[SlotRecord],
    alone: npt.ArrayLike,
    seed: int,
    *,
    received: Sequence[Collection[int]],
) -> tuple[SlotRecord, ...]:
    """Slots that were trained elsewhere, with what suspended clients train alone meanwhile.

    `alone` is as in `train`; `received` are the positions of those that got the model of each slot.
    """
    state, partition, engine = RunState((), (), {}), course.partition(seed), VectorisedEngine()
    for record, amounts in zip(slots, _amounts(course, alone, "alone"), strict=True):
        drawn = partition.draw(record.slot) if amounts.any() else []
        plans = _plans_alone(course, drawn, amounts, seed, record.slot)
        state = replace(state, slots=(*state.slots, record))
        state = _trained_alone(engine, plans, state, received)
    return state.slots


def _amounts(
    course: Course, contributions: npt.ArrayLike, field: str = "contributions"
) -> npt.NDArray[np.float64]:
    """The contributions with one row per slot, none of them below 0."""
    try:
        amounts = np.atleast_2d(np.asarray(contributions, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInput("must be numbers, equally many for each slot", field=field) from None
    if amounts.ndim != 2:
        raise InvalidInput(f"must be a row for each slot, got {amounts.shape}", field=field)
    wrong = np.argwhere(~((amounts >= 0) & np.isfinite(amounts)))
    if len(wrong):
        slot, n = wrong[0]
        raise InvalidInput(
            f"must be 0 or more and finite, got {amounts[slot, n]:g} from "
            f"{_who(course, n)} in slot {slot + 1}",
            field=field,
        )
    return amounts


def _who(course: Course, n: int) -> str:
    return course.names[n] if n < len(course.names) else f"clients[{n}]"


def _plan(
    course: Course, drawn: list[Indices], amounts: npt.NDArray[np.float64], seed: int, slot: int
) -> TrainingPlan | None:
    """Who trains on which examples in a slot; None if nobody contributes."""
    whole = examples_for(amounts, course.scale)
    if len(drawn) != len(whole):
        raise InvalidInput(f"{len(whole)} contributions, but {len(drawn)} clients with data")
    for n, (own, amount) in enumerate(zip(drawn, whole, strict=True)):
        if amount > len(own):
            raise InvalidInput(
                f"{_who(course, n)} is to train on {amount} examples, but has only {len(own)}"
            )
    if not whole.any():
        return None
    shares = [own[:amount] for own, amount in zip(drawn, whole, strict=True)]
    return TrainingPlan(
        course.model, shares, course.rounds, course.local, seed, slot, names=course.names
    )


def _finish(
    engine: Engine,
    plan: TrainingPlan,
    state: RunState,
    store: RunStore | None,
    progress: AfterRound | None,
) -> RunState:
    """Run the rounds of a slot that are left."""
    try:
        for parameters, score in _scored(
            engine, plan.from_round(len(state.rounds) + 1), state.parameters
        ):
            state = replace(state, rounds=(*state.rounds, score), parameters=parameters)
            if store is not None:
                store.save(state)
            if progress is not None:
                progress(plan.slot, len(state.rounds), score)
    except TrainingFailed:
        if store is not None:
            store.save(state, at_once=True)  # the last good model
        raise
    return state


def _scored(
    engine: Engine, plan: TrainingPlan, parameters: Parameters
) -> Iterator[tuple[Parameters, Score]]:
    """The parameters and the score after each round that is left."""
    for turn, after in zip(plan.turns, engine.rounds(plan, parameters), strict=True):
        score = _score(plan.model, after)
        if not np.isfinite(score.loss):
            raise _lost(plan, after, turn)
        yield after, score


def _plans_alone(
    course: Course, drawn: list[Indices], amounts: npt.NDArray[np.float64], seed: int, slot: int
) -> dict[int, TrainingPlan]:
    """For each client on its own, by position: a slot in which nobody else takes part."""
    plans = {}
    for n in np.flatnonzero(amounts).tolist():
        own = np.zeros_like(amounts)
        own[n] = amounts[n]
        plan = _plan(course, drawn, own, seed, slot)
        assert plan is not None
        plans[n] = plan
    return plans


def _trained_alone(
    engine: Engine,
    plans: dict[int, TrainingPlan],
    state: RunState,
    received: Sequence[Collection[int]] | None = None,
) -> RunState:
    """The state with the models of the clients that are on their own in the slot just closed.

    The others got the model of each slot, unless `received` says who did.
    """
    *before, closed = state.slots
    models, records = {}, []
    for n, plan in plans.items():
        start = state.alone.get(n) or plan.model.start(plan.seed)
        *_, (models[n], _) = after = list(_scored(engine, plan, start))
        scores = tuple(score for _, score in after)
        name = plan.names[n] if plan.names else f"clients[{n}]"
        old = _last_received(before, n, received)
        records.append(AloneRecord(n, name, plan.total, scores, old))
    out = closed.suspended or tuple(record.name for record in records)
    closed = replace(closed, suspended=out, alone=tuple(records))
    return replace(state, slots=(*before, closed), alone=models)


def _last_received(
    slots: Sequence[SlotRecord], n: int, received: Sequence[Collection[int]] | None
) -> Score | None:
    """The last model that a client received; None if it got that of none of these slots."""
    for k in reversed(range(len(slots))):
        alone = n in [record.client for record in slots[k].alone]
        if n in received[k] if received is not None else not alone:
            return slots[k].final
    return None


def _lost(plan: TrainingPlan, parameters: Parameters, turn: int) -> TrainingFailed:
    """What to raise for a loss that is NaN or infinite: it names the first client that has one."""
    data = plan.model.dataset
    for n in plan.taking_part:
        own = plan.shares[n]
        if not np.isfinite(plan.model.evaluate(parameters, data.inputs[own], data.labels[own])[0]):
            return plan.failed(n, turn, "loss")
    return plan.failed(None, turn, "loss")


def _closed(
    state: RunState, course: Course, slot: int, phase: str, plan: TrainingPlan | None
) -> RunState:
    """The state after a slot is over."""
    final = state.rounds[-1] if state.rounds else _score(course.model, state.parameters)
    record = SlotRecord(slot, phase, plan.total if plan else 0, state.rounds, final)
    return replace(state, slots=(*state.slots, record), rounds=())


def _score(model: Model, parameters: Parameters) -> Score:
    data = model.dataset
    return Score(*model.evaluate(parameters, data.test_inputs, data.test_labels))
