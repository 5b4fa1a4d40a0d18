"""The server's optimiser: the published rules, anew in each slot and tier, also after a restart."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import Entry
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import Arrays, average, digest, to_bytes
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import look_over
from tests.flower.consortia import START_MODEL, TRAINING, Clients, ledger_at, privates_of, terms_of
from tests.protocol.postings import unreported

NAMES = ("a", "b", "c", "d")
KINDS = ("fedadam", "fedyogi", "fedadagrad")


def optimised(kind: str, agreement: str = "individual", **changes: Any) -> Terms:
    """Terms with an optimiser; the rate is such that no step is like another."""
    numbers = {"server_rate": 0.3, "beta1": 0.8, "tau": 0.01}
    if kind == "fedavg":
        numbers = {}
    elif kind != "fedadagrad":
        numbers["beta2"] = 0.7
    rules = {"training": TRAINING | {"optimiser": kind} | numbers} | changes
    if agreement == "individual":
        return terms_of(NAMES, rounds=3, **rules)
    return unreported(agreement, NAMES, clock_steps=4, **rules)  # in tiers of two rounds


class Round(NamedTuple):
    """What the server sent, and what came back."""

    slot: int
    turn: int
    model: Arrays
    average: Arrays


class Served(NamedTuple):
    """What happened in some slots."""

    entries: list[Entry]
    rounds: list[Round]
    model: Arrays
    moments: bytes | None


def serve(
    path: Path,
    terms: Terms,
    *,
    slots: int = 2,
    restarts: bool = False,
    away: Sequence[tuple[int, int]] = (),
) -> Served:
    """Run slots, perhaps with another server after every question.

    All clients but one are away in the rounds `away`.
    """
    clients, rounds = Clients(terms, privates_of(NAMES)), list[Round]()

    def answers(ask: Ask) -> list[Reply]:
        missed = ask.stage == "train" and (ask.slot, ask.turn) in away
        clients.away = set(NAMES[1:]) if missed else set()
        replies = clients(ask)
        if ask.stage == "train":
            updates = [(int(r.body["samples"]), dict(r.parameters or {})) for r in replies]
            model = dict(ask.parameters or {})
            rounds.append(Round(ask.slot, ask.turn, model, average(updates)))
        return replies

    while True:
        with ledger_at(path) as ledger:
            coordinator = Coordinator(terms, ledger, START_MODEL)
            while (ask := coordinator.next_ask(slots)) is not None:
                coordinator.take(ask, answers(ask))
                if restarts:
                    break
            if ask is None:
                entries, stored = list(ledger.entries()), ledger.checkpoints()
                assert look_over(entries, stored).problems == []
                return Served(entries, rounds, coordinator.model, ledger.moments())


def by_the_book(kind: str, rounds: Sequence[Round], first: int, numbers: Any) -> list[Arrays]:
    """The models after each round, by Algorithm 2 of Reddi et al. (2021), as it is printed.

    Moments begin anew every `first` rounds of a slot.
    """
    found = []
    for one in rounds:
        if (one.turn - 1) % first == 0:
            m = {name: np.zeros(array.shape) for name, array in one.model.items()}
            v = {name: np.full(array.shape, numbers.tau**2) for name, array in one.model.items()}
        after = {}
        for name, x in one.model.items():
            delta = one.average[name].astype(float) - x
            m[name] = numbers.beta1 * m[name] + (1 - numbers.beta1) * delta
            if kind == "fedadagrad":
                v[name] = v[name] + delta**2
            elif kind == "fedyogi":
                v[name] = v[name] - (1 - numbers.beta2) * delta**2 * np.sign(v[name] - delta**2)
            else:
                v[name] = numbers.beta2 * v[name] + (1 - numbers.beta2) * delta**2
            after[name] = x + numbers.server_rate * m[name] / (np.sqrt(v[name]) + numbers.tau)
        found.append(after)
    return found


def assert_close(found: Sequence[Arrays], expected: Sequence[Arrays]) -> None:
    for here, there in zip(found, expected, strict=True):
        assert here.keys() == there.keys()
        for name, array in there.items():
            np.testing.assert_allclose(here[name], array, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_published_rules_anew_in_each_slot(kind: str, path: Path) -> None:
    terms = optimised(kind)
    served = serve(path, terms)
    assert [(one.slot, one.turn) for one in served.rounds] == [
        (s, t) for s in (1, 2) for t in (1, 2, 3)
    ]
    models = [*(one.model for one in served.rounds[1:]), served.model]
    assert_close(models, by_the_book(kind, served.rounds, terms.rounds, terms.training))
    assert all(array.dtype == np.float32 for array in served.model.values())


def test_fedavg_takes_the_average_and_remembers_nothing(path: Path) -> None:
    served = serve(path, optimised("fedavg"))
    last = served.rounds[-1].average
    assert digest(served.model) == digest({n: last[n].astype(np.float32) for n in last})
    assert served.moments is None


def test_moments_begin_anew_in_each_tier(path: Path) -> None:
    """Each tier has samples of its own, as each slot has."""
    terms = optimised("fedadam", "serial clock")
    served = serve(path, terms, slots=1)
    turns = [one.turn for one in served.rounds]
    assert len(turns) > terms.rounds
    models = [*(one.model for one in served.rounds[1:]), served.model]
    assert_close(models, by_the_book("fedadam", served.rounds, terms.rounds, terms.training))
    gone_on = by_the_book("fedadam", served.rounds, turns[-1], terms.training)
    assert not np.allclose(gone_on[-1]["w"], served.model["w"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("agreement", ["individual", "serial clock"])
def test_a_server_that_is_started_again_goes_on_with_the_same_numbers(
    kind: str, agreement: str, path: Path, tmp_path: Path
) -> None:
    """After every single question; one round has too few clients to be averaged."""
    terms = optimised(kind, agreement, quorum=3)
    whole = serve(tmp_path / "whole.db", terms, away=[(2, 2)])
    again = serve(path, terms, away=[(2, 2)], restarts=True)
    assert again.entries == whole.entries
    assert digest(again.model) == digest(whole.model)
    assert again.moments == whole.moments
    ends = [entry.body for entry in whole.entries if (entry.kind, entry.slot) == ("round", 2)]
    assert [end["averaged"] for end in ends][:2] == [True, False]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (None, "the moments that belong to its model are missing"),
        (b"\x00", "a model cannot be read"),
        (
            to_bytes({"first:w": np.zeros(3)}),
            "the moments stored with it are not those of its model",
        ),
    ],
)
def test_moments_that_are_lost_or_damaged(stored: bytes | None, message: str, path: Path) -> None:
    terms = optimised("fedadam")
    clients = Clients(terms, privates_of(NAMES))
    with ledger_at(path) as ledger:
        coordinator = Coordinator(terms, ledger, START_MODEL)
        while coordinator.state.slot is None or coordinator.state.current.rounds < 2:
            ask = coordinator.next_ask(1)
            assert ask is not None
            coordinator.take(ask, clients(ask))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE checkpoints SET moments = ?", (stored,))
    with ledger_at(path) as ledger, pytest.raises(FedaccordError, match=message) as error:
        Coordinator(terms, ledger, START_MODEL)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_stays_finite_at_any_rate(kind: str, path: Path) -> None:
    training = TRAINING | {"optimiser": kind, "server_rate": 1e300}
    served = serve(path, terms_of(NAMES, rounds=1, training=training, update_bound="off"), slots=1)
    assert all(np.isfinite(array).all() for array in served.model.values())
    assert served.model["w"].max() == np.finfo(np.float32).max


def test_bounds_are_for_what_clients_send_and_not_for_the_servers_step(path: Path) -> None:
    """The step is much longer than an update may be; an update that is too long is refused."""
    training = TRAINING | {"optimiser": "fedadam", "server_rate": 1e6}
    terms = terms_of(NAMES, training=training, update_bound=200.0, punishment_slots=1)
    served = serve(path, terms, slots=1)
    assert not [entry for entry in served.entries if entry.kind == "fault"]
    assert np.abs(served.model["w"]).min() > 1e4
    strict = terms.model_copy(update={"update_bound": 1e-3})
    refused = serve(path.with_name("strict.db"), strict, slots=1)
    faults = [entry.body["reason"] for entry in refused.entries if entry.kind == "fault"]
    assert faults
    assert all("has an update that is too long" in reason for reason in faults)
    assert digest(refused.model) == digest(START_MODEL)
