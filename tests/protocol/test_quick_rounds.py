"""The quick way to verify counts comes to the same as the usual one, whatever is in a ledger."""

import random
import re
from pathlib import Path

import pytest

from fedaccord.ledger import chain
from fedaccord.ledger.chain import START, Chain, Entry, extend
from fedaccord.protocol import verification
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import Findings, look_over
from tests.flower.consortia import NOON
from tests.flower.stories import NAMES, SIGNED, SUSPENDING, TERMS, resealed, told
from tests.fuzz.test_ledger import forged
from tests.protocol.postings import unreported

KINDS = [TERMS, SUSPENDING, SIGNED, unreported("serial clock", NAMES, clock_steps=4)]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """A slot."""
    return told(tmp_path_factory.mktemp("signed") / "ledger.db", slots=1, terms=SIGNED)[0]


def last_count(entries: list[Entry]) -> int:
    return max(n for n, entry in enumerate(entries) if entry.kind == "contribution")


def slowly(entries: list[Entry], monkeypatch: pytest.MonkeyPatch) -> Findings:
    with monkeypatch.context() as patch:
        patch.setattr(verification, "took_count", lambda *_: False)
        return look_over(entries)


def alike(entries: list[Entry], monkeypatch: pytest.MonkeyPatch) -> Findings:
    quick, slow = look_over(entries), slowly(entries, monkeypatch)
    assert quick.problems == slow.problems
    assert quick.chain.head == slow.chain.head
    assert quick.chain.length == slow.chain.length
    if not quick.problems:
        assert quick.state == slow.state
        assert quick.signatures == slow.signatures
    return quick


@pytest.mark.parametrize("terms", KINDS, ids=lambda terms: terms.agreement)
def test_it_takes_most_counts(
    terms: Terms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, _ = told(tmp_path / "ledger.db", slots=3, terms=terms)
    assert alike(entries, monkeypatch).problems == []
    taken = 0
    usual = Chain.follow_quickly

    def counted(self: Chain, entry: Entry) -> bool:
        nonlocal taken
        taken += 1
        return usual(self, entry)

    monkeypatch.setattr(Chain, "follow_quickly", counted)
    look_over(entries)
    assert taken > 0


@pytest.mark.slow
@pytest.mark.parametrize("terms", KINDS, ids=lambda terms: terms.agreement)
def test_it_comes_to_the_same(
    terms: Terms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgeries anywhere, and of counts above all."""
    entries, _ = told(tmp_path / "ledger.db", slots=1, terms=terms)
    rng, facts = random.Random(5), [entry.fact for entry in entries]
    counts = [n for n, fact in enumerate(facts) if fact.kind == "contribution"]
    for _ in range(15):
        alike(list(extend(START, forged(facts, rng), NOON)), monkeypatch)
        place = rng.choice(counts)
        changed = forged([facts[place]], rng)
        other = [*facts[:place], *changed, *facts[place + 1 :]]
        alike(list(extend(START, other, NOON)), monkeypatch)


@pytest.mark.parametrize("change", [{"samples": 1}, {"norm": 1e300}, {"turn": 1}, {"samples": 0}])
def test_counts_that_the_server_changed_are_found(
    change: dict[str, float], signed: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = signed[last_count(signed)].fact
    story = resealed(signed, lambda f: f._replace(body={**f.body, **change}) if f == fact else f)
    assert alike(story, monkeypatch).problems


@pytest.mark.parametrize("field", ["text", "client", "slot", "number", "previous", "digest", "at"])
@pytest.mark.parametrize("value", [None, 7, "x", 1.5, b"x"])
def test_entries_of_any_type(
    field: str, value: object, signed: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, last = list(signed), last_count(signed)
    entries[last] = entries[last]._replace(**{field: value})  # type: ignore[arg-type]
    assert alike(entries, monkeypatch).problems


@pytest.mark.parametrize("norm", ["1..2", "1e", "1e999", "01.0", "1", "1.50", "-1.0", "1e5", "NaN"])
def test_numbers_of_any_spelling(
    norm: str, signed: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, last = list(signed), last_count(signed)
    text = re.sub('"norm":[^,]*', f'"norm":{norm}', entries[last].text)
    entries[last] = entries[last]._replace(text=text)
    for n in range(last, len(entries)):
        before = entries[n - 1].digest
        content = entries[n]._replace(previous=before)[:-1]
        entries[n] = Entry(*content, digest=chain._digest(content))
    assert alike(entries, monkeypatch).problems
