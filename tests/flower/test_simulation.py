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
from fedaccord.data.partition import RandomPartition
from fedaccord.errors import FedaccordError
from fedaccord.flower.public_terms import public_terms
from fedaccord.flower.server_app import put
from fedaccord.flower.simulation import simulate, slips_in, terms_for, terms_of
from fedaccord.ledger.chain import Fact
from fedaccord.ledger.lines import load_entries
from fedaccord.numbers import FloatArray
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import digest, from_bytes
from fedaccord.protocol.verification import wrong_in
from fedaccord.repeated import DeviateOnce, play
from fedaccord.training.course import Course, TrainingRun, train
from fedaccord.training.engine import GradientStep, LocalEpochs, PlainEngine
from fedaccord.training.task import Model, find_task
from tests.flower import hundred

ROOT = Path(__file__).parents[2]
SIZES = [200, 160, 120]
SLIP = {"client-3": {2: 0}}


def setting(
    local: GradientStep | LocalEpochs | None = None, rounds: int = 2
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
        model, lambda seed: RandomPartition(digits, SIZES, seed), rounds, local or GradientStep(0.5)
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


@pytest.mark.parametrize("local", [GradientStep(0.5), LocalEpochs(0.05, 16, 2)])
def test_the_same_as_training_in_one_process(
    local: GradientStep | LocalEpochs, tmp_path: Path
) -> None:
    consortium, course = setting(local)
    terms = terms_for(consortium, course, punishment_slots=1, margin=0.05)
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


def test_contributions_become_as_many_examples_as_in_one_process(tmp_path: Path) -> None:
    consortium, course = setting()
    scaled = replace(course, scale=0.03)
    terms = terms_for(consortium, scaled, punishment_slots=1, margin=0.05)
    ledger = tmp_path / "ledger.db"
    run = simulate(consortium, scaled, terms, slots=2, ledger=ledger, in_process=True)
    given = contributions(ledger, 3, 2)
    expected = train(scaled, given, engine=PlainEngine())
    assert [slot.total for slot in run.slots] == [slot.total for slot in expected.slots]


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
    consortium, course = setting()
    terms = terms_for(consortium, course, punishment_slots=1, margin=0.05)
    return simulate(consortium, course, terms, slots=3, ledger=ledger, slips=SLIP, in_process=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingRun, list[Fact]]:
    """A run that was not interrupted, and the contents of its ledger."""
    place = tmp_path_factory.mktemp("whole") / "ledger.db"
    return three_slots(place), [entry.fact for entry in load_entries(str(place))]


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
    consortium, course = setting()
    apart = replace(consortium, valuation=np.array([300.0, 90.0, 20.0]))
    terms = terms_for(apart, course, **public_terms(apart, "serial clock"), clock_steps=6)
    simulate(apart, course, terms, slots=1, ledger=ledger, in_process=True)


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
    subprocess.run(words, cwd=ROOT, check=True, timeout=300)
    here = hundred.run(None, in_process=True)
    arrays = {name: value.numpy() for name, value in here.parameters.items()}
    assert digest(from_bytes(model.read_bytes())) == digest(arrays)
    entries = load_entries(str(ledger))
    assert wrong_in(entries) == []
    assert [e.body["phase"] for e in entries if e.kind == "slot"] == ["cooperating", "punishing"]
    deviated = [e.client for e in entries if e.body.get("verdict") == "deviation"]
    assert deviated == ["client-40"]


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
