"""A consortium file with another table of clients: only what changed is other than it was."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import example_text
from fedaccord.files.ranges import Range
from fedaccord.files.reading import parse_toml
from fedaccord.files.table_text import TableRow, as_toml, with_table

KEPT = [TableRow(n, {}) for n in range(6)]


def test_without_changes_the_text_is_the_same() -> None:
    for text in (example_text(), example_text().replace("\n", "\r\n")):
        assert with_table(text, {}, KEPT) == text


def test_comments_stay_unless_they_say_where_the_old_number_came_from() -> None:
    client = '[[clients]]\nname = "A"\nsamples = 3 # interview: by Jo\nvaluation=4 # x\n'
    text = f"rounds = 5 # few\n{client}"
    changed = with_table(text, {"rounds": 6}, [TableRow(0, {"samples": 4.0, "valuation": 5.5})])
    assert changed == (
        'rounds = 6 # few\n[[clients]]\nname = "A"\nsamples = 4\nvaluation=5.5 # x\n'
    )


def test_new_clients_follow_the_last_one() -> None:
    text = 'rounds = 5\n[[clients]]\nname = "A"\n\n[law]\nkind = "paper" # ours\n'
    new = TableRow(None, {"name": "B", "samples": Range(1, 2, 4), "cpu": {"chip": 1e-28}})
    changed = with_table(text, {"currency": "EUR"}, [TableRow(0, {}), new])
    data = parse_toml(changed, "")
    assert data["clients"][1]["samples"] == {"low": 1, "likely": 2, "high": 4}
    assert data["currency"] == "EUR"
    assert changed.index('"B"') < changed.index("[law]")
    assert "# ours" in changed


def test_a_number_takes_the_place_of_a_machine_or_a_ratio() -> None:
    text = '[[clients]]\nname = "A"\nratio = 7 # of both\ncost_per_sample = 2\n'
    changed = with_table(text, {}, [TableRow(0, {"valuation": 9.0})])
    assert parse_toml(changed, "")["clients"] == [
        {"name": "A", "cost_per_sample": 2, "valuation": 9}
    ]


def test_clients_in_brackets() -> None:
    text = 'clients = [{ name = "A" }, { name = "B", samples = 2 }]\nrounds = 5\n'
    rows = [TableRow(1, {"samples": None}), TableRow(None, {"name": "C"})]
    assert parse_toml(with_table(text, {}, rows), "") == {
        "clients": [{"name": "B"}, {"name": "C"}],
        "rounds": 5,
    }


def test_a_very_long_file_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too long"):
        with_table("# " + "x" * 2_000_000, {}, [])


VALUES = st.one_of(
    st.floats(-1e300, 1e300, allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.none(),
)
KEYS = ("name", "samples", "valuation", "communication_cost", "discount_factor", "quality")
CHANGES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), CHANGES), min_size=6, max_size=6),
    st.lists(CHANGES, max_size=3),
)
def test_any_change_is_what_was_meant(
    old: list[tuple[bool, dict[str, Any]]], new: list[dict[str, Any]]
) -> None:
    rows = [TableRow(n, changes) for n, (stays, changes) in enumerate(old) if stays]
    rows += [TableRow(None, changes) for changes in new]
    after = parse_toml(with_table(example_text(), {"slot": None}, rows), "")
    assert len(after.get("clients", [])) == len(rows)
    for row, client in zip(rows, after.get("clients", []), strict=True):
        for key, value in row.changes.items():
            assert client.get(key) == (
                value if value is None else parse_toml(f"x={as_toml(value)}", "")["x"]
            )
    assert after["currency"] == "EUR"
    assert "slot" not in after
