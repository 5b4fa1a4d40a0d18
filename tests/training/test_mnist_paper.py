"""The paper's training setting on MNIST: 100 clients x 10,000 of 60,000 images, 50 rounds."""

import pytest

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.training.course import Course, train
from fedaccord.training.task import Model, find_task

pytestmark = [pytest.mark.slow, pytest.mark.originals("mnist")]


def test_softmax_regression_exceeds_90_percent_at_the_equilibrium() -> None:
    mnist = load_dataset("mnist")
    equilibrium = fa.solve_equilibrium(fa.paper_consortium())
    course = Course(
        model=Model(find_task("softmax"), mnist),
        partition=lambda seed: RandomPartition(mnist, [10_000] * 100, seed),
        rounds=50,
    )
    run = train(course, equilibrium.profile)
    assert run.slots[0].total == round(equilibrium.total) == 505_063
    assert run.final.accuracy > 0.90  # 90.13 % was measured
