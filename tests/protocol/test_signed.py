"""Everyone signs what it says, and nobody can write down anything else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.entries import may_read
from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Entry, Fact, Head, extend
from fedaccord.ledger.lines import to_line
from fedaccord.protocol import facts, messages, notes, receiving
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.evidence import answer_in
from fedaccord.protocol.messages import Refusal, part
from fedaccord.protocol.notes import read_note
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import look_over, wrong_in
from fedaccord.signing.canonical import digest_of
from fedaccord.signing.keys import new_key
from fedaccord.signing.statement import Statement
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    Notebook,
    key_of,
    keys_of,
    ledger_at,
    nudge,
    privates_of,
    run,
    server_key,
    terms_of,
    verdicts,
)
from tests.flower.stories import (
    NAMES,
    SIGNED,
    SUSPENDING,
    TERMS,
    instead,
    resealed,
    rewritten,
    told,
)
from tests.lies import lie

Story = tuple[list[Entry], Clients]
KEYS = keys_of(NAMES)
POSTED = {
    "reports": "none",
    "agreement": "serial clock",
    "public": {name: {"samples": 40 + 10 * n} for n, name in enumerate(NAMES)},
}


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Three slots; b slips in the first."""
    return told(tmp_path_factory.mktemp("signed") / "ledger.db", slots=3, terms=SIGNED)


# --- Honest -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"punishment": "suspension", "punishment_slots": 1},
        {"agreement": "uniform", "tolerance": 0.1},
        POSTED,
    ],
)
def test_whatever_is_agreed_on_is_signed(rules: dict[str, Any], tmp_path: Path) -> None:
    terms = terms_of(NAMES, **({"keys": KEYS, "punishment_slots": 1} | rules))
    entries, clients = told(tmp_path / "ledger.db", slots=3, terms=terms)
    found = look_over(entries, every_signature=True)
    assert found.problems == []
    said = [entry for entry in entries if entry.kind in facts.SAID]
    receipts = [
        name
        for entry in entries
        if entry.kind in ("told", "handed")
        for name in entry.body["receipts"]
    ]
    seals = [entry for entry in entries if entry.kind == "seal"]
    assert found.signatures.checked == len(said) + len(receipts) + len(seals)
    assert (found.signatures.missing, found.signatures.wrong) == (0, 0)
    for name in NAMES:
        assert clients.copies[name].written


def test_every_signature_is_vouched_for_by_the_latest(signed: Story) -> None:
    """Checking the latest of each author, or every one, comes to the same."""
    entries, _ = signed
    quick, slow = look_over(entries), look_over(entries, every_signature=True)
    assert quick.signatures.counts == slow.signatures.counts
    assert quick.signatures.checked > 50


def test_without_keys_nothing_is_signed(tmp_path: Path) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=1)
    found = look_over(entries)
    assert (found.problems, found.signatures.checked) == ([], 0)
    assert found.signatures.missing == sum(entry.kind in facts.SAID for entry in entries)


@pytest.mark.slow
def test_a_server_that_was_stopped_continues(tmp_path: Path) -> None:
    """After each write another process goes on, with the same key."""
    clients = Clients(SIGNED, privates_of(NAMES))
    while True:
        with ledger_at(tmp_path / "ledger.db") as ledger:
            coordinator = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
            ask = coordinator.next_ask(2)
            if ask is None:
                break
            coordinator.take(ask, clients(ask))
    with ledger_at(tmp_path / "ledger.db") as ledger:
        assert look_over(list(ledger.entries()), every_signature=True).problems == []


def test_an_unsigned_ledger_goes_on_signed(tmp_path: Path) -> None:
    """New terms with keys: from there on everything is signed, and what was before is not."""
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), Clients(TERMS, privates_of(NAMES)), 1)
        coordinator = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
        run(coordinator, Clients(SIGNED, privates_of(NAMES)), 2)
        found = look_over(list(ledger.entries()), every_signature=True)
    assert found.problems == []
    assert found.signatures.missing > 0
    assert found.signatures.checked > 0


@pytest.mark.parametrize(("key", "told"), [(None, "needs its own"), ("a", "but the terms have")])
def test_a_party_needs_the_key_in_the_terms(key: str | None, told: str, tmp_path: Path) -> None:
    with ledger_at(tmp_path / "ledger.db") as ledger, pytest.raises(InvalidInput, match=told):
        Coordinator(SIGNED, ledger, START_MODEL, key_of(key) if key else None)
    private = privates_of(NAMES)[1]
    with pytest.raises(InvalidInput, match=told):
        Participant(private, SIGNED, Notebook(), nudge, key=key_of(key) if key else None)


# --- A server that writes down something else ------------------------------------------------


def without_signature(fact: Fact) -> Fact:
    body = {key: value for key, value in fact.body.items() if key != "signed"}
    return fact._replace(body=body)


def of(kind: str, client: str, change: Callable[[Fact], Fact]) -> Callable[[Fact], Fact]:
    def forge(fact: Fact) -> Fact:
        return change(fact) if (fact.kind, fact.client) == (kind, client) else fact

    return forge


def with_signature(signature: str, statement: str | None = None) -> Callable[[Fact], Fact]:
    def change(fact: Fact) -> Fact:
        signed = {
            "signature": signature,
            "statement": statement or fact.body["signed"]["statement"],
        }
        return fact._replace(body={**fact.body, "signed": signed})

    return change


@lie(
    "the server",
    "write down another report, acceptance or count than a client signed",
    "verify rebuilds every statement, and this one is not what the client signed",
)
@pytest.mark.parametrize(
    "forge",
    [
        instead("report", 1, "a", ratio=1300.0),
        instead("report", 1, "c", samples=61),
        instead("answer", 1, "a", accepts=False),
        instead("contribution", 1, "a", samples=1),
        instead("contribution", 2, "c", update="0" * 64),
    ],
)
def test_nobody_can_be_misquoted(forge: Callable[[Fact], Fact], signed: Story) -> None:
    (problem,) = wrong_in(resealed(signed[0], forge))
    assert "is not what" in problem
    assert "signed: the server changed it" in problem


@lie(
    "the server",
    "speak for a client that is offline",
    "verify does not find that client's signature",
)
def test_nobody_can_be_spoken_for(signed: Story) -> None:
    (problem,) = wrong_in(resealed(signed[0], of("report", "b", without_signature)))
    assert problem.endswith("is not signed by b")


def swapped(entries: list[Entry]) -> list[Entry]:
    """a's report with b's signature."""
    other = next(e.body["signed"] for e in entries if (e.kind, e.client) == ("report", "b"))
    return resealed(entries, of("report", "a", with_signature(**other)))


def moved(entries: list[Entry]) -> list[Entry]:
    """An acceptance of slot 1 as one of another attempt."""
    return resealed(entries, lambda fact: fact._replace(slot=2) if fact.kind == "answer" else fact)


def replayed(entries: list[Entry]) -> list[Entry]:
    """a's count of the first round once more for the second."""
    first = next(e.body for e in entries if (e.kind, e.client) == ("contribution", "a"))
    again = instead("contribution", 1, "a", **{k: first[k] for k in ("samples", "signed")})
    return resealed(entries, lambda fact: again(fact) if fact.body.get("turn") == 2 else fact)


def truncated(entries: list[Entry]) -> list[Entry]:
    return resealed(entries, of("rank", "c", with_signature("ab" * 32)))


def zeros(entries: list[Entry]) -> list[Entry]:
    return resealed(entries, of("rank", "c", with_signature("0" * 128)))


@lie(
    "the server",
    "use a signature of another client, of another question, a part of one, or a made-up one",
    "verify finds each of them",
)
@pytest.mark.parametrize("forge", [swapped, moved, replayed, truncated, zeros])
def test_a_signature_fits_one_statement_only(
    forge: Callable[[list[Entry]], list[Entry]], signed: Story
) -> None:
    assert len(wrong_in(forge(signed[0]))) == 1


@lie(
    "the server",
    "make up a statement with a digest that fits and a signature that does not",
    "the latest signature of that client is not valid, and --every-signature names the first",
)
def test_a_digest_alone_vouches_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers for c, which never takes part, and checks no signature."""
    monkeypatch.setattr(receiving, "_checked", unchecked)
    clients = Clients(SIGNED, privates_of(NAMES))
    invented = Participant(privates_of(NAMES)[2], TERMS, Notebook(), nudge)

    def replies(ask: Ask) -> list[Reply]:
        given = [clients.reply(name, ask) for name in ask.contents if name != "c"]
        plain = replace(ask, signer=None, received={})
        model = ask.parameters if ask.sends_model("c") else None
        body, arrays = invented.answer(plain.body("c"), model)
        return [*given, Reply(3, "c", body | {"signature": "ab" * 64}, arrays)]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED)), replies, 1)
        entries = list(ledger.entries())
    (problem,) = wrong_in(entries)
    assert "it has a signature that is not valid: the one of c in settle of slot 1" in problem
    (problem,) = look_over(entries, every_signature=True).problems
    assert "(report of slot 1) has a signature that is not valid: the one of c" in problem


def unchecked(statement: Statement, _: object, __: str, signature: str, ___: str) -> facts.Signed:
    return facts.Signed(statement=statement.digest(signature), signature=signature)


def terms_body(terms: Terms) -> dict[str, Any]:
    return facts.Terms(slot=0, format=3, terms=terms).body


@lie(
    "the server",
    "use what clients signed with the same keys in another consortium, or under other terms",
    "every statement names the consortium and the terms",
)
@pytest.mark.parametrize("change", [{"name": "another consortium"}, {"tolerance": 0.05}])
def test_statements_belong_to_their_terms(change: dict[str, Any], signed: Story) -> None:
    other = terms_of(NAMES, **({"keys": KEYS} | change))
    forged = resealed(signed[0], instead("terms", 0, **terms_body(other)), terms=other)
    (problem,) = wrong_in(forged)
    assert "report of slot 1) is not what a signed" in problem


@lie(
    "the server",
    "add clients of its own to the consortium (Sybils)",
    "the roster is part of the terms, which every statement of every client names",
)
def test_nobody_joins_without_the_others(signed: Story) -> None:
    more = (*NAMES, "d")
    other = terms_of(more, keys=keys_of(more))
    away = facts.Absence(slot=1, client="d", stage="report", turn=0).fact

    def forge(fact: Fact) -> Fact | list[Fact]:
        if fact.kind == "terms":
            return fact._replace(body=terms_body(other))
        return [fact, away] if (fact.kind, fact.slot, fact.client) == ("report", 1, "c") else fact

    (problem,) = wrong_in(resealed(signed[0], forge, terms=other))
    assert "is not what a signed" in problem


@lie(
    "the server",
    "leave out its own signature, or have somebody else sign its ledger",
    "verify finds that its ledger is not signed, or by another key",
)
def test_the_server_signs_its_ledger(signed: Story) -> None:
    entries = signed[0]
    (problem,) = wrong_in(rewritten(entries, lambda fact: None if fact.kind == "seal" else fact))
    assert "before the server signed" in problem
    other = terms_of(NAMES, keys=KEYS | {"server": key_of("x").public})
    (problem,) = wrong_in(resealed(entries, instead("terms", 0, **terms_body(other)), terms=other))
    assert "is not what a signed" in problem
    last = entries[-1]
    assert last.kind == "seal"
    (problem,) = wrong_in(rewritten(entries, forged_end(last)))
    assert "has a signature that is not valid: the one of the server" in problem
    (problem,) = wrong_in(entries[:-1])
    assert problem == "it ends without the server's signature"


def forged_end(last: Entry) -> Callable[[Fact], Fact]:
    flipped = last.body["signature"][:-1] + ("0" if last.body["signature"][-1] != "0" else "1")
    return lambda f: f._replace(body={"signature": flipped}) if f.body == last.body else f


# --- Clients that answer only to the server, and the other way round --------------------------


def asked(stage: str = "report") -> tuple[Ask, Clients]:
    """The first question of a stage, before anyone has answered."""
    clients = Clients(SIGNED, privates_of(NAMES))
    with TemporaryDirectory() as folder, ledger_at(Path(folder, "ledger.db")) as ledger:
        coordinator = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
        while (ask := coordinator.next_ask(1)) is not None and ask.stage != stage:
            coordinator.take(ask, clients(ask))
    assert ask is not None
    return ask, clients


@lie(
    "whoever reaches the machine",
    "ask a client something in the server's name, or change a question on its way",
    "the client answers only what the server signed",
)
@pytest.mark.parametrize("stage", ["report", "offer"])
@pytest.mark.parametrize(
    "change",
    [
        {"signature": None},
        {"signature": "0" * 128},
        {"turn": 2},
        {"ledger": [99, "a" * 64]},
        {"token": "a" * 32},
        {"received": "a" * 64},
    ],
)
def test_a_client_answers_only_what_the_server_signed(stage: str, change: dict[str, Any]) -> None:
    ask, clients = asked(stage)
    body = {k: v for k, v in (ask.body("a") | change).items() if v is not None}
    before = len(clients.copies["a"].written)
    with pytest.raises(Refusal, match="not signed by the server"):
        clients.participants["a"].answer(body, None)
    assert len(clients.copies["a"].written) == before


@lie(
    "the server",
    "name a statement that a client never made as its last one",
    "the client refuses to answer: its next signature would vouch for it",
)
def test_a_client_vouches_only_for_itself() -> None:
    ask, clients = asked("rank")
    with pytest.raises(Refusal, match="names a statement of this client that is not in its copy"):
        clients.reply("a", replace(ask, received={"a": "a" * 64}))


@lie(
    "a client",
    "answer without a signature, with another's, or with that of an earlier answer",
    "a fault: the server takes only what it can prove",
)
@pytest.mark.parametrize("how", ["without", "another", "earlier", "of another content"])
def test_the_server_takes_only_what_is_signed(how: str, tmp_path: Path) -> None:
    clients = Clients(SIGNED, privates_of(NAMES))
    heard: dict[str, str] = {}

    def replies(ask: Ask) -> list[Reply]:
        given = []
        for name in ask.contents:
            reply = clients.reply(name, ask)
            body = dict(reply.body)
            if name == "b" and ask.stage == "offer":
                if how == "without":
                    del body["signature"]
                elif how == "of another content":
                    body["accepts"] = not body["accepts"]
                else:
                    body["signature"] = heard["a" if how == "another" else "b"]
            heard[name] = body.get("signature", "")
            given.append(replace(reply, body=body))
        return given

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED)), replies, 1)
        (fault,) = ledger.entries(kind="fault")
        assert (fault.client, fault.body["reason"][:13]) == ("b", "is not signed")
        assert verdicts(ledger, 1)["b"] == "absence"
        assert wrong_in(ledger.entries()) == []


@pytest.mark.slow
def test_suspended_clients_sign_too(tmp_path: Path) -> None:
    """b is out in slot 2: it signs that it was told so, and nothing else."""
    terms = SUSPENDING.model_copy(update={"keys": SIGNED.keys})
    entries, _ = told(tmp_path / "ledger.db", slots=3, terms=terms)
    assert look_over(entries, every_signature=True).problems == []
    (settled,) = [e for e in entries if (e.kind, e.slot) == ("told", 2)]
    assert "b" in settled.body["receipts"]


@pytest.mark.slow
def test_going_back_to_an_older_model_is_signed(tmp_path: Path) -> None:
    privates = [replace(private, consents_to_slot=1) for private in privates_of(NAMES)]
    clients = Clients(SIGNED, privates)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
        run(coordinator, clients, 2)
        coordinator.propose_rollback(1, "rehearsal")
        run(coordinator, clients, 2)
        again = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
        run(again, clients, 3)
        found = look_over(list(ledger.entries()), ledger.checkpoints(), every_signature=True)
        assert [e.body["accepted"] for e in ledger.entries(kind="decision")] == [True]
    assert found.problems == []


# --- What digests confirm ------------------------------------------------------------------


def fits_entry(entry: Entry, total: float) -> bool:
    """Whether the digest of an entry confirms a guess of the total in it.

    Everything else in the entry can be read elsewhere.
    """
    rest = {key: value for key, value in entry.body.items() if key != "salt"}
    fact = entry.fact._replace(body=rest | {"equilibrium_total": total})
    (guessed,) = extend(Head(entry.number - 1, entry.previous), [fact], entry.at)
    return guessed.digest == entry.digest


def fits_answer(told: notes.Offer, answer: notes.Signed, total: float) -> bool:
    """Whether the digest of a client's statement confirms it: it names all of the question."""
    offer = part(messages.AskedOffer, told)
    guessed = offer.model_copy(update={"equilibrium_total": total, "salt": None})
    said = answer_in(answer).statement
    body = {**said.body, "question": digest_of(guessed.body)}
    return said._replace(body=body).digest(answer.signature) == answer.statement


@lie(
    "an observer",
    "try totals at the equilibrium, from which a report follows, until a digest that it reads fits",
    "the entry and what members sign about it have a salt that only members and the server know",
)
@pytest.mark.slow
def test_no_digest_confirms_a_guess_of_a_total(tmp_path: Path) -> None:
    """The second attempt is the worse one: an observer reads all but one part of its answers."""
    names = ("a", "b", "c", "d", "e")
    terms = terms_of(names, keys=keys_of(names))
    clients = Clients(terms, privates_of(names))

    def without_b(ask: Ask) -> list[Reply]:
        clients.away = {"b"} if ask.stage == "offer" else set()
        return clients(ask)

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(terms, ledger, START_MODEL, server_key(terms)), without_b, 1)
        entries = list(ledger.entries())
    assert wrong_in(entries) == []
    attempts = [entry for entry in entries if entry.kind == "agreement"]
    assert [entry.body["turn"] for entry in attempts] == [1, 2]
    found = [read_note(entry.fact) for entry in clients.copies["c"].written]
    offers = [note for note in found if isinstance(note, notes.Offer)]
    answers = [n for n in found if isinstance(n, notes.Signed) and n.stage == "offer"]
    for attempt, offer, answer in zip(attempts, offers, answers, strict=True):
        total = attempt.body["equilibrium_total"]
        assert offer.equilibrium_total == total
        assert not fits_entry(attempt, total)
        assert not fits_answer(offer, answer, total)
        # a member has the salt, by which it checks both
        assert offer.salt == attempt.body["salt"]
        assert answer_in(answer).statement.body["question"] == digest_of(answer.asks)
    assert len({entry.body["salt"] for entry in attempts}) == 2
    readable = [one for one in entries if may_read(one, Viewer("observer"))]
    everything = "".join(map(to_line, readable))
    assert not any(entry.body["salt"] in everything for entry in attempts)


def test_a_repeated_run_has_the_same_salts_and_no_other_key_has(tmp_path: Path) -> None:
    again = [told(tmp_path / f"{n}.db", slots=1, terms=SIGNED)[0] for n in range(2)]
    assert again[0] == again[1]
    assert new_key().secret("x") != key_of("the server").secret("x")


@pytest.mark.parametrize("salt", [None, "0" * 63, "x" * 64])
def test_a_total_without_a_salt_is_refused(salt: str | None, signed: Story) -> None:
    """Otherwise a server would confirm guesses without anybody noticing."""

    def forge(fact: Fact) -> Fact:
        if fact.kind != "agreement":
            return fact
        rest = {key: value for key, value in fact.body.items() if key != "salt"}
        return fact._replace(body=rest if salt is None else rest | {"salt": salt})

    (problem,) = wrong_in(resealed(signed[0], forge))
    assert ("has no salt for the total" if salt is None else "salt") in problem


def test_a_salt_without_keys_is_refused(tmp_path: Path) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=1)
    forged = rewritten(entries, instead("agreement", 1, salt="0" * 64))
    assert "has no salt for the total at the equilibrium, or a salt without keys" in str(
        wrong_in(forged)
    )
