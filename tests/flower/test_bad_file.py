"""What a malicious file can do to its reader, and who can read the files that we write."""

import os
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, Message
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.cli.outputs import write_csv
from fedaccord.data.dataset import load_dataset
from fedaccord.data.own import load_folder
from fedaccord.deployment.app_directory import write_app as write_server
from fedaccord.errors import FedaccordError
from fedaccord.files.consortium import load_consortium
from fedaccord.files.reading import guarded, unguarded
from fedaccord.files.tables import load_profile
from fedaccord.flower.client_app import client_app
from fedaccord.flower.client_file import FileClient, load_client_file
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import Directory
from fedaccord.flower.wire import Unreadable, pack, unpack
from fedaccord.ledger.chain import Fact
from fedaccord.ledger.store import Moment, open_ledger
from fedaccord.protocol.parameters import Arrays, digest, from_bytes, to_bytes
from fedaccord.protocol.terms import load_terms
from fedaccord.training.task import Model, Task
from tests.cli.conftest import Run, run  # noqa: F401  a fixture
from tests.flower.consortia import START_MODEL, privates_of, terms_of
from tests.flower.grids import client_of, grid_of
from tests.flower.homes import write_app
from tests.lies import lie

ONE, OTHER = (unicodedata.normalize(form, "Amélie") for form in ("NFC", "NFD"))
HEAD = "rounds = 50\ndiscount_factor = 0.8\n"
CLIENT = '[[clients]]\nname = "{}"\nvaluation = 3.0\ncost_per_sample = 1e-6\nsamples = 500\n'

# --- TOML that takes long, or deep recursion ------------------------------------------------

BOMBS = {
    "nested lists": ("a = " + "[" * 100_000, "is nested too deeply"),
    "nested tables": ("a = " + "{a = " * 100_000, "is nested too deeply"),
    "a long number": ("rounds = " + "1" * 5_000, "the key or number '1111"),
    "a long hexadecimal number": ("rounds = 0x" + "f" * 50_000, "the key or number '0xff"),
    "a long key": ("k" * 5_000 + " = 1", "the key or number 'kkkk"),
    "a long key in quotes": (f'"{"k" * 5_000}" = 1', "kkk...: unknown key"),
    "many dotted parts": (".".join(["a"] * 20_000) + " = 1", "a key has more than 20 parts"),
    "a header of many": (f"[{'.'.join(['a'] * 20_000)}]", "a key has more than 20 parts"),
    "many in quotes": (" . ".join(['"=\\""', "'#'"] * 10_000) + " = 1", "more than 20 parts"),
    "quotes that do not end": ('a = "' + '\\"' * 1_000_000, "is not TOML"),
    "blank lines": ("\n" * 1_000_000, "is missing"),
}
READERS: dict[str, Callable[[Path], object]] = {
    "consortium": load_consortium,
    "terms": load_terms,
    "client": load_client_file,
}


@lie(
    "whoever has the file",
    "make a TOML reader run for hours, or exhaust its stack, by deep nesting",
    "it is refused in one sentence, before anything is read",
)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize(("text", "message"), BOMBS.values(), ids=BOMBS.keys())
def test_toml_that_would_take_too_long_is_refused(
    text: str, message: str, reader: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "bomb.toml"
    path.write_text(text)
    with pytest.raises(fa.InvalidInput) as refused:
        reader(path)
    assert any(message in str(problem) for problem in refused.value.problems)
    assert all(len(str(problem)) < 300 for problem in refused.value.problems)


@pytest.mark.parametrize("text", [text for text, _ in BOMBS.values()], ids=BOMBS.keys())
def test_the_command_line_refuses_it_as_well(run: Run, text: str) -> None:  # noqa: F811
    Path("bomb.toml").write_text(text)
    result = run("solve", "bomb.toml", "--profile-out", "p.csv")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: bomb.toml: ")
    assert len(result.stderr) < 1_000
    assert not Path("p.csv").exists()


def test_strings_and_comments_may_contain_dots(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    name = "A.B.C.D.E.F.G.H.I.J.K.L.M.N.O.P.Q.R.S.T.U.V." + "W" * 150
    path.write_text(f"# {'.' * 500} {'-' * 500}\n" + HEAD + CLIENT.format(name))
    assert load_consortium(path).names == (name,)


# --- Names ----------------------------------------------------------------------------------


@lie(
    "whoever has the file",
    "enter a client twice, by two spellings of its name that look the same",
    "names are compared in Unicode's composed form, and the duplicate is refused",
)
def test_two_spellings_are_one_client(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(HEAD + CLIENT.format(ONE) + CLIENT.format(OTHER), encoding="utf-8")
    with pytest.raises(fa.InvalidInput, match="is the name of clients"):
        load_consortium(path)
    rows = f"name,valuation,cost_per_sample,samples\n{ONE},3,1e-6,500\n{OTHER},3,1e-6,500\n"
    (tmp_path / "clients.csv").write_text(rows, encoding="utf-8")
    path.write_text(HEAD + 'clients = "clients.csv"\n')
    with pytest.raises(fa.InvalidInput, match="is the name of the client on line 2 already"):
        load_consortium(path)
    with pytest.raises(fa.InvalidInput, match="clients: two have the same name"):
        terms_of((ONE, OTHER))
    with pytest.raises(fa.InvalidInput, match="is the name of clients"):
        fa.Consortium(
            valuation=[3.0, 3.0],
            cost_per_sample=1e-6,
            samples=500,
            rounds=50,
            discount_factor=0.8,
            names=[ONE, OTHER],
        )


@pytest.fixture
def consortium(tmp_path: Path) -> fa.Consortium:
    path = tmp_path / "c.toml"
    path.write_text(HEAD + CLIENT.format(OTHER) + CLIENT.format("B"), encoding="utf-8")
    return load_consortium(path)


@pytest.mark.parametrize("name", [ONE, OTHER])
@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_profile_may_use_either_spelling(
    name: str, ending: str, consortium: fa.Consortium, tmp_path: Path
) -> None:
    assert consortium.names == (ONE, "B")
    assert consortium.index(name) == 0
    path = tmp_path / f"profile.{ending}"
    text = f"name,contribution\n{name},7\nB,5\n" if ending == "csv" else f'{{"{name}": 7, "B": 5}}'
    path.write_text(text, encoding="utf-8")
    assert load_profile(path, consortium).tolist() == [7, 5]


def test_a_folder_of_data_may_use_either_spelling(tmp_path: Path) -> None:
    examples: dict[str, Any] = {"inputs": np.eye(4), "labels": np.array([0, 1, 0, 1])}
    for name in (OTHER, "test"):
        np.savez(tmp_path / f"{name}.npz", **examples)
    assert load_folder(tmp_path, [ONE]).sizes == [4]
    assert load_folder(tmp_path, [OTHER]).names == (ONE,)
    np.savez(tmp_path / f"{ONE}.npz", **examples)
    with pytest.raises(fa.InvalidInput, match="there must be one file"):
        load_folder(tmp_path, [ONE])


def test_options_may_use_either_spelling(run: Run, consortium: fa.Consortium) -> None:  # noqa: F811
    result = run("play", "c.toml", "--deviate", f"{OTHER}@2:0", "--strategy", f"{OTHER}=selfish")
    assert result.exit_code == 0, result.stderr


def test_a_client_file_and_its_node_may_use_either_spelling(tmp_path: Path) -> None:
    terms = terms_of((OTHER, "b"), answer_seconds=0.01)
    assert terms.clients == (ONE, "b")
    write_app(tmp_path / "app", terms, privates_of((ONE, "b")))
    file = tmp_path / "app" / "clients" / ONE / "client.toml"
    file.write_text(file.read_text("utf-8").replace(ONE, OTHER), "utf-8")
    assert load_client_file(file).name == ONE
    app = client_app(client_of(privates_of((OTHER, "b")), terms))
    directory = Directory(InProcessGrid(app, [{"name": OTHER}, {"name": "b"}]), terms)
    assert directory.refresh() == []
    assert sorted(directory.nodes.values()) == sorted(terms.clients)


# --- CSV ------------------------------------------------------------------------------------


@lie(
    "whoever has the file",
    "run a formula in the spreadsheet of whoever opens an exported table, by a client's name",
    "an apostrophe in front makes it text, and is removed when the file is read",
)
@pytest.mark.parametrize("first", ["=", "+", "-", "@"])
def test_no_name_becomes_a_spreadsheet_formula(first: str, run: Run) -> None:  # noqa: F811
    name = f"{first}HYPERLINK(1)"
    Path("c.toml").write_text(HEAD + CLIENT.format(name) + CLIENT.format("B"))
    assert run("solve", "c.toml", "--profile-out", "p.csv").exit_code == 0
    rows = Path("p.csv").read_text().splitlines()
    assert rows[1].startswith(f"'{name},")
    consortium = load_consortium("c.toml")
    assert consortium.names == (name, "B")
    assert load_profile("p.csv", consortium).shape == (2,)


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", ["name", "saving"], [("\tx", -1.5), ("-", -2)])
    assert (tmp_path / "t.csv").read_bytes() == b"name,saving\n'\tx,-1.5\n'-,-2\n"


@given(st.text(alphabet="'=+-@\t\ra1"))
def test_escaped_text_is_restored_when_read(text: str) -> None:
    written = guarded(text)
    assert unguarded(written) == text
    assert not written.startswith(("=", "+", "-", "@", "\t", "\r"))


# --- NUL in a parameter's name --------------------------------------------------------------


def with_nul() -> Arrays:
    return {"w\0<f4\0(1,)\0": np.zeros(1, np.float32)}


@lie(
    "a client",
    "give two different models the same digest, by a NUL in a parameter's name",
    "the name is refused, on the wire and in a file",
)
def test_nul_in_a_name_on_the_wire() -> None:
    grid_of()  # a message needs one
    record = ArrayRecord({name: Array(array) for name, array in with_nul().items()})
    with pytest.raises(Unreadable, match="unreadable parameters"):
        unpack(Message(pack({}, record), 1, "train"))
    with pytest.raises(FedaccordError, match="has a NUL in it"):
        digest(with_nul())


def test_nul_in_a_name_in_a_file() -> None:
    with pytest.raises(FedaccordError, match="has a NUL in it"):
        to_bytes(with_nul())
    hidden = to_bytes({"wXb": np.zeros(1)}).replace(b"wXb", b"w\0b")
    with pytest.raises(FedaccordError, match="has a NUL in it"):
        from_bytes(hidden)


def test_nul_in_a_name_in_a_task() -> None:
    def build(_: Any) -> torch.nn.Module:
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        module[1].register_parameter("w\0x", torch.nn.Parameter(torch.zeros(1)))
        return module

    with pytest.raises(
        fa.InvalidInput, match="task mine: a parameter's name contains a NUL character"
    ):
        Model(Task("mine", build), load_dataset("digits"))


# --- Who can read what is written -----------------------------------------------------------


@pytest.fixture
def careless() -> Iterator[None]:
    """A user whose files are readable by everyone unless a program prevents it."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}


@lie(
    "whoever reaches the machine",
    "read a ledger, a client's copy or its model as another user",
    "they are created with mode 0600, and so are their locks and journals",
)
@pytest.mark.usefixtures("careless")
def test_only_its_owner_can_read_a_ledger(tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    def look(moment: Moment) -> None:
        if moment == "within":
            seen.update(modes(tmp_path))

    with open_ledger(tmp_path / "ledger.db") as ledger:
        ledger.watch(look)
        ledger.append([Fact("terms", 0, None, {})], b"model")
    assert set(seen) == {"ledger.db", "ledger.db-journal", "ledger.db.lock"}
    assert set(seen.values()) == {0o600}


@pytest.mark.usefixtures("careless")
def test_only_its_owner_can_read_a_client_directory(tmp_path: Path) -> None:
    write_app(tmp_path / "app", terms_of(("a", "b")), privates_of(("a", "b")))
    client = tmp_path / "app" / "clients" / "a"
    terms = tmp_path / "app" / "fedaccord_app" / "terms.toml"
    FileClient(client / "client.toml", terms).keep_model(START_MODEL)
    found = modes(client)
    assert (found["client.toml"], found["model.npz"]) == (0o600, 0o600)
    assert modes(tmp_path / "app" / "clients") == {"a": 0o700, "b": 0o700}
    assert modes(tmp_path / "app")["flower-home"] == 0o700  # where Flower's database goes


# --- A full disk ----------------------------------------------------------------------------

FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from fedaccord.cli import main
sys.argv[:2] = ["fedaccord"]
main()
"""


def on_a_full_disk(room: int, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that can only write files of up to this many bytes."""
    return subprocess.run(
        [sys.executable, "-c", FULL, str(room), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
@pytest.mark.parametrize("room", [0, 100, 2_000])
def test_a_full_disk_leaves_no_member(room: int, tmp_path: Path) -> None:
    """Neither a directory nor a key without the others."""
    write_server(tmp_path / "app", terms_of(("a", "b")))
    numbers = ("--valuation", "30", "--cost-per-sample", "0.05", "--samples", "150")
    words = ("member", "new", "own", "app/invitation.toml", "--client", "a", *numbers)
    found = on_a_full_disk(room, tmp_path, *words)
    assert found.returncode == 2
    assert found.stdout == ""
    assert "cannot be written: " in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["app"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_a_full_disk_leaves_matching_certificates(tmp_path: Path) -> None:
    app, words = tmp_path / "app", ("flower", "keys", ".", "--host", "127.0.0.1")
    write_app(app, terms_of(("a", "b")), privates_of(("a", "b")))
    assert on_a_full_disk(10**9, app, *words).returncode == 0
    before = {p: p.read_bytes() for p in app.rglob("*") if p.is_file()}
    found = on_a_full_disk(600, app, *words)  # a key has room, a certificate has not
    assert found.returncode == 2
    assert found.stdout == ""
    assert {p: p.read_bytes() for p in app.rglob("*") if p.is_file()} == before
