"""The chain of digests: whatever is changed in it is found."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import LISTED_PROBLEMS
from fedaccord.ledger.chain import (
    GENESIS,
    START,
    Chain,
    Entry,
    Fact,
    Head,
    broken_links,
    extend,
    first_difference,
    is_time,
)
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


def proper(head: Head = START, **changes: Any) -> Entry:
    """An entry with the right digest, whatever its fields are."""
    (entry,) = extend(head, [Fact("slot", 1, None, {})], at="2025-01-01T00:00:00+00:00")
    content = entry._replace(**changes)[:-1]
    return Entry(*content, digest=hashlib.sha256(canonical(list(content)).encode()).hexdigest())


def test_what_a_chain_has_counted() -> None:
    slots = [1, 3, 2]
    entries = chain([Fact("slot", slot, None, {}) for slot in slots])
    assert Head(0, "0" * 64) == START
    found = Chain()
    assert (found.length, found.slots, found.gaps, found.at) == (0, 0, 0, "")
    assert [found.follow(entry) for entry in entries] == [entry.fact for entry in entries]
    assert (found.length, found.slots, found.gaps) == (3, 3, 0)
    assert (found.head, found.at) == (entries[-1].head, entries[-1].at)
    assert found.whole
    assert found.problems == []
    later = Chain(found.head, found.at, found.slots)
    (fourth,) = extend(found.head, [Fact("slot", 1, None, {})], entries[-1].at)
    later.follow(fourth)
    assert (later.length, later.slots, later.whole) == (4, 3, True)


def test_each_thing_that_can_be_wrong_has_its_sentence() -> None:
    first, second, third = chain([Fact("slot", 1, None, {"n": n}) for n in range(3)])
    assert broken_links([first, third]) == ["entry 2 is missing: entry 3 follows"]
    assert broken_links([first, second, second, third]) == [
        "entry 2 is where entry 3 should be",
    ]
    assert broken_links([first, second._replace(digest="0" * 64)]) == [
        "entry 2 is not what was written: its digest differs"
    ]
    earlier = proper(first.head, number=2, at="2024-12-31T23:59:59+00:00")
    assert broken_links([first, earlier]) == [
        "entry 2 has an earlier time than the entry before it"
    ]
    assert broken_links([proper(at="2025-01-01")]) == [
        "entry 1 has no time in UTC, such as 2025-01-31T09:30:00+00:00"
    ]
    other = Chain()
    assert other.follow(first._replace(text="[]")) is None
    assert other.head == Head(1, first.digest)
    other.follow(second)
    assert other.problems == ["entry 1 is not an entry: its text is not an object"]
    assert not other.is_part


@pytest.mark.parametrize("more", [0, 2])
def test_only_the_first_problems_are_listed(more: int) -> None:
    gaps = LISTED_PROBLEMS + more
    found = Chain()
    for entry in chain([Fact("slot", 1, None, {})] * (2 * gaps))[1::2]:
        found.follow(entry)
    assert found.gaps == gaps
    assert found.problems[LISTED_PROBLEMS:] == ["and 2 more entries are wrong"] * bool(more)
    assert len(found.problems) == LISTED_PROBLEMS + bool(more)
    assert found.is_part


def test_numbers_fit_a_database_and_texts_a_stack() -> None:
    most = 2**63 - 1
    assert "too large" not in str(broken_links([proper(slot=most)]))
    assert "too large" not in str(broken_links([proper(slot=-most)]))
    for value in (most + 1, -most - 1):
        for entry in (proper(slot=value), proper(number=value)):
            assert "is too large for a database" in broken_links([entry])[0]
    for levels, wrong in ((10, False), (11, True)):
        text = '{"a":' + "[" * levels + "]" * levels + "}"
        assert ("nested too deeply" in str(broken_links([proper(text=text)]))) == wrong
    many = '{"a":[' + ",".join(["[]"] * 30) + "]}"
    assert broken_links([proper(text=many)]) == []


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{ "a":1}', '{"b":1,"a":1}', '{"a":NaN}'])
def test_a_body_is_written_in_one_way_only(text: str) -> None:
    (problem,) = broken_links([proper(text=text)])
    assert problem == "entry 1 is not an entry: its text is not in canonical form"


def test_a_quick_look_takes_only_what_follows_and_is_right() -> None:
    first, second = chain([Fact("slot", 1, None, {}), Fact("slot", 1, "a", {"n": 1})])
    later = proper(first.head, number=2, at="2025-01-01T00:00:01+00:00")
    for wrong in (
        first,
        proper(first.head, number=3),
        proper(Head(1, GENESIS), number=2),
        later,
        second._replace(text="{}"),
        second._replace(slot=True),
    ):
        found = Chain(first.head, first.at)
        assert not found.follow_quickly(wrong)
        assert (found.head, found.length) == (first.head, 1)
    found = Chain(first.head, first.at)
    # clients' entries have a name where the server's have none, and are looked at in full
    assert not found.follow_quickly(proper(first.head, number=2))
    assert found.follow_quickly(second)
    assert (found.head, found.length, found.whole) == (second.head, 2, True)


def test_where_a_ledger_is_not_what_it_was() -> None:
    entries = chain([Fact("slot", 1, None, {"n": n}) for n in range(4)])
    forged = entries[2]._replace(text='{"n":9}')
    assert first_difference(entries, entries) is None
    assert first_difference(entries, entries[1::2]) is None
    assert first_difference(entries, []) is None
    gone = "entry 4 was there, and is not any more"
    assert first_difference(entries[:3], entries) == gone
    assert first_difference([], entries[3:]) == gone
    other = "entry 3 was another one then"
    assert first_difference([*entries[:2], forged, entries[3]], entries) == other
    assert first_difference([entries[0], entries[3]], entries[2:]) == other


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2025-01-31T09:30:00+00:00", True),
        ("2025-02-30T09:30:00+00:00", False),
        ("2025-01-31T09:30:00", False),
        ("2025-01-31T09:30:00+01:00", False),
        ("2025-01-31T09:30:00.5+00:00", False),
        ("2025-01-31T09:30:00+00:00\n", False),
        ("", False),
    ],
)
def test_times_have_one_form(at: str, expected: bool) -> None:
    assert is_time(at) == expected


def test_what_is_wrong_besides_missing_entries() -> None:
    entries = chain([Fact("slot", n, None, {"n": n}) for n in range(5)])
    found = Chain()
    for entry in (entries[0], entries[2], entries[3]._replace(slot=9), entries[4]):
        found.follow(entry)
    missing = "entry 2 is missing: entry 3 follows"
    changed = "entry 4 is not what was written: its digest differs"
    assert found.problems == [missing, changed]
    assert found.problems_besides_gaps == [changed]
    assert not found.is_part
    assert is_part([entries[0], entries[2]])
