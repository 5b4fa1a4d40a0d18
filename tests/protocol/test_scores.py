"""What a server measures after each round is in its ledger, as its own word and nothing more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedaccord.cli import app
from fedaccord.ledger.chain import Entry, Fact
from fedaccord.ledger.lines import read
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.facts import Round, Scored, read_fact
from fedaccord.protocol.forms import WrongForm
from fedaccord.protocol.parameters import Arrays, digest
from fedaccord.protocol.verification import verify, wrong_in
from fedaccord.summaries.ledgers import record_of, what_holds, who_signed
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    keys_of,
    ledger_at,
    privates_of,
    run,
    server_key,
    terms_of,
)
from tests.flower.stories import instead, rewritten

NAMES = ("a", "b", "c")
SCORE: dict[str, Any] = {"loss": 0.25, "accuracy": 0.9, "measure": "accuracy"}
BODY: dict[str, Any] = {"turn": 1, "averaged": True, "total": 5, "model": "0" * 64}


def played(
    path: Path, evaluate: Callable[[Arrays], Scored | None] | None, **rules: Any
) -> list[Entry]:
    """The entries of a slot."""
    terms = terms_of(NAMES, **rules)
    clients = Clients(terms, privates_of(NAMES))
    with ledger_at(path) as ledger:
        server = Coordinator(terms, ledger, START_MODEL, server_key(terms), evaluate)
        run(server, clients, 1)
        return list(ledger.entries())


def rounds(entries: list[Entry]) -> list[dict[str, Any]]:
    return [entry.body for entry in entries if entry.kind == "round"]


@pytest.mark.parametrize("rules", [{}, {"keys": keys_of(NAMES)}])
def test_a_round_has_the_score_of_its_own_model(path: Path, rules: dict[str, Any]) -> None:
    seen: list[str] = []

    def evaluate(model: Arrays) -> Scored:
        seen.append(digest(model))
        return Scored(1 / len(seen), 0.5, "concordance")

    entries = played(path, evaluate, **rules)
    assert wrong_in(entries) == []
    first, second = rounds(entries)
    assert (first["loss"], second["loss"]) == (1.0, 0.5)
    assert {body["measure"] for body in (first, second)} == {"concordance"}
    assert [body["model"] for body in (first, second)] == seen


@pytest.mark.parametrize("evaluate", [None, lambda _: None])
def test_without_one_the_entry_is_as_it_always_was(path: Path, evaluate: Any) -> None:
    entries = played(path, evaluate)
    assert wrong_in(entries) == []
    assert all(body.keys() == BODY.keys() for body in rounds(entries))


def test_a_round_in_which_nothing_was_averaged_has_none(path: Path) -> None:
    terms = terms_of(NAMES)
    clients = Clients(terms, privates_of(NAMES))
    with ledger_at(path) as ledger:
        server = Coordinator(
            terms, ledger, START_MODEL, evaluate=lambda _: Scored(0.25, 0.9, "accuracy")
        )
        while (ask := server.next_ask(1)) is not None:
            clients.away = set(NAMES) if (ask.stage, ask.turn) == ("train", 2) else set()
            server.take(ask, clients(ask))
        entries = list(ledger.entries())
    averaged, empty = rounds(entries)
    assert (averaged["averaged"], averaged["accuracy"]) == (True, 0.9)
    assert (empty["averaged"], "loss" in empty) == (False, False)
    assert wrong_in(entries) == []

    def scored(fact: Fact) -> Fact:
        nothing = fact.kind == "round" and not fact.body["averaged"]
        return fact._replace(body={**fact.body, **SCORE}) if nothing else fact

    (problem,) = wrong_in(rewritten(entries, scored))
    assert "says how good a new model is, though nothing was averaged" in problem


def test_verification_says_whose_word_it_is(path: Path) -> None:
    entries = played(path, lambda _: Scored(0.25, 0.9))
    forged = rewritten(entries, instead("round", 1, accuracy=0.99))
    assert wrong_in(forged) == []  # nobody else has these examples
    with read(str(path)) as ledger:
        result = verify(ledger)
    assert record_of(result)["unproved"] == {"round": 2}
    assert what_holds(result, models=True)[-1] == (
        "How good the model was after 2 rounds is the server's word too, measured on test "
        "examples of its own. Nothing follows from it."
    )
    (one, _) = [entry for entry in entries if entry.kind == "round"]
    assert who_signed(one).endswith("is the server's word alone.")


def test_the_command_line_shows_it(path: Path) -> None:
    played(path, lambda _: Scored(0.25, 0.9))
    shown = CliRunner().invoke(app, ["ledger", "show", str(path), "--kind", "round"]).stdout
    assert "accuracy 0.9" in shown
    assert "loss 0.25" in shown
    verified = CliRunner().invoke(app, ["ledger", "verify", str(path)])
    assert verified.exit_code == 0
    assert "is the server's word too" in " ".join(verified.stdout.split())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"loss": 0.5}, "has only a part of a loss, an accuracy"),
        ({"loss": 0.5, "accuracy": 0.5}, "has only a part of a loss, an accuracy"),
        (SCORE | {"loss": 1}, "has something else for loss than belongs there"),
        (SCORE | {"accuracy": True}, "has something else for accuracy than belongs there"),
        (SCORE | {"measure": "\x1b"}, "has something else for measure than belongs there"),
        (SCORE | {"loss": None}, "has only a part"),
        ({"loss": None}, "has something else for loss than belongs there"),
    ],
)
def test_a_score_has_one_form(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(WrongForm, match=problem):
        read_fact(Fact("round", 1, None, BODY | change))


def test_a_score_is_read_as_it_was_written() -> None:
    fact = read_fact(Fact("round", 1, None, BODY | SCORE))
    assert isinstance(fact, Round)
    assert fact.score == Scored(0.25, 0.9)
    assert fact.body == BODY | SCORE
    assert Round(slot=1, **BODY).score is None
