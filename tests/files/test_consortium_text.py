"""A consortium file with other numbers for some clients, and all else as it was."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.files.consortium import example_text, load_consortium
from fedaccord.files.consortium_text import with_law, with_numbers

FIELDS = ("valuation", "cost_per_sample", "samples", "discount_factor", "communication_cost")
EVERY_FORM = """\
# Our consortium
name = "Every form"   # not the final name
rounds = 6
discount_factor = 0.9

[[clients]]
name = "Inline"  # the first
valuation = 1_2.5   # agreed in May
samples = 10
cpu = { chip = 2e-28, cycles_per_sample = 1e6, hertz = 1e9 }

# a comment between two clients
[[clients]]
name = "Dotted"
valuation = 12
samples = 10
cpu.chip = 1.0
cpu.hertz = 2.0
cpu.cycles_per_sample = 1.0

[[clients]]
samples = 10
name = "Table"
valuation = 1.0
[clients.cpu]
chip = 1
hertz = 2
cycles_per_sample = 3

[[clients]]
name = "Number"
cost_per_sample = 1e-8  # measured in June
valuation = 3.0
samples = 7
communication_cost = 0.5
discount_factor = 0.5
# the end
"""


def written(text: str, clients: dict[str, dict[str, float]], *comments: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "consortium.toml")
        path.write_text(text, encoding="utf-8")
        return with_numbers(path, clients, comments)


def loaded(text: str) -> fa.Consortium:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "consortium.toml")
        path.write_text(text, encoding="utf-8")
        return load_consortium(path)


def expected(before: fa.Consortium, clients: dict[str, dict[str, float]]) -> dict[str, list[float]]:
    fields = {field: getattr(before, field).tolist() for field in FIELDS}
    for name, numbers in clients.items():
        for field, value in numbers.items():
            fields[field][before.index(name)] = value
    return fields


def assert_only_changed(before: fa.Consortium, after: fa.Consortium, changes: dict) -> None:  # type: ignore[type-arg]
    for field, values in expected(before, changes).items():
        np.testing.assert_array_equal(getattr(after, field), values)
    assert (before.name, before.names) == (after.name, after.names)
    assert (before.rounds, before.server_fee) == (after.rounds, after.server_fee)


NUMBERS = st.floats(1e-12, 1e6)


@pytest.mark.filterwarnings("ignore::fedaccord.FileNote")  # any numbers, also unlikely ones
@given(
    st.dictionaries(
        st.sampled_from(["Inline", "Dotted", "Table", "Number"]),
        st.fixed_dictionaries({}, optional={"valuation": NUMBERS, "cost_per_sample": NUMBERS}),
    )
)
def test_only_these_numbers_change(changes: dict[str, dict[str, float]]) -> None:
    after = written(EVERY_FORM, changes)
    assert_only_changed(loaded(EVERY_FORM), loaded(after), changes)
    comments = [line.partition("#")[2] for line in EVERY_FORM.splitlines() if "#" in line]
    assert [line.partition("#")[2] for line in after.splitlines() if "#" in line] == comments


def test_all_but_the_numbers_stays_to_the_last_character() -> None:
    after = written(EVERY_FORM, {"Number": {"cost_per_sample": 2.5e-9, "valuation": 4.0}})
    by_hand = EVERY_FORM.replace("1e-8", "2.5e-09").replace("3.0", "4.0")
    assert after == by_hand
    assert written(EVERY_FORM, {}) == EVERY_FORM


def test_a_cost_takes_the_place_of_the_machine() -> None:
    after = written(EVERY_FORM, {"Inline": {"cost_per_sample": 2.5e-9}})
    assert "samples = 10\ncost_per_sample = 2.5e-09\n\n# a comment between two clients\n" in after


def test_the_example_keeps_every_comment() -> None:
    before = example_text()
    numbers = {"valuation": 7.0, "cost_per_sample": 1e-9}
    changes = dict.fromkeys(loaded(before).names, numbers)
    after = written(before, changes)
    assert_only_changed(loaded(before), loaded(after), changes)
    for line in before.splitlines():
        if line.startswith("#"):
            assert line in after


def test_clients_in_one_line() -> None:
    text = (
        'rounds = 5\ndiscount_factor = 0.5\nclients = [  # all of them\n  {name = "A", '
        'valuation = 1.0, samples = 3, cost_per_sample = 1e-8},\n  {name = "B", valuation = 2.0, '
        "samples = 3, cpu = {chip = 1.0, hertz = 1.0, cycles_per_sample = 1.0}},\n]\n"
    )
    changes = {"A": {"valuation": 5.0}, "B": {"cost_per_sample": 0.25}}
    after = written(text, changes)
    assert_only_changed(loaded(text), loaded(after), changes)
    assert "# all of them" in after


def test_clients_in_a_csv_file_become_tables(tmp_path: Path) -> None:
    table = (
        'name,valuation,cost_per_sample,samples\n"with ""quotes""",1,1e-300,400\nZürich ☃,2,3,4\n'
    )
    (tmp_path / "clients.csv").write_text(table, encoding="utf-8")
    text = '# ours\nrounds = 5\nclients = "clients.csv"\ndiscount_factor = 0.5  # agreed\n'
    path = tmp_path / "consortium.toml"
    path.write_text(text, encoding="utf-8")
    changes = {"Zürich ☃": {"valuation": 0.1}}
    after = with_numbers(path, changes)
    assert_only_changed(load_consortium(path), loaded(after), changes)
    assert after.startswith("# ours\nrounds = 5\ndiscount_factor = 0.5  # agreed\n")
    assert (tmp_path / "clients.csv").read_text(encoding="utf-8") == table


def test_comments_go_to_the_top_and_replace_earlier_ones() -> None:
    first = written(EVERY_FORM, {}, "Measured with softmax on digits.", "It fits.")
    assert first == f"# Measured with softmax on digits.\n# It fits.\n\n{EVERY_FORM}"
    again = written(first, {}, "Measured with mlp on digits.")
    assert again == f"# Measured with mlp on digits.\n\n{EVERY_FORM}"


def test_line_endings_stay() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "consortium.toml")
        path.write_bytes(EVERY_FORM.replace("\n", "\r\n").encode())
        after = with_numbers(path, {"Number": {"valuation": 4.0}}, ["one", "two"])
    assert after.count("\n") == after.count("\r\n") == EVERY_FORM.count("\n") + 3


def test_an_unknown_client() -> None:
    with pytest.raises(fa.InvalidInput, match="no client called 'Numbr'"):
        written(EVERY_FORM, {"Numbr": {"valuation": 1.0}})


LAW = {"kind": "power", "measure": "error", "scale": 1.0, "exponent": 0.5}
STATES = """
[[states]]
name = "usual"

[[states]]
name = "holiday"
away = ["Dotted"]

[transitions]
usual = { holiday = 0.1 }
"""


def test_a_law_for_some_of_the_clients(tmp_path: Path) -> None:
    """The others are left out, and so are states in which they are away; comments stay."""
    file = tmp_path / "all.toml"
    file.write_text(EVERY_FORM + STATES, encoding="utf-8")
    some = tmp_path / "some.toml"
    some.write_text(with_law(file, LAW, clients=["Inline", "Table"]), encoding="utf-8")
    part = load_consortium(some)
    assert part.names == ("Inline", "Table")
    assert part.valuation.tolist() == [12.5, 1.0]
    text = some.read_text(encoding="utf-8")
    assert "# agreed in May" in text
    assert "states" not in text


def test_a_law_for_some_of_the_clients_of_a_spreadsheet(tmp_path: Path) -> None:
    rows = "name,valuation,cost_per_sample,samples\nA,10,1,5\nB,20,2,6\nC,30,3,7\n"
    (tmp_path / "clients.csv").write_text(rows, encoding="utf-8")
    file, some = tmp_path / "all.toml", tmp_path / "some.toml"
    file.write_text('rounds = 6\ndiscount_factor = 0.9\nclients = "clients.csv"\n')
    some.write_text(with_law(file, LAW, clients=["A", "C"]), encoding="utf-8")
    part = load_consortium(some)
    assert part.names == ("A", "C")
    assert part.cost_per_sample.tolist() == [1, 3]
    assert part.law.loss(4.0) == pytest.approx(0.5)
