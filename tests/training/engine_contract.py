"""What every engine must do: one suite for all of them."""

from typing import Any

import numpy as np
import pytest
import torch

from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.training.engine import (
    Engine,
    GradientStep,
    LocalEpochs,
    TrainingFailed,
    TrainingPlan,
)
from fedaccord.training.plain import PlainEngine
from fedaccord.training.task import Model, Parameters, Task, find_task

# Sums of thousands of 32-bit numbers in another order: some hundred units in 6e-8.
RELATIVE = 1e-5

LOCALS: list[Any] = [GradientStep(0.3), LocalEpochs(0.05, batch=16), LocalEpochs(0.05, 7, 2)]
EQUAL, RAGGED = [40] * 5, [3, 0, 64, 17, 100, 1]


def plan(
    sizes: list[int], local: Any, task: str = "softmax", rounds: int = 3, seed: int = 0
) -> TrainingPlan:
    dataset = load_dataset("digits")
    shares = RandomPartition(dataset, sizes, seed).draw(1)
    return TrainingPlan(Model(find_task(task), dataset), shares, rounds, local, seed)


def final(engine: Engine, given: TrainingPlan) -> Parameters:
    *_, last = engine.rounds(given, given.model.start(seed=3))
    return last


def assert_close(here: Parameters, there: Parameters) -> None:
    assert here.keys() == there.keys()
    for name in here:
        scale = float(there[name].abs().max())
        torch.testing.assert_close(here[name], there[name], rtol=0, atol=RELATIVE * scale)


class EngineContract:
    """Inherit from it with an engine."""

    engine: Engine

    @pytest.mark.parametrize("task", ["softmax", "mlp", "cnn"])
    @pytest.mark.parametrize("local", LOCALS)
    @pytest.mark.parametrize("sizes", [EQUAL, RAGGED])
    def test_agrees_with_the_readable_loop(self, sizes: Any, local: Any, task: str) -> None:
        given = plan(sizes, local, task)
        assert_close(final(self.engine, given), final(PlainEngine(), given))

    @pytest.mark.parametrize("local", LOCALS)
    def test_same_seed_same_numbers(self, local: Any) -> None:
        one, other = (final(self.engine, plan(RAGGED, local)) for _ in range(2))
        assert all(torch.equal(one[name], other[name]) for name in one)

    @pytest.mark.parametrize("local", LOCALS)
    def test_one_round_at_a_time(self, local: Any) -> None:
        given = plan(EQUAL, local, rounds=4)
        assert len(list(self.engine.rounds(given, given.model.start(0)))) == 4

    @pytest.mark.parametrize("local", LOCALS)
    def test_goes_on_from_any_round(self, local: Any) -> None:
        given = plan(RAGGED, local, rounds=4)
        every = list(self.engine.rounds(given, given.model.start(3)))
        rest = list(self.engine.rounds(given.from_round(3), every[1]))
        assert len(rest) == 2
        assert all(torch.equal(rest[-1][name], every[-1][name]) for name in every[-1])

    @pytest.mark.parametrize("local", LOCALS)
    def test_the_start_is_left_alone(self, local: Any) -> None:
        given = plan(EQUAL, local)
        start = given.model.start(0)
        before = {name: value.clone() for name, value in start.items()}
        list(self.engine.rounds(given, start))
        assert all(torch.equal(start[name], before[name]) for name in start)

    @pytest.mark.parametrize("local", LOCALS)
    def test_training_helps(self, local: Any) -> None:
        given = plan([200] * 5, local, rounds=15)
        data = given.model.dataset
        before = given.model.evaluate(given.model.start(3), data.test_inputs, data.test_labels)
        after = given.model.evaluate(final(self.engine, given), data.test_inputs, data.test_labels)
        assert after[0] < before[0]
        assert after[1] > before[1] + 0.3  # from a tenth, by chance, to most

    def test_by_hand(self) -> None:
        """Two clients, one weight, squared loss (w x - y)^2: worked out on paper.

        Client 1 has x = 1, y = 1; client 2 has twice x = 2, y = 0; w = 1, rate 0.1.
        Gradients: 2 (1 - 1) 1 = 0, and 2 (2 - 0) 2 = 8. So w_1 = 1, w_2 = 1 - 0.8 = 0.2, and the
        average with weights 1/3 and 2/3 is 0.466...
        """
        inputs = np.array([[1.0], [2.0], [2.0]], dtype=np.float32)
        data = Dataset("three", inputs, np.array([1, 0, 0]), inputs, np.array([1, 0, 0]), 2)
        task = Task(
            "line",
            lambda _: torch.nn.Linear(1, 1, bias=False),
            lambda outputs, labels: (outputs[:, 0] - labels) ** 2,
        )
        shares = [np.array([0]), np.array([1, 2])]
        given = TrainingPlan(Model(task, data), shares, 1, GradientStep(0.1))
        (after,) = self.engine.rounds(given, {"weight": torch.ones(1, 1)})
        assert after["weight"].item() == pytest.approx(1.0 / 3.0 + 0.2 * 2.0 / 3.0, rel=1e-6)

    def test_who_contributes_nothing_weighs_nothing(self) -> None:
        without = plan([50, 70], LocalEpochs(0.05, 16))
        nothing = np.array([], dtype=np.int64)
        idle = TrainingPlan(without.model, [*without.shares, nothing], 3, without.local)
        assert_close(final(self.engine, idle), final(self.engine, without))

    @pytest.mark.parametrize("local", [GradientStep(1e30), LocalEpochs(1e30, 16)])
    def test_a_model_that_is_no_number_any_more(self, local: Any) -> None:
        with pytest.raises(TrainingFailed, match=r"no number any more in round \d+ of slot 1"):
            final(self.engine, plan(RAGGED, local, task="mlp", rounds=9))

    @pytest.mark.parametrize("local", LOCALS)
    def test_one_and_two_threads(self, local: Any) -> None:
        given = plan(RAGGED, local)
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(1)
            one = final(self.engine, given)
            torch.set_num_threads(2)
            two = final(self.engine, given)
        finally:
            torch.set_num_threads(threads)
        for name in one:
            torch.testing.assert_close(one[name], two[name], rtol=1e-6, atol=1e-6)
