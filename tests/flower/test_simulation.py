"""Slots in simulation: the same numbers as `train` in one process, and the same on Ray."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.serverapp import Grid

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.own import own_partition
from fedaccord.data.partition import RandomPartition
from fedaccord.errors import FedaccordError
from fedaccord.flower.local import local_steps
from fedaccord.flower.public_terms import public_terms
from fedaccord.flower.server_app import put
from fedaccord.flower.simulation import simulate, slips_in, terms_for, terms_of
from fedaccord.game.alone import alone_contribution
from fedaccord.ledger.chain import Fact
from fedaccord.ledger.lines import load_entries
from fedaccord.numbers import FloatArray
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import digest, from_bytes
from fedaccord.protocol.verification import wrong_in
from fedaccord.repeated import DeviateOnce, play
from fedaccord.training.course import Course, TrainingRun, train
from fedaccord.training.engine import PlainEngine
from fedaccord.training.optimisers import FEDAVG, FedAdagrad, FedAdam, FedYogi, ServerOptimiser
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule, LocalSteps
from fedaccord.training.task import Model, find_task, usual_task
from tests.flower import hundred
from tests.training.patients import survival_data

ROOT = Path(__file__).parents[2]
SIZES = [200, 160, 120]
SLIP = {"client-3": {2: 0}}


def setting(
    local: LocalRule | None = None, rounds: int = 2, server: ServerOptimiser = FEDAVG
) -> tuple[fa.Consortium, Course]:
    digits = load_dataset("digits")
    consortium = fa.Consortium(
        valuation=[40.0, 30.0, 20.0],
        cost_per_sample=0.008,
        samples=SIZES,
        rounds=rounds,
        discount_factor=[0.8, 0.8, 0.7],
    )
    model = Model(find_task("softmax"), digits)
    return consortium, Course(
        model,
        lambda seed: RandomPartition(digits, SIZES, seed),
        rounds,
        local or GradientStep(0.5),
        server=server,
    )


def contributions(ledger: Path, clients: int, slots: int) -> FloatArray:
    """What everyone contributed, slot by slot, as the ledger has it."""
    amounts = np.zeros((slots, clients))
    for entry in load_entries(str(ledger)):
        if entry.kind == "verdict":
            n = int(str(entry.client).removeprefix("client-")) - 1
            amounts[entry.slot - 1, n] = entry.body["contributed"] or 0
    return amounts


def assert_same(run: TrainingRun, expected: TrainingRun) -> None:
    assert [s.phase for s in run.slots] == [s.phase for s in expected.slots]
    assert [s.total for s in run.slots] == [s.total for s in expected.slots]
    for name, value in expected.parameters.items():
        scale = float(value.abs().max())
        torch.testing.assert_close(run.parameters[name], value, rtol=0, atol=1e-5 * scale)
    for here, there in zip(run.slots, expected.slots, strict=True):
        assert len(here.rounds) == len(there.rounds)
        assert here.final.loss == pytest.approx(there.final.loss, rel=1e-4)


RULES: list[tuple[LocalRule, ServerOptimiser]] = [
    (GradientStep(0.5), FEDAVG),
    (LocalEpochs(0.05, 16, 2), FEDAVG),
    (LocalEpochs(0.05, 16, 2, proximal=2.0), FEDAVG),
    (LocalSteps(0.05, 16, 7), FEDAVG),
    (LocalSteps(0.01, 16, 7, proximal=0.1, optimiser="adam"), FEDAVG),
    (GradientStep(0.5), FedAdam(0.2)),
    (LocalEpochs(0.05, 16, 2, optimiser="adam"), FedYogi(0.05, beta1=0.5, beta2=0.9)),
    (LocalSteps(0.05, 16, 3), FedAdagrad(0.1, tau=0.01)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("local", "server"), RULES, ids=str)
def test_the_same_as_training_in_one_process(
    local: LocalRule, server: ServerOptimiser, tmp_path: Path
) -> None:
    consortium, course = setting(local, server=server)
    terms = terms_for(consortium, course, punishment_slots=1, margin=0.05)
    assert (local_steps(terms), terms.training.server) == (local, server)
    ledger, told = tmp_path / "ledger.db", []
    run = simulate(
        consortium,
        course,
        terms,
        slots=4,
        ledger=ledger,
        slips=SLIP,
        seed=5,
        in_process=True,
        progress=lambda slot, turn, score: told.append((slot, turn)),
    )
    phases = [slot.phase for slot in run.slots]
    assert phases == ["cooperating", "cooperating", "punishing", "cooperating"]
    assert told == [(slot, turn) for slot in range(1, 5) for turn in (1, 2)]
    given = contributions(ledger, 3, 4)
    assert given[1, 2] == 0
    assert_same(run, train(course, given, phases, seed=5, engine=PlainEngine()))
    assert wrong_in(load_entries(str(ledger))) == []


@pytest.mark.slow
def test_survival_times_as_in_one_process(tmp_path: Path) -> None:
    """Cox's loss of an example depends on the others of its batch, at each client its own."""
    patients = survival_data()
    consortium, digits = setting()
    course = replace(
        digits,
        model=Model(usual_task(patients), patients),
        partition=lambda seed: RandomPartition(patients, [150, 130, 120], seed),
        local=LocalSteps(0.02, 32, 5, optimiser="adam"),
        server=FedYogi(0.1),
    )
    consortium = replace(consortium, samples=np.array([150.0, 130.0, 120.0]))
    terms = terms_for(consortium, course, punishment_slots=1, margin=0.05)
    assert (terms.training.task, terms.training.classes) == ("cox", 0)
    ledger = tmp_path / "ledger.db"
    run = simulate(consortium, course, terms, slots=2, ledger=ledger, in_process=True)
    expected = train(course, contributions(ledger, 3, 2), engine=PlainEngine())
    assert_same(run, expected)
    assert run.final.accuracy == pytest.approx(expected.final.accuracy, abs=1e-3)
    assert run.final.accuracy > 0.65  # concordance
    assert wrong_in(load_entries(str(ledger))) == []


@pytest.mark.slow
@pytest.mark.parametrize("local", [GradientStep(0.5), LocalSteps(0.05, 16, 7)], ids=str)
def test_own_tests_and_fine_tuning_as_in_one_process(local: LocalRule, tmp_path: Path) -> None:
    """The first client slips, is suspended, and trains alone meanwhile."""
    digits = load_dataset("digits")
    consortium, course = setting(local, server=FedAdam(0.2))
    ends, tested = np.cumsum([0, *SIZES]), np.arange(0, 360, 90)
    held: dict[str, Any] = {
        name: (digits.inputs[ends[n] : ends[n + 1]], digits.labels[ends[n] : ends[n + 1]])
        for n, name in enumerate(consortium.names)
    }
    held["test"] = {
        name: (digits.test_inputs[first : first + 90], digits.test_labels[first : first + 90])
        for name, first in zip(consortium.names, tested[:3], strict=True)
    }
    own = own_partition(held, consortium.names, "digits")
    course = replace(
        course,
        model=Model(find_task("softmax"), own.dataset),
        partition=own.reordered,
        fine_tuning=2,
    )
    terms = terms_for(consortium, course, punishment="suspension", margin=0.05)
    ledger, slips = tmp_path / "ledger.db", {"client-1": {1: 0}}
    run = simulate(
        consortium, course, terms, slots=3, ledger=ledger, slips=slips, seed=5, in_process=True
    )
    given = contributions(ledger, 3, 3)
    alone = np.where(
        [slot.suspended == ("client-1",) for slot in run.slots],
        alone_contribution(consortium)[0],
        0.0,
    )
    apart = np.column_stack([alone, np.zeros((3, 2))])
    expected = train(course, given, alone=apart, seed=5, engine=PlainEngine())
    assert [slot.suspended for slot in run.slots] == [(), ("client-1",), ()]
    for here, there in zip(run.slots, expected.slots, strict=True):
        for mine, other in ((here.own, there.own), (here.tuned, there.tuned)):
            assert len(mine) == 3
            for one, same in zip(mine, other, strict=True):
                assert one.loss == pytest.approx(same.loss, rel=1e-3)
                assert one.accuracy == pytest.approx(same.accuracy, abs=1.5 / 90)
    assert run.slots[1].tuned[0] == run.slots[1].own[0]  # of the model that it trained alone
    assert run.slots[0].tuned != run.slots[0].own
    for errors, others in (
        (run.own_errors, expected.own_errors),
        (run.tuned_errors, expected.tuned_errors),
    ):
        assert np.abs(np.array(errors) - np.array(others)).sum() <= 2


def test_fine_tuning_needs_own_tests() -> None:
    consortium, course = setting()
    with pytest.raises(fa.InvalidInput, match="fine_tuning: needs a test of each client's own"):
        simulate(
            consortium,
            replace(course, fine_tuning=1),
            terms_for(consortium, course),
            slots=1,
            in_process=True,
        )


def test_an_optimiser_of_ones_own_is_for_one_process() -> None:
    class Halfway(FedAdam):
        """Not in the terms."""

    consortium, course = setting(server=Halfway())
    with pytest.raises(fa.InvalidInput, match="on Flower it must be one of fedavg, fedadam, fed"):
        terms_for(consortium, course)


@pytest.mark.slow
def test_contributions_become_as_many_examples_as_in_one_process(tmp_path: Path) -> None:
    consortium, course = setting()
    scaled = replace(course, scale=0.03)
    terms = terms_for(consortium, scaled, punishment_slots=1, margin=0.05)
    ledger = tmp_path / "ledger.db"
    run = simulate(consortium, scaled, terms, slots=2, ledger=ledger, in_process=True)
    given = contributions(ledger, 3, 2)
    expected = train(scaled, given, engine=PlainEngine())
    assert [slot.total for slot in run.slots] == [slot.total for slot in expected.slots]


@pytest.mark.slow
def test_a_simulation_resumes_where_its_ledger_ends(tmp_path: Path) -> None:
    consortium, course = setting()
    terms = terms_for(consortium, course, punishment_slots=1, margin=0.05)
    place = tmp_path / "ledger.db"
    simulate(consortium, course, terms, slots=1, ledger=place, in_process=True)
    rest = simulate(consortium, course, terms, slots=3, ledger=place, in_process=True)
    assert [slot.slot for slot in rest.slots] == [2, 3]
    whole = simulate(consortium, course, terms, slots=3, in_process=True)
    assert whole.slots[1:] == rest.slots
    with pytest.raises(FedaccordError, match="has 3 slots already"):
        simulate(consortium, course, terms, slots=3, ledger=place, in_process=True)


class Ended(Exception):
    """As if the process had been killed: uncommitted changes and the clients are gone."""


PLACES = [
    (2, "report", 0),
    (2, "rank", 0),
    (2, "offer", 1),
    (2, "train", 1),
    (2, "train", 2),
    (2, "settle", 0),
    (3, "train", 2),  # a slot of punishment, at the equilibrium
    (3, "settle", 0),  # all that was asked for, but nobody was told
]


def three_slots(ledger: Path) -> TrainingRun:
    """Of an optimiser that remembers earlier rounds."""
    consortium, course = setting(server=FedAdam(0.2))
    terms = terms_for(consortium, course, punishment_slots=1, margin=0.05)
    return simulate(consortium, course, terms, slots=3, ledger=ledger, slips=SLIP, in_process=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingRun, list[Fact]]:
    """A run that was not interrupted, and the contents of its ledger."""
    place = tmp_path_factory.mktemp("whole") / "ledger.db"
    return three_slots(place), [entry.fact for entry in load_entries(str(place))]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_simulation_resumes_within_a_slot(
    place: tuple[int, str, int],
    whole: tuple[TrainingRun, list[Fact]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Interrupted at a question that the clients answered, before the server recorded anything."""

    def ending(
        grid: Grid, nodes: dict[int, str], ask: Ask, seconds: float, *more: Any
    ) -> list[Reply]:
        replies = put(grid, nodes, ask, seconds, *more)
        if (ask.slot, ask.stage, ask.turn) == place:
            raise Ended
        return replies

    ledger = tmp_path / "ledger.db"
    monkeypatch.setattr("fedaccord.flower.server_app.put", ending)
    with pytest.raises(Ended):
        three_slots(ledger)
    monkeypatch.undo()
    rest, (run, facts) = three_slots(ledger), whole
    assert [entry.fact for entry in load_entries(str(ledger))] == facts
    slot, stage, turn = place
    assert [record.slot for record in rest.slots] == list(range(slot, 4))
    assert rest.slots[1:] == run.slots[slot:]
    over = turn > 1 or stage == "settle"  # the scores of rounds that were over are gone
    rounds = () if over else run.slots[slot - 1].rounds
    assert rest.slots[0] == replace(run.slots[slot - 1], rounds=rounds)
    for name, value in run.parameters.items():
        assert torch.equal(rest.parameters[name], value)


TIER_PLACES = [("clock", 2), ("offer", 1), ("train", 2), ("tier", 1), ("train", 3), ("settle", 0)]


def one_slot_in_tiers(ledger: Path) -> None:
    consortium, course = setting(server=FedYogi(0.2))
    apart = replace(consortium, valuation=np.array([300.0, 90.0, 20.0]))
    terms = terms_for(apart, course, **public_terms(apart, "serial clock"), clock_steps=6)
    simulate(apart, course, terms, slots=1, ledger=ledger, in_process=True)


@pytest.mark.slow
@pytest.mark.parametrize("place", TIER_PLACES)
def test_a_slot_in_tiers_resumes(
    place: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(
        grid: Grid, nodes: dict[int, str], ask: Ask, seconds: float, *more: Any
    ) -> list[Reply]:
        replies = put(grid, nodes, ask, seconds, *more)
        if (ask.stage, ask.turn) == place:
            raise Ended
        return replies

    one_slot_in_tiers(tmp_path / "whole.db")
    whole = [entry.fact for entry in load_entries(str(tmp_path / "whole.db"))]
    assert len([fact for fact in whole if fact.kind == "handed"]) == 1
    monkeypatch.setattr("fedaccord.flower.server_app.put", ending)
    with pytest.raises(Ended):
        one_slot_in_tiers(tmp_path / "ledger.db")
    monkeypatch.undo()
    one_slot_in_tiers(tmp_path / "ledger.db")
    assert [entry.fact for entry in load_entries(str(tmp_path / "ledger.db"))] == whole


def test_only_unusual_discount_factors_are_reported(tmp_path: Path) -> None:
    """Most clients have 0.8, which is in the terms; the third reports its own."""
    consortium, course = setting()
    place = tmp_path / "ledger.db"
    simulate(
        consortium, course, terms_for(consortium, course), slots=1, ledger=place, in_process=True
    )
    reports = [
        e.body.get("discount_factor") for e in load_entries(str(place)) if e.kind == "report"
    ]
    assert reports == [None, None, 0.7]


def test_a_client_that_does_not_exist_cannot_slip() -> None:
    consortium, course = setting()
    with pytest.raises(fa.InvalidInput, match="no client called 'client-9'"):
        simulate(
            consortium,
            course,
            terms_for(consortium, course),
            slots=1,
            slips={"client-9": {1: 0}},
            in_process=True,
        )


@pytest.mark.slow
def test_a_hundred_clients_on_ray(tmp_path: Path) -> None:
    """In Flower's own simulation: the same model, to the bit, as without Ray."""
    ledger, model = tmp_path / "ledger.db", tmp_path / "model.npz"
    words = [sys.executable, "-m", "tests.flower.hundred", str(ledger), str(model)]
    subprocess.run(words, cwd=ROOT, check=True, timeout=1200)
    here = hundred.run(None, in_process=True)
    arrays = {name: value.numpy() for name, value in here.parameters.items()}
    assert digest(from_bytes(model.read_bytes())) == digest(arrays)
    entries = load_entries(str(ledger))
    assert wrong_in(entries) == []
    assert [e.body["phase"] for e in entries if e.kind == "slot"] == ["cooperating", "punishing"]
    deviated = [e.client for e in entries if e.body.get("verdict") == "deviation"]
    assert deviated == ["client-40"]


@pytest.mark.slow
def test_the_phases_are_the_same_as_in_the_repeated_game(tmp_path: Path) -> None:
    """The repeated game implements the same rules independently."""
    consortium, course = setting()
    agreement = fa.solve_agreement(
        consortium, whole_samples=True, punishment=fa.Reversion(2), margin=0.05
    )
    strategies = {"client-2": DeviateOnce(slot=2, amount=0.0), "client-3": DeviateOnce(slot=6)}
    match = play(agreement, strategies, slots=8)
    slips = slips_in(match)
    assert set(slips) == {"client-2", "client-3"}
    place = tmp_path / "ledger.db"
    terms = terms_of(agreement, course, margin=0.05)
    run = simulate(consortium, course, terms, slots=8, ledger=place, slips=slips, in_process=True)
    assert tuple(slot.phase for slot in run.slots) == match.phases
    assert match.contributions is not None
    # equilibrium contributions lose their fraction, in slots of punishment
    assert np.abs(contributions(place, 3, 8) - match.contributions).max() < 1
