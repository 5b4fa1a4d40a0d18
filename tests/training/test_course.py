"""Slots: the model carries over, the data drifts, contributions decide who trains on what."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
import torch

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.data.scale import examples_for
from fedaccord.training.course import Course, RunState, TrainingRun, train
from fedaccord.training.engine import PlainEngine, TrainingFailed, TrainingPlan
from fedaccord.training.optimisers import FEDAVG, FedAdam, FedYogi, ServerOptimiser
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule, LocalSteps
from fedaccord.training.task import Model, Task, cross_entropy, find_task
from fedaccord.training.vectorised.engine import VectorisedEngine

SIZES = [120, 80, 60]
THREE_SLOTS = np.array([[120, 10.4, 0.0], [120, 80, 33.7], [0, 0, 0.0]])


def course(
    local: LocalRule | None = None, rounds: int = 3, server: ServerOptimiser = FEDAVG
) -> Course:
    digits = load_dataset("digits")
    return Course(
        model=Model(find_task("softmax"), digits),
        partition=lambda seed: RandomPartition(digits, SIZES, seed),
        rounds=rounds,
        local=local or GradientStep(0.5),
        names=["one", "two", "three"],
        server=server,
    )


class Memory:
    """A store that ends the run at its k-th save, as if it was killed."""

    def __init__(self, ends_at: int | None = None) -> None:
        self.state: RunState | None = None
        self.saves = 0
        self.ends_at = ends_at

    def load(self) -> RunState | None:
        return self.state

    def save(self, state: RunState, *, at_once: bool = False) -> None:
        self.saves += 1
        if self.saves == self.ends_at:
            self.ends_at = None
            raise KeyboardInterrupt
        self.state = state


def assert_same(one: TrainingRun, other: TrainingRun) -> None:
    assert one.slots == other.slots
    for name in one.parameters:
        assert torch.equal(one.parameters[name], other.parameters[name])


def test_slots_by_hand() -> None:
    """Equal to one plan after another, each with its slot's data and the last parameters."""
    given = course(LocalEpochs(0.1, 16))
    run = train(given, THREE_SLOTS[:2], ["cooperating", "punishing"], seed=5)
    partition, parameters = given.partition(5), given.model.start(5)
    for slot in (1, 2):
        whole = examples_for(THREE_SLOTS[slot - 1])
        shares = [own[:x] for own, x in zip(partition.draw(slot), whole, strict=True)]
        plan = TrainingPlan(given.model, shares, 3, LocalEpochs(0.1, 16), seed=5, slot=slot)
        *_, parameters = VectorisedEngine().rounds(plan, parameters)
    assert all(torch.equal(run.parameters[name], parameters[name]) for name in parameters)
    assert [slot.phase for slot in run.slots] == ["cooperating", "punishing"]
    data = given.model.dataset
    loss, accuracy = given.model.evaluate(parameters, data.test_inputs, data.test_labels)
    assert (run.final.loss, run.final.accuracy) == (loss, accuracy)


def test_totals_are_whole_and_kept() -> None:
    run = train(course(), THREE_SLOTS)
    assert [slot.total for slot in run.slots] == [130, 234, 0]


def test_a_slot_without_contributions_changes_nothing() -> None:
    run = train(course(), THREE_SLOTS)
    assert run.slots[2].rounds == ()
    assert run.slots[2].final == run.slots[1].final


def test_the_scale_multiplies_contributions() -> None:
    given = course()
    tenth = Course(given.model, given.partition, 3, given.local, scale=0.1)
    assert_same(train(tenth, 10 * THREE_SLOTS), train(given, THREE_SLOTS))


def test_seeds_change_data_and_start_and_repeat() -> None:
    given = course(LocalEpochs(0.1, 16))
    assert_same(train(given, THREE_SLOTS, seed=1), train(given, THREE_SLOTS, seed=1))
    assert train(given, THREE_SLOTS, seed=1).final != train(given, THREE_SLOTS, seed=2).final


@pytest.mark.slow
@pytest.mark.parametrize("engine", [PlainEngine(), VectorisedEngine()], ids=lambda e: e.name)
@pytest.mark.parametrize(
    ("local", "server"),
    [
        (GradientStep(0.5), FEDAVG),
        (LocalEpochs(0.1, 16), FEDAVG),
        (GradientStep(0.5), FedAdam(0.02)),
        (LocalSteps(0.01, 16, 5, proximal=0.1, optimiser="adam"), FedYogi(0.02)),
    ],
    ids=str,
)
def test_interrupted_at_any_save_it_resumes_to_the_same_numbers(
    engine: PlainEngine | VectorisedEngine, local: LocalRule, server: ServerOptimiser
) -> None:
    given = course(local, server=server)
    whole = Memory()
    undisturbed = train(given, THREE_SLOTS, engine=engine, store=whole)
    for k in range(1, whole.saves + 1):
        store = Memory(ends_at=k)
        with pytest.raises(KeyboardInterrupt):
            train(given, THREE_SLOTS, engine=engine, store=store)
        assert_same(train(given, THREE_SLOTS, engine=engine, store=store), undisturbed)


def test_moments_start_afresh_in_each_slot() -> None:
    """The second slot of a run is one slot that begins with the model of the first."""
    given = course(server=FedAdam(0.02))
    first, both = (train(given, THREE_SLOTS[:n]) for n in (1, 2))
    whole = examples_for(THREE_SLOTS[1])
    shares = [own[:x] for own, x in zip(given.partition(0).draw(2), whole, strict=True)]
    plan = given.plan(shares, seed=0, slot=2)
    *_, parameters = VectorisedEngine().rounds(plan, first.parameters)
    assert all(torch.equal(both.parameters[name], parameters[name]) for name in parameters)


def test_a_finished_run_is_not_run_again() -> None:
    store = Memory()
    first = train(course(), THREE_SLOTS, store=store)
    saves = store.saves
    assert_same(train(course(), THREE_SLOTS, store=store), first)
    assert store.saves == saves


def test_progress_is_reported_after_every_round() -> None:
    told: list[tuple[int, int]] = []
    train(course(), THREE_SLOTS, progress=lambda slot, turn, score: told.append((slot, turn)))
    assert told == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_a_failure_names_the_client_and_keeps_the_last_good_model() -> None:
    store = Memory()
    with pytest.raises(TrainingFailed, match=r"(model|loss) of (one|two) .* in round \d of slot 1"):
        train(course(LocalEpochs(3e38, 16), 9), THREE_SLOTS, engine=PlainEngine(), store=store)
    assert store.state is not None
    assert all(bool(value.isfinite().all()) for value in store.state.parameters.values())


def test_a_loss_that_becomes_nan_while_the_model_does_not() -> None:
    """NaN is added outside of autograd, so gradients and parameters stay finite."""
    given, store = course(), Memory()
    task = Task("lost", find_task("softmax").build, lambda o, y: cross_entropy(o, y) + nan)
    given = replace(given, model=Model(task, given.model.dataset))
    with pytest.raises(
        TrainingFailed, match=r"the loss of one became NaN or infinite in round 1 of slot 1"
    ):
        train(given, THREE_SLOTS, store=store)
    assert store.state is not None
    assert store.state.rounds == ()


@pytest.mark.parametrize(
    ("contributions", "message"),
    [
        ([130, 0, 0], "one is to train on 130 examples, but has only 120"),
        ([1, 2], "2 contributions, but 3 clients with data"),
        (
            [[1, 2, 3], [4, -5, 6]],
            "contributions: must be 0 or more and finite, got -5 from two in slot 2",
        ),
        ([nan, 1, 2], "contributions: must be 0 or more and finite, got nan from one in slot 1"),
        ([1, 2, inf], "contributions: must be 0 or more and finite, got inf from three in slot 1"),
        ([[1, 2, 3], [4, 5]], "contributions: must be numbers, equally many for each slot"),
        ([[[1, 2, 3]]], r"contributions: must be a row for each slot, got \(1, 1, 3\)"),
    ],
)
def test_rejected(contributions: list[float], message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        train(course(), contributions)


@pytest.mark.parametrize("phases", [["cooperating"], ["cooperating"] * 4])
def test_there_must_be_one_phase_per_slot(phases: list[str]) -> None:
    message = f"contributions of 3 slots, but {len(phases)} phases"
    with pytest.raises(fa.InvalidInput, match=message):
        train(course(), THREE_SLOTS, phases)
