"""The engines, each against the one contract."""

import numpy as np
import pytest
import torch

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.training.engine import GradientStep, LocalEpochs, TrainingPlan
from fedaccord.training.plain import PlainEngine
from fedaccord.training.task import Model, Task, find_task
from fedaccord.training.vectorised import VectorisedEngine
from tests.training.engine_contract import EngineContract, assert_close, final, plan


class TestPlain(EngineContract):
    engine = PlainEngine()


class TestVectorised(EngineContract):
    engine = VectorisedEngine()


def test_the_union_of_a_hundred_clients_is_one_step_of_each() -> None:
    """100 clients with 300 of 1,438 digits each: every digit is chosen some 20 times."""
    given = plan([300] * 100, GradientStep(0.3))
    assert given.total == 30_000
    assert_close(final(VectorisedEngine(), given), final(PlainEngine(), given))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: must be 1 or more"),
        ({"local": GradientStep(0.0)}, "rate: must be more than 0"),
        ({"local": LocalEpochs(0.1, batch=0)}, "batch and epochs: must be 1 or more"),
        ({"shares": [np.array([], int)]}, "nobody contributes a sample"),
    ],
)
def test_plans_that_are_refused(change: dict[str, object], message: str) -> None:
    model = Model(find_task("softmax"), load_dataset("digits"))
    fields = {"shares": [np.arange(5)], "rounds": 1, "local": GradientStep()} | change
    with pytest.raises(fa.InvalidInput, match=message):
        TrainingPlan(model, **fields)  # type: ignore[arg-type]


def test_unknown_task() -> None:
    with pytest.raises(fa.InvalidInput, match="no task called 'svm': choose one of softmax"):
        find_task("svm")


def test_images_only() -> None:
    with pytest.raises(fa.InvalidInput, match="task cnn: needs images"):
        Model(find_task("cnn"), load_dataset("breast-cancer"))


def test_buffers_have_no_average() -> None:
    task = Task("normed", lambda _: torch.nn.Sequential(torch.nn.BatchNorm1d(30)))
    with pytest.raises(fa.InvalidInput, match="its model has buffers"):
        Model(task, load_dataset("breast-cancer"))


def test_starts_differ_by_seed_and_leave_the_global_chance_alone() -> None:
    model = Model(find_task("mlp"), load_dataset("digits"))
    torch.manual_seed(7)
    before = torch.rand(1)
    torch.manual_seed(7)
    one, same, other = model.start(1), model.start(1), model.start(2)
    assert torch.equal(torch.rand(1), before)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
