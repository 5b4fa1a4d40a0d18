"""Trains groups of clients and measures their errors, each group once.

Every member of a group trains on all that it has, for one slot, from the start that the seed gives.
Many groups and seeds are trained at once: the models are small, and there are many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fedaccord.data.partition import Indices
from fedaccord.membership.group_scores import GroupScores
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.training.course import Course
from fedaccord.training.engine import TrainingPlan
from fedaccord.training.fine_tuning import more_epochs
from fedaccord.training.task import Model, Parameters
from fedaccord.training.vectorised.many import errors_of_many, train_many

_AT_ONCE = 512
"""Trainings between two reports of progress."""

Told = Callable[[int], None]
"""Called with the number of trainings that are over."""
Measure = Callable[[BoolArray], GroupScores]
"""Measures groups, one per row."""


class Run(NamedTuple):
    """A training: what each client trains on, and the seed."""

    shares: list[Indices]
    seed: int


class Judged(NamedTuple):
    """How a model did."""

    losses: FloatArray
    """Of each example of the common test."""
    errors: FloatArray
    """Of each example of all tests, one test after another."""


class Cache:
    """Groups that were measured, which are not measured again."""

    def __init__(self, measure: Measure) -> None:
        """With a function that measures those that are new."""
        self._measure = measure
        self._known: set[bytes] = set()
        self._scores: GroupScores | None = None

    def add(self, groups: BoolArray) -> None:
        """Measure those of the groups (rows) that are not known yet."""
        new = {group.tobytes(): group for group in groups if group.tobytes() not in self._known}
        if not new:
            return
        found = self._measure(np.array(list(new.values())))
        self._scores = found if self._scores is None else self._scores.joined(found)
        self._known.update(new)

    @property
    def scores(self) -> GroupScores:
        """Of all groups so far."""
        assert self._scores is not None
        return self._scores


def measure_groups(
    course: Course, groups: npt.ArrayLike, seeds: Sequence[int], progress: Told | None = None
) -> GroupScores:
    """Train every group (a row of who is in it) with every seed, and measure its errors.

    The group of nobody has the model that training starts from.
    """
    members = np.atleast_2d(np.asarray(groups, dtype=np.bool_))
    held = {seed: course.partition(seed).draw(1) for seed in seeds}
    runs = [
        Run([own if here else own[:0] for own, here in zip(held[seed], group, strict=True)], seed)
        for group in members
        for seed in seeds
    ]
    judged = list(judge_runs(course, runs, progress))
    losses, errors = (
        np.array(values, dtype=np.float32).reshape(len(members), len(seeds), -1)
        for values in zip(*judged, strict=True)
    )
    tests = tests_of(course)
    scales = tuple(course.model.weight(test) for test in tests)
    return GroupScores(members, tuple(seeds), errors, losses, _columns(tests), scales)


def tests_of(course: Course) -> list[Indices]:
    """Positions in the test examples: of the common test, then of each client's own, if any."""
    own = course.partition(0).tests
    return [np.arange(len(course.model.dataset.test_labels)), *own]


def _columns(tests: Sequence[Indices]) -> tuple[Indices, ...]:
    """Where each test is, one after another."""
    ends = np.cumsum([len(test) for test in tests])
    return tuple(np.arange(end - len(test), end) for test, end in zip(tests, ends, strict=True))


def judge_runs(
    course: Course, runs: Sequence[Run], progress: Told | None = None
) -> Iterator[Judged]:
    """Train each run for one slot, and judge its model by all tests.

    With fine-tuning, those that take part are judged by their own models on their own tests.
    """
    tests = tests_of(course)
    for first in range(0, len(runs), _AT_ONCE):
        some = runs[first : first + _AT_ONCE]
        models = _trained(course, some)
        judged = [_judge(course.model, models, test) for test in tests]
        if course.fine_tuning:
            _tune(course, some, models, judged[1:])
        losses, errors = (np.hstack(values) for values in zip(*judged, strict=True))
        lost = np.flatnonzero(~np.isfinite(losses).all(axis=1))
        if lost.size:
            raise _plan(course, some[lost[0]]).failed(None, course.rounds, "test loss")
        yield from map(Judged, losses, errors)
        if progress is not None:
            progress(first + len(some))


def _judge(model: Model, models: Parameters, test: Indices) -> tuple[FloatArray, FloatArray]:
    """The loss and the error of each example of a test (columns) under each model (rows)."""
    data = model.dataset
    return errors_of_many(model, models, data.test_inputs[test], data.test_labels[test])


def _trained(course: Course, runs: Sequence[Run]) -> Parameters:
    """The models at the end of all runs; where nobody trains, the one at the start."""
    by_seed = {seed: course.model.start(seed) for seed in {run.seed for run in runs}}
    starts = [by_seed[run.seed] for run in runs]
    models = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}
    some = [k for k, run in enumerate(runs) if any(len(share) for share in run.shares)]
    if some:
        plans = [_plan(course, runs[k]) for k in some]
        trained = train_many(plans, [starts[k] for k in some])
        for name, value in models.items():
            value[some] = trained[name]
    return models


def _tune(
    course: Course,
    runs: Sequence[Run],
    models: Parameters,
    judged: Sequence[tuple[FloatArray, FloatArray]],
) -> None:
    """Replace what was found on own tests by what each client's own model does, in its runs."""
    plans = [
        (k, n, more_epochs(_plan(course, run), n, course.fine_tuning))
        for k, run in enumerate(runs)
        for n, share in enumerate(run.shares)
        if len(share)
    ]
    if not plans:
        return
    starts = [{name: value[k] for name, value in models.items()} for k, _, _ in plans]
    tuned = train_many([plan for _, _, plan in plans], starts)
    for n, (own, test) in enumerate(zip(judged, tests_of(course)[1:], strict=True)):
        mine = [place for place, (_, m, _) in enumerate(plans) if m == n]
        if mine:
            some = {name: value[mine] for name, value in tuned.items()}
            rows = [plans[place][0] for place in mine]
            for values, found in zip(own, _judge(course.model, some, test), strict=True):
                values[rows] = found


def _plan(course: Course, run: Run) -> TrainingPlan:
    return course.plan(run.shares, run.seed)
