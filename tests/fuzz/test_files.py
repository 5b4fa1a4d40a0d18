"""Files with any content are read, or rejected with messages that a terminal can show.

The seeds are fixed, so every run tries the same files. Add any that causes a failure here.
"""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fedaccord.checks import is_installed
from fedaccord.data.own import load_folder
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.files.clients import read_clients
from fedaccord.files.consortium import example_text, load_consortium
from fedaccord.files.curve import load_curve
from fedaccord.files.reading import parse_toml
from fedaccord.files.tables import load_profile
from fedaccord.flower.client_file import load_client_file
from fedaccord.game.consortium import Consortium
from fedaccord.game.measured import fit_law
from fedaccord.protocol.terms import Terms, load_terms
from tests.flower.consortia import privates_of, terms_of
from tests.flower.homes import write_app

pytestmark = pytest.mark.slow

MUTANTS = 2_500
"""For each kind of file; all of them take about a minute."""
LONGEST_PROBLEM = 600
"""Longest message for one mistake: a few places and values, each truncated."""

CONSORTIUM = """\
name = "Three"
rounds = 50
discount_factor = 0.8
clients = "clients.csv"
"""
CLIENTS = """\
name,valuation,cost_per_sample,samples,discount_factor
North,3,1e-6,500,
"South, by the sea",2.5,1e-6,400,0.7
'=West,4,2e-6,900,0.9
"""
CLIENTS_ABROAD = """\
sep=;
Hôpital;Hospital;Cases;Value (EUR);Cost per sample;Discount factor;;

x;Zürich;42.000;700.000 €;0,0042;97 %;;
;;;;;;;
y;"Genève; centre";1 234;1'640;1,5e-3;0,9;;
"""
PROFILE = """\
name,contribution
North,100
"South, by the sea",0
'=West,450.5
"""
PROFILE_JSON = """\
{"agreement": {"clients": [{"name": "North", "contribution": 100},
 {"name": "South, by the sea", "contribution": 0}, {"name": "=West", "contribution": 450.5}]}}
"""
WORDS = [
    *(b"[", b"]", b"{", b"}", b"[[", b"]]", b"=", b".", b",", b'"', b"'", b'"""', b"\\", b"#"),
    *(b"nan", b"inf", b"-", b"1e999", b"1e-999", b"9" * 4_400, b"0x" + b"f" * 4_000, b"true"),
    *(b"42.000", b"1,234", b"97 %", "5 €".encode(), b";", b"\t", "\u202f".encode()),
    *(b"1979-05-27", b"07:32:00", b"\n", b"\0", b"\x1b[2J", b"\xff", "\u202ee\u0301".encode()),
    *(b"[" * 2_000, b"a." * 2_000, b"k" * 3_000, b"name", b"clients", b"1_000", b"-0.0"),
]


CURVE = "samples,seed,value,example\n" + "".join(
    f"{size},{seed},{size**-0.4 + seed / 100:.4f},\n{size},,{size**-0.3:.4f},{seed}\n"
    for size in (10, 20, 40, 80, 160)
    for seed in range(2)
)
LAW = """
rounds = 50
discount_factor = 0.8
[law]
kind = "measured"
measure = "error"
curve = "../fitting.csv"
resamples = 10
[[clients]]
name = "North"
valuation = 700
cost_per_sample = 0.0042
samples = 2000
quality = 0.5
[clients.law]
kind = "power"
scale = 1.5
exponent = 0.5
shift = 3.0
floor = 0.1
measure = "error"
"""


class Kind(NamedTuple):
    """A kind of file: a valid one, and the function that reads it."""

    name: str
    content: bytes
    read: Callable[[Path], Any]


def kinds(folder: Path) -> list[Kind]:
    """Every kind of file that may come from a user or another client."""
    (folder / "consortium.toml").write_text(CONSORTIUM)
    (folder / "clients.csv").write_text(CLIENTS)
    (folder / "fitting.csv").write_text(CURVE)
    consortium = load_consortium(folder / "consortium.toml")
    write_app(folder / "app", terms_of(("a", "b")), privates_of(("a", "b")))
    np.savez(folder / "North.npz", inputs=np.eye(4), labels=np.array([0, 1, 0, 1]))
    (folder / "test.csv").write_text("a,b,c,d,label\n1,0,0,0,0\n0,1,0,0,1\n")

    def with_clients(path: Path) -> Consortium:
        path.rename(folder / "clients.csv")
        return load_consortium(folder / "consortium.toml")

    def as_data(name: str) -> Callable[[Path], Any]:
        def read(path: Path) -> Any:
            path.rename(folder / name)
            return load_folder(folder, ["North"])

        return read

    def with_sheet(path: Path) -> None:
        with_notes(packed(parts | {_SHEET: path.read_bytes()}))

    app = folder / "app"
    parts = workbook() if is_installed("openpyxl") else {_SHEET: b""}
    abroad = CLIENTS_ABROAD.encode("cp1252")
    return [
        Kind("c.toml", example_text().encode(), load_consortium),
        Kind("clients.csv", CLIENTS.encode(), with_clients),
        Kind("p.csv", PROFILE.encode(), lambda path: load_profile(path, consortium)),
        Kind("p.json", PROFILE_JSON.encode(), lambda path: load_profile(path, consortium)),
        Kind("terms.toml", (app / "clients" / "a" / "terms.toml").read_bytes(), load_terms),
        Kind("client.toml", (app / "clients" / "a" / "client.toml").read_bytes(), load_client_file),
        Kind("North.npz", (folder / "North.npz").read_bytes(), as_data("North.npz")),
        Kind("test.csv", (folder / "test.csv").read_bytes(), as_data("test.csv")),
        Kind("abroad.csv", abroad, lambda path: with_notes(path.read_bytes())),
        Kind("sheet.xml", parts[_SHEET], with_sheet),
        Kind("law.toml", LAW.encode(), load_consortium),
        Kind("curve.csv", CURVE.encode(), lambda path: fit_law(load_curve(path), resamples=1)),
    ]


KINDS = [
    "c.toml",
    "clients.csv",
    "p.csv",
    "p.json",
    "terms.toml",
    "client.toml",
    "North.npz",
    "test.csv",
    "abroad.csv",
    "sheet.xml",
    "law.toml",
    "curve.csv",
]


def with_notes(data: bytes) -> None:
    """Read clients from a spreadsheet; what is noted must be printable, too."""
    read = read_clients(data, "clients")
    if read.problems:
        raise InvalidInput(read.problems)
    assert all(note.isprintable() and len(note) <= LONGEST_PROBLEM for note in read.notes)


_SHEET = "xl/worksheets/sheet1.xml"


def workbook() -> dict[str, bytes]:
    """The parts of an XLSX file."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["Hospital", "Cases", "Value", "Cost per sample", "Discount factor"])
    book.active.append(["North", 42_000, "700.000,00 €", 0.0042, "=0.9"])
    file = io.BytesIO()
    book.save(file)
    with zipfile.ZipFile(file) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[_SHEET] = parts[_SHEET].replace(b"<v></v>", b"<v>0.9</v>")
    return parts


def packed(parts: dict[str, bytes]) -> bytes:
    """The XLSX file that has these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, removed, repeated or inserted."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at, length = int(rng.integers(len(data) + 1)), int(rng.geometric(0.2))
        match int(rng.integers(5)):
            case 0:
                data[at : at + length] = rng.bytes(length)
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + 10 * length]
            case 3:
                data[at : at + int(rng.integers(3))] = WORDS[rng.integers(len(WORDS))]
            case _:
                if at < len(data):
                    data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def check(read: Callable[[], Any]) -> bool:
    """Whether it was read; if not, the error message must be printable."""
    try:
        read()
    except FedaccordError as refused:
        problems = getattr(refused, "problems", [refused])
        assert problems
        for problem in map(str, problems):
            assert len(problem) <= LONGEST_PROBLEM, problem
            assert problem.isprintable(), problem
        return False
    return True


@pytest.mark.filterwarnings("ignore")  # NumPy warns about damaged files
@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
def test_mutants(number: int, tmp_path: Path) -> None:
    if KINDS[number] == "sheet.xml":
        pytest.importorskip("openpyxl")
    kind = kinds(tmp_path)[number]
    path = tmp_path / "mutants" / kind.name
    path.parent.mkdir()
    rng = np.random.default_rng(number)
    read = 0
    for _ in range(MUTANTS):
        path.write_bytes(mutated(kind.content, rng))
        read += check(lambda: kind.read(path))
    assert 0 < read < MUTANTS  # some of either kind, or the test would prove nothing


def test_a_damaged_name_in_a_zip_is_not_quoted_at_length(tmp_path: Path) -> None:
    """Found by fuzzing: Python's error message includes whatever follows the name."""
    kind = kinds(tmp_path)[KINDS.index("North.npz")]
    path = tmp_path / "mutant"
    # the length of the name, 10 bytes, becomes 511
    path.write_bytes(kind.content.replace(b"\n\0\x14\0inputs", b"\xff\1\x14\0inputs", 1))
    assert not check(lambda: kind.read(path))


# --- Well-formed TOML with arbitrary values -------------------------------------------------

SIMPLE = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(width=64).map(lambda x: repr(x).replace("e+", "e")),
    st.booleans().map(lambda x: str(x).lower()),
    st.text(max_size=20).map(lambda t: '"' + "".join(f"\\U{ord(c):08x}" for c in t) + '"'),
    st.sampled_from(["1979-05-27", "07:32:00", "[]", "{}", "[[1], {a = 2}]", '"clients.csv"']),
)
VALUES = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=4).map(lambda v: f"[{', '.join(v)}]")
)
KEYS = st.sampled_from(
    [
        *("name", "clients", "training", "slips", "cpu", "unknown"),
        *Terms.model_fields,
        *("valuation", "cost_per_sample", "samples", "communication_cost", "data", "shape", "task"),
        *("classes", "rate", "batch", "seed", "chip", "hertz", "cycles_per_sample"),
    ]
)
LINES = st.dictionaries(KEYS, VALUES, max_size=8).map(
    lambda table: "\n".join(f"{key} = {value}" for key, value in table.items())
)
FILES = st.tuples(LINES, st.sampled_from(["[[clients]]", "[training]", "[slips]", ""]), LINES)


@settings(
    max_examples=400,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(FILES)
@example(("", "[slips]", f"{'1' * 90} = 0"))
def test_any_values(tmp_path: Path, parts: tuple[str, str, str]) -> None:
    path = tmp_path / "any.toml"
    path.write_text("\n".join(parts), encoding="utf-8")
    for read in (load_consortium, load_terms, load_client_file):
        check(lambda read=read: read(path))  # type: ignore[misc]


@settings(max_examples=3_000, derandomize=True, deadline=None)
@given(st.text(alphabet="ab1._-\"'\\#=[]{},\n \t"))
@example('a = """\\"""')
@example("''''''.a=1")
@example('"a\\')
def test_any_toml_is_read_or_rejected(text: str) -> None:
    check(lambda: parse_toml(text, "any.toml"))
