"""Any invalid input: exit code 2, one clear message, no traceback, nothing left behind."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fedaccord.cli.console import CANNOT, READER_LEFT, UNFORESEEN
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.errors import FedaccordError
from tests.cli.conftest import Run

HEAD = "rounds = 50\ndiscount_factor = 0.8\n"
CLIENT = '[[clients]]\nname = "A"\nvaluation = 3.0\ncost_per_sample = 1e-6\nsamples = 500\n'
BAD_FILES = {
    "broken TOML": ("rounds = \n", "line 1, column"),
    "not UTF-8": ("name = 'é'\n".encode("latin-1"), "line 1: is not UTF-8 text"),
    "unknown key": (HEAD + CLIENT + "sampels = 3\n", "clients[0].sampels: unknown key"),
    "missing key": (HEAD + CLIENT.replace("samples = 500\n", ""), "clients[0].samples: is missing"),
    "nan": (HEAD + CLIENT.replace("3.0", "nan"), "clients[0].valuation: must be a finite number"),
    "infinite": (HEAD + CLIENT.replace("3.0", "inf"), "clients[0].valuation: must be a finite"),
    "zero": (HEAD + CLIENT.replace("1e-6", "0"), "clients[0].cost_per_sample: must be more than 0"),
    "negative": (HEAD + CLIENT.replace("500", "-5"), "clients[0].samples: must be more than 0"),
    "text": (HEAD + CLIENT.replace("500", "'many'"), "clients[0].samples: must be a number"),
    "boolean": (HEAD + CLIENT.replace("500", "true"), "clients[0].samples: must be a number"),
    "patience of 1": (HEAD.replace("0.8", "1") + CLIENT, "discount_factor: must be less than 1"),
    "duplicate names": (
        HEAD + CLIENT + CLIENT,
        "clients[1].name: 'A' is the name of clients[0] already",
    ),
    "no clients": (HEAD + "clients = []\n", "clients: a consortium needs at least one client"),
    "no such CSV": (HEAD + "clients = 'no.csv'\n", "no.csv: there is no such file"),
    "markup": (
        HEAD + CLIENT.replace('"A"', '"[bold]A[/bold]"').replace("500", "0"),
        "must be more than 0, got 0 ([bold]A[/bold])",
    ),
    "control characters": (
        HEAD + CLIENT.replace('"A"', '"A\\u001b[31m"'),
        "clients[0].name: must be one line of printable text",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file(run: Run, content: str | bytes, message: str) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    Path("c.toml").write_bytes(data)
    result = run("solve", "c.toml", "--report", "r.html", "--profile-out", "p.csv")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: c.toml: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stderr
    assert [path.name for path in Path().iterdir()] == ["c.toml"]


BAD_CSV = {
    "empty": ("", "clients.csv: is empty"),
    "a missing column": ("name,valuation,cost_per_sample\nA,1,1\n", "column 'samples' is missing"),
    "ragged": (
        "name,valuation,cost_per_sample,samples\nA,1,1,1\nB,1\n",
        "clients.csv line 3: has 2 cells, the first line has 4",
    ),
    "a bad number": (
        "name,valuation,cost_per_sample,samples\nA,1,1,1\nB,1,1,-5\n",
        "clients.csv line 3, samples: must be more than 0, got -5 (B)",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD_CSV.values(), ids=BAD_CSV.keys())
def test_a_bad_csv_file(run: Run, content: str, message: str) -> None:
    Path("c.toml").write_text(HEAD + "clients = 'clients.csv'\n")
    Path("clients.csv").write_text(content)
    result = run("solve", "c.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_oversized_file_is_rejected_at_once(run: Run) -> None:
    with Path("huge.toml").open("wb") as file:
        file.truncate(100_000_000)
    result = run("solve", "huge.toml")
    assert result.exit_code == 2
    assert "huge.toml: is too large: 100.0 MB, at most 10 MB can be read" in result.stderr


def test_missing_files_and_directories(run: Run) -> None:
    Path("directory").mkdir()
    assert "directory: is a directory, not a file" in run("solve", "directory").stderr
    assert "nope.toml: there is no such file" in run("solve", "nope.toml").stderr
    Path("p.csv").write_text("name,contribution\nclient-1,x\n")
    result = run("certify", "p.csv", "--paper", "--clients", "1")
    assert result.exit_code == 2
    assert "p.csv: line 2, contribution: must be a number, got 'x' (client-1)" in result.stderr


BAD_WORDS = {
    "a file and --paper": (
        ["solve", "c.toml", "--paper"],
        "--paper: cannot be combined with a file",
    ),
    "a file and an option": (
        ["solve", "c.toml", "--clients", "5"],
        "--clients: cannot be combined",
    ),
    "an unknown kind": (["solve", "--agreement", "fair"], "'individual', 'uniform'"),
    "an unknown option": (["solve", "--frobnicate"], "--frobnicate"),
    "an unknown command": (["sovle"], "sovle"),
    "no clients": (["solve", "--clients", "0"], "must be 1 or more, got 0"),
    "too many clients": (["solve", "--clients", "9000000000"], "10,000,000 or less"),
    "text instead of a number": (["solve", "--rounds", "many"], "many"),
    "an impossible number": (
        ["solve", "--discount-factor", "1"],
        "Error: --discount-factor: must be less than 1, got 1",
    ),
    "an impossible margin": (["solve", "--margin", "nan"], "--margin: must be from 0"),
    "no punishment": (["solve", "--punishment-slots", "0"], "must be 1 or more, got 0"),
    "an old model under reversion": (
        ["solve", "--model-keeps", "0.2"],
        "--model-keeps: needs --punishment suspension",
    ),
    "an old model that is better than a new one": (
        ["solve", "--punishment", "suspension", "--model-keeps", "1.2"],
        "--model-keeps: must be 1 or less, got 1.2",
    ),
    "two lengths": (
        ["solve", "--for-ever", "--punishment-slots", "2"],
        "--for-ever: cannot be combined with --punishment-slots",
    ),
    "the first client of an individual agreement": (
        ["solve", "--first-converted", "paper"],
        "--first-converted: needs --agreement uniform",
    ),
    "a cost that overflows": (
        ["solve", "--cost-per-sample", "1e308"],
        "cost_per_sample * samples must be less than 1e+290",
    ),
    "more rounds than a float can count": (["solve", "--rounds", "9" * 400], "or less"),
    "more samples than a float can count": (
        ["solve", "--samples", "9" * 400],
        "9,007,199,254,740,992 or less",
    ),
    "a longer punishment than a float can count": (
        ["play", "--punishment-slots", "9" * 400],
        "or less",
    ),
    "no profile": (["certify"], "expects a profile"),
    "too many files": (["certify", "a", "b", "c"], "expects a profile"),
    "a missing directory": (["solve", "--report", "no/r.html"], "no/r.html: cannot be written"),
    "a directory": (["solve", "--profile-out", "."], "is a directory, not a file"),
    "too long a name": (
        ["solve", "--profile-out", "x" * 300],
        "cannot be written: File name too long",
    ),
    "too long a name for a file": (["init", "x" * 300], "cannot be written: File name too long"),
    "too long a name to read": (["train", "--profile", "x" * 300], "x: File name too long"),
    "two outputs in one file": (
        ["solve", "--report", "a.html", "--profile-out", "./a.html"],
        "a.html: is named for two outputs",
    ),
    "a report that is no page": (
        ["solve", "--report", "agreement.pdf"],
        "the report is a web page: name it .html or .htm, got 'agreement.pdf'",
    ),
    "nowhere to write the demo": (["demo", "--report", "no/r.html"], "cannot be written"),
    "nowhere to write the file": (["init", "no/c.toml"], "no/c.toml: cannot be written"),
}


@pytest.mark.parametrize(("words", "message"), BAD_WORDS.values(), ids=BAD_WORDS.keys())
def test_invalid_options(run: Run, words: list[str], message: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(Path().iterdir()) == []


# --- Files are written whole or not at all -------------------------------------------------


def test_a_failed_write_leaves_the_old_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "p.csv"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FedaccordError, match="cannot be written: No space left"):
        write_file(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert target.read_text() == "old"


def test_links_are_followed_and_devices_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    write_file(Path(os.devnull), "gone")
    assert not Path(os.devnull).is_file()
    (tmp_path / "loop").symlink_to("loop")
    for write in (check_writable, lambda path: write_file(path, "new")):
        with pytest.raises(FedaccordError, match="cannot be written: Too many levels"):
            write(tmp_path / "loop")


def test_a_protected_file_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "p.csv"
    target.write_text("old")
    target.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root
    for write in (check_writable, lambda path: write_file(path, "new")):
        with pytest.raises(FedaccordError, match="cannot be written: it is write-protected"):
            write(target)
    assert target.read_text() == "old"


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("mine alone")
    old.chmod(0o600)
    write_file(old, "mine alone, still")
    write_file(new, "")
    Path(tmp_path / "usual").touch()
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert new.stat().st_mode == Path(tmp_path / "usual").stat().st_mode


OVER_INPUTS = {
    "the consortium": ["solve", "c.toml", "--profile-out", "./c.toml"],
    "through a link": ["play", "c.toml", "--csv", "link.toml"],
    "its clients": ["compare", "c.toml", "--csv", "clients.csv"],
    "the profile": ["certify", "c.toml", "p.csv", "--report", "link.html"],
    "one profile of several": [
        *("train", "c.toml", "--profile", "individual", "--profile", "p.csv"),
        *("--csv", "p.csv"),
    ],
    "the types": ["compare", "c.toml", "--contract-types", "p.csv", "--csv", "p.csv"],
    "the file to calibrate": [
        *("calibrate", "c.toml", "--out", "clients.csv"),
    ],
}


@pytest.mark.parametrize("words", OVER_INPUTS.values(), ids=OVER_INPUTS.keys())
def test_inputs_are_not_overwritten(run: Run, words: list[str]) -> None:
    texts = {
        "c.toml": HEAD + "clients = 'clients.csv'\n",
        "clients.csv": "name,valuation,cost_per_sample,samples\nA,3,1e-6,500\n",
        "p.csv": "name,contribution\nA,5\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    Path("link.toml").symlink_to("c.toml")
    Path("link.html").symlink_to("p.csv")
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is an input of this command and is not overwritten" in result.stderr
    assert {name: Path(name).read_text() for name in texts} == texts


# --- The process ---------------------------------------------------------------------------

FEDACCORD = [sys.executable, "-m", "fedaccord"]


def redirected(words: list[str], where: str) -> list[str]:
    """A command whose streams a shell redirects."""
    return ["sh", "-c", f'"$@" {where}', "sh", *words]


@pytest.fixture
def proved(tmp_path: Path) -> list[str]:
    """A command that proves a profile."""
    profile = tmp_path / "p.csv"
    profile.write_text("name,contribution\nclient-1,10000\n")
    return [*FEDACCORD, "certify", str(profile), "--paper", "--clients", "1"]


@pytest.mark.slow
def test_a_reader_that_exits_early_is_not_an_error() -> None:
    process = subprocess.Popen(
        [*FEDACCORD, "solve", "--paper", "--clients", "3000", "--all"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == READER_LEFT
    assert errors == b""


@pytest.mark.slow
@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_reader_that_exits_early_does_not_change_the_exit_code(
    proved: list[str], output_format: str
) -> None:
    there, gone = os.pipe()
    os.close(there)
    done = subprocess.run(
        [*proved, "--format", output_format], stdout=gone, stderr=subprocess.PIPE, check=False
    )
    os.close(gone)
    assert (done.returncode, done.stderr) == (READER_LEFT, b"")


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", ">/dev/null 2>&-", ">&- 2>&-"])
def test_closed_streams_do_not_change_the_exit_code(proved: list[str], closed: str) -> None:
    assert subprocess.run(redirected(proved, closed), check=False).returncode == 0


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [["solve", "--paper"], ["--help"], pytest.param(["reproduce"], marks=pytest.mark.slow)],
)
def test_a_full_output_device(words: list[str], unbuffered: str) -> None:
    done = subprocess.run(
        redirected([*FEDACCORD, *words], ">/dev/full"),
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        stderr=subprocess.PIPE,
        check=False,
    )
    message = b"Error: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (CANNOT, message)


@pytest.mark.slow
@needs_full
def test_no_stream_for_errors(proved: list[str]) -> None:
    done = subprocess.run(redirected(proved, ">/dev/full 2>/dev/full"), check=False)
    assert done.returncode == CANNOT


def test_a_bug_does_not_exit_with_the_code_for_refuted() -> None:
    mistake = (
        "import fedaccord.cli\n"
        "from fedaccord.cli.commands import solve\n"
        "solve.choose_either = lambda *_, **__: 1 / 0\n"
        "import sys; sys.argv = ['fedaccord', 'solve']\n"
        "fedaccord.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", mistake], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (UNFORESEEN, b"")
    assert b"Traceback" in done.stderr
    assert done.stderr.endswith(b"please report it with the lines above\n")


@pytest.mark.slow
def test_characters_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(HEAD + CLIENT.replace('"A"', '"Zürich 医院"'), encoding="utf-8")
    for output_format, name in (("text", b"Z?rich"), ("json", rb"Z\u00fcrich \u533b\u9662")):
        done = subprocess.run(
            [*FEDACCORD, "solve", str(file), "--format", output_format],
            env=os.environ | {"PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=True,
        )
        assert name in done.stdout


def test_an_interrupt_is_quiet() -> None:
    interrupt = (
        "import signal, fedaccord.cli\n"
        # a process that was started in the background ignores SIGINT
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from fedaccord.cli.commands import solve\n"
        "solve.choose_either = lambda *_, **__: signal.raise_signal(signal.SIGINT)\n"
        "import sys; sys.argv = ['fedaccord', 'solve']\n"
        "fedaccord.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", interrupt], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, b"", b"")


@pytest.mark.slow
def test_help_loads_nothing_heavy() -> None:
    check = (
        "import sys\n"
        "sys.argv = ['fedaccord', *sys.argv[1:]]\n"
        "from fedaccord.cli import main\n"
        "try:\n    main()\n"
        "finally:\n"
        "    heavy = {'numpy', 'scipy', 'matplotlib', 'pydantic', 'rich', 'jinja2'}\n"
        "    print('heavy:', sorted(heavy & sys.modules.keys()))\n"
    )
    for words in (["--help"], ["--version"], ["solve", "--help"], ["certify", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", check, *words], capture_output=True, text=True, check=True
        )
        assert "heavy: []" in done.stdout
        assert "\\[" not in done.stdout
