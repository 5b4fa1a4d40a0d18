"""Whatever is in a file, it is read and judged, or refused with a message; nothing crashes."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fedaccord.errors import InvalidInput
from fedaccord.signed.file import read_agreement_file
from fedaccord.signed.layout import digest_of_text, join
from fedaccord.signed.verification import verify_agreement
from fedaccord.signing.canonical import canonical
from tests.signed.examples import KINDS, signed

ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 1e308, -1e308, 5e-324, 1e-9, 10**400, 2**63, -0.0, 1.0, 0.999999999]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["", "\ud800", "</main>", "\n", "ed25519:" + "0" * 64, "0" * 64, "0" * 128]),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def judged(content: bytes) -> None:
    """Read and verify a file, which may be refused."""
    try:
        file = read_agreement_file(content)
    except InvalidInput:
        return
    verify_agreement(file)


@pytest.mark.slow
@given(st.binary(max_size=200), st.data())
def test_bytes_in_place_of_a_part(junk: bytes, data: st.DataObject) -> None:
    content = signed(data.draw(st.sampled_from(KINDS))).content
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(start + 300, len(content))))

    judged(content[:start] + junk + content[end:])


@given(st.binary(max_size=300))
@example(b"\xff")
def test_any_bytes(junk: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_agreement_file(junk)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in JSON: the object or list, and the key."""
    keys = value if isinstance(value, dict) else range(len(value))
    found: list[tuple[Any, Any]] = []
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += places(value[key])
    return found


def check_odd_values(data: st.DataObject, kind: str) -> None:
    """Values of any kind anywhere in the JSON, with digests made anew, so that they are read."""
    file = signed(kind)
    terms, agreement, signatures = (json.loads(part) for part in file.parts[1:])
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from([terms, agreement, agreement, signatures]))
        holder, key = data.draw(st.sampled_from(places(part)))
        holder[key] = data.draw(ODD)
    agreement["terms"] = digest_of_text(canonical(terms).encode(errors="replace").decode())
    try:
        texts = [canonical(part) for part in (terms, agreement, signatures)]
        content = join(file.shell, [file.parts.main, *texts])
    except (UnicodeEncodeError, ValueError):
        return
    judged(content)


@given(st.data())
@settings(max_examples=60)
def test_odd_values(data: st.DataObject) -> None:
    check_odd_values(data, "reversion")


@pytest.mark.slow
@given(st.data())
@settings(max_examples=1_000)
def test_many_odd_values(data: st.DataObject) -> None:
    check_odd_values(data, data.draw(st.sampled_from(KINDS)))
