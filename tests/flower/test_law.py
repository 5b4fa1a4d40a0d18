"""A consortium with a law of its own on Flower: in one process, by files, and through `train`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.errors import InvalidInput
from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import first_model, run_slots
from fedaccord.flower.shared_terms import privates_of as all_privates
from fedaccord.flower.shared_terms import shared_terms
from fedaccord.flower.simulation import as_offered, simulate, terms_for, terms_of
from fedaccord.game.law import Law
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.terms import load_terms, read_terms
from fedaccord.protocol.verification import wrong_in
from fedaccord.repeated.strategies import DeviateOnce
from fedaccord.signing.keys import load_key
from fedaccord.training.course import Course
from fedaccord.training.task import Model, find_task
from tests.flower.consortia import ledger_at, verdicts
from tests.flower.homes import write_app

MIXTURE = Law.mixture([6.4555, 0.8714, 0.0232, 0.0434], [11.7, 21.1, 405.5, 732.2])
EMPTY = Law.power(60.0, 1.0, 600.0)
"""At the equilibrium nobody trains."""
SIZES = [40, 50, 60, 70, 80]


def consortium(law: Law) -> fa.Consortium:
    return fa.Consortium(
        valuation=[17.0, 34.0, 51.0, 68.0, 85.0],
        cost_per_sample=np.linspace(0.0131, 0.0183, 5),
        samples=SIZES,
        discount_factor=0.8,
        rounds=2,
        law=law,
        names=list("abcde"),
    )


def course() -> Course:
    digits = load_dataset("digits")
    model = Model(find_task("softmax"), digits)
    return Course(model, lambda seed: RandomPartition(digits, SIZES, seed), 2, names=tuple("abcde"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "punishment", "second", "alone"),
    [
        (MIXTURE, "suspension", 230, [70]),
        (EMPTY, "suspension", 78, []),
        (EMPTY, "reversion", 0, []),
    ],
    ids=["mixture", "nothing alone", "nobody trains"],
)
def test_a_slip_in_a_simulation(
    law: Law, punishment: str, second: int, alone: list[int], tmp_path: Path
) -> None:
    """D slips in the first slot; in the second it is out, or everyone plays the equilibrium."""
    given, path = consortium(law), tmp_path / "ledger.db"
    rules = terms_for(given, course(), punishment=punishment, punishment_slots=1, margin=0.05)
    run = simulate(
        given, course(), rules, slots=3, slips={"d": {1: 0}}, ledger=path, in_process=True
    )
    meanwhile = "punishing" if punishment == "reversion" else "cooperating"
    assert [slot.phase for slot in run.slots] == ["cooperating", meanwhile, "cooperating"]
    slot = run.slots[1]
    assert slot.total == second
    assert len(slot.rounds) == (2 if second else 0)
    assert slot.suspended == (("d",) if punishment == "suspension" else ())
    assert [record.total for record in slot.alone] == alone
    assert wrong_in(load_entries(str(path))) == []


def test_the_server_offers_what_is_shown(tmp_path: Path) -> None:
    agreement = fa.solve_agreement(consortium(EMPTY), margin=0.05, punishment="suspension")
    offered, path = as_offered(agreement, 2), tmp_path / "ledger.db"
    assert offered.consortium.law.kind == "power"
    assert fa.certify(offered).holds
    rules = terms_of(agreement, course())
    simulate(agreement.consortium, course(), rules, slots=1, ledger=path, in_process=True)
    offers = [e.body["contribution"] for e in load_entries(str(path)) if e.kind == "offer"]
    assert offers == offered.profile.tolist()


@pytest.mark.slow
def test_clients_by_their_files(tmp_path: Path) -> None:
    """The terms are files, at the server and at each client; everyone reads the same law."""
    given, home = consortium(MIXTURE), tmp_path / "app"
    rules = shared_terms(given) | {
        "punishment": "suspension",
        "training": {"shape": [8, 8], "classes": 10},
    }
    write_app(
        home,
        read_terms(rules, "test"),
        all_privates(given, {"d": {1: 0}}),
        load_dataset("digits"),
    )
    file = home / "clients" / "d" / "client.toml"
    file.write_text(file.read_text() + "\n[slips]\n1 = 0\n")
    terms = load_terms(home / "fedaccord_app" / "terms.toml")
    assert terms.law is not None
    app = app_of_files(home / "fedaccord_app" / "terms.toml")
    files = [str(home / "clients" / name / "client.toml") for name in "abcde"]
    grid = InProcessGrid(app, [{"client-file": file} for file in files])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        key = load_key(home / "keys" / "signing.key")
        run_slots(grid, Coordinator(terms, ledger, first_model(terms), key), 1)
        assert verdicts(ledger, 1) == {n: "deviation" if n == "d" else "kept" for n in "abcde"}
    server = load_entries(str(tmp_path / "ledger.db"))
    assert wrong_in(server) == []
    for name in "abcde":
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert contradictions(server, copy) == []


def test_what_trains_on_nothing_alone_is_suspended_all_the_same() -> None:
    agreement = fa.solve_agreement(consortium(EMPTY), margin=0.05, punishment="suspension")
    trial = fa.train(
        agreement, dataset="digits", slots=2, seeds=1, strategies={"d": DeviateOnce(1)}
    )
    slots = trial.runs[1].slots
    assert [slot.suspended for slot in slots] == [(), ("d",)]
    assert slots[1].alone == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": [MIXTURE] * 5}, "^law: on Flower all clients have one law"),
        ({"quality": [1.0, 1.0, 1.0, 1.0, 0.5]}, "^quality: on Flower every sample counts as one"),
    ],
)
def test_what_does_not_run_on_flower(change: dict[str, Any], message: str) -> None:
    one = consortium(MIXTURE)
    given = {
        name: getattr(one, name)
        for name in ("valuation", "cost_per_sample", "samples", "discount_factor", "rounds", "law")
    }
    with pytest.raises(InvalidInput, match=message):
        fa.train(fa.Consortium(**(given | change)), flower=True, punishment="suspension")


def test_a_law_belongs_to_its_rounds() -> None:
    with pytest.raises(InvalidInput, match=r"^rounds: the law of this consortium is for 2 rounds"):
        fa.train(consortium(MIXTURE), flower=True, punishment="suspension", rounds=20)
