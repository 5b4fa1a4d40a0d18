"""Slot after slot (paper, section 2.3): the model carries over, the data is redrawn.

What each client contributes in each slot comes from outside, as plain numbers: an equilibrium, an
agreement that all keep to, or the contributions of a match in which someone slips.

A client may be on its own for some slots, because it is suspended. It then trains a model alone,
from the same initial parameters as the consortium did, and goes on with it for as long as it is on
its own. It could start from the last model that it received instead, but that model contains the
others' samples: what a client can do *alone* would not be seen. How well the last model still does
is recorded beside it.

Two phases are for comparison: `POOLED`, in which all contributions are trained on in one place, as
if they were one client's, and `ALONE`, in which every client trains by itself.

Clients may have tests of their own (`Partition.tests`). At the end of each slot the model that a
client has is judged on its own test, too, and so is that model after fine-tuning, if the course has
some: a few epochs more on the client's own contribution. The consortium's model goes on without.

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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fedaccord.data.partition import Indices, Partition
from fedaccord.data.scale import examples_for
from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.record import Value
from fedaccord.training.engine import Engine, Server, TrainingFailed, TrainingPlan
from fedaccord.training.fine_tuning import check_fine_tuning, fine_tune
from fedaccord.training.optimisers import FEDAVG, FedAvg, Moments, ServerOptimiser
from fedaccord.training.own_tests import on_own_tests
from fedaccord.training.records import (
    ALONE,
    POOLED,
    AloneRecord,
    Score,
    SlotRecord,
    TrainingRun,
)
from fedaccord.training.rules import GradientStep, LocalRule, MiniBatches
from fedaccord.training.task import Model, Parameters
from fedaccord.training.vectorised.engine import VectorisedEngine
from fedaccord.training.vectorised.many import train_many

__all__ = [
    "ALONE",
    "POOLED",
    "AfterRound",
    "AloneRecord",
    "Course",
    "RunState",
    "RunStore",
    "Score",
    "SlotRecord",
    "TrainingRun",
    "train",
    "with_alone",
]


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
    moments: Moments = field(default_factory=dict)
    """What the server's optimiser keeps in the middle of a slot."""
    own_errors: tuple[FloatArray, ...] = ()
    """As in `TrainingRun`, of the last slot that is over; so are the next."""
    tuned_errors: tuple[FloatArray, ...] = ()


@dataclass(frozen=True, eq=False)
class Course(Value):
    """What all runs have in common, whatever is contributed."""

    model: Model
    partition: Callable[[int], Partition]
    """Who has which examples, given the seed of a run."""
    rounds: int
    """G, in each slot."""
    local: LocalRule = field(default_factory=GradientStep)
    scale: float = 1.0
    """Examples for each sample that is contributed."""
    names: Sequence[str] = ()
    """The clients' names, for messages."""
    server: ServerOptimiser = FEDAVG
    """What the server does with the clients' average."""
    fine_tuning: int = 0
    """Epochs of each client's own, on its contribution, at the end of a slot; not averaged."""

    @property
    def optimiser(self) -> str:
        """Its name: `fedprox` where clients are held to the global model, and then averaged."""
        held = isinstance(self.local, MiniBatches) and self.local.proximal > 0
        return "fedprox" if held and isinstance(self.server, FedAvg) else self.server.name

    @property
    def optimiser_in_words(self) -> str:
        """With its numbers; empty for FedAvg, which goes without saying."""
        if self.optimiser == "fedprox" and isinstance(self.local, MiniBatches):
            return f"FedProx, mu {self.local.proximal!r}"
        return "" if isinstance(self.server, FedAvg) else str(self.server)

    def plan(self, shares: list[Indices], seed: int, slot: int = 1) -> TrainingPlan:
        """A slot in which the clients train on these examples."""
        return TrainingPlan(
            self.model,
            shares,
            self.rounds,
            self.local,
            seed,
            slot,
            names=self.names,
            server=self.server,
        )


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
    trains on by itself, 0 for the clients that are not on their own. In a slot whose phase is
    `ALONE` everyone is, and trains on its contribution; the scores are then means over clients.
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
    check_fine_tuning(course.fine_tuning, partition)
    state = (store.load() if store else None) or RunState((), (), course.model.start(seed))
    for slot in range(len(state.slots) + 1, len(amounts) + 1):
        drawn, phase = partition.draw(slot), phases[slot - 1]
        together, on_their_own = amounts[slot - 1], apart[slot - 1]
        if phase == ALONE:
            together, on_their_own = np.zeros_like(together), together
        plan = _plan(course, drawn, together, seed, slot)
        if plan is not None:
            state = _finish(engine, _pooled(plan, phase), state, store, progress)
        plans = _plans_alone(course, drawn, on_their_own, seed, slot)
        state = _closed(state, course, slot, phase, plan)
        state = _trained_alone(engine, plans, state, partition.tests)
        state = _judged(course, partition.tests, engine, plan, state)
        if store is not None:
            store.save(state, at_once=True)
    return TrainingRun(
        profile, seed, state.slots, state.parameters, state.own_errors, state.tuned_errors
    )


def with_alone(
    course: Course,
    slots: Sequence[SlotRecord],
    alone: npt.ArrayLike,
    seed: int,
    *,
    received: Sequence[Collection[int]],
) -> tuple[tuple[SlotRecord, ...], dict[int, Parameters]]:
    """Slots that were trained elsewhere, with what suspended clients train alone meanwhile.

    Also the models of those that are still alone at the end, by position.

    `alone` is as in `train`; `received` are the positions of those that got the model of each slot.
    Slots with scores on own tests have those of the slot's model; for clients alone they change.
    """
    state, partition, engine = RunState((), (), {}), course.partition(seed), VectorisedEngine()
    for record, amounts in zip(slots, _amounts(course, alone, "alone"), strict=True):
        drawn = partition.draw(record.slot) if amounts.any() else []
        plans = _plans_alone(course, drawn, amounts, seed, record.slot)
        state = replace(state, slots=(*state.slots, record))
        state = _trained_alone(engine, plans, state, partition.tests, received)
    return state.slots, state.alone


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
    return course.plan(shares, seed, slot)


def _pooled(plan: TrainingPlan, phase: str) -> TrainingPlan:
    """The plan, or in the phase `POOLED` one of a single client with all samples and no server."""
    if phase != POOLED:
        return plan
    everything = [np.concatenate(plan.shares)]
    return replace(plan, shares=everything, names=["all data in one place"], server=FEDAVG)


def _finish(
    engine: Engine,
    plan: TrainingPlan,
    state: RunState,
    store: RunStore | None,
    progress: AfterRound | None,
) -> RunState:
    """Run the rounds of a slot that are left."""
    plan, server = plan.from_round(len(state.rounds) + 1), Server(plan, state.moments)
    try:
        for parameters, score in _scored(engine, plan, state.parameters, server):
            rounds = (*state.rounds, score)
            state = replace(state, rounds=rounds, parameters=parameters, moments=server.moments)
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
    engine: Engine, plan: TrainingPlan, parameters: Parameters, server: Server
) -> Iterator[tuple[Parameters, Score]]:
    """The parameters and the score after each round that is left."""
    for turn, after in zip(plan.turns, engine.rounds(plan, parameters, server), strict=True):
        yield after, _checked_score(plan, after, turn)


def _checked_score(plan: TrainingPlan, parameters: Parameters, turn: int) -> Score:
    """The score of a model after a round; refuses a loss that is NaN or infinite."""
    score = _score(plan.model, parameters)
    if not np.isfinite(score.loss):
        raise _lost(plan, parameters, turn)
    return score


def _plans_alone(
    course: Course, drawn: list[Indices], amounts: npt.NDArray[np.float64], seed: int, slot: int
) -> dict[int, TrainingPlan]:
    """For each client on its own, by position: a slot without the others and without a server."""
    plans = {}
    for n in np.flatnonzero(amounts).tolist():
        own = np.zeros_like(amounts)
        own[n] = amounts[n]
        plan = _plan(course, drawn, own, seed, slot)
        assert plan is not None
        plans[n] = replace(plan, server=FEDAVG)
    return plans


def _trained_alone(
    engine: Engine,
    plans: dict[int, TrainingPlan],
    state: RunState,
    tests: Sequence[Indices],
    received: Sequence[Collection[int]] | None = None,
) -> RunState:
    """The state with the models of the clients that are on their own in the slot just closed.

    The others got the model of each slot, unless `received` says who did.
    """
    *before, closed = state.slots
    models, records = {}, []
    starts = {n: state.alone.get(n) or plan.model.start(plan.seed) for n, plan in plans.items()}
    everyone = closed.phase == ALONE and len(plans) > 1 and isinstance(engine, VectorisedEngine)
    trained = _all_alone(plans, starts) if everyone else _each_alone(engine, plans, starts)
    for n, plan in plans.items():
        models[n], scores = trained[n]
        name = plan.names[n] if plan.names else f"clients[{n}]"
        old = _last_received(before, n, received)
        own, _ = on_own_tests(plan.model, [models[n]], tests[n : n + 1])
        records.append(AloneRecord(n, name, plan.total, scores, old, *own))
    if closed.phase == ALONE:
        closed = _mean_of(records, closed)
    else:
        out = closed.suspended or tuple(record.name for record in records)
        closed = replace(closed, suspended=out)
    own_models = {record.client: record.own for record in records}
    own_tests = tuple(own_models.get(n) or score for n, score in enumerate(closed.own))
    closed = replace(closed, alone=tuple(records), own=own_tests)
    return replace(state, slots=(*before, closed), alone=models)


def _each_alone(
    engine: Engine, plans: Mapping[int, TrainingPlan], starts: Mapping[int, Parameters]
) -> dict[int, tuple[Parameters, tuple[Score, ...]]]:
    """The final model of each client, by position, and its scores after each round."""
    found = {}
    for n, plan in plans.items():
        *_, (model, _) = after = list(_scored(engine, plan, starts[n], Server(plan)))
        found[n] = model, tuple(score for _, score in after)
    return found


def _all_alone(
    plans: Mapping[int, TrainingPlan], starts: Mapping[int, Parameters]
) -> dict[int, tuple[Parameters, tuple[Score, ...]]]:
    """The same but for rounding, a round of everyone at a time."""
    found = {n: (start, tuple[Score, ...]()) for n, start in starts.items()}
    for turn in next(iter(plans.values())).turns:
        one_round = [replace(plan, first=turn, rounds=turn) for plan in plans.values()]
        after = train_many(one_round, [found[n][0] for n in plans])
        for k, (n, plan) in enumerate(plans.items()):
            model = {name: value[k] for name, value in after.items()}
            found[n] = model, (*found[n][1], _checked_score(plan, model, turn))
    return found


def _mean_of(records: Sequence[AloneRecord], closed: SlotRecord) -> SlotRecord:
    """A slot in which everyone trains alone: the mean over all clients that train."""
    if not records:
        return closed
    rounds = tuple(
        Score(
            float(np.mean([s.loss for s in scores])), float(np.mean([s.accuracy for s in scores]))
        )
        for scores in zip(*(record.rounds for record in records), strict=True)
    )
    total = sum(record.total for record in records)
    return replace(closed, total=total, rounds=rounds, final=rounds[-1])


def _judged(
    course: Course,
    tests: Sequence[Indices],
    engine: Engine,
    plan: TrainingPlan | None,
    state: RunState,
) -> RunState:
    """The state with how well each client's model does on its own test in the slot just closed."""
    if not len(tests):
        return state
    *before, closed = state.slots
    has = [state.alone.get(n, state.parameters) for n in range(len(tests))]
    scores, errors = on_own_tests(course.model, has, tests)
    closed, tuned_errors = replace(closed, own=scores), tuple[FloatArray, ...]()
    if course.fine_tuning and closed.phase != ALONE:
        tuned = fine_tune(engine, plan, state.parameters, course.fine_tuning) if plan else {}
        personal = [tuned.get(n, parameters) for n, parameters in enumerate(has)]
        scores, tuned_errors = on_own_tests(course.model, personal, tests)
        closed = replace(closed, tuned=scores)
    slots = (*before, closed)
    return replace(state, slots=slots, own_errors=errors, tuned_errors=tuned_errors)


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
    return replace(state, slots=(*state.slots, record), rounds=(), moments={})


def _score(model: Model, parameters: Parameters) -> Score:
    data = model.dataset
    return Score(*model.evaluate(parameters, data.test_inputs, data.test_labels))
