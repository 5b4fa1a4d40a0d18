"""`fedaccord agreement`: from a consortium file to a file that all have signed."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedaccord.files.consortium import load_consortium
from fedaccord.flower.public_terms import public_terms
from fedaccord.flower.shared_terms import shared_terms
from fedaccord.protocol.terms import read_terms
from fedaccord.protocol.terms_text import terms_text
from tests.cli.conftest import Run

THREE = """\
name = "Three"
rounds = 3
discount_factor = 0.8
currency = "EUR"
clients = "clients.csv"
"""
CLIENTS = """\
name,valuation,cost_per_sample,samples
St Mary,35,0.05,120
Northgate,52,0.05,150
Lakeside,95,0.05,200
"""
NAMES = ("St Mary", "Northgate", "Lakeside")
TRAINED = ("--shape", "2", "--classes", "2")


@pytest.fixture
def keys(run: Run) -> list[str]:
    """The options with everybody's public key; the private ones are in files."""
    Path("three.toml").write_text(THREE)
    Path("clients.csv").write_text(CLIENTS)
    options = []
    for number, name in enumerate(NAMES):
        public = run("agreement", "key", f"{number}.key").stdout.strip()
        options += ["--key", f"{name}={public}"]
    return [*options, "--server-key", run("agreement", "key", "server.key").stdout.strip()]


def exported(run: Run, keys: list[str], *options: str) -> Path:
    out = Path("agreement.html")
    result = run("agreement", "export", "three.toml", "--out", str(out), *TRAINED, *keys, *options)
    assert result.exit_code == 0, result.stderr
    return out


@pytest.mark.slow
def test_from_a_consortium_to_a_file_that_all_have_signed(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    result = run("agreement", "verify", str(out))
    assert result.exit_code == 1
    assert "Signed by 0 of 4. Not signed by: St Mary, Northgate, Lakeside, the server." in (
        result.stdout
    )
    for number in range(3):
        copy = Path(f"from-{number}.html")
        copy.write_bytes(out.read_bytes())
        result = run("agreement", "sign", str(copy), "--key", f"{number}.key", "--yes")
        assert result.exit_code == 0
        assert f"{NAMES[number]}:" in result.stdout
        assert "(you)" in result.stdout
    result = run("agreement", "collect", str(out), "from-0.html", "from-1.html")
    assert result.exit_code == 1
    assert "Signed by 2 of 4. Not signed by: Lakeside, the server." in result.stdout
    run("agreement", "sign", str(out), "--key", "server.key", "--yes")
    assert run("agreement", "collect", str(out), "from-2.html").exit_code == 0

    result = run("agreement", "verify", str(out))

    assert result.exit_code == 0
    assert result.stdout.endswith(
        "Verified: nothing was changed, the proof holds, and all 4 parties have signed.\n"
    )


@pytest.mark.slow
def test_json(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    run("agreement", "sign", str(out), "--key", "0.key", "--yes")

    result = run("agreement", "verify", str(out), "--format", "json")

    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["verified"], found["complete"], found["signed"]) == (True, False, ["St Mary"])
    assert found["missing"] == ["Northgate", "Lakeside", "the server"]


@pytest.mark.slow
def test_the_amounts_are_those_of_solve(run: Run, keys: list[str]) -> None:
    content = exported(run, keys).read_text("utf-8")
    answer = run("solve", "three.toml", "--whole-samples", "--format", "json").stdout
    for client in json.loads(answer)["agreement"]["clients"]:
        amount = int(client["contribution"])
        assert f'"contribution":{amount},"name":"{client["name"]}","saving"' in content


@pytest.mark.slow
def test_reversion_and_an_agreement_without_numbers(run: Run, keys: list[str]) -> None:
    for options in (
        ("--punishment", "reversion", "--nobody-worse"),
        ("--fees-saved",),
        ("--within", "20%"),
        ("--within", "20%", "--without-numbers", "--objective", "most-data"),
    ):
        out = exported(run, keys, *options)
        assert (
            "Nothing was changed, and the proof holds."
            in run("agreement", "verify", str(out)).stdout
        )
        assert ('"shared":false' in out.read_text("utf-8")) == ("--without-numbers" in options)
        out.unlink()


@pytest.mark.slow
def test_a_changed_file_is_refused_and_not_signed(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    out.write_text(out.read_text("utf-8").replace("samples", "Samples", 1), "utf-8")
    before = out.read_bytes()

    result = run("agreement", "verify", str(out))
    assert result.exit_code == 1
    assert result.stdout.endswith(
        "Wrong: the text of the page was changed.\nagreement.html: NOT verified.\n"
    )
    result = run("agreement", "sign", str(out), "--key", "0.key", "--yes")
    assert result.exit_code == 1
    assert result.stdout.endswith("NOT verified.\nNot signed.\n")
    assert out.read_bytes() == before


def test_nobody_signs_without_saying_so(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    before = out.read_bytes()
    result = run("agreement", "sign", str(out), "--key", "0.key")
    assert result.exit_code == 2
    assert "nothing was signed: without a terminal, use --yes" in result.stderr
    assert out.read_bytes() == before


def test_signing_twice_changes_nothing(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    run("agreement", "sign", str(out), "--key", "0.key", "--yes")
    before = out.read_bytes()
    result = run("agreement", "sign", str(out), "--key", "0.key")
    assert result.exit_code == 0
    assert "St Mary has signed it already." in result.stdout
    assert out.read_bytes() == before


def terms_file(keys: list[str], *, with_keys: bool = True) -> Path:
    consortium = load_consortium(Path("three.toml")).within(0.2)
    roster = dict(key.split("=") for key in keys[1:6:2])
    given = shared_terms(consortium) | public_terms(consortium, margin=0.01)
    given |= {"training": {"shape": [2], "classes": 2}, "margin": 0.01}
    if with_keys:
        given["keys"] = {"server": keys[-1], "clients": roster}
    path = Path("terms.toml")
    path.write_text(terms_text(read_terms(given, "test")), "utf-8")
    return path


@pytest.mark.slow
def test_terms_of_an_app(run: Run, keys: list[str]) -> None:
    terms = str(terms_file(keys))
    for number, words in enumerate(
        (("--terms", terms), ("three.toml", "--within", "20%", "--terms", terms))
    ):
        result = run("agreement", "export", *words, "--out", f"{number}.html")
        assert result.exit_code == 0, result.stderr
        result = run("agreement", "verify", f"{number}.html")
        assert "the proof holds" in result.stdout
    terms = str(terms_file(keys, with_keys=False))
    assert run("agreement", "export", "--terms", terms, *keys, "--out", "3.html").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("three.toml",), "--out: is missing"),
        (("--out", "a.html"), "name a consortium FILE, or --terms, or both"),
        (("three.toml", "--out", "a.html", "TRAINED"), "--key: the public keys of the members are"),
        (("three.toml", "--out", "a.html", "KEYS"), "--shape and --classes: are missing"),
        (
            ("three.toml", "--out", "a.html", "KEYS", "--shape", "x", "--classes", "2"),
            "--shape: must be whole numbers",
        ),
        (
            ("three.toml", "--out", "a.html", "KEYS", "TRAINED", "--agreement", "uniform"),
            "three.toml: there are no amounts to post: however patient",
        ),
        (("three.toml", "--out", "three.toml"), "the report is a web page"),
        (
            ("three.toml", "--out", "a.html", "KEYS", "TRAINED", "--key", "Lakeside=ed25519:0"),
            "--key: 'Lakeside' has two keys",
        ),
        (
            ("three.toml", "--out", "a.html", "KEYS", "TRAINED", "--key", "Nobody=ed25519:0"),
            "keys.clients.Nobody",
        ),
        (("three.toml", "--out", "a.html", "KEYS", "TRAINED", "--without-numbers"), "exact"),
        (
            ("three.toml", "--out", "a.html", "KEYS", "TRAINED", "--within", "20%",
             "--without-numbers", "--punishment", "reversion"),
            "--without-numbers: needs posted amounts",
        ),
        (("--terms", "terms.toml", "--margin", "0.1", "--out", "a.html"), "--margin: cannot be"),
        (("--terms", "terms.toml", "KEYS", "--out", "a.html"), "has the keys of all parties"),
        (("--within", "20%", "--out", "a.html"), "--within: needs a consortium FILE"),
        (
            ("three.toml", "--terms", "terms.toml", "--without-numbers", "--out", "a.html"),
            "--without-numbers: leave FILE out",
        ),
        (("three.toml", "--out", "a.html", "--key", "St Mary=x"), "--server-key: is missing"),
    ],
)  # fmt: skip
def test_wrong_input_of_export(
    run: Run, keys: list[str], words: tuple[str, ...], message: str
) -> None:
    if "terms.toml" in words:
        terms_file(keys)
    given: list[str] = []
    for word in words:
        given += {"KEYS": keys, "TRAINED": list(TRAINED)}.get(word, [word])
    result = run("agreement", "export", *given)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("a.html").exists()


def test_other_wrong_input(run: Run, keys: list[str]) -> None:
    out = str(exported(run, keys))
    Path("other.html").write_text("<main>")
    run("agreement", "key", "other.key")
    for words, message in (
        (("export", "three.toml", "--out", out), "exists already; agreements are not overwritten"),
        (("key", "0.key"), "0.key: exists already; keys are not overwritten"),
        (("verify", "nothing.html"), "nothing.html: there is no such file"),
        (("verify", "other.html"), "other.html: is not an agreement file"),
        (("sign", out), "--key: is missing"),
        (("sign", out, "--key", "three.toml"), "three.toml: is not a private key"),
        (("sign", out, "--key", "other.key", "--yes"), "the terms do not have the public key"),
        (("merge", out), "name the file, and the copies"),
        (("merge", out, "other.html"), "other.html: is not an agreement file"),
    ):
        result = run("agreement", *words)
        assert result.exit_code == 2
        assert message in result.stderr


@pytest.mark.slow
def test_a_copy_of_another_agreement(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    out.rename("other.html")
    out = exported(run, keys, "--margin", "0.02")
    result = run("agreement", "collect", str(out), "other.html")
    assert result.exit_code == 2
    assert "other.html: is another agreement" in result.stderr


# --- Several at once, in processes of their own -----------------------------------------------

FEDACCORD = (sys.executable, "-m", "fedaccord")
QUESTION = "Sign all of this as "


@pytest.fixture
def eight(run: Run) -> Path:
    """An agreement of seven clients and the server, whose keys are in 0.key to 7.key."""
    rows = [f"Clinic {n},{40 + 5 * n},0.05,{100 + 10 * n}" for n in range(7)]
    Path("three.toml").write_text(THREE)
    Path("clients.csv").write_text("\n".join([CLIENTS.splitlines()[0], *rows, ""]))
    public = [run("agreement", "key", f"{n}.key").stdout.strip() for n in range(8)]
    options = [w for n in range(7) for w in ("--key", f"Clinic {n}={public[n]}")]
    return exported(run, [*options, "--server-key", public[7]])


def signing(out: Path, key: int, *, yes: bool) -> subprocess.Popen[str]:
    words = ("agreement", "sign", str(out), "--key", f"{key}.key", *(["--yes"] if yes else []))
    return subprocess.Popen(
        [*FEDACCORD, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def asked(process: subprocess.Popen[str]) -> None:
    """Wait until the process asks."""
    assert process.stdout is not None
    said = b""
    while QUESTION.encode() not in said:
        part = os.read(process.stdout.fileno(), 4096)
        assert part, said
        said += part


@pytest.mark.slow
def test_a_signature_that_came_while_another_was_asked_stays(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    first = signing(out, 0, yes=False)
    asked(first)
    assert signing(out, 1, yes=True).communicate(timeout=120)[0].endswith("the server.\n")
    told, _ = first.communicate("y\n", timeout=120)
    assert first.returncode == 0
    assert "Signed by 2 of 4. Not signed by: Lakeside, the server." in told
    found = json.loads(run("agreement", "verify", str(out), "--format", "json").stdout)
    assert (found["verified"], found["signed"]) == (True, ["St Mary", "Northgate"])


@pytest.mark.slow
@pytest.mark.parametrize("yes", [True, False])
def test_eight_sign_at_once(run: Run, eight: Path, yes: bool) -> None:
    processes = [signing(eight, key, yes=yes) for key in range(8)]
    if not yes:
        for process in processes:
            asked(process)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("y\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=240)
    assert [process.returncode for process in processes] == [0] * 8
    result = run("agreement", "verify", str(eight))
    assert result.exit_code == 0, result.stdout
    assert "all 8 parties have signed" in result.stdout
    assert not [path for path in Path().iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_on_a_terminal(run: Run, keys: list[str]) -> None:
    out = exported(run, keys)
    ours, theirs = os.openpty()
    words = ("agreement", "sign", str(out), "--key", "0.key")
    process = subprocess.Popen([*FEDACCORD, *words], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said, until = b"", time.monotonic() + 120
    while QUESTION.encode() not in said:
        assert time.monotonic() < until, said
        if select.select([ours], [], [], 1.0)[0]:
            said += os.read(ours, 4096)
    run("agreement", "sign", str(out), "--key", "1.key", "--yes")
    os.write(ours, b"y\n")
    assert process.wait(timeout=120) == 0
    os.close(ours)
    assert "Signed by 2 of 4" in run("agreement", "verify", str(out)).stdout


@pytest.mark.slow
def test_another_agreement_that_came_while_one_was_asked_is_not_signed(
    run: Run, keys: list[str]
) -> None:
    out = exported(run, keys)
    process = signing(out, 0, yes=False)
    asked(process)
    out.unlink()
    other = exported(run, keys, "--margin", "0.02").read_bytes()
    process.communicate("y\n", timeout=120)
    assert process.returncode == 2
    assert out.read_bytes() == other


@pytest.mark.slow
def test_merge(run: Run, keys: list[str]) -> None:
    out, copy = exported(run, keys), Path("copy.html")
    copy.write_bytes(out.read_bytes())
    run("agreement", "sign", str(out), "--key", "0.key", "--yes")
    run("agreement", "sign", str(copy), "--key", "1.key", "--yes")
    for key in ("2", "server"):
        run("agreement", "sign", str(copy), "--key", f"{key}.key", "--yes")

    result = run("agreement", "merge", str(out), str(copy))

    assert result.exit_code == 0
    assert result.stdout.endswith("and all 4 parties have signed.\n")
    assert run("agreement", "verify", str(out)).exit_code == 0
    assert "Not signed by: St Mary" in run("agreement", "verify", str(copy)).stdout
