"""What each member's model reaches: alone, without an agreement, as agreed, all data in one place.

Alone is what the question who should join was answered by: everyone trains on all that it has, in
the way that is best for that. These runs are taken from there.

Fine-tuning uses the records that a member trains on in the slot, since each record costs something.
So whoever contributes nothing at the equilibrium does not fine-tune there, although nobody could
keep it from doing so for itself. What it would reach then is measured as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.membership.group_scores import COMMON, GroupScores
from fedaccord.membership.joining import Joining
from fedaccord.training.estimates import Estimate, estimate_measure
from fedaccord.training.fine_tuning import fine_tune
from fedaccord.training.own_tests import on_own_tests
from fedaccord.training.records import ALONE, Score, SlotRecord, TrainingRun
from fedaccord.training.vectorised.engine import VectorisedEngine
from fedaccord.trials.setting import Progress
from fedaccord.trials.trial import Trial, train

EQUILIBRIUM = "equilibrium"
"""The profile without an agreement."""


@dataclass(frozen=True, eq=False)
class TrainedModels:
    """A slot under each profile."""

    trial: Trial
    fine_tuned_anyway: dict[str, Estimate]
    """What those that contribute nothing at the equilibrium would reach there on their own tests,
    if they fine-tuned its model on all that they have; empty without fine-tuning."""


def train_models(
    joining: Joining, agreement: Agreement, seeds: int, progress: Progress | None
) -> TrainedModels:
    """Train one slot at the equilibrium, as agreed and pooled, and add what everyone did alone."""
    way, names = joining.ways.together, agreement.consortium.names
    trial = train(
        {EQUILIBRIUM: agreement.equilibrium, "agreement": agreement, "pooled": "pooled"},
        data=joining.setting.partition.of(names),
        task=joining.setting.task,
        local=way.local,
        server=way.server,
        fine_tuning=way.fine_tuning or None,
        rounds=joining.setting.rounds,
        seeds=seeds,
        progress=progress,
    )
    idle = np.flatnonzero(agreement.equilibrium.profile == 0).tolist()
    anyway = _fine_tuned_anyway(trial, idle) if way.fine_tuning else {}
    return TrainedModels(replace(trial, runs=(*_alone(joining, names), *trial.runs)), anyway)


def _fine_tuned_anyway(trial: Trial, idle: Sequence[int]) -> dict[str, Estimate]:
    course, errors = trial.course, list[list[np.ndarray]]()
    for run in trial.of(EQUILIBRIUM):
        partition = course.partition(run.seed)
        plan = course.plan(partition.draw(1), run.seed)
        tuned = fine_tune(VectorisedEngine(), plan, run.parameters, course.fine_tuning)
        models, tests = [tuned[n] for n in idle], [partition.tests[n] for n in idle]
        errors.append(list(on_own_tests(course.model, models, tests)[1]))
    return {
        course.names[n]: estimate_measure(np.array(by_seed), trial.own_weights[n])
        for n, by_seed in zip(idle, zip(*errors, strict=True), strict=True)
    }


def _alone(joining: Joining, names: Sequence[str]) -> Iterator[TrainingRun]:
    """What these members trained by themselves, as runs of a profile."""
    scores, partition = joining.scores, joining.setting.partition
    rows = {n: scores.row(np.arange(scores.clients) == n) for n in map(joining.names.index, names)}
    total = sum(partition.sizes[n] for n in rows)
    for k, seed in enumerate(scores.seeds):
        common = [_score(scores, row, k, COMMON) for row in rows.values()]
        loss, measure = np.mean([(one.loss, one.accuracy) for one in common], axis=0).tolist()
        own = tuple(_score(scores, row, k, n + 1) for n, row in rows.items())
        slot = SlotRecord(1, ALONE, total, (), Score(loss, measure), own=own)
        errors = tuple(scores.errors[row, k, scores.tests[n + 1]] for n, row in rows.items())
        yield TrainingRun(ALONE, seed, (slot,), {}, tuple(e.astype(np.float64) for e in errors))


def _score(scores: GroupScores, row: int, seed: int, test: int) -> Score:
    """Of a group on a test, with one of the seeds."""
    loss, error = (
        float(values[row, seed, scores.tests[test]].mean(dtype=np.float64))
        for values in (scores.losses, scores.errors)
    )
    return Score(loss, 1.0 - error)
