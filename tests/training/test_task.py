"""A task on a dataset: what modules and losses must satisfy, and how models are evaluated."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fedaccord as fa
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.training.task import Model, Task, cross_entropy, find_task
from tests.training.engine_contract import DROPOUT, in_double


def test_unknown_task() -> None:
    with pytest.raises(fa.InvalidInput, match="no task called 'svm': choose one of softmax"):
        find_task("svm")


def images(height: int, width: int) -> Dataset:
    inputs, labels = np.ones((2, height, width), dtype=np.float32), np.array([0, 1])
    return Dataset("own", inputs, labels, inputs, labels, 2)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (load_dataset("breast-cancer"), "task cnn: needs images, but breast-cancer has none"),
        (
            images(1, 1),
            "task cnn: needs images of at least 2 x 2 pixels, but those of own have 1 x 1",
        ),
        (
            images(1, 5),
            "task cnn: needs images of at least 2 x 2 pixels, but those of own have 1 x 5",
        ),
    ],
)
def test_images_only(dataset: Dataset, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        Model(find_task("cnn"), dataset)


def test_small_images_work() -> None:
    model = Model(find_task("cnn"), images(2, 3))
    loss, _ = model.evaluate(model.start(0), model.dataset.inputs, model.dataset.labels)
    assert np.isfinite(loss)


def frozen(_: Dataset) -> nn.Module:
    return nn.Linear(30, 2).requires_grad_(False)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda _: nn.Sequential(nn.BatchNorm1d(30)), "its model has buffers"),
        (lambda _: nn.Flatten(), "its model has no parameters to train"),
        (frozen, "its model has no parameters to train"),
    ],
)
def test_rejected_modules(build: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=f"task own: {message}"):
        Model(Task("own", build), load_dataset("breast-cancer"))


@pytest.mark.parametrize(
    ("loss", "shape"),
    [
        (nn.functional.cross_entropy, r"\(\)"),
        (nn.CrossEntropyLoss(reduction="sum"), r"\(\)"),
        (lambda outputs, labels: cross_entropy(outputs, labels)[:, None], r"\(64, 1\)"),
    ],
)
def test_a_loss_must_be_one_number_per_example(loss: Any, shape: str) -> None:
    message = f'task own: its loss must give .* \\(reduction="none"\\), not the shape {shape}'
    with pytest.raises(fa.InvalidInput, match=message):
        Model(Task("own", find_task("softmax").build, loss), load_dataset("digits"))


@pytest.mark.parametrize("task", [find_task("mlp"), DROPOUT], ids=["mlp", "dropout"])
def test_initial_models_differ_by_seed_and_do_not_use_the_global_rng(task: Task) -> None:
    torch.manual_seed(7)
    before = torch.rand(1)
    torch.manual_seed(7)
    model = Model(task, load_dataset("digits"))
    one, same, other = model.start(1), model.start(1), model.start(2)
    assert torch.equal(torch.rand(1), before)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_evaluation_uses_no_dropout_and_changes_nothing() -> None:
    digits = load_dataset("digits")
    model = Model(DROPOUT, digits)
    parameters = model.start(0)
    first, second = (
        model.evaluate(parameters, digits.test_inputs, digits.test_labels) for _ in range(2)
    )
    whole = DROPOUT.build(digits).eval()
    whole.load_state_dict(parameters)
    with torch.no_grad():
        outputs = whole(torch.from_numpy(digits.test_inputs))
        loss = float(cross_entropy(outputs, torch.from_numpy(digits.test_labels)).mean())
    assert first == second
    assert first[0] == pytest.approx(loss, rel=1e-6)
    assert all(part.training for part in model.module.modules())


class Noisy(nn.Linear):
    """Draws random numbers without a dropout layer."""

    def forward(self, inputs: Any) -> Any:
        outputs = super().forward(inputs)
        return outputs + torch.randn(()) if self.training else outputs


@pytest.mark.parametrize(
    ("build", "random"),
    [
        (lambda _: nn.Linear(30, 2), False),
        (lambda _: nn.Sequential(nn.Linear(30, 2), nn.Dropout(0.0)), False),
        (lambda _: nn.Sequential(nn.Linear(30, 2), nn.Dropout(0.1)), True),
        (lambda _: nn.Sequential(nn.Linear(30, 2), nn.Dropout(0.1).eval()), False),
        (lambda _: nn.Sequential(nn.Linear(30, 2), nn.RReLU()), True),
        (lambda _: Noisy(30, 2), True),
    ],
)
def test_detects_models_that_draw_random_numbers(build: Any, random: bool) -> None:
    assert Model(Task("own", build), load_dataset("breast-cancer")).random is random


@pytest.mark.parametrize("size", [1, 8_192, 8_193, 20_000])
def test_loss_and_accuracy_of_many_examples(size: int) -> None:
    """More than one batch of the evaluation, against NumPy in 64 bits."""
    rng = np.random.default_rng(size)
    inputs = rng.normal(size=(size, 3)).astype(np.float32)
    labels = rng.integers(0, 4, size)
    model = Model(in_double("softmax"), Dataset("own", inputs, labels, inputs, labels, 4))
    parameters = model.start(0)
    weight, bias = (parameters[name].numpy() for name in ("1.weight", "1.bias"))
    scores = inputs.astype(np.float64) @ weight.T + bias
    of_label = scores[np.arange(size), labels]
    loss, accuracy = model.evaluate(parameters, inputs, labels)
    assert loss == pytest.approx(np.mean(np.log(np.exp(scores).sum(axis=1)) - of_label), rel=1e-12)
    assert accuracy == np.mean(scores.argmax(axis=1) == labels)


@pytest.mark.parametrize(
    ("given", "hint"), [(in_double, r"; Task\(name, function\) makes one"), (3, "got 3$")]
)
def test_a_task_that_is_neither_a_name_nor_a_task_is_refused(given: Any, hint: str) -> None:
    consortium = fa.paper_consortium(clients=2, samples=20)
    for use in (
        find_task,
        lambda task: fa.train(consortium, task=task),
        lambda task: fa.calibrate(task=task),
    ):
        with pytest.raises(fa.InvalidInput, match=f"task: must be a name or .*{hint}"):
            use(given)
