"""`fedaccord flower`: an app directory and its keys."""

import os
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from cryptography import x509

import fedaccord as fa
from fedaccord.cli import app as command_line
from fedaccord.deployment.invitation import load_invitation
from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.local import local_steps
from fedaccord.protocol.terms import load_terms
from fedaccord.training.optimisers import FEDAVG, FedYogi
from fedaccord.training.rules import LocalEpochs, LocalSteps
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
        (["--punishment-slots", "3", "--objective", "fair-share"], fa.Suspension(3), "fair share"),
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
    numbers = ("--valuation", "30", "--cost-per-sample", "0.05", "--samples", "150")
    made = three("member", "new", "own", "app/invitation.toml", "--client", "St. Mary!", *numbers)
    assert made.exit_code == 0
    private = Path("own/client.toml").read_text(encoding="utf-8")
    assert "The server learns none of these" in private
    assert "tell_discount_factor" not in private
    assert load_client_file("own/client.toml").private.valuation == 30.0


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
    assert result.stdout == (
        "Wrote app, the server's directory for 3 members. Send app/invitation.toml to each of "
        "them; app/README.md says what comes next.\n"
    )
    assert "cannot reach it at localhost" in result.stderr
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
    assert terms.keys is None  # members make them
    assert Path("app/nginx.conf").read_text().count("ssl_verify_client on;") == 1
    for private in ("signing.key", "server.key"):
        assert stat.S_IMODE(Path("app/keys", private).stat().st_mode) == 0o600


def test_names_are_enough(three: Run) -> None:
    words = ("--client", "North", "--client", "South", "--shape", "8", "--classes", "2")
    assert three("flower", "new", "app", *words, "--host", "server.example").exit_code == 0
    terms = load_terms("app/fedaccord_app/terms.toml")
    assert (terms.clients, terms.rounds, terms.discount_factor) == (("North", "South"), 50, 0.9)
    assert (terms.punishment, terms.margin) == ("suspension", 0.01)
    invitation = load_invitation(Path("app/invitation.toml"))
    assert invitation.terms == terms
    assert invitation.server.address == "server.example:8443"
    assert invitation.server.authority == Path("app/keys/ca.pem").read_text()
    more = ("--name", "Two", "--rounds", "7", "--discount-factor", "0.5", "--port", "9000")
    assert three("flower", "new", "other", *words, *more).exit_code == 0
    terms = load_terms("other/fedaccord_app/terms.toml")
    assert (terms.name, terms.rounds, terms.discount_factor) == ("Two", 7, 0.5)
    assert "listen 0.0.0.0:9000 ssl;" in Path("other/nginx.conf").read_text()
    # the terms of one app are enough for another
    assert three("flower", "new", "third", "other/fedaccord_app/terms.toml").exit_code == 0
    assert load_terms("third/fedaccord_app/terms.toml") == terms


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the members with --client, or a consortium FILE"),
        (["three.toml", "--client", "x"], "--client: cannot be combined with FILE"),
        (["three.toml", "--rounds", "3"], "--rounds: cannot be combined with FILE"),
        (["--client", "x", "--within", "30%"], "--within: needs a consortium FILE"),
        (["--client", "x", "--reports", "none"], "--reports none: needs a FILE"),
        (["--client", "x", "--client", "x"], "--client: two have the same name"),
        (["--client", "x", "--discount-factor", "1"], "--discount-factor: must be less than 1"),
        (["terms.toml", "--quorum", "2"], "--quorum: terms.toml has terms, which say this already"),
    ],
)
def test_names_that_are_not_enough(words: list[str], message: str, three: Run) -> None:
    three("flower", "new", "first", "three.toml", "--dataset", "digits")
    shutil.copy("first/fedaccord_app/terms.toml", "terms.toml")
    example = [] if "terms.toml" in words else ["--shape", "8", "--classes", "2"]
    result = three("flower", "new", "app", *words, *example)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {message}")
    assert not Path("app").exists()


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


@pytest.mark.slow
def test_nothing_private_is_in_the_app_or_its_bundle(three: Run) -> None:
    """Numbers in a consortium's file are used for nothing, and written nowhere."""
    three("flower", "new", "app", "three.toml", "--dataset", "digits")
    files = [path for path in Path("app").rglob("*") if path.is_file()]
    secret = [path for path in files if path.suffix in (".key", ".pem", ".conf", ".service")]
    public = "".join(path.read_text() for path in files if path not in secret)
    for number in ("20.5", "0.05", "55.0", "0.25"):
        assert number not in public
    assert sorted(path.name for path in files if path.suffix == ".key") == [
        "check.key",
        "server.key",
        "signing.key",
    ]
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


def test_certificates_are_renewed(three: Run) -> None:
    words = ("--shape", "8,8", "--classes", "10", "--host", "first.example")
    three("flower", "new", "app", "three.toml", *words)
    before = Path("app/keys/server.key").read_bytes()
    made = three("flower", "keys", "app", "--host", "server.example", "--host", "10.0.0.7")
    assert made.exit_code == 0
    assert made.stdout.endswith("Restart the server, and send app/to-sign.toml to every member.\n")
    server = x509.load_pem_x509_certificate(Path("app/keys/server.pem").read_bytes())
    authority = x509.load_pem_x509_certificate(Path("app/keys/ca.pem").read_bytes())
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["server.example", "localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7", "127.0.0.1"]
    assert Path("app/keys/server.key").read_bytes() != before
    invitation = load_invitation(Path("app/invitation.toml"))
    assert invitation.server.authority == Path("app/keys/ca.pem").read_text()


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
        (
            ["three.toml", "--dataset", "digits", "--proximal", "1"],
            "--proximal: goes with --local",
        ),
        (
            ["three.toml", "--dataset", "digits", "--local-optimiser", "adam"],
            "--local-optimiser: goes with --local epochs or --local steps",
        ),
        (
            ["three.toml", "--dataset", "digits", "--epochs", "1", "--steps", "2"],
            "--epochs: goes with --local epochs",
        ),
        (
            ["three.toml", "--dataset", "digits", "--server-rate", "1"],
            "--server-rate: goes with --optimiser fedadam, fedyogi or fedadagrad",
        ),
        (
            ["three.toml", "--dataset", "digits", "--optimiser", "fedadam", "--beta2", "1"],
            "--beta2: must be from 0 to less than 1, got 1.0",
        ),
        (
            ["three.toml", "--dataset", "digits", "--survival"],
            "--survival: cannot be combined with --dataset",
        ),
        (
            ["three.toml", "--shape", "8", "--survival", "--classes", "2"],
            "--survival: cannot be combined with --classes",
        ),
        (
            ["three.toml", "--shape", "8", "--survival", "--task", "softmax"],
            "task softmax: learns classes, but",
        ),
        (
            ["three.toml", "--shape", "8", "--classes", "2", "--task", "cox"],
            "task cox: learns survival times, but",
        ),
    ],
)
def test_new_rejects(words: list[str], message: str, three: Run, tmp_path: Path) -> None:
    result = three("flower", "new", "app", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["three.toml"]


def test_ways_to_train_are_in_the_terms(three: Run) -> None:
    """And only those that were asked for."""
    form = ("--shape", "4", "--survival")
    three("flower", "new", "plain", "three.toml", *form)
    found = load_terms("plain/fedaccord_app/terms.toml").training
    assert (found.task, found.classes, found.local) == ("cox", 0, "gradient step")
    assert "optimiser" not in Path("plain/fedaccord_app/terms.toml").read_text()
    words = ("--steps", "100", "--batch", "8", "--proximal", "0.1", "--local-optimiser", "adam")
    server = ("--optimiser", "fedyogi", "--server-rate", "0.02", "--beta1", "0", "--tau", "0.1")
    assert three("flower", "new", "app", "three.toml", *form, *words, *server).exit_code == 0
    terms = load_terms("app/fedaccord_app/terms.toml")
    local = LocalSteps(0.5, 8, 100, proximal=0.1, optimiser="adam")
    assert local_steps(terms) == local
    assert terms.training.server == FedYogi(0.02, beta1=0.0, tau=0.1)
    three("flower", "new", "epochs", "three.toml", *form, "--epochs", "3", "--optimiser", "fedprox")
    terms = load_terms("epochs/fedaccord_app/terms.toml")
    assert local_steps(terms) == LocalEpochs(0.5, 64, 3, proximal=0.01)
    assert terms.training.server == FEDAVG


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
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app", "three.toml"]
    result = three("flower", "keys", "app", "--host", "x")
    assert "is not a directory that `fedaccord flower new` wrote" in result.stderr
    three("flower", "new", "new", "three.toml", "--dataset", "digits")
    result = three("flower", "keys", "new")
    assert result.exit_code == 2
    assert "--host: the server needs a name or an address" in result.stderr


HOSTS = ("sérver", "", " ", "https://server:8000", "server:8000", "a..b", "10.0.0.256", "-x", "a/b")


@pytest.mark.slow
def test_invalid_hosts_are_rejected(three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    for host in HOSTS:
        result = three("flower", "keys", "app", "--host", "good.example", "--host", host)
        assert result.exit_code == 2
        assert f"--host: {host!r} is neither a name nor an address" in result.stderr
        refused = three(
            "flower", "new", "other", "three.toml", "--dataset", "digits", "--host", host
        )
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"Error: --host: {host!r} is neither a name")
    assert three("flower", "keys", "app", "--host", "x", "--days", "9999").exit_code == 2
    assert not Path("other").exists()


@pytest.mark.parametrize("host", ["server", "my_server", "a-1.b.example", "127.0.0.1", "::1"])
def test_hosts(host: str, three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    assert three("flower", "keys", "app", "--host", host).exit_code == 0


def test_keys_that_cannot_be_written(three: Run) -> None:
    three("flower", "new", "app", "three.toml", "--shape", "8,8", "--classes", "10")
    Path("app/keys/ca.pem").unlink()
    Path("app/keys/ca.pem").mkdir()
    before = Path("app/keys/server.key").read_bytes()
    result = three("flower", "keys", "app", "--host", "server")
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: app/keys/ca.pem: is a directory, but should be a file\n",
    )
    assert Path("app/keys/server.key").read_bytes() == before
    shutil.rmtree("app/keys")
    Path("app/keys").write_text("mine")
    result = three("flower", "keys", "app", "--host", "server")
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: app/keys: cannot be created: File exists\n",
    )


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


@pytest.mark.slow
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
