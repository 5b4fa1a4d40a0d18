"""Updates match real training."""

import numpy as np
import pytest
import torch

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.mechanisms.detection.setting import check_updates, client_updates, flatten, unflatten
from fedaccord.training.engine import GradientStep, LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.task import Model, find_task


def plan(local: GradientStep | LocalEpochs, rounds: int) -> TrainingPlan:
    digits = load_dataset("digits")
    shares = RandomPartition(digits, [30, 0, 50, 20]).draw(1)
    return TrainingPlan(Model(find_task("mlp"), digits), shares, rounds, local, seed=4)


@pytest.mark.parametrize("local", [GradientStep(0.3), LocalEpochs(0.1, batch=16, epochs=2)])
def test_their_average_is_a_round_of_the_engine(local: GradientStep | LocalEpochs) -> None:
    """In the third round, to check that the batches of that round are used."""
    given = plan(local, rounds=3)
    *_, before, after = PlainEngine().rounds(given, given.model.start(1))
    updates = client_updates(given, before, number=3)
    average = np.array([0.3, 0.0, 0.5, 0.2]) @ updates
    # one 32-bit rounding of parameters up to 1
    np.testing.assert_allclose(flatten(before) + average, flatten(after), rtol=0, atol=1e-6)
    assert not updates[1].any()


def test_flattening_can_be_undone() -> None:
    start = plan(GradientStep(), 1).model.start(0)
    back = unflatten(flatten(start), start)
    assert all(torch.equal(back[name], start[name]) for name in start)
    assert all(back[name].dtype == start[name].dtype for name in start)


def test_all_updates_with_nan_or_infinity_are_named_at_once() -> None:
    updates = np.zeros((4, 3), dtype=np.float32)
    updates[1] = np.nan
    updates[3, 0] = np.inf
    with pytest.raises(fa.InvalidInput) as caught:
        check_updates(updates, ["A", "B", "C", "D"])
    assert tuple(map(str, caught.value.problems)) == (
        "the update of B has 3 values that are NaN or infinite",
        "the update of D has 1 value that is NaN or infinite",
    )


def test_there_must_be_one_name_per_update() -> None:
    with pytest.raises(fa.InvalidInput, match="2 updates but 1 names"):
        check_updates([[1.0], [2.0]], ["A"])
