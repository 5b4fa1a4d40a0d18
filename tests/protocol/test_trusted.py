"""A verification goes on where an earlier one ended, and comes to the same result."""

import json
from pathlib import Path
from typing import Any

import pytest

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Entry
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.trusted import Trusted, load_trusted, trusted_text
from fedaccord.protocol.verification import look_over, trusted_end
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
from tests.protocol.postings import unreported

IN_TIERS = unreported("serial clock", NAMES, clock_steps=4)


def ends(entries: list[Entry]) -> list[int]:
    """The numbers of the entries after which no slot is open."""
    after = [n for n, entry in enumerate(entries, start=1) if entry.kind == "told"]
    sealed = entries[after[0]].kind == "seal" if after[0] < len(entries) else False
    return [n + sealed for n in after]


def up_to(entries: list[Entry], end: int) -> Trusted:
    found = trusted_end(look_over(entries[:end]))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("terms", [TERMS, SUSPENDING, SIGNED, IN_TIERS], ids=str)
def test_it_comes_to_the_same(terms: Terms, tmp_path: Path) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=4, terms=terms)
    whole = look_over(entries)
    for end in ends(entries):
        (tmp_path / "checkpoint").write_bytes(trusted_text(up_to(entries, end)))
        since = load_trusted(tmp_path / "checkpoint")
        found = look_over(entries[end - 1 :], since=since)
        assert found.problems == whole.problems == []
        assert found.chain.head == whole.chain.head
        assert (found.chain.length, found.chain.slots) == (whole.chain.length, whole.chain.slots)
        assert found.signatures.counts == whole.signatures.counts
        assert trusted_end(found) == trusted_end(whole)


def test_in_the_middle_of_a_slot_there_is_nothing_to_trust(tmp_path: Path) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=2, terms=SIGNED)
    middle = next(n for n, e in enumerate(entries, start=1) if (e.kind, e.slot) == ("basis", 2))
    assert trusted_end(look_over(entries[: middle + 1])) is None


@lie(
    "the server",
    "rewrite what was verified before",
    "`ledger verify --checkpoint` has the digest of the entry that it ended with",
)
def test_another_past_is_found(tmp_path: Path) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=3)
    end = ends(entries)[1]
    since = up_to(entries, end)
    other = rewritten(entries, instead("report", 1, "a", ratio=1300.0))
    (problem,) = look_over(other[end - 1 :], since=since).problems
    assert problem == f"entry {end} is not the one that was verified before"
    (problem,) = look_over([], since=since).problems
    assert "is not the one that was verified before" in problem


def test_what_comes_after_it_is_verified(tmp_path: Path) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=3, terms=SIGNED)
    end = ends(entries)[0]
    since = up_to(entries, end)
    forged = resealed(entries, instead("contribution", 3, "c", samples=1))
    (problem,) = look_over(forged[end - 1 :], since=since).problems
    assert "is not what c signed" in problem


@pytest.mark.parametrize(
    "spoil", [lambda _: "{}", lambda text: text[:-5], lambda text: change(text, format=2)]
)
def test_other_files_are_rejected(spoil: Any, tmp_path: Path) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=1)
    path = tmp_path / "checkpoint"
    path.write_bytes(trusted_text(up_to(entries, len(entries))))
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InvalidInput, match="is not a checkpoint"):
        load_trusted(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_trusted(tmp_path / "none")


def change(text: str, **content: Any) -> str:
    return json.dumps(json.loads(text) | content)
