"""Each client's own test, fine-tuning, and the phases in which clients do not train together."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fedaccord as fa
from fedaccord.data.own import OwnPartition, own_partition
from fedaccord.training.checkpoint import Checkpoint, identity_of
from fedaccord.training.client_scores import client_scores
from fedaccord.training.course import ALONE, POOLED, Course, TrainingRun, train
from fedaccord.training.engine import Engine, PlainEngine, TrainingPlan
from fedaccord.training.estimates import estimate_gain, estimate_measure
from fedaccord.training.optimisers import FEDAVG, FedAdam
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule, LocalSteps
from fedaccord.training.task import Model, usual_task
from fedaccord.training.vectorised.engine import VectorisedEngine
from tests.training.engine_contract import assert_close
from tests.training.patients import patients
from tests.training.test_course import Memory

SIZES = {"one": 60, "two": 40, "three": 30}
ALL = [60.0, 40.0, 30.0]


def clinics(name: str) -> Any:
    """Clients that differ: what is a sign of class 1 at the one is a sign of class 0 at another."""

    def draw(who: str, size: int) -> tuple[Any, Any]:
        rng = np.random.default_rng([len(who), size])
        inputs = rng.normal(size=(size, 4))
        sign = -1.0 if who == "three" else 1.0
        return inputs, (sign * inputs[:, 0] + 0.5 * inputs[:, 1] > 0).astype(int)

    if name == "test":
        return {who: draw(who, 20 + len(who)) for who in SIZES}
    return draw(name, SIZES[name])


def survivors(name: str) -> Any:
    def draw(size: int, seed: int) -> dict[str, Any]:
        inputs, labels = patients(size, seed)
        return {"inputs": inputs, "time": np.abs(labels), "event": labels > 0}

    if name == "test":
        return {who: draw(25, n) for n, who in enumerate(SIZES)}
    return draw(SIZES[name], len(name))


CLINICS = own_partition(clinics, list(SIZES), "clinics")
SURVIVORS = own_partition(survivors, list(SIZES), "survivors")


def course(local: LocalRule | None = None, own: OwnPartition = CLINICS, **fields: Any) -> Course:
    return Course(
        model=Model(usual_task(own.dataset), own.dataset),
        partition=own.reordered,
        rounds=3,
        local=local or LocalEpochs(0.1, 16),
        names=own.names,
        **fields,
    )


def on_own_test(given: Course, parameters: Any, client: int) -> tuple[float, float]:
    data, own = given.model.dataset, given.partition(0).tests[client]
    return given.model.evaluate(parameters, data.test_inputs[own], data.test_labels[own])


@pytest.mark.parametrize("own", [CLINICS, SURVIVORS], ids=lambda own: str(own.dataset.name))
def test_the_shared_model_on_each_own_test(own: OwnPartition) -> None:
    given = course(own=own)
    run = train(given, [ALL, ALL], seed=2)
    for n, score in enumerate(run.slots[-1].own):
        expected = on_own_test(given, run.parameters, n)
        assert (score.loss, score.accuracy) == pytest.approx(expected)
        assert 1 - run.own_errors[n].mean() == pytest.approx(score.accuracy)
    assert [len(slot.own) for slot in run.slots] == [3, 3]
    assert run.slots[0].tuned == run.tuned_errors == ()


def test_there_is_nothing_without_own_tests() -> None:
    without = replace(CLINICS, tests=())
    run = train(course(own=without), [ALL])
    assert run.slots[0].own == run.own_errors == ()
    assert client_scores([run], [run]) == ()


def test_a_suspended_client_has_its_own_model() -> None:
    given = course()
    run = train(given, np.array([ALL, [60, 0, 30]]), alone=[[0, 0, 0], [0, 40, 0]])
    [record] = run.slots[1].alone
    assert record.own == run.slots[1].own[1]
    assert run.slots[1].own[1] != run.slots[0].own[1]
    for n in (0, 2):
        assert run.slots[1].own[n].accuracy == on_own_test(given, run.parameters, n)[1]


# --- Alone and pooled ------------------------------------------------------------------------


@pytest.mark.parametrize("local", [GradientStep(0.5), LocalEpochs(0.1, 16), LocalSteps(0.1, 8, 5)])
@pytest.mark.parametrize("own", [CLINICS, SURVIVORS], ids=lambda own: str(own.dataset.name))
@pytest.mark.parametrize("engine", [PlainEngine(), VectorisedEngine()], ids=lambda e: e.name)
def test_everyone_alone_by_hand(engine: Engine, own: OwnPartition, local: LocalRule) -> None:
    """Each client by itself, slot after slot; the scores are means, and no server takes part."""
    given = course(local, own, server=FedAdam())
    run = train(given, np.array([ALL, [60, 20, 30]]), [ALONE] * 2, seed=4, engine=engine)
    for n in range(3):
        parameters = given.model.start(4)
        for slot, amounts in ((1, ALL), (2, [60, 20, 30])):
            share = given.partition(4).draw(slot)[n][: int(amounts[n])]
            shares = [share if k == n else share[:0] for k in range(3)]
            plan = TrainingPlan(given.model, shares, 3, local, seed=4, slot=slot)
            *_, parameters = PlainEngine().rounds(plan, parameters)
        loss, accuracy = on_own_test(given, parameters, n)
        assert run.slots[-1].own[n].loss == pytest.approx(loss, rel=1e-4)
        assert run.slots[-1].own[n].accuracy == pytest.approx(accuracy, abs=1e-6)
        assert run.slots[-1].alone[n].own == run.slots[-1].own[n]
    [_, last] = run.slots
    assert (last.phase, last.total, last.suspended) == (ALONE, 110, ())
    assert last.final.loss == pytest.approx(np.mean([each.final.loss for each in last.alone]))
    assert len(last.rounds) == 3
    start = given.model.start(4)
    assert all(torch.equal(run.parameters[name], start[name]) for name in start)


def test_who_trains_on_nothing_alone_keeps_the_initial_model() -> None:
    given = course()
    run = train(given, [[60, 0, 30]], [ALONE])
    assert [each.name for each in run.slots[0].alone] == ["one", "three"]
    assert run.slots[0].own[1].accuracy == on_own_test(given, given.model.start(0), 1)[1]
    nobody = train(given, [[0, 0, 0]], [ALONE])
    assert nobody.slots[0].rounds == ()


@pytest.mark.parametrize("own", [CLINICS, SURVIVORS], ids=lambda own: str(own.dataset.name))
def test_all_data_in_one_place_by_hand(own: OwnPartition) -> None:
    """One client that has all samples, without a server."""
    given = course(own=own, server=FedAdam())
    run = train(given, [ALL], [POOLED], seed=3)
    everything = np.concatenate(given.partition(3).draw(1))
    plan = TrainingPlan(given.model, [everything], 3, given.local, seed=3)
    *_, parameters = PlainEngine().rounds(plan, given.model.start(3))
    assert_close(run.parameters, parameters, 1e-4)
    assert (run.slots[0].total, run.slots[0].phase) == (130, POOLED)


# --- Fine-tuning -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [PlainEngine(), VectorisedEngine()], ids=lambda e: e.name)
@pytest.mark.parametrize(
    "local", [GradientStep(0.5), LocalEpochs(0.1, 16), LocalSteps(0.1, 8, 5, optimiser="adam")]
)
def test_fine_tuning_by_hand(local: LocalRule, engine: Engine) -> None:
    """More epochs of the shared model, on each client's contribution; new orders of it."""
    given = course(local, fine_tuning=2, server=FedAdam())
    run = train(given, [[60, 20, 0]], seed=1, engine=engine)
    for n, amount in ((0, 60), (1, 20)):
        share = given.partition(1).draw(1)[n][:amount]
        shares = [share if k == n else share[:0] for k in range(3)]
        more: LocalRule = local
        if not isinstance(local, GradientStep):
            more = LocalEpochs(local.rate, local.batch, 2, optimiser=local.optimiser)
        rounds = 5 if more is local else 4
        plan = TrainingPlan(given.model, shares, rounds, more, seed=1, first=4, server=FEDAVG)
        *_, personal = PlainEngine().rounds(plan, run.parameters)
        loss, accuracy = on_own_test(given, personal, n)
        assert run.slots[0].tuned[n].loss == pytest.approx(loss, rel=1e-4)
        assert run.slots[0].tuned[n].accuracy == pytest.approx(accuracy)
        assert 1 - run.tuned_errors[n].mean() == pytest.approx(accuracy)
    assert run.slots[0].tuned[2] == run.slots[0].own[2]  # it contributed nothing


def test_the_shared_model_goes_on_without_fine_tuning() -> None:
    tuned, plain = (train(course(fine_tuning=k), [ALL] * 3) for k in (3, 0))
    assert all(torch.equal(tuned.parameters[n], plain.parameters[n]) for n in plain.parameters)
    assert [slot.own for slot in tuned.slots] == [slot.own for slot in plain.slots]
    assert tuned.slots[-1].tuned != tuned.slots[-1].own


def test_fine_tuning_helps_a_client_that_differs() -> None:
    """The third clinic's labels are the other way round."""
    run = train(course(LocalEpochs(0.5, 16), fine_tuning=20), [ALL])
    assert run.slots[0].tuned[2].accuracy > run.slots[0].own[2].accuracy + 0.2


def test_there_is_nothing_to_fine_tune_alone() -> None:
    run = train(course(fine_tuning=2), [ALL], [ALONE])
    assert run.slots[0].tuned == run.tuned_errors == ()


def test_fine_tuning_needs_own_tests() -> None:
    with pytest.raises(fa.InvalidInput, match="fine_tuning: needs a test of each client's own"):
        train(course(own=replace(CLINICS, tests=()), fine_tuning=1), [ALL])


# --- Checkpoints -----------------------------------------------------------------------------


def assert_same(one: TrainingRun, other: TrainingRun) -> None:
    assert one.slots == other.slots
    for field in ("own_errors", "tuned_errors"):
        for here, there in zip(getattr(one, field), getattr(other, field), strict=True):
            assert np.array_equal(here, there)


@pytest.mark.parametrize("phase", ["cooperating", POOLED, ALONE])
@pytest.mark.parametrize("ends_at", [1, 4, 5, 8, None])
def test_an_interrupted_run_resumes(phase: str, ends_at: int | None, tmp_path: Path) -> None:
    given, phases = course(fine_tuning=2), [phase] * 2
    identity = identity_of(given, [ALL] * 2, phases, 0, VectorisedEngine())
    expected = train(given, [ALL] * 2, phases)
    memory, path = Memory(ends_at), tmp_path / "run.pt"
    with suppress(KeyboardInterrupt):
        train(given, [ALL] * 2, phases, store=memory)
    if memory.state is not None:
        Checkpoint(path, identity).save(memory.state, at_once=True)
    again = train(given, [ALL] * 2, phases, store=Checkpoint(path, identity))
    assert_same(again, expected)


def test_checkpoints_of_other_own_tests_are_refused(tmp_path: Path) -> None:
    def store(given: Course) -> Checkpoint:
        identity = identity_of(given, [ALL], None, 0, VectorisedEngine())
        return Checkpoint(tmp_path / "run.pt", identity)

    train(course(), [ALL], store=store(course()))
    other = replace(CLINICS, tests=tuple(reversed(CLINICS.tests)))
    with pytest.raises(fa.InvalidInput, match="its own tests is"):
        store(course(own=other)).load()
    with pytest.raises(fa.InvalidInput, match="its fine-tuning is none, not 3"):
        store(course(fine_tuning=3)).load()


# --- Scores over seeds -----------------------------------------------------------------------


def test_scores_are_paired_by_seed_and_example() -> None:
    given = course(fine_tuning=1)
    alone = [train(given, [ALL], [ALONE], profile="alone", seed=seed) for seed in range(3)]
    agreed = [train(given, [ALL], profile="agreed", seed=seed) for seed in (2, 0, 1)]
    found = client_scores(agreed, alone, ["one", "two", "three"])
    assert [each.name for each in found] == ["one", "two", "three"]
    assert [each.test_examples for each in found] == [23, 23, 25]
    in_order = sorted(agreed, key=lambda run: run.seed)
    for n, score in enumerate(found):
        before, after, tuned = (
            np.array([getattr(run, field)[n] for run in runs])
            for runs, field in (
                (alone, "own_errors"),
                (in_order, "own_errors"),
                (in_order, "tuned_errors"),
            )
        )
        assert score.accuracy == estimate_measure(after)
        assert score.accuracy_gain == estimate_gain(before, after)
        assert score.fine_tuned == estimate_measure(tuned)
        assert score.fine_tuned_gain == estimate_gain(before, tuned)
    assert client_scores(alone, alone)[0].fine_tuned is None
    assert client_scores(alone, alone)[0].name == "client-1"
