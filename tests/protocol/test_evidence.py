"""What a copy proves, to whom, and what it does not prove."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import START, Entry, Fact, extend
from fedaccord.protocol import notes
from fedaccord.protocol.comparison import compare_copies
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import compare_with_server
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.evidence import Proof, answer_in, contradict, question_in
from fedaccord.protocol.keys import sign_rotation
from fedaccord.protocol.parameters import digest
from fedaccord.protocol.verification import look_over, look_over_copy, wrong_in
from tests.flower.consortia import (
    NOON,
    START_MODEL,
    Clients,
    key_of,
    keys_of,
    ledger_at,
    privates_of,
    run,
    server_key,
    terms_of,
)
from tests.flower.stories import NAMES, SIGNED, telling, told
from tests.lies import lie

Story = tuple[list[Entry], Clients]
CLIENTS: dict[str, str] = keys_of(NAMES)["clients"]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Three slots; b slips in the first."""
    return told(tmp_path_factory.mktemp("evidence") / "ledger.db", slots=3, terms=SIGNED)


def copied(entries: list[Entry], forge: Callable[[Fact], Fact | None]) -> list[Entry]:
    """A copy that its client rewrote: no digest in it is wrong."""
    found = [forge(entry.fact) for entry in entries]
    return list(extend(START, [fact for fact in found if fact is not None], NOON))


def changed(kind: str, **content: Any) -> Callable[[Fact], Fact]:
    return lambda f: f._replace(body={**f.body, **content}) if f.kind == kind else f


# --- Clients that rewrite their copies -------------------------------------------------------


@lie(
    "a client",
    "rewrite its copy, so that it shows that the server told it something else",
    "the question in it is not the one that the server signed: the copy is rejected",
)
@pytest.mark.parametrize(
    "forge",
    [
        changed("offer", contribution=1),
        changed("settlement", verdict="kept"),
        changed("settlement", deviated=["a"]),
        changed("signed", token="0" * 32),
        changed("signed", question_signature="0" * 128),
    ],
)
def test_a_rewritten_copy_is_rejected(forge: Callable[[Fact], Fact], signed: Story) -> None:
    _, clients = signed
    copy = copied(clients.copies["b"].written, forge)
    (problem,) = look_over_copy(copy).problems
    assert "question" in problem


def without_evidence(fact: Fact) -> Fact | None:
    if fact.kind == "signed":
        return None
    slipped = fact.kind == "settlement" and fact.slot == 1
    return fact._replace(body={**fact.body, "verdict": "kept"}) if slipped else fact


@lie(
    "a client",
    "remove the server's signatures from its copy, and then rewrite it",
    "verify --against says that it proves nothing: the server's signature is missing",
)
def test_a_copy_without_signatures_proves_nothing(signed: Story) -> None:
    entries, clients = signed
    copy = copied(clients.copies["b"].written, without_evidence)
    assert look_over_copy(copy).problems == []
    ((problem,), _, proofs) = compare_with_server(entries, [copy])[0]
    assert "has no signature of the server, so it does not prove that the server told" in problem
    assert proofs == []


@lie(
    "a client",
    "deny that it accepted, or that it trained on so many samples",
    "its signature is in the ledger: verify --against shows that the copy contradicts it",
)
@pytest.mark.parametrize(
    ("forge", "shown"),
    [
        (lambda f: f if f.kind not in ("answer", "signed") else None, "copy lacks entry"),
        (
            lambda f: None if f.kind == "signed" else changed("contribution", samples=50)(f),
            "b signed something else",
        ),
    ],
)
def test_what_was_signed_cannot_be_denied(
    forge: Callable[[Fact], Fact | None], shown: str, signed: Story
) -> None:
    entries, clients = signed
    copy = copied(clients.copies["b"].written, forge)
    problems, _, _ = compare_with_server(entries, [copy])[0]
    assert any(shown in problem for problem in problems)
    assert not any("the server wrote down" in problem for problem in problems)


@lie(
    "a client",
    "sign two different answers to one question",
    "the two signed statements convict it, whoever has them",
)
def test_two_answers_to_one_question_convict_a_client(signed: Story) -> None:
    entries, clients = signed

    def forge(fact: Fact) -> Fact:
        """In its copy b has signed that it refused."""
        if fact.kind == "answer":
            return fact._replace(body={**fact.body, "accepts": False})
        if fact.kind != "signed" or fact.body["stage"] != "offer":
            return fact
        note = notes.read_note(fact)
        assert isinstance(note, notes.Signed)
        note = note.model_copy(update={"said": {**note.said, "answer": {"accepts": False}}})
        signature = answer_in(note).statement.sign(key_of("b"))
        digest_of_it = answer_in(note).statement.digest(signature)
        own = {"said": note.said, "signature": signature, "statement": digest_of_it}
        return fact._replace(body={**fact.body, **own})

    copy = copied(clients.copies["b"].written, forge)
    assert look_over_copy(copy).problems == []
    problems, _, (proof,) = compare_with_server(entries, [copy])[0]
    assert any("b signed something else" in problem for problem in problems)
    assert proof.holds
    assert {each.key for each in (proof.one, proof.other)} == {key_of("b").public}


# --- Servers that tell two stories -----------------------------------------------------------


@pytest.mark.slow
@lie(
    "the server",
    "sign two ledgers, and show one to each of two clients (a fork)",
    "two statements with its signature and different digests of one entry convict it",
)
def test_a_fork_is_proved_by_two_statements(tmp_path: Path) -> None:
    clients = Clients(SIGNED, privates_of(NAMES))
    for real, slips in (("a", {}), ("c", {1: 0})):
        privates = privates_of(NAMES)
        privates[1] = replace(privates[1], slips=slips)
        cast = Clients(SIGNED, privates)
        cast.participants[real] = clients.participants[real]
        with ledger_at(tmp_path / f"{real}.db") as ledger:
            run(Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED)), cast, 2)
            assert wrong_in(ledger.entries()) == []
    found = compare_copies([clients.copies[name].written for name in ("a", "c")])
    proved = [proof for proof in found.proofs if proof.holds]
    assert proved
    assert all(proof.one.key == key_of("the server").public for proof in proved)


@lie(
    "the server",
    "ask two clients the same question from the same ledger, with other numbers or models",
    "each client signs what it was asked, so the server cannot use the answers of one of them",
)
@pytest.mark.parametrize(
    ("stage", "content"), [("offer", {"total": 999}), ("settle", {"phase": "cooperating"})]
)
def test_a_client_that_is_told_another_story_signs_it(
    stage: str, content: dict[str, Any], tmp_path: Path
) -> None:
    def lying(ask: Ask) -> Ask:
        return telling(ask, "a", **content) if ask.stage == stage else ask

    entries, clients = told(tmp_path / "ledger.db", lie=lying, terms=SIGNED)
    assert wrong_in(entries) == []
    faults = [entry for entry in entries if entry.kind == "fault" and entry.client == "a"]
    assert {entry.body["reason"][:13] for entry in faults} == {"is not signed"}
    problems, _, _ = compare_with_server(entries, [clients.copies["a"].written])[0]
    assert any("and the server's signature proves it" in problem for problem in problems)


@lie(
    "the server",
    "give one client another model than the others",
    "each client signs the digest of the model that it was given, and its answer fits no other",
)
def test_everyone_is_given_the_same_model(tmp_path: Path) -> None:
    other = {name: array + 1 for name, array in START_MODEL.items()}
    clients = Clients(SIGNED, privates_of(NAMES))

    def replies(ask: Ask) -> list[Reply]:
        if (ask.stage, ask.turn) != ("train", 1):
            return clients(ask)
        lie = replace(telling(ask, "c", model=digest(other)), parameters=other)
        return [clients.reply(n, lie if n == "c" else ask) for n in ask.contents]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED)), replies, 1)
        fault = next(ledger.entries(kind="fault", client="c"))
    assert fault.body["reason"].startswith("is not signed")


@lie(
    "the server",
    "cut off the end of its ledger, or go back to an older one",
    "a client's copy has a later end with the server's signature",
)
def test_a_ledger_that_was_cut_off_is_proved(signed: Story) -> None:
    entries, clients = signed
    end = max(e.number for e in entries if e.kind == "seal" and e.slot == 2)
    short = entries[:end]
    assert wrong_in(short) == []
    problems, _, _ = compare_with_server(short, [clients.copies["c"].written])[0]
    assert problems
    assert all("and the server's signature proves it" in problem for problem in problems)


def test_honest_statements_never_convict(signed: Story) -> None:
    _, clients = signed
    said = [
        statement
        for copy in clients.copies.values()
        for entry in copy.written
        if entry.kind == "signed" and isinstance(note := notes.read_note(entry.fact), notes.Signed)
        for statement in (question_in(note), answer_in(note))
    ]
    assert len(said) > 50
    for one, other in product(said, said):
        assert not (one.key == other.key and contradict(one.statement, other.statement))


def test_a_proof_needs_two_signatures_of_one_author(signed: Story) -> None:
    _, clients = signed
    found = [notes.read_note(e.fact) for e in clients.copies["a"].written if e.kind == "signed"]
    one, other = (answer_in(note) for note in found[:2] if isinstance(note, notes.Signed))
    assert not Proof("", one, other).holds
    forged = one._replace(statement=one.statement._replace(body={"answer": {}}))
    assert contradict(one.statement, forged.statement)
    assert not Proof("", one, forged).holds


# --- Keys that are replaced -------------------------------------------------------------------


def replaced(tmp_path: Path, *, signed_by: str | None) -> tuple[list[Entry], list[str]]:
    """After a slot, b has a new key; `signed_by` this one's old key."""
    new = key_of("b, later").public
    keys: dict[str, Any] = keys_of(NAMES) | {"clients": CLIENTS | {"b": new}}
    if signed_by is not None:
        keys["rotations"] = {"b": sign_rotation("test", "b", key_of(signed_by), new)}
    later = terms_of(NAMES, keys=keys)
    clients = Clients(SIGNED, privates_of(NAMES))
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED)), clients, 1)
        copies = clients.copies
        clients = Clients(later, privates_of(NAMES), keys={"b": key_of("b, later")})
        clients.join(copies)
        run(Coordinator(later, ledger, START_MODEL, server_key(later)), clients, 2)
        entries = list(ledger.entries())
    found = look_over(entries, every_signature=True)
    assert found.problems == []
    return entries, found.signatures.undecided


@pytest.mark.slow
def test_a_client_rotates_its_key(tmp_path: Path) -> None:
    entries, undecided = replaced(tmp_path, signed_by="b")
    assert undecided == []
    assert [e.client for e in entries if (e.kind, e.slot) == ("report", 2)] == list(NAMES)


@pytest.mark.slow
@lie(
    "the server",
    "put a key of its own in the place of a client's into new terms",
    "that client and all others have to sign these terms; verify says that the old key did not",
)
@pytest.mark.parametrize("signed_by", [None, "a"])
def test_a_key_that_its_owner_did_not_replace_is_named(
    signed_by: str | None, tmp_path: Path
) -> None:
    """It is also what the others do when a key was stolen or lost: they revoke it."""
    _, (undecided,) = replaced(tmp_path, signed_by=signed_by)
    assert undecided.startswith("b has a new key in the terms which its old key did not sign")


@pytest.mark.parametrize("point", ["00" * 32, "01" + "00" * 31, "ec" + "ff" * 30 + "7f"])
@lie(
    "a client",
    "register a key with which one signature fits every text, to deny everything later",
    "the terms refuse such a key",
)
def test_weak_keys_are_refused(point: str) -> None:
    with pytest.raises(InvalidInput, match="for which anybody could sign"):
        terms_of(NAMES, keys=keys_of(NAMES) | {"clients": CLIENTS | {"b": f"ed25519:{point}"}})
