"""One client more in a file, or other numbers for one; everything else stays."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.checks import normalised
from fedaccord.errors import InvalidInput
from fedaccord.files.client_text import Entry, new_file, with_client
from fedaccord.files.consortium import example_text
from tests.files.test_consortium_text import EVERY_FORM

FIELDS = ("valuation", "cost_per_sample", "samples", "discount_factor", "communication_cost")
ENTRIES = {
    "valuation": Entry(600_000.0, "interview, 400,000 to 900,000: first"),
    "cost_per_sample": Entry(0.0123, "interview: second"),
    "samples": Entry(321.0, "interview: third"),
    "discount_factor": Entry(0.97, "interview: fourth"),
}
EXAMPLE = example_text().replace('currency = "', '# currency = "').replace('slot = "', '# slot = "')
"""Without what the answers of an interview add."""
SHARED = {"slot": "3 months", "currency": "EUR", "rounds": 50}


def comments_in(text: str) -> list[str]:
    return [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "consortium.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    return path


def changed(path: Path, name: str, shared: dict[str, object] = SHARED) -> fa.Consortium:
    """Writes the file anew with the client; all others must be as before."""
    before, old = fa.load_consortium(path), path.read_text(encoding="utf-8")
    new = with_client(path, name, ENTRIES, shared)
    path.write_text(new, encoding="utf-8")
    after = fa.load_consortium(path)
    for other in before.names:
        if other != name:
            for field in FIELDS:
                column, same = getattr(after, field), getattr(before, field)
                assert column[after.index(other)] == same[before.index(other)]
    n = after.index(name)
    assert [getattr(after, field)[n] for field in FIELDS[:4]] == [e.value for e in ENTRIES.values()]
    kept = [comment for comment in comments_in(old) if not comment.startswith("interview")]
    assert [comment for comment in comments_in(new) if comment in kept] == kept
    for entry in ENTRIES.values():
        assert f"# {entry.comment}\n" in new
    return after


def test_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    path.write_text(new_file('A "B"', ENTRIES, SHARED), encoding="utf-8")
    consortium = fa.load_consortium(path)
    assert (consortium.names, consortium.rounds) == (('A "B"',), 50)
    assert "valuation = 600_000  # interview, 400,000 to 900,000: first\n" in path.read_text()


@pytest.mark.parametrize("name", ["St Mary", "University Hospital", "Riverside", "Nobody yet"])
def test_one_client_of_the_example(file: Path, name: str) -> None:
    after = changed(file, name)
    assert len(after) == (7 if name == "Nobody yet" else 6)
    once = file.read_text(encoding="utf-8")
    assert 'slot = "3 months"' in once
    assert with_client(file, name, ENTRIES, SHARED) == once  # doing it again changes nothing


@pytest.mark.parametrize("name", ["Inline", "Dotted", "Table", "Number", "Nobody yet"])
def test_every_form_of_a_table(tmp_path: Path, name: str) -> None:
    path = tmp_path / "consortium.toml"
    path.write_text(EVERY_FORM, encoding="utf-8")
    changed(path, name, SHARED | {"rounds": 6})


def test_a_comment_on_a_number_moves_above_it(file: Path) -> None:
    changed(file, "University Hospital")
    text = file.read_text(encoding="utf-8")
    assert (
        "# how many samples it has\nsamples = 321  # interview: third\n"
        "# its own, if it is more or less patient than the consortium\n"
        "discount_factor = 0.97  # interview: fourth\n"
    ) in text


def test_windows_line_ends_stay(file: Path) -> None:
    file.write_bytes(EXAMPLE.replace("\n", "\r\n").encode())
    for name in ("St Mary", "Nobody yet"):
        text = with_client(file, name, ENTRIES, SHARED)
        assert "\n" not in text.replace("\r\n", "")


@pytest.mark.parametrize(
    ("shared", "words"),
    [
        (SHARED | {"rounds": 6}, "rounds: is 50 in this file, but 6 in the answers"),
        (SHARED | {"slot": "1 year"}, 'slot: is "3 months" in this file, but "1 year"'),
        (SHARED | {"currency": "USD"}, 'currency: is "EUR" in this file, but "USD"'),
    ],
)
def test_another_slot_currency_or_number_of_rounds(
    file: Path, shared: dict[str, object], words: str
) -> None:
    file.write_text(with_client(file, "St Mary", ENTRIES, SHARED), encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        with_client(file, "St Mary", ENTRIES, shared)
    assert words in str(refused.value)
    with_client(file, "St Mary", ENTRIES, SHARED | {"slot": "quarterly"})  # the same length


def test_clients_that_are_not_tables(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    (tmp_path / "c.csv").write_text("name,valuation,cost_per_sample,samples\nA,1,1,5\n")
    path.write_text('rounds = 50\ndiscount_factor = 0.5\nclients = "c.csv"\n')
    with pytest.raises(InvalidInput, match=r"takes its clients from c\.csv"):
        with_client(path, "A", ENTRIES, SHARED)
    row = '{name = "A", valuation = 1, cost_per_sample = 1, samples = 5}'
    path.write_text(f"rounds = 50\ndiscount_factor = 0.5\nclients = [{row}]\n")
    with pytest.raises(InvalidInput, match=r"write them as \[\[clients\]\] tables"):
        with_client(path, "A", ENTRIES, SHARED)


HEAD = "rounds = 50\ndiscount_factor = 0.5\n"
BODY = 'name = " A "\nvaluation = 1  # v\nsamples = 5\ncost_per_sample = 1\n'
CPU = "[clients.cpu]  # machine\nchip = 1  # old\nhertz = 1\ncycles_per_sample = 1\n# tail\n"
FORMS = {
    "spaces in the header": f"{HEAD}[[ clients ]]\n{BODY}",
    "a quoted header": f'{HEAD}[["clients"]]\n{BODY}',
    "indented": f"{HEAD}\n  [[clients]]\n  " + BODY.replace("\n", "\n  ").rstrip() + "\n  # end\n",
    "no line end": f"{HEAD}[[clients]]\n{BODY}".rstrip(),
    "quoted rounds": f"{HEAD}[[clients]]\n{BODY}".replace("rounds", '"rounds"'),
    "a byte order mark": f"\ufeff{HEAD}[[clients]]\n{BODY}",
    "a table of a machine": f"{HEAD}[[clients]]\n{BODY}".replace("cost_per_sample = 1\n", CPU),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["A", "Nobody yet"])
def test_other_forms_of_a_file(tmp_path: Path, form: str, name: str) -> None:
    path = tmp_path / "consortium.toml"
    path.write_text(FORMS[form], encoding="utf-8")
    after = changed(path, name)
    assert after.names == (("A",) if name == "A" else ("A", name))
    assert 'slot = "3 months"' in path.read_text(encoding="utf-8")


@given(st.text(min_size=1).filter(lambda name: name.strip() and name.isprintable()))
def test_any_name(name: str) -> None:
    name = normalised(name.strip())
    text = new_file(name, ENTRIES, {"rounds": 50})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.toml")
        path.write_text(text, encoding="utf-8")
        assert fa.load_consortium(path).names == (name,)
        other = with_client(path, f"{name}{name}", ENTRIES, {"rounds": 50})
        path.write_text(other, encoding="utf-8")
        assert fa.load_consortium(path).names == (name, f"{name}{name}")
