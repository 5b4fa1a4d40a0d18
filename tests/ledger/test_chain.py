"""The chain of digests: whatever is changed in it is found."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.ledger.chain import START, Chain, Entry, Fact, broken_links, extend
from fedaccord.signing.canonical import canonical

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


def is_part(entries: list[Entry]) -> bool:
    found = Chain()
    for entry in entries:
        found.follow(entry)
    return found.is_part


def chain(facts: list[Fact]) -> list[Entry]:
    return list(extend(START, facts, at="2025-01-01T00:00:00+00:00"))


@given(FACTS)
def test_what_is_written_is_whole_and_read_back(facts: list[Fact]) -> None:
    entries = chain(facts)
    assert broken_links(entries) == []
    assert [entry.fact for entry in entries] == facts
    for entry in entries:
        content = canonical(list(entry[:-1])).encode()
        assert entry.digest == hashlib.sha256(content).hexdigest()


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


def test_a_rewritten_entry_breaks_the_next_one() -> None:
    facts = [Fact("slot", 1, None, {"n": n}) for n in range(3)]
    entries = chain(facts)
    (forged,) = extend(entries[0].head, [Fact("slot", 1, None, {"n": 9})], entries[1].at)
    problems = broken_links([entries[0], forged, entries[2]])
    assert problems == ["entry 3 does not follow the entry before it"]


@pytest.mark.parametrize("field", Entry._fields)
@pytest.mark.parametrize("value", [b"x", 1.0, float("inf"), True, [], {}, "\ud800", "x", None, 7])
def test_a_field_may_be_anything_in_a_file_that_was_edited(field: str, value: Any) -> None:
    """Every field of another type or content is a problem of that entry, never an error."""
    entries = chain([Fact("slot", 1, "a", {"n": n}) for n in range(3)])
    entries[1] = entries[1]._replace(**{field: value})
    assert broken_links(entries)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "1", "null", '"x"', "[" * 99_999, '{"a":' * 9_999]
)
def test_a_text_that_is_not_an_object_is_found_even_with_the_right_digest(text: str) -> None:
    (entry,) = chain([Fact("slot", 1, None, {})])
    content = entry._replace(text=text)[:-1]
    digest = hashlib.sha256(canonical(list(content)).encode()).hexdigest()
    (problem,) = broken_links([Entry(*content, digest=digest)])
    assert problem.startswith("entry 1 is not an entry: its text is not ")


@given(FACTS, st.data())
def test_a_part_is_told_from_a_change(facts: list[Fact], data: st.DataObject) -> None:
    entries = chain([*facts, *facts])
    gone = data.draw(st.sets(st.integers(0, len(entries) - 2), min_size=1))
    part = [entry for n, entry in enumerate(entries) if n not in gone]
    assert is_part(part)
    assert not is_part(entries)
    assert not is_part([])
    assert not is_part([part[0]._replace(at="later"), *part[1:]])
    assert not is_part([part[-1], *part])


def test_canonical_json_has_one_form_and_no_nan() -> None:
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    assert json.loads(canonical([0.1, 1e300])) == [0.1, 1e300]
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))
