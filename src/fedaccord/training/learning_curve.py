"""Learning curves: a model trained on more and more samples, with several seeds.

Each seed deals the clients' examples into one sequence, in which everyone's share is that of its
samples; a size is a beginning of it. So subsets are nested, and every size begins with the same
parameters: most of a seed's noise cancels in differences. Values are kept by test example, because
the choice of these is noise as well.

With fine-tuning the models are personal ones, each judged by its owner's own test. The curve is
then the mean over all own test examples, and not what the shared model does on the common test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from fedaccord.data.partition import Indices
from fedaccord.errors import InvalidInput
from fedaccord.game.curve import LEAST_SIZES, Curve
from fedaccord.numbers import FloatArray
from fedaccord.record import Value
from fedaccord.training.course import Course
from fedaccord.training.engine import TrainingPlan
from fedaccord.training.fine_tuning import fine_tune
from fedaccord.training.optimisers import FEDAVG
from fedaccord.training.rules import GradientStep
from fedaccord.training.task import Parameters
from fedaccord.training.threads import one_thread
from fedaccord.training.vectorised.engine import VectorisedEngine

Measure = Literal["error", "loss"]
MEASURED: tuple[Measure, ...] = ("error", "loss")
"""What a run is judged by; both are kept."""
STEPS_DOWN = 12
"""From the largest size: 12 steps of sqrt 2 lead to a 64th of it."""
_LEAST_SIZE = 10
_Trained: TypeAlias = tuple[TrainingPlan, Parameters]
_ONE_THREAD = 1_024
"""Up to this many samples a gradient step is too short to be worth handing to another thread."""


@dataclass(eq=False)
class CurveState(Value):
    """How far a measurement has come: values of all runs that are over."""

    values: dict[Measure, FloatArray]
    """By size and seed; NaN where a run is not over."""
    by_example: dict[Measure, FloatArray]
    """By size and test example, added up over seeds; the examples of own tests if models are
    fine-tuned."""
    alone: dict[Measure, FloatArray]
    """By client and seed, trained on all of its own examples by itself."""
    own: dict[Measure, FloatArray]
    """The same on its own test; no clients if there are none."""
    own_by_example: dict[Measure, FloatArray]
    """That for each example of the clients' own tests, one after the other, added up over seeds."""
    together: dict[Measure, FloatArray]
    """As `own`, of the model that each client has if all train on everything together."""
    together_by_example: dict[Measure, FloatArray]
    """As `own_by_example`, of that model."""

    @classmethod
    def empty(
        cls, sizes: int, seeds: int, examples: int, clients: int, tests: Sequence[Indices] = ()
    ) -> CurveState:
        """Before the first run; `clients` is 0 if none is trained alone."""
        tested = len(tests) if clients else 0
        owned = sum(map(len, tests[:tested]))
        return cls(
            {measure: np.full((sizes, seeds), np.nan) for measure in MEASURED},
            {measure: np.zeros((sizes, examples)) for measure in MEASURED},
            {measure: np.full((clients, seeds), np.nan) for measure in MEASURED},
            {measure: np.full((tested, seeds), np.nan) for measure in MEASURED},
            {measure: np.zeros(owned) for measure in MEASURED},
            {measure: np.full((tested, seeds), np.nan) for measure in MEASURED},
            {measure: np.zeros(owned) for measure in MEASURED},
        )


class CurveStore(Protocol):
    """Keeps the state of a measurement, so that it can be resumed."""

    def load(self) -> CurveState | None:
        """The state to resume from; None to start at the beginning."""
        ...

    def save(self, state: CurveState, *, at_once: bool = False) -> None:
        """Keep the state: now, or when the last save is long enough ago."""
        ...


@dataclass(frozen=True, eq=False)
class LearningCurves(Value):
    """All that was measured."""

    sizes: Sequence[int]
    """In examples."""
    seeds: Sequence[int]
    state: CurveState

    def curve(self, measure: Measure, scale: float = 1.0, called: str | None = None) -> Curve:
        """The curve of a measure; `scale` examples stand for one sample.

        `called` is one of the names in `game.curve`, where errors are not of accuracy.
        """
        return Curve(
            np.rint(np.asarray(self.sizes) / scale),
            self.seeds,
            self.state.values[measure],
            called or measure,
            self.state.by_example[measure] / len(self.seeds),
        )


def spread_sizes(largest: int, smallest: int = _LEAST_SIZE) -> list[int]:
    """Sizes in steps of sqrt 2, from the largest down to a 64th of it or to the smallest.

    >>> spread_sizes(1437)[:4], spread_sizes(1437)[-3:]
    ([22, 32, 45, 64], [718, 1016, 1437])
    """
    steps = largest / np.sqrt(2.0) ** np.arange(STEPS_DOWN, -1, -1)
    sizes = sorted({round(float(size)) for size in steps if round(float(size)) >= smallest})
    if len(sizes) < LEAST_SIZES:
        raise InvalidInput(
            f"{largest:,} examples from {smallest:,} on make {len(sizes)} sizes in steps of sqrt 2:"
            f" a curve needs {LEAST_SIZES}",
            field="data",
        )
    return sizes


def measure_curves(
    course: Course,
    sizes: Sequence[int],
    seeds: int,
    *,
    alone: bool = False,
    store: CurveStore | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LearningCurves:
    """Train at every size with every seed; with `alone`, each client by itself, too.

    Then clients are also judged by their own tests, if they have any, and models are fine-tuned if
    the course says so. Without `alone` nothing is fine-tuned.

    `progress` is called with the runs that are over, and how many there will be. With a store, a
    measurement that was interrupted resumes where it was, to the same numbers.
    """
    course = course if alone else replace(course, fine_tuning=0)
    clients, tests = len(course.partition(0).draw(1)), course.partition(0).tests if alone else ()
    own = sum(len(test) for test in tests) if course.fine_tuning else 0
    examples = own or len(course.model.dataset.test_labels)
    saved = store.load() if store else None
    state = saved or CurveState.empty(len(sizes), seeds, examples, clients if alone else 0, tests)
    no_server = replace(course, server=FEDAVG)
    done, of = 0, seeds * (len(sizes) + (clients if alone else 0))
    for seed in range(seeds):
        drawn = course.partition(seed).draw(1)
        dealt = deal(drawn)
        for row, size in enumerate(sizes):
            if np.isnan(state.values["loss"][row, seed]):
                trained = _train(course, beginning(drawn, dealt, size), seed)
                _keep_size(state, course, tests, (row, seed), trained)
                _keep(store, state)
            done += 1
            _tell(progress, done, of)
        for row in range(len(state.alone["loss"])):
            if np.isnan(state.alone["loss"][row, seed]):
                only = [share if n == row else share[:0] for n, share in enumerate(drawn)]
                _keep_alone(state, tests, (row, seed), _train(no_server, only, seed))
                _keep(store, state)
            done += 1
            _tell(progress, done, of)
    if store is not None:
        store.save(state, at_once=True)
    return LearningCurves(sizes, range(seeds), state)


def _keep(store: CurveStore | None, state: CurveState) -> None:
    if store is not None:
        store.save(state)


def _tell(progress: Callable[[int, int], None] | None, done: int, of: int) -> None:
    if progress is not None:
        progress(done, of)


def deal(drawn: Sequence[Indices]) -> Indices:
    """Whose example comes next, until all are dealt: any beginning is shared in proportion.

    >>> deal([np.arange(4), np.arange(2)]).tolist()
    [0, 1, 0, 0, 1, 0]
    """
    owner = np.repeat(np.arange(len(drawn)), [len(share) for share in drawn])
    place = np.concatenate([(np.arange(len(share)) + 0.5) / len(share) for share in drawn])
    return owner[np.argsort(place, kind="stable")]


def beginning(drawn: Sequence[Indices], dealt: Indices, size: int) -> list[Indices]:
    """The shares of the clients when this many examples have been dealt."""
    counts = np.bincount(dealt[:size], minlength=len(drawn))
    return [share[:count] for share, count in zip(drawn, counts, strict=True)]


def _keep_size(
    state: CurveState,
    course: Course,
    tests: Sequence[Indices],
    place: tuple[int, int],
    trained: _Trained,
) -> None:
    """What is lost with a size and a seed; with the largest, also on each client's own test."""
    largest = place[0] == len(state.values["loss"]) - 1
    own = _judged_on_own_tests(course, tests, trained) if largest or course.fine_tuning else []
    on_own = {measure: [found[measure] for found in own] for measure in MEASURED}
    for measure, common in ({} if course.fine_tuning else _judged(trained)).items():
        _add(state, measure, place, common)
    for measure, each in on_own.items():
        if course.fine_tuning:
            _add(state, measure, place, np.concatenate(each))
        if largest and each:
            state.together[measure][:, place[1]] = [one.mean() for one in each]
            state.together_by_example[measure] += np.concatenate(each)


def _add(state: CurveState, measure: Measure, place: tuple[int, int], values: FloatArray) -> None:
    state.values[measure][place] = values.mean()
    state.by_example[measure][place[0]] += values


def _judged_on_own_tests(
    course: Course, tests: Sequence[Indices], trained: _Trained
) -> list[dict[Measure, FloatArray]]:
    """What each client's model loses on its own test: the shared model, fine-tuned if asked for."""
    plan, shared = trained
    tuned: dict[int, Parameters] = {}
    if course.fine_tuning:
        tuned = fine_tune(VectorisedEngine(), plan, shared, course.fine_tuning)
    return [_judged((plan, tuned.get(n, shared)), own) for n, own in enumerate(tests)]


def _keep_alone(
    state: CurveState, tests: Sequence[Indices], place: tuple[int, int], trained: _Trained
) -> None:
    """What a client reaches alone, on the common test and on its own."""
    client, _ = place
    for measure, values in _judged(trained).items():
        state.alone[measure][place] = values.mean()
    if not len(tests):
        return
    first = sum(len(own) for own in tests[:client])
    for measure, values in _judged(trained, tests[client]).items():
        state.own[measure][place] = values.mean()
        state.own_by_example[measure][first : first + len(values)] += values


def _train(course: Course, shares: list[Indices], seed: int) -> _Trained:
    """A slot on these examples, and the model at its end."""
    plan = course.plan(shares, seed)
    parameters = course.model.start(seed)
    quick = isinstance(course.local, GradientStep) and plan.total <= _ONE_THREAD
    with one_thread() if quick else nullcontext():
        for after in VectorisedEngine().rounds(plan, parameters):
            parameters = after
    return plan, parameters


def _judged(trained: _Trained, chosen: Indices | None = None) -> dict[Measure, FloatArray]:
    """Error and loss of each test example, or of the chosen ones by themselves."""
    plan, parameters = trained
    losses, errors = plan.model.evaluate_each(parameters, chosen)
    if not np.isfinite(losses).all():
        raise plan.failed(None, plan.rounds, "test loss")
    return {"error": errors, "loss": losses}
