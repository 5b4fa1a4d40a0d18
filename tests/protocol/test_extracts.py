"""A client's copy against a part of the ledger, without what others reported."""

from pathlib import Path

import pytest

from fedaccord.ledger.chain import Entry
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.extracts import compare_extract
from tests.flower import consortia

NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], list[Entry]]:
    """The ledger of two slots, and the copy of `b`."""
    terms = consortia.terms_of(NAMES, keys=consortia.keys_of(NAMES))
    path: Path = tmp_path_factory.mktemp("extracts") / "ledger.db"
    with consortia.ledger_at(path) as ledger:
        clients = consortia.Clients(terms, consortia.privates_of(NAMES))
        key = consortia.server_key(terms)
        consortia.run(Coordinator(terms, ledger, consortia.START_MODEL, key=key), clients, 2)
        return list(ledger.entries()), clients.copies["b"].written


def shown_to_b(ledger: list[Entry]) -> list[Entry]:
    return [one for one in ledger if one.kind not in ("report", "rank") or one.client == "b"]


@pytest.mark.slow
def test_an_honest_extract(played: tuple[list[Entry], list[Entry]]) -> None:
    ledger, copy = played
    found = compare_extract(shown_to_b(ledger), copy, len(ledger))
    assert found.problems == []
    assert found.left_out == 2 * 2 * 4  # reports and ranks of four others in two slots
    assert found.found > 10


def test_the_whole_ledger_is_an_extract_too(played: tuple[list[Entry], list[Entry]]) -> None:
    ledger, copy = played
    found = compare_extract(ledger, copy, len(ledger))
    assert (found.problems, found.left_out, found.unseen) == ([], 0, 0)


def test_an_entry_that_was_changed(played: tuple[list[Entry], list[Entry]]) -> None:
    ledger, copy = played
    extract = shown_to_b(ledger)
    n = next(n for n, one in enumerate(extract) if one.kind == "contribution")
    extract[n] = extract[n]._replace(text=extract[n].text.replace('"samples":', '"samples":1'))
    found = compare_extract(extract, copy, len(ledger))
    assert any("its digest differs" in one for one in found.problems)


def test_a_past_that_was_rewritten(played: tuple[list[Entry], list[Entry]]) -> None:
    ledger, copy = played
    half = len(ledger) // 2
    other = [one._replace(digest="f" * 64) if one.number == half else one for one in ledger]
    found = compare_extract(other, copy, len(ledger))
    assert found.problems


def test_a_ledger_that_was_cut_off(played: tuple[list[Entry], list[Entry]]) -> None:
    ledger, copy = played
    found = compare_extract(shown_to_b(ledger[:40]), copy, 40)
    assert any("of the server's ledger is gone" in one for one in found.problems)


def test_words_that_were_put_into_its_mouth(played: tuple[list[Entry], list[Entry]]) -> None:
    ledger, copy = played
    last = next(one for one in reversed(copy) if one.kind == "contribution")
    shorter = [one for one in copy if one.number != last.number]
    found = compare_extract(shown_to_b(ledger), shorter, len(ledger))
    assert any(one.startswith("the copy lacks entry") for one in found.problems)
