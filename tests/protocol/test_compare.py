"""Two clients that were told different stories find it out by comparing their copies."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedaccord.ledger.chain import Entry, Fact
from fedaccord.ledger.lines import to_line
from fedaccord.protocol.comparison import compare_copies
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, run, terms_of
from tests.flower.stories import NAMES, TERMS, instead, rewritten, telling, told
from tests.lies import lie
from tests.protocol.test_bad_ledger import command


def stories(clients: Clients, *names: str) -> list[list[Entry]]:
    return [clients.copies[name].written for name in names or NAMES]


def test_honest_copies_agree(story: tuple[list[Entry], Clients]) -> None:
    result = compare_copies(stories(story[1]))
    assert result.contradictions == []
    assert (result.questions, result.shown) == (16, 16)  # 6 with offers, 5 in each punishment


@pytest.mark.slow
def test_copies_of_absent_and_restarted_clients_agree(tmp_path: Path) -> None:
    """Replies get lost, the server is started again in the middle: it is one story still."""
    clients = Clients(TERMS, privates_of(NAMES))
    for slots in (1, 2, 3):
        with ledger_at(tmp_path / "ledger.db") as ledger:
            coordinator = Coordinator(TERMS, ledger, START_MODEL)
            while (ask := coordinator.next_ask(slots)) is not None:
                clients.away = {NAMES[slots - 1]} if ask.turn == 2 else set()
                replies = clients(ask)
                if ask.stage == "offer":  # nothing of it was written, so all are asked once more
                    coordinator = Coordinator(TERMS, ledger, START_MODEL)
                    ask = coordinator.next_ask(slots) or ask
                    replies = clients(ask)
                coordinator.take(ask, replies)
    assert compare_copies(stories(clients)).contradictions == []


# --- A fork --------------------------------------------------------------------------------


def forked(folder: Path) -> tuple[Clients, list[list[Entry]]]:
    """A server with two ledgers: in one b keeps to the agreement, in the other it slips.

    a is asked from the first and c from the second; the server answers itself for everyone else.
    """
    clients, ledgers = Clients(TERMS, privates_of(NAMES)), []
    for real, slips in (("a", {}), ("c", {1: 0})):
        privates = privates_of(NAMES)
        privates[1] = replace(privates[1], slips=slips)
        cast = Clients(TERMS, privates)
        cast.participants[real] = clients.participants[real]
        with ledger_at(folder / f"{real}.db") as ledger:
            run(Coordinator(TERMS, ledger, START_MODEL), cast, 2)
            ledgers.append(list(ledger.entries()))
    return clients, ledgers


@pytest.mark.slow
@lie(
    "the server",
    "keep two ledgers, and show one to each of two clients (a fork)",
    "ledger compare finds it from the two copies, without the server",
)
def test_a_fork_is_found_without_the_server(tmp_path: Path) -> None:
    clients, ledgers = forked(tmp_path)
    assert [wrong_in(ledger) for ledger in ledgers] == [[], []]
    assert contradictions(ledgers[0], clients.copies["a"].written) == []
    assert contradictions(ledgers[1], clients.copies["c"].written) == []
    found = compare_copies(stories(clients, "a", "c")).contradictions
    assert any(
        one.startswith("a's entry ")
        and " and c's entry " in one
        and "clients that deviated: nobody and b" in one
        for one in found
    )
    assert any("differ in the digest of entry " in one for one in found)
    assert any("differ in the next phase: cooperating and punishing" in one for one in found)


def lying(stage: str, **content: Any) -> Callable[[Ask], Ask]:
    """What a is told in a stage is another thing than what everyone is told."""

    def change(ask: Ask) -> Ask:
        if ask.stage != stage:
            return ask
        return telling(ask, "a", **content)

    return change


@lie(
    "the server",
    "tell two clients different totals, verdicts, phases or models, from one ledger",
    "ledger compare finds every difference in what all clients should have been told alike",
)
@pytest.mark.parametrize(
    ("lie", "what"),
    [
        (lying("rank", clients=2, rank=1), "number of clients: 2 and 3"),
        (lying("offer", total=999), "total of the agreement: 999 and "),
        (lying("offer", equilibrium_total=22.0), "total at the equilibrium: 22.0 and "),
        (lying("offer", punishment_slots=50), "slots of punishment: 50 and 2"),
        (lying("offer", tolerance=0.5), "tolerance: 0.5 and 0.0"),
        (lying("offer", rounds=9), "rounds: 9 and 2"),
        (lying("settle", deviated=[]), "clients that deviated: nobody and b"),
        (lying("settle", absent=["c"]), "clients that were absent: c and nobody"),
        (lying("settle", phase="cooperating"), "next phase: cooperating and punishing"),
        (lying("settle", slots_left=1), "slots of punishment that are left: 1 and 2"),
    ],
)
def test_different_stories_are_found(lie: Callable[[Ask], Ask], what: str, tmp_path: Path) -> None:
    _, clients = told(tmp_path / "ledger.db", lie=lie)
    (found,) = compare_copies(stories(clients, "a", "c")).contradictions
    assert what in found
    assert compare_copies(stories(clients, "b", "c")).contradictions == []


@pytest.mark.parametrize(
    ("forge", "what"),
    [
        (instead("contribution", 1, model="f" * 64), "model: ffffffffffffffff... and "),
        (instead("contribution", 1, basis="equilibrium"), "basis: equilibrium and agreement"),
        (instead("settlement", 1, model="f" * 64), "model: "),
        (instead("report", 2, terms="f" * 64), "terms: "),
    ],
)
def test_other_models_and_terms_are_found(
    forge: Callable[[Fact], Fact], what: str, story: tuple[list[Entry], Clients]
) -> None:
    one, other = stories(story[1], "a", "c")
    found = compare_copies([rewritten(one, forge), other]).contradictions
    assert found
    assert all(what in problem for problem in found)


def test_a_client_that_was_sent_no_model_does_not_contradict(
    story: tuple[list[Entry], Clients],
) -> None:
    one, other = stories(story[1], "a", "c")
    none = rewritten(one, instead("settlement", 1, model=None))
    assert compare_copies([none, other]).contradictions == []


def test_another_length_of_the_ledger_at_one_question_is_found(tmp_path: Path) -> None:
    """A fork whose branches never show the same number: the question is the same."""
    one, other = tmp_path / "one.db", tmp_path / "two.db"
    clients = Clients(TERMS, privates_of(NAMES))
    with ledger_at(one) as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), clients, 1)
    with ledger_at(other) as ledger:
        Coordinator(terms_of(NAMES, quorum=3), ledger, START_MODEL)
        longer = Clients(TERMS, privates_of(NAMES))
        run(Coordinator(TERMS, ledger, START_MODEL), longer, 1)
    found = compare_copies([clients.copies["a"].written, longer.copies["c"].written])
    assert any(
        "number of entries in the server's ledger: 3 and 4" in p for p in found.contradictions
    )


# --- The command ---------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, story: tuple[list[Entry], Clients]) -> Callable[..., str]:
    def write(name: str, entries: list[Entry] | None = None) -> str:
        path = tmp_path / f"{name}.jsonl"
        written = story[1].copies[name].written if entries is None else entries
        path.write_text("".join(to_line(entry) + "\n" for entry in written))
        return str(path)

    return write


@pytest.mark.slow
def test_the_command(files: Callable[..., str], tmp_path: Path) -> None:
    result = command("compare", files("a"), files("b"), files("c"))
    assert result.exit_code == 0
    assert "They tell the same story." in result.stdout
    assert "This does not find a server that never put the same question" in result.stdout
    clients, _ = forked(tmp_path)
    one = files("x", clients.copies["a"].written)
    other = files("y", clients.copies["c"].written)
    result = command("compare", one, other)
    assert result.exit_code == 1
    assert "Wrong: a's entry " in result.stdout
    result = command("compare", one, other, "--format", "json")
    record = json.loads(result.stdout)
    assert (result.exit_code, record["holds"]) == (1, False)
    assert [copy["client"] for copy in record["copies"]] == ["a", "c"]
    assert record["questions"] > 0
    assert record["problems"]


def test_a_changed_copy_is_reported(
    files: Callable[..., str], story: tuple[list[Entry], Clients]
) -> None:
    copy = story[1].copies["a"].written
    cut = files("x", [copy[0], *copy[2:]])
    result = command("compare", cut, files("b"), files("c"))
    assert result.exit_code == 1
    assert f"Wrong: {cut}: entry 2 is missing" in result.stdout
    server = files("server", story[0])
    result = command("compare", server, files("b"))
    assert f"Wrong: {server}: is not a client's copy." in result.stdout
    empty = files("empty", [])
    assert f"Wrong: {empty}: it has no entries." in command("compare", empty, files("b")).stdout


def test_copies_with_nothing_in_common(
    files: Callable[..., str], story: tuple[list[Entry], Clients]
) -> None:
    one, other = stories(story[1], "a", "c")
    early = rewritten([entry for entry in one if entry.slot == 1], lambda fact: fact)
    late = rewritten([entry for entry in other if entry.slot == 2], lambda fact: fact)
    result = command("compare", files("x", early), files("y", late))
    assert result.exit_code == 0
    assert "They have nothing in common, so nothing could be compared." in result.stdout


def test_what_cannot_be_compared_is_refused(files: Callable[..., str]) -> None:
    a, b = files("a"), files("b")
    for words, message in [
        ((a,), "there is nothing to compare: name two copies or more"),
        ((a, a), "the same copy is named twice"),
        ((a, a.replace("a.jsonl", "../none.db")), "there is no such ledger"),
        ((a, b, b.replace("b.jsonl", "none.jsonl")), "cannot be read"),
    ]:
        result = command("compare", *words)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert message in result.stderr


def test_two_copies_of_one_client_are_refused(
    files: Callable[..., str], story: tuple[list[Entry], Clients]
) -> None:
    result = command("compare", files("a"), files("x", story[1].copies["a"].written[:5]))
    assert result.exit_code == 2
    assert "are copies of the same client, a" in result.stderr
