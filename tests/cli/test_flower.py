"""`fedaccord flower`: an app directory and its keys."""

import os
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

import fedaccord as fa
from fedaccord.cli import app as command_line
from fedaccord.flower.client_file import load_client_file
from fedaccord.protocol.terms import load_terms
from tests.cli.conftest import Run

CONSORTIUM = """
name = "Three hospitals"
rounds = 3
discount_factor = 0.8

[[clients]]
name = "St Mary"
valuation = 20.5
cost_per_sample = 0.05
samples = 120

[[clients]]
name = "St. Mary!"
valuation = 30.0
cost_per_sample = 0.05
samples = 150
discount_factor = 0.9

[[clients]]
name = "Łódź"
valuation = 55.0
cost_per_sample = 0.05
samples = 200
communication_cost = 0.25
"""


@pytest.fixture
def three(run: Run, tmp_path: Path) -> Run:
    (tmp_path / "three.toml").write_text(CONSORTIUM, encoding="utf-8")
    return run


@pytest.mark.parametrize(
    ("options", "punishment", "objective"),
    [
        ([], fa.Suspension(1), "least total cost"),
        (["--punishment", "reversion"], fa.Reversion(), "most data"),
        (["--for-ever"], fa.Suspension(None), "least total cost"),
        (["--model-keeps", "0.2"], fa.Suspension(1, model_keeps=0.2), "least total cost"),
        (["--fees-saved"], fa.Suspension(1, fees_saved=True), "least total cost"),
        (["--punishment-slots", "3", "--objective", "fairest"], fa.Suspension(3), "fairest"),
    ],
)
def test_the_punishment_is_chosen(
    options: list[str], punishment: fa.Reversion | fa.Suspension, objective: str, three: Run
) -> None:
    words = ["flower", "new", "app", "three.toml", "--dataset", "digits", "--nobody-worse"]
    assert three(*words, *options).exit_code == 0
    terms = load_terms("app/fedaccord_app/terms.toml")
    assert (terms.after_slip, terms.objective, terms.nobody_worse) == (punishment, objective, True)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--reports", "none", "--within", "30%"], "posted"),
        (["--reports", "none", "--within", "20%", "--within", "discount_factor=10%"], "posted"),
        (["--agreement", "everything"], "everything"),
        (["--agreement", "clock", "--reports", "none"], "clock"),
        (["--agreement", "serial-clock", "--clock-steps", "7"], "serial clock"),
    ],
)
def test_terms_without_reports(options: list[str], kind: str, three: Run) -> None:
    assert (
        three("flower", "new", "app", "three.toml", "--dataset", "digits", *options).exit_code == 0
    )
    terms = load_terms("app/fedaccord_app/terms.toml")
    assert (terms.reports, terms.agreement) == ("none", kind)
    assert terms.samples_of("Łódź") == 200
    assert terms.clock_steps == {"clock": 20, "serial clock": 7}.get(kind)
    lowest = (terms.public or {})["St. Mary!"]
    if kind == "posted":
        factor = 0.7 if "30%" in options else 0.8
        assert lowest.lowest_ratio == pytest.approx(600 * factor)
        assert lowest.lowest_discount_factor == pytest.approx(0.9 if factor == 0.7 else 0.81)
    private = Path("app/clients/St.-Mary/client.toml").read_text(encoding="utf-8")
    assert "The server learns none of these" in private
    assert "tell_discount_factor" not in private
    assert load_client_file("app/clients/St.-Mary/client.toml").private.valuation == 30.0


def test_ranges_in_the_file_are_used(three: Run) -> None:
    ranged = CONSORTIUM.replace("valuation = 30.0", "valuation = [24.0, 36.0]")
    Path("three.toml").write_text(ranged, encoding="utf-8")
    words = ["flower", "new", "app", "three.toml", "--dataset", "digits", "--reports", "none"]
    assert three(*words).exit_code == 0
    public = load_terms("app/fedaccord_app/terms.toml").public or {}
    assert public["St. Mary!"].lowest_ratio == pytest.approx(480.0)
    Path("three.toml").write_text(ranged.replace("150", "[100, 150]"), encoding="utf-8")
    refused = three(*[word.replace("app", "other") for word in words])
    assert refused.exit_code == 2
    assert "must be one whole number, which somebody has verified" in refused.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--reports", "none"], "give ranges in the file, or with --within 30%"),
        (["--within", "30%"], "--within: needs --reports none"),
        (["--reports", "ratio", "--agreement", "clock"], "--agreement clock: takes no reports"),
        (["--agreement", "clock", "--punishment", "reversion"], "needs --punishment suspension"),
        (["--agreement", "clock", "--nobody-worse"], "--nobody-worse: needs reports"),
        (["--clock-steps", "5"], "--clock-steps: is for a clock"),
        (["--agreement", "clock", "--on-refusal", "equilibrium"], "--on-refusal: must be without"),
        (
            ["--reports", "none", "--within", "99.9%"],
            "none: there are no amounts to post",
        ),
    ],
)
def test_wrong_options_without_reports(options: list[str], sentence: str, three: Run) -> None:
    result = three("flower", "new", "app", "three.toml", "--dataset", "digits", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("app").exists()


def test_new_writes_an_app(three: Run) -> None:
    result = three(
        "flower", "new", "app", "three.toml", "--dataset", "digits", "--punishment-slots", "4"
    )
    assert result.exit_code == 0
    assert result.stdout.endswith("Continue with the five commands in app/README.md.\n")
    terms = load_terms("app/fedaccord_app/terms.toml")
    assert terms.clients == ("St Mary", "St. Mary!", "Łódź")
    assert (terms.rounds, terms.discount_factor, terms.punishment_slots) == (3, 0.8, 4)
    assert (terms.punishment, terms.objective) == ("suspension", "least total cost")
    assert (terms.training.shape, terms.training.classes) == ((8, 8), 10)
    project = tomllib.loads(Path("app/pyproject.toml").read_text())
    assert project["tool"]["flwr"]["app"]["components"] == {
        "serverapp": "fedaccord_app.server_app:app",
        "clientapp": "fedaccord_app.client_app:app",
    }
    folders = sorted(path.parent.name for path in Path("app").glob("clients/*/client.toml"))
    assert folders == ["St-Mary", "St.-Mary", "Łódź"]
    files = {f.name: f for f in map(load_client_file, Path("app").glob("clients/*/client.toml"))}
    for path in Path("app").glob("clients/*/client.toml"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert load_terms(path.with_name("terms.toml")) == terms  # the terms that the client signs
    assert files["St Mary"].private.valuation == 20.5
    assert files["Łódź"].private.communication_cost == 0.25
    assert [f.tell_discount_factor for f in files.values()].count(True) == 1
    assert files["St. Mary!"].tell_discount_factor
    with np.load("app/clients/Łódź/data/Łódź.npz") as held:
        assert held["inputs"].shape == (200, 8, 8)


def test_new_accepts_an_empty_directory_that_is_in_use(
    three: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert three("flower", "new", ".", "../three.toml", "--dataset", "digits").exit_code == 0
    assert Path("fedaccord_app/terms.toml").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "three.toml"]


def test_an_app_of_any_name_can_be_imported(three: Run, tmp_path: Path) -> None:
    odd = CONSORTIUM.replace('"Three hospitals"', '\'\\ """ $x\'')
    (tmp_path / "odd.toml").write_text(odd, encoding="utf-8")
    assert three("flower", "new", "app", "odd.toml", "--dataset", "digits").exit_code == 0
    for path in Path("app/fedaccord_app").glob("*.py"):
        compile(path.read_text(), str(path), "exec")
    assert load_terms("app/fedaccord_app/terms.toml").name == '\\ """ $x'
    tomllib.loads(Path("app/pyproject.toml").read_text())


def test_nothing_private_is_in_the_app_or_its_bundle(three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--dataset", "digits")
    three("flower", "keys", "app", "--host", "localhost")
    public = "".join(
        path.read_text() for path in Path("app/fedaccord_app").iterdir() if path.is_file()
    )
    for secret in ("20.5", "0.05", "55.0", "0.25"):
        assert secret not in public
    environment = os.environ | {
        "FLWR_HOME": str(Path("app/flower-home").resolve()),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }
    flwr = str(Path(sys.executable).with_name("flwr"))
    subprocess.run([flwr, "build"], cwd="app", env=environment, check=True, capture_output=True)
    (bundle,) = Path("app").glob("*.fab")
    names = {name.split("/")[0] for name in zipfile.ZipFile(bundle).namelist()}
    assert names <= {"fedaccord_app", "pyproject.toml", ".info"}


def test_keys(three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    made = three("flower", "keys", "app", "--host", "server.example", "--host", "10.0.0.7")
    assert made.exit_code == 0
    server = x509.load_pem_x509_certificate(Path("app/keys/server.pem").read_bytes())
    authority = x509.load_pem_x509_certificate(Path("app/keys/ca.pem").read_bytes())
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["server.example"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7"]
    secrets = [Path("app/keys/server.key"), *Path("app").glob("clients/*/node.key")]
    assert len(secrets) == 4
    for path in secrets:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path in secrets[1:]:
        key = load_ssh_private_key(path.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.curve.name == "secp384r1"
        public = load_ssh_public_key(path.with_suffix(".pub").read_bytes())
        assert public == key.public_key()
    # the second time there are new certificates, but clients keep their keys
    before = [path.read_bytes() for path in secrets]
    assert three("flower", "keys", "app", "--host", "other.example").exit_code == 0
    after = [path.read_bytes() for path in secrets]
    assert after[0] != before[0]
    assert after[1:] == before[1:]


def test_new_certificates_after_the_client_directories_were_moved(three: Run) -> None:
    """The clients have their directories, and the server kept none."""
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    shutil.rmtree("app/clients")
    made = three("flower", "keys", "app", "--host", "server.example")
    assert made.exit_code == 0
    assert made.stdout.endswith("Every client needs the new app/keys/ca.pem.\n")
    assert Path("app/keys/server.pem").is_file()


def test_creating_one_key_at_a_client(three: Run) -> None:
    assert three("flower", "key", "node.key").exit_code == 0
    assert Path("node.pub").read_text().startswith("ecdsa-sha2-nistp384 ")
    again = three("flower", "key", "node.key")
    assert again.exit_code == 2
    assert "exists already; keys are not overwritten" in again.stderr
    for place, message in (("x.pub", "cannot end in .pub"), ("none/x.key", "cannot be written")):
        refused = three("flower", "key", place)
        assert refused.exit_code == 2
        assert message in refused.stderr
        assert not Path(place).exists()
    for place in (".", "..", "/"):
        refused = three("flower", "key", place)
        assert refused.exit_code == 2
        assert refused.stderr == f"Error: {place}: is a directory; a key goes into a file\n"
    for place in ("x" * 300, "x" * 254):  # with .pub the second is too long, too
        refused = three("flower", "key", place)
        assert refused.exit_code == 2
        assert "cannot be written: File name too long" in refused.stderr
        assert list(Path().glob("x*")) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.toml", "--dataset", "digits"], "none.toml"),
        (["three.toml"], "the shape of an example is missing"),
        (["three.toml", "--shape", "8,8"], "the shape of an example is missing"),
        (
            ["three.toml", "--dataset", "digits", "--classes", "3"],
            "cannot be combined with --dataset",
        ),
        (["three.toml", "--dataset", "nosuch"], "no dataset called 'nosuch'"),
        (["three.toml", "--shape", "8x8", "--classes", "10"], "--shape: must be whole numbers"),
        (["three.toml", "--shape", "0", "--classes", "10"], "1 or more, as in 28,28, got '0'"),
        (["three.toml", "--shape", "8", "--classes", "1"], "--classes: must be 2 or more, got 1"),
        (
            ["three.toml", "--shape", "9999999999,99999999", "--classes", "10"],
            "must be at most 100,000,000",
        ),
        (["three.toml", "--shape", "8", "--classes", "99999999"], "must be at most 100,000,000"),
        (["three.toml", "--dataset", "digits", "--rate", "1e300"], "fit 32 bits, got 1e+300"),
        (["three.toml", "--dataset", "digits", "--task", "svm"], "no task called 'svm'"),
        (["three.toml", "--shape", "30", "--classes", "2", "--task", "cnn"], "needs images"),
        (["three.toml", "--dataset", "digits", "--quorum", "4"], "Error: --quorum: 4 of 3 clients"),
        (
            ["three.toml", "--dataset", "digits", "--margin", "1.5"],
            "--margin: must be less than 1, got 1.5",
        ),
        (["three.toml", "--dataset", "digits", "--margin", "nan"], "--margin: must be a finite"),
        (
            ["three.toml", "--dataset", "digits", "--rate", "0"],
            "Error: --rate: must be more than 0",
        ),
    ],
)
def test_new_rejects(words: list[str], message: str, three: Run, tmp_path: Path) -> None:
    result = three("flower", "new", "app", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["three.toml"]


@pytest.mark.parametrize("example", [("--dataset", "digits"), ("--shape", "8", "--classes", "2")])
def test_no_client_may_have_the_name_of_the_test_examples(
    example: tuple[str, ...], three: Run, tmp_path: Path
) -> None:
    (tmp_path / "three.toml").write_text(CONSORTIUM.replace("St Mary", "test"), encoding="utf-8")
    result = three("flower", "new", "app", "three.toml", *example)
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: no client can be called test: that is the name of the test examples\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["three.toml"]


def test_nothing_is_overwritten_or_left_half_done(three: Run, tmp_path: Path) -> None:
    Path("app").mkdir()
    Path("app/mine.txt").write_text("mine")
    result = three("flower", "new", "app", "three.toml", "--dataset", "digits")
    assert result.exit_code == 2
    assert "app: exists already, and is not empty" in result.stderr
    Path("loop").symlink_to("loop")
    for place in ("x" * 300, "loop"):
        result = three("flower", "new", place, "three.toml", "--dataset", "digits")
        assert result.exit_code == 2
        assert result.stderr.startswith(f"Error: {place}: cannot be written: ")
    Path("loop").unlink()
    (tmp_path / "many.toml").write_text(CONSORTIUM.replace("samples = 120", "samples = 12000"))
    result = three("flower", "new", "other", "many.toml", "--dataset", "digits")
    assert result.exit_code == 2
    assert result.stderr == "Error: St Mary: has 12,000 samples, but digits only 1,438 examples\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app", "many.toml", "three.toml"]
    result = three("flower", "keys", "app", "--host", "x")
    assert "is not a directory that `fedaccord flower new` wrote" in result.stderr
    three("flower", "new", "new", "three.toml", "--dataset", "digits")
    result = three("flower", "keys", "new")
    assert result.exit_code == 2
    assert "--host: the server needs a name or an address" in result.stderr


HOSTS = ("sérver", "", " ", "https://server:8000", "server:8000", "a..b", "10.0.0.256", "-x", "a/b")


def test_invalid_hosts_are_rejected(three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    for host in HOSTS:
        result = three("flower", "keys", "app", "--host", "good.example", "--host", host)
        assert result.exit_code == 2
        assert f"--host: {host!r} is neither a name nor an address" in result.stderr
    assert three("flower", "keys", "app", "--host", "x", "--days", "9999").exit_code == 2
    assert [path.name for path in Path("app/keys").iterdir()] == ["signing.key"]


@pytest.mark.parametrize("host", ["server", "my_server", "a-1.b.example", "127.0.0.1", "::1"])
def test_hosts(host: str, three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    assert three("flower", "keys", "app", "--host", host).exit_code == 0


def test_keys_that_cannot_be_written(three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    Path("app/keys/ca.pem").mkdir(parents=True)
    result = three("flower", "keys", "app", "--host", "server")
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: app/keys/ca.pem: is a directory, but should be a file\n",
    )
    assert sorted(path.name for path in Path("app/keys").iterdir()) == ["ca.pem", "signing.key"]
    shutil.rmtree("app/keys")
    Path("app/keys").write_text("mine")
    result = three("flower", "keys", "app", "--host", "server")
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: app/keys: cannot be created: File exists\n",
    )
    Path("app/keys").unlink()
    Path("app/clients/St-Mary/ca.pem").mkdir()
    result = three("flower", "keys", "app", "--host", "server")
    assert result.exit_code == 2
    assert "app/clients/St-Mary/ca.pem: cannot be written: Is a directory" in result.stderr


@pytest.mark.parametrize(
    ("module", "need", "words"),
    [
        ("sqlalchemy", "a ledger needs SQLAlchemy", ("ledger", "show", "ledger.db")),
        (
            "flwr",
            "a Flower app needs Flower",
            ("flower", "new", "app", "three.toml", "--dataset", "digits"),
        ),
    ],
)
def test_what_to_install(
    module: str, need: str, words: tuple[str, ...], three: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    result = three(*words)
    assert result.exit_code == 2
    assert result.stderr == f"Error: {need}: pip install 'fedaccord[flower]'\n"


def test_help_needs_neither_flower_nor_a_database() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from fedaccord.cli import app;"
        "[CliRunner().invoke(app, words) for words in (['--help'], ['ledger', '--help'],"
        " ['flower', 'new', '--help'], ['agreement', 'sign', '--help'])];"
        "print(sorted({'cryptography', 'flwr', 'sqlalchemy', 'torch', 'numpy'} & set(sys.modules)))"
    )
    assert command_line.info.name == "fedaccord"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
