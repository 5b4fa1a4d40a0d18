"""What every engine must do: one suite for all of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.training.engine import (
    Engine,
    PlainEngine,
    Server,
    TrainingFailed,
    TrainingPlan,
)
from fedaccord.training.optimisers import (
    FEDAVG,
    FedAdagrad,
    FedAdam,
    FedYogi,
    ServerOptimiser,
)
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalSteps
from fedaccord.training.task import Model, Parameters, Task, find_task

# Sums of thousands of 32-bit numbers in different orders differ by a few hundred times 6e-8. That
# holds unless an example is so close to the kink of a ReLU, or to a tie in a maximum, that rounding
# decides the side: the gradient is then a different one. So 64 bits prove that engines do the same
# (a few thousand times 1e-16, with such cases a billion times rarer); 32 bits are checked in
# settings without such examples.
RELATIVE = 1e-5
RELATIVE_DOUBLE = 1e-11

LOCALS: list[Any] = [GradientStep(0.3), LocalEpochs(0.05, batch=16), LocalEpochs(0.05, 7, 2)]
MORE_LOCALS: list[Any] = [
    LocalSteps(0.05, 8, 11),
    LocalSteps(0.05, 8, 11, proximal=0.5),
    LocalEpochs(0.01, 7, 2, optimiser="adam"),
    LocalSteps(0.01, 8, 11, optimiser="adam", proximal=0.1),
]
SERVERS: list[ServerOptimiser] = [FEDAVG, FedAdam(0.03), FedYogi(0.03), FedAdagrad(0.03)]
EQUAL, RAGGED = [40] * 5, [3, 0, 64, 17, 100, 1]
DROPOUT = Task(
    "dropout",
    lambda _: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10)
    ),
)


def in_double(name: str) -> Task:
    return Task(name, lambda dataset: find_task(name).build(dataset).double())


def plan(
    sizes: list[int],
    local: Any,
    task: str | Task = "softmax",
    rounds: int = 3,
    seed: int = 0,
    *,
    dataset: Dataset | None = None,
    server: ServerOptimiser = FEDAVG,
) -> TrainingPlan:
    dataset = dataset or load_dataset("digits")
    task = find_task(task) if isinstance(task, str) else task
    shares = RandomPartition(dataset, sizes, seed).draw(1)
    return TrainingPlan(Model(task, dataset), shares, rounds, local, seed, server=server)


def noise(size: int) -> Dataset:
    """As large as the images of MNIST, so that PyTorch splits operations between threads."""
    rng = np.random.default_rng(0)
    inputs = rng.random((size, 28, 28), dtype=np.float32)
    labels = rng.integers(0, 10, size)
    return Dataset("noise", inputs, labels, inputs[:9], labels[:9], 10)


def final(engine: Engine, given: TrainingPlan, seed: int = 3) -> Parameters:
    *_, last = engine.rounds(given, given.model.start(seed))
    return last


def assert_close(here: Parameters, there: Parameters, relative: float = RELATIVE) -> None:
    assert here.keys() == there.keys()
    for name in here:
        scale = float(there[name].abs().max())
        torch.testing.assert_close(here[name], there[name], rtol=0, atol=relative * scale)


def assert_same(here: Parameters, there: Parameters) -> None:
    assert here.keys() == there.keys()
    assert all(torch.equal(here[name], there[name]) for name in here)


class EngineContract:
    """Inherit from this class and define the engine."""

    engine: Engine

    @pytest.mark.parametrize("task", ["softmax", "mlp", "cnn"])
    @pytest.mark.parametrize("local", LOCALS)
    @pytest.mark.parametrize("sizes", [EQUAL, RAGGED])
    def test_agrees_with_the_plain_engine(self, sizes: Any, local: Any, task: str) -> None:
        given = plan(sizes, local, task)
        assert_close(final(self.engine, given), final(PlainEngine(), given))

    @pytest.mark.parametrize("task", ["softmax", "mlp", "cnn"])
    @pytest.mark.parametrize("local", LOCALS)
    @pytest.mark.parametrize("sizes", [EQUAL, RAGGED])
    def test_agrees_in_64_bits(self, sizes: Any, local: Any, task: str) -> None:
        given = plan(sizes, local, in_double(task), seed=1)
        here = final(self.engine, given)
        assert {value.dtype for value in here.values()} == {torch.float64}
        assert_close(here, final(PlainEngine(), given), RELATIVE_DOUBLE)

    @pytest.mark.parametrize("task", ["softmax", "mlp"])
    @pytest.mark.parametrize("local", LOCALS[1:2] + LOCALS[:1] + MORE_LOCALS, ids=str)
    @pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
    def test_every_rule_and_optimiser_agrees_in_64_bits(
        self, server: ServerOptimiser, local: Any, task: str
    ) -> None:
        given = plan(RAGGED, local, in_double(task), seed=1, server=server)
        assert_close(final(self.engine, given), final(PlainEngine(), given), RELATIVE_DOUBLE)

    @pytest.mark.parametrize("local", [MORE_LOCALS[-1], GradientStep(0.3)], ids=str)
    def test_a_model_that_is_left_to_pytorch(self, local: Any) -> None:
        """Layer normalisation is not differentiated by hand."""
        parts = nn.Linear(64, 12), nn.LayerNorm(12), nn.Linear(12, 10)
        own = Task("own", lambda _: nn.Sequential(nn.Flatten(), *parts).double())
        given = plan(RAGGED, local, own, seed=1, server=FedYogi(0.03))
        assert_close(final(self.engine, given), final(PlainEngine(), given), RELATIVE_DOUBLE)

    @pytest.mark.parametrize("local", [*LOCALS[:2], MORE_LOCALS[0]], ids=str)
    @pytest.mark.parametrize("server", SERVERS[1:], ids=lambda server: server.name)
    def test_the_server_moves_along_the_clients_average(
        self, server: ServerOptimiser, local: Any
    ) -> None:
        """The average itself is what FedAvg has after one round from the same model."""
        given = plan(RAGGED, local, in_double("softmax"), rounds=4, seed=1, server=server)
        model, turns = given.model.start(3), []
        moments = server.start({name: value.numpy() for name, value in model.items()})
        for turn in range(1, 5):
            averaging = replace(given, server=FEDAVG, first=turn, rounds=turn)
            (average,) = self.engine.rounds(averaging, model)
            arrays = [{name: value.numpy() for name, value in m.items()} for m in (model, average)]
            after, moments = server.step(arrays[0], arrays[1], moments)
            model = {name: torch.from_numpy(value) for name, value in after.items()}
            turns.append(model)
        for here, there in zip(self.engine.rounds(given, given.model.start(3)), turns, strict=True):
            assert_close(here, there, RELATIVE_DOUBLE)

    @pytest.mark.parametrize("local", [GradientStep(0.3), LocalSteps(0.05, 8, 11)], ids=str)
    @pytest.mark.parametrize("server", SERVERS[1:], ids=lambda server: server.name)
    def test_resumes_with_the_moments(self, server: ServerOptimiser, local: Any) -> None:
        given = plan(RAGGED, local, rounds=4, server=server)
        kept, states = Server(given), []
        for after in self.engine.rounds(given, given.model.start(3), kept):
            states.append((after, kept.moments))
        parameters, moments = states[1]
        rest = given.from_round(3)
        *_, last = self.engine.rounds(rest, parameters, Server(rest, moments))
        assert_same(last, states[-1][0])
        *_, without = self.engine.rounds(rest, parameters)
        assert any(not torch.equal(last[name], without[name]) for name in last)

    @pytest.mark.parametrize("server", SERVERS[1:], ids=lambda server: server.name)
    def test_weights_that_no_client_changes_stay_the_same(self, server: Any) -> None:
        """Some pixels are always 0. Rounding errors of an average would move their weights."""
        small = replace(server, tau=1e-8)
        given = plan([33, 7, 21], LocalSteps(0.05, 8, 5), rounds=5, server=small)
        start, after = given.model.start(3), final(self.engine, given)
        seen = given.model.inputs[torch.from_numpy(np.concatenate(given.shares))].flatten(1)
        unseen = (seen == 0).all(dim=0)
        assert unseen.sum() >= 3
        moved = (after["1.weight"] - start["1.weight"]).abs()
        assert float(moved[:, unseen].max()) < 1e-6
        assert float(moved[:, ~unseen].max()) > 1e-2

    def test_a_server_rate_that_is_too_large(self) -> None:
        given = plan(RAGGED, LocalSteps(0.1, 8, 3), server=FedAdam(1e300), rounds=2)
        with pytest.raises(
            TrainingFailed,
            match=r"the model of the clients' average became NaN or infinite in round 1 of slot 1: "
            r"a rate below 0.1, or a server rate below 1e\+300, may help",
        ):
            final(self.engine, given)

    def test_agrees_in_64_bits_where_32_bits_hit_a_kink(self) -> None:
        """In 32 bits the engines differed by 9e-4 here."""
        rng = np.random.default_rng(2)
        model = Model(in_double("cnn"), load_dataset("digits"))
        shares = [rng.permutation(model.dataset.size)[:size] for size in (300, 100, 7)]
        given = TrainingPlan(model, shares, 3, GradientStep(0.3))
        here, there = (final(engine, given, seed=2) for engine in (self.engine, PlainEngine()))
        assert_close(here, there, RELATIVE_DOUBLE)

    @pytest.mark.parametrize("task", ["softmax", DROPOUT], ids=["softmax", "dropout"])
    @pytest.mark.parametrize("local", LOCALS)
    def test_the_same_seed_gives_the_same_numbers(self, local: Any, task: Any) -> None:
        one, other = (final(self.engine, plan(RAGGED, local, task)) for _ in range(2))
        assert_same(one, other)

    @pytest.mark.parametrize("local", LOCALS)
    def test_a_model_that_draws_random_numbers(self, local: Any) -> None:
        """Each client draws the same numbers with any engine, whatever was drawn before."""
        given = plan(RAGGED, local, DROPOUT)
        there = final(PlainEngine(), given)
        torch.rand(5)
        assert_close(final(self.engine, given), there)

    @pytest.mark.parametrize("local", LOCALS)
    def test_frozen_parameters_do_not_change(self, local: Any) -> None:
        """Only the last layer is trained, which equals softmax regression on its inputs."""

        def build(_: Dataset) -> nn.Sequential:
            module = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 10))
            module[1].requires_grad_(False)
            return module

        given = plan(RAGGED, local, Task("frozen", build))
        digits, start = given.model.dataset, given.model.start(3)
        fixed = build(digits)
        fixed.load_state_dict(start)
        with torch.no_grad():
            seen, test = (
                fixed[:3](torch.from_numpy(inputs)).numpy()
                for inputs in (digits.inputs, digits.test_inputs)
            )
        shown = Dataset("seen", seen, digits.labels, test, digits.test_labels, 10)
        alone = TrainingPlan(Model(find_task("softmax"), shown), given.shares, 3, local)
        *_, here = self.engine.rounds(given, start)
        names = {"1.weight": "3.weight", "1.bias": "3.bias"}
        *_, there = PlainEngine().rounds(alone, {n: start[own] for n, own in names.items()})
        assert_close(here, start | {own: there[n] for n, own in names.items()})
        measured = given.model.evaluate(here, digits.test_inputs, digits.test_labels)
        assert measured == pytest.approx(
            alone.model.evaluate(there, test, digits.test_labels), rel=1e-5
        )

    @pytest.mark.parametrize("local", LOCALS)
    def test_one_round_at_a_time(self, local: Any) -> None:
        given = plan(EQUAL, local, rounds=4)
        assert len(list(self.engine.rounds(given, given.model.start(0)))) == 4

    @pytest.mark.parametrize("task", ["softmax", DROPOUT], ids=["softmax", "dropout"])
    @pytest.mark.parametrize("local", LOCALS)
    def test_resumes_from_any_round(self, local: Any, task: Any) -> None:
        given = plan(RAGGED, local, task, rounds=4)
        every = list(self.engine.rounds(given, given.model.start(3)))
        rest = list(self.engine.rounds(given.from_round(3), every[1]))
        assert len(rest) == 2
        assert_same(rest[-1], every[-1])

    @pytest.mark.parametrize("local", LOCALS)
    def test_the_initial_parameters_are_not_modified(self, local: Any) -> None:
        given = plan(EQUAL, local)
        start = given.model.start(0)
        before = {name: value.clone() for name, value in start.items()}
        list(self.engine.rounds(given, start))
        assert_same(start, before)

    @pytest.mark.parametrize("local", LOCALS)
    def test_training_improves_accuracy(self, local: Any) -> None:
        given = plan([200] * 5, local, rounds=15)
        data = given.model.dataset
        before = given.model.evaluate(given.model.start(3), data.test_inputs, data.test_labels)
        after = given.model.evaluate(final(self.engine, given), data.test_inputs, data.test_labels)
        assert after[0] < before[0]
        assert after[1] > before[1] + 0.3  # from a tenth, which is guessing, to most

    def test_by_hand(self) -> None:
        """Two clients, one weight, squared loss (w x - y)^2: computed by hand.

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

    def test_a_client_without_samples_has_no_weight(self) -> None:
        without = plan([50, 70], LocalEpochs(0.05, 16))
        nothing = np.array([], dtype=np.int64)
        idle = TrainingPlan(without.model, [*without.shares, nothing], 3, without.local)
        assert_close(final(self.engine, idle), final(self.engine, without))

    @pytest.mark.parametrize("local", [GradientStep(1e30), LocalEpochs(1e30, 16)])
    def test_a_model_that_becomes_nan(self, local: Any) -> None:
        with pytest.raises(TrainingFailed, match=r"became NaN or infinite in round \d+ of slot 1"):
            final(self.engine, plan(RAGGED, local, task="mlp", rounds=9))

    @pytest.mark.parametrize("local", [GradientStep(0.5), LocalEpochs(0.05, batch=2)])
    def test_a_failure_names_the_client(self, local: Any) -> None:
        """The fourth client's inputs are so large that its model becomes NaN at its second step."""
        inputs = np.ones((30, 4), dtype=np.float32)
        inputs[18:24] = 1e30
        data = Dataset("thirty", inputs, np.arange(30) % 2, inputs[:2], np.array([0, 1]), 2)
        shares = list(np.arange(30).reshape(5, 6))
        given = TrainingPlan(Model(find_task("softmax"), data), shares, 3, local)
        with pytest.raises(TrainingFailed, match=r"the model of clients\[3\] became NaN"):
            final(self.engine, given)

    @pytest.mark.parametrize("task", ["softmax", "mlp", "cnn"])
    @pytest.mark.parametrize("local", [GradientStep(), LocalEpochs(0.1, batch=64)])
    def test_one_and_two_threads(self, local: Any, task: str) -> None:
        given = plan([130, 0, 70], local, task, dataset=noise(200))
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(1)
            one = final(self.engine, given)
            torch.set_num_threads(2)
            two = final(self.engine, given)
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(threads)
        assert_same(one, two)  # exactly, since a kink could exceed any tolerance
