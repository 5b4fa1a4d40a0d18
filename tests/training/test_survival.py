"""Survival times: which task fits them, and that both engines train it alike."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fedaccord as fa
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.training.cox import cox_loss
from fedaccord.training.engine import GradientStep, LocalEpochs, PlainEngine
from fedaccord.training.measures import CONCORDANCE
from fedaccord.training.optimisers import ServerOptimiser
from fedaccord.training.task import Model, Task, cross_entropy, find_task, usual_task
from fedaccord.training.vectorised.engine import VectorisedEngine
from tests.training.engine_contract import (
    EQUAL,
    LOCALS,
    MORE_LOCALS,
    RAGGED,
    RELATIVE_DOUBLE,
    SERVERS,
    assert_close,
    assert_same,
    final,
    plan,
)
from tests.training.patients import RISKS, survival_data

PATIENTS = survival_data()


def deep(_: Dataset) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()


COX = Task("cox", lambda data: find_task("cox").build(data).double(), cox_loss, CONCORDANCE, False)
DEEP = Task("deep", deep, cox_loss, CONCORDANCE, separable=False)


@pytest.mark.parametrize("task", [COX, DEEP], ids=["cox", "deep"])
@pytest.mark.parametrize("local", LOCALS)
@pytest.mark.parametrize("sizes", [EQUAL, RAGGED])
def test_the_engines_agree(sizes: Any, local: Any, task: Task) -> None:
    given = plan(sizes, local, task, dataset=PATIENTS)
    here, there = (final(engine, given) for engine in (VectorisedEngine(), PlainEngine()))
    assert_close(here, there, RELATIVE_DOUBLE)


@pytest.mark.parametrize("local", [*LOCALS, *MORE_LOCALS], ids=str)
@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_the_engines_agree_on_every_rule_and_optimiser(server: ServerOptimiser, local: Any) -> None:
    given = plan(RAGGED, local, COX, dataset=PATIENTS, server=server)
    here, there = (final(engine, given) for engine in (VectorisedEngine(), PlainEngine()))
    assert {value.dtype for value in here.values()} == {torch.float64}
    assert_close(here, there, RELATIVE_DOUBLE)


def centred(outputs: Tensor, labels: Tensor) -> Tensor:
    """A loss of classes that depends on the others of the batch."""
    return cross_entropy(outputs - outputs.mean(dim=0), labels)


@pytest.mark.parametrize("local", LOCALS)
def test_the_engines_agree_on_classes_that_depend_on_the_batch(local: Any) -> None:
    """No label is free to fill up batches with, so that nothing is filled up."""
    task = Task("centred", find_task("softmax").build, centred, separable=False)
    given = plan(RAGGED, local, task)
    assert_same(final(VectorisedEngine(), given), final(PlainEngine(), given))


@pytest.mark.parametrize("local", [GradientStep(0.5), LocalEpochs(0.1, batch=32)])
def test_it_learns_whose_risk_is_higher(local: Any) -> None:
    given = plan([150, 100, 100], local, "cox", rounds=40, dataset=PATIENTS)
    after = final(VectorisedEngine(), given)
    loss, concordance = given.model.evaluate(after, PATIENTS.test_inputs, PATIENTS.test_labels)
    first = given.model.evaluate(given.model.start(3), PATIENTS.test_inputs, PATIENTS.test_labels)
    assert loss < first[0]
    best = {"1.weight": torch.from_numpy(RISKS).to(torch.float32)[None]}
    known = given.model.evaluate(best, PATIENTS.test_inputs, PATIENTS.test_labels)[1]
    assert first[1] < known - 0.1 < concordance <= known + 0.02


@pytest.mark.slow
def test_loss_and_concordance_are_of_all_examples_at_once() -> None:
    """More than one part of the evaluation: everyone is at risk together."""
    data = survival_data(tested=8_200)
    model = Model(COX, data)
    parameters = model.start(0)
    scores = data.test_inputs.astype(np.float64) @ parameters["1.weight"].numpy()[0]
    times, events = np.abs(data.test_labels), data.test_labels > 0
    order = np.argsort(-times, kind="stable")
    sums = np.cumsum(np.exp(scores[order]))[np.searchsorted(-times[order], -times, "right") - 1]
    losses, errors = model.evaluate_each(parameters)
    assert losses == pytest.approx(np.where(events, np.log(sums) - scores, 0.0), rel=1e-9)
    loss, concordance = model.evaluate(parameters, data.test_inputs, data.test_labels)
    assert (loss, concordance) == pytest.approx((losses.mean(), 1 - errors.mean()))


def test_some_examples_are_judged_by_themselves() -> None:
    """A client's own test has its own pairs and its own people at risk."""
    model, chosen = Model(COX, PATIENTS), np.arange(40, 90)
    parameters = model.start(0)
    losses, errors = model.evaluate_each(parameters, chosen)
    own = PATIENTS.test_inputs[chosen], PATIENTS.test_labels[chosen]
    assert model.evaluate(parameters, *own) == pytest.approx((losses.mean(), 1 - errors.mean()))
    assert not np.allclose(losses, model.evaluate_each(parameters)[0][chosen])


@pytest.mark.parametrize(
    ("task", "dataset", "message"),
    [
        ("cox", load_dataset("digits"), "task cox: learns survival times, but digits has classes"),
        (
            "softmax",
            PATIENTS,
            "task softmax: learns classes, but patients has survival times, which the task cox",
        ),
        ("mlp", PATIENTS, "task mlp: learns classes, but patients has survival times"),
    ],
)
def test_a_task_that_does_not_fit_the_labels(task: str, dataset: Dataset, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        Model(find_task(task), dataset)


def test_the_usual_task() -> None:
    assert usual_task(PATIENTS).name == "cox"
    assert usual_task(load_dataset("digits")).name == "softmax"
