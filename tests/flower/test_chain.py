"""The chain of digests: whatever is changed in it is found."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.flower.ledger.chain import START, Entry, Fact, broken_links, canonical, extend

TEXTS = st.text(max_size=8)
BODIES = st.dictionaries(
    TEXTS,
    st.one_of(
        st.integers(),
        st.booleans(),
        st.none(),
        TEXTS,
        st.floats(allow_nan=False, allow_infinity=False),
    ),
)
FACTS = st.lists(
    st.builds(Fact, TEXTS, st.integers(0, 9), st.none() | TEXTS, BODIES), min_size=1, max_size=6
)


def chain(facts: list[Fact]) -> list[Entry]:
    return list(extend(START, facts, at="2025-01-01T00:00:00+00:00"))


@given(FACTS)
def test_what_is_written_is_whole_and_read_back(facts: list[Fact]) -> None:
    entries = chain(facts)
    assert broken_links(entries) == []
    assert [entry.fact for entry in entries] == facts


@given(FACTS, st.data())
def test_any_change_of_any_field_is_found(facts: list[Fact], data: st.DataObject) -> None:
    entries = chain(facts)
    n = data.draw(st.integers(0, len(entries) - 1))
    field = data.draw(st.sampled_from(Entry._fields))
    old = getattr(entries[n], field)
    new = old + 1 if isinstance(old, int) else f"{old or ''}x"
    entries[n] = entries[n]._replace(**{field: new})  # type: ignore[arg-type]
    assert broken_links(entries)


@given(FACTS, st.data())
def test_an_entry_that_is_removed_or_moved_is_found(facts: list[Fact], data: st.DataObject) -> None:
    entries = chain([*facts, *facts])
    n = data.draw(st.integers(0, len(entries) - 2))  # the end is for the clients' copies to hold
    assert broken_links(entries[:n] + entries[n + 1 :])
    entries[n], entries[n + 1] = entries[n + 1], entries[n]
    assert broken_links(entries)


def test_an_entry_that_is_made_anew_breaks_the_one_after_it() -> None:
    facts = [Fact("slot", 1, None, {"n": n}) for n in range(3)]
    entries = chain(facts)
    (forged,) = extend(entries[0].head, [Fact("slot", 1, None, {"n": 9})], entries[1].at)
    problems = broken_links([entries[0], forged, entries[2]])
    assert problems == ["entry 3 does not follow the one before it"]


def test_canonical_json_has_one_form_and_no_nan() -> None:
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    assert json.loads(canonical([0.1, 1e300])) == [0.1, 1e300]
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))
