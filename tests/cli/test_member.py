"""`fedaccord member` and `fedaccord server`: what members and the coordinator type."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from fedaccord.deployment import surroundings
from fedaccord.deployment.invitation import load_invitation
from fedaccord.flower.client_file import load_client_file
from fedaccord.protocol.keys import sign_rotation
from fedaccord.protocol.terms import load_terms
from fedaccord.signing.keys import load_key, new_key
from tests.cli.conftest import Run
from tests.lies import lie

NUMBERS = ("--valuation", "35", "--cost-per-sample", "0.05", "--samples", "8")
NAMES = ("St Mary", "Northgate")


@pytest.fixture
def invited(run: Run) -> Run:
    clients = [word for name in NAMES for word in ("--client", name)]
    words = ("--shape", "3", "--classes", "2", "--rounds", "2", "--host", "server.example")
    assert run("flower", "new", "app", *clients, *words).exit_code == 0
    return run


@pytest.fixture
def joined(invited: Run) -> Run:
    """Everyone has signed, and has the examples as its data."""
    for name, folder in zip(NAMES, ("st-mary", "northgate"), strict=True):
        made = invited("member", "new", folder, "app/invitation.toml", "--client", name, *NUMBERS)
        assert made.exit_code == 0
        shutil.copytree(f"{folder}/example", f"{folder}/data", dirs_exist_ok=True)
    assert (
        invited("server", "admit", "app", "st-mary/card.json", "northgate/card.json").exit_code == 0
    )
    for folder in ("st-mary", "northgate"):
        assert invited("member", "sign", folder, "app/to-sign.toml", "--yes").exit_code == 0
    return invited


def test_a_member_by_its_numbers(invited: Run) -> None:
    words = ("--client", "St Mary", *NUMBERS, "--discount-factor", "0.5")
    made = invited("member", "new", "own", "app/invitation.toml", *words)
    assert made.exit_code == 0
    assert "tell it this fingerprint over another channel: " in made.stdout
    file = load_client_file("own/client.toml")
    assert (file.name, file.server) == ("St Mary", "server.example:8443")
    assert (file.private.valuation, file.private.discount_factor) == (35.0, 0.5)
    assert file.tell_discount_factor  # it is not that of the terms
    readme = Path("own/README.md").read_text("utf-8")
    assert "| `inputs` | (examples, 3) | 3 numbers for each example" in readme
    assert "a `.csv` file will do: 3 columns of numbers" in readme
    assert "member start ." in Path("own/fedaccord-member.service").read_text("utf-8")
    assert file.app is None


ANSWERS = {
    "currency": "EUR",
    "slot": "month",
    "samples": 1200,
    "annotation_cost": 2,
    "gpu_price": 2,
    "samples_per_second": 50,
    "staff_hours": 0,
    "hourly_wage": 60,
    "measure": "error",
    "cases_per_year": 12000,
    "point_worth": 30000,
    "interest": "8%",
    "ending": "5%",
}


def test_a_member_by_the_interview(invited: Run) -> None:
    Path("answers.json").write_text(json.dumps(ANSWERS))
    words = ("member", "new", "own", "app/invitation.toml", "--client", "Northgate")
    made = invited(*words, "--answers", "answers.json")
    assert made.exit_code == 0, made.stderr
    assert "valuation = " in made.stdout
    file = load_client_file("own/client.toml")
    assert file.samples == 1200
    assert 0.9 < file.discount_factor < 1
    refused = invited(*[word.replace("own", "other") for word in words])  # nobody answers
    assert refused.exit_code == 2
    assert "without a terminal, give the answers as options or with --answers" in refused.stderr
    assert not Path("other").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--client: is missing; the members are St Mary, Northgate"),
        (["--client", "St Marry", *NUMBERS], "--client: there is no 'St Marry' in the terms"),
        (["--client", "St Mary", "--samples", "8"], "--valuation, --cost-per-sample and --samples"),
        (
            ["--client", "St Mary", *NUMBERS, "--discount-factor", "97"],
            "discount_factor: must be less than 1, got 97.0",
        ),
        (
            ["--client", "St Mary", *NUMBERS[:3], "-1", "--samples", "8"],
            "cost_per_sample: must be more than 0, got -1.0",
        ),
        (
            ["--client", "St Mary", *NUMBERS, "--answers", "x.json"],
            "--answers: cannot be combined with the numbers themselves",
        ),
        (["--client", "St Mary", *NUMBERS, "--days", "9999"], "must be from 1 to 825"),
    ],
)
def test_members_that_are_refused(words: list[str], message: str, invited: Run) -> None:
    result = invited("member", "new", "own", "app/invitation.toml", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not Path("own").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has no table [server]"),
        ("[server]\naddress = 1", "server: address: must be text, got 1"),
        ("[server", "x.toml"),
    ],
)
def test_invitations_that_are_none(text: str, message: str, run: Run) -> None:
    Path("x.toml").write_text(text)
    result = run("member", "new", "own", "x.toml", "--client", "a", *NUMBERS)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("own").exists()


def test_what_a_member_signs_is_shown_first(invited: Run) -> None:
    for name, folder in zip(NAMES, ("st-mary", "northgate"), strict=True):
        invited("member", "new", folder, "app/invitation.toml", "--client", name, *NUMBERS)
    taken = invited("server", "admit", "app", "st-mary/card.json")
    assert "Still missing: the cards of Northgate." in taken.stdout
    taken = invited("server", "admit", "app", "northgate/card.json")
    assert "Send app/to-sign.toml to every member." in taken.stdout
    offered = Path("app/to-sign.toml")
    offered.write_text(offered.read_text().replace("tolerance = 0.0", "tolerance = 0.5"))
    refused = invited("member", "sign", "st-mary", "app/to-sign.toml")
    assert refused.exit_code == 2
    assert "nothing was signed: without a terminal, use --yes" in refused.stderr
    assert "  tolerance: 0.0 -> 0.5" in refused.stdout
    assert re.search(r"St Mary \(yours\): [0-9a-f]{4} ", refused.stdout)
    assert not Path("st-mary/signature.json").exists()


@pytest.mark.slow
def test_numbers_that_change_while_a_member_is_asked_stay(joined: Run) -> None:
    words = ("member", "sign", "st-mary", "app/to-sign.toml")
    process = subprocess.Popen(
        [sys.executable, "-m", "fedaccord", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    said = b""
    while b"Sign this as St Mary?" not in said:
        part = os.read(process.stdout.fileno(), 4096)
        assert part, said
        said += part
    path = Path("st-mary/client.toml")
    path.write_text(path.read_text("utf-8") + "# ours\n", "utf-8")
    before = path.read_text("utf-8")
    _, errors = process.communicate(b"y\n", timeout=120)
    assert process.returncode == 2
    assert errors.decode() == (
        "Error: st-mary/client.toml: was changed by another program meanwhile, so nothing was "
        "written; look at it and try again\n"
    )
    assert path.read_text("utf-8") == before


def offer_new_key(joined: Run, folder: str = "northgate") -> str:
    """Somebody sends a card with new keys in Northgate's name; returns its fingerprint."""
    shutil.rmtree(folder)
    made = joined("member", "new", folder, "app/invitation.toml", "--client", "Northgate", *NUMBERS)
    refused = joined("server", "admit", "app", f"{folder}/card.json")
    assert refused.exit_code == 2
    assert "its own, say that it replaces the old one: --replace" in refused.stderr
    assert joined("server", "admit", "app", f"{folder}/card.json", "--replace").exit_code == 0
    return made.stdout.strip().rpartition("channel: ")[2]


@lie(
    "the server",
    "put a key of its own in the place of a client's, for members who sign on the command "
    "line with `--yes`",
    "nothing is signed before the fingerprint that the key's owner reads out is given",
)
def test_another_members_new_key_is_not_signed_without_a_call(joined: Run) -> None:
    before = Path("st-mary/signature.json").read_bytes()
    fingerprint = offer_new_key(joined)
    words = ("member", "sign", "st-mary", "app/to-sign.toml")
    refused = joined(*words, "--yes")
    assert refused.exit_code == 2
    assert f"Northgate: {fingerprint} (another key than in what you signed)" in refused.stdout
    assert "nothing was signed: call Northgate" in refused.stderr
    refused = joined(*words, "--yes", "--new-key", "0000 0000 0000 0000 0000")
    assert refused.exit_code == 2
    assert "no new key has the fingerprint 00000000000000000000" in refused.stderr
    assert Path("st-mary/signature.json").read_bytes() == before
    assert joined(*words, "--yes", "--new-key", fingerprint).exit_code == 0
    assert Path("st-mary/signature.json").read_bytes() != before
    assert joined(*words, "--yes").exit_code == 0  # it knows that key now


@lie(
    "the server",
    "leave a client out of terms that are signed, and bring it back with another key",
    "a member's directory remembers every key that it signed, and asks again",
)
def test_a_member_that_left_comes_back_with_another_key(joined: Run) -> None:
    """The terms between, without it, do not make its key forgotten."""
    terms = Path("app/fedaccord_app/terms.toml")
    known = load_terms(terms)
    assert known.keys is not None
    others = {name: key for name, key in known.keys.clients.items() if name != "Northgate"}
    keys = known.keys.model_copy(update={"clients": others | {"Lakeside": new_key().public}})
    update = {"clients": ("St Mary", "Lakeside"), "keys": keys}
    offered = load_invitation(Path("app/to-sign.toml"))
    without = replace(offered, terms=known.model_copy(update=update))
    Path("without.toml").write_text(without.text)
    assert joined("member", "sign", "st-mary", "without.toml", "--yes").exit_code == 0
    offer_new_key(joined)
    refused = joined("member", "sign", "st-mary", "app/to-sign.toml", "--yes")
    assert refused.exit_code == 2
    assert "nothing was signed: call Northgate" in refused.stderr


def test_a_key_that_its_owner_rotated_needs_no_call(joined: Run) -> None:
    terms = load_terms(Path("app/fedaccord_app/terms.toml"))
    old, new = load_key(Path("northgate/signing.key")), new_key()
    assert terms.keys is not None
    update = {
        "clients": terms.keys.clients | {"Northgate": new.public},
        "rotations": {"Northgate": sign_rotation(terms.name, "Northgate", old, new.public)},
    }
    offered = load_invitation(Path("app/to-sign.toml"))
    rotated = terms.model_copy(update={"keys": terms.keys.model_copy(update=update)})
    Path("rotated.toml").write_text(replace(offered, terms=rotated).text)
    assert joined("member", "sign", "st-mary", "rotated.toml", "--yes").exit_code == 0


def test_known_keys_that_are_broken(joined: Run) -> None:
    Path("st-mary/known-keys.json").write_text("[1]")
    refused = joined("member", "sign", "st-mary", "app/to-sign.toml", "--yes")
    assert refused.exit_code == 2
    assert "known-keys.json: is not a list of keys" in refused.stderr


# --- Checks --------------------------------------------------------------------------------


def findings(run: Run, *words: str) -> dict[str, tuple[str, str]]:
    """What is wrong, by what it is about: what was found, and what to do."""
    found = json.loads(run(*words, "--format", "json").stdout)
    wrong = [one for one in found["findings"] if one["grade"] == "wrong"]
    assert found["ready"] == (not wrong)
    assert all(one["do"] for one in wrong)
    return {one["about"]: (one["found"], one["do"]) for one in wrong}


def test_a_member_that_is_ready(joined: Run) -> None:
    result = joined("member", "check", "st-mary", "--offline")
    assert result.exit_code == 0, result.stdout
    assert result.stdout.endswith("\nReady for a slot.\n")
    for line in (
        "ok    terms: signed by St Mary: ",
        "ok    data: 8 examples of 3 with 2 of 2 labels, and 8 to test with; samples says 8",
        "ok    training: softmax: a step on 8 samples took ",
        "NOTE  signatures: of no other member is the signature here; missing: Northgate",
    ):
        assert line in result.stdout
    assert findings(joined, "member", "check", "st-mary", "--offline") == {}
    joined("server", "admit", "app", "st-mary/signature.json", "northgate/signature.json")
    shutil.copy("app/signatures.json", "st-mary")
    result = joined("member", "check", "st-mary", "--offline")
    assert "ok    signatures: everyone signed the same: Northgate too" in result.stdout


def spoil_data() -> None:
    np.savez("st-mary/data/St Mary.npz", inputs=np.zeros((8, 4)), labels=np.zeros(8, int))


def take_data() -> None:
    np.savez("st-mary/data/St Mary.npz", inputs=np.zeros((7, 3)), labels=np.zeros(7, int))


def change_terms() -> None:
    path = Path("st-mary/terms.toml")
    path.write_text(path.read_text().replace("tolerance = 0.0", "tolerance = 0.5"))


def change_app() -> None:
    path = Path("st-mary/client.toml")
    app = load_client_file(path).app or ""
    path.write_text(path.read_text().replace(app, "0" * 64))


def take_key() -> None:
    Path("st-mary/signing.key").unlink()


def other_key() -> None:
    shutil.copy("northgate/signing.key", "st-mary/signing.key")


def break_node_key() -> None:
    Path("st-mary/node.key").write_text("x")


@pytest.mark.parametrize(
    ("spoil", "about", "found"),
    [
        (spoil_data, "data", "its examples have the shape (4,), those of test (3,)"),
        (take_data, "data", "samples: 8, but its data has 7"),
        (change_terms, "terms", "the terms were changed after this member signed them"),
        (change_app, "terms", "app in client.toml is not the one that was signed"),
        (take_key, "keys", "signing.key: cannot be read"),
        (other_key, "keys", "the terms have another key for St Mary than signing.key"),
        (break_node_key, "keys", "is not a node's private key"),
    ],
)
def test_a_member_that_is_not_ready(spoil: object, about: str, found: str, joined: Run) -> None:
    assert callable(spoil)
    spoil()
    wrong = findings(joined, "member", "check", "st-mary", "--offline")
    assert list(wrong) == [about]
    assert found in wrong[about][0]
    assert joined("member", "check", "st-mary", "--offline").exit_code == 1


def test_a_member_with_its_own_test_that_fine_tunes(joined: Run) -> None:
    shutil.copytree("st-mary/example", "st-mary/data/test", ignore=shutil.ignore_patterns("test.*"))
    file = Path("st-mary/client.toml")
    file.write_text(f"fine_tune = 3\n{file.read_text('utf-8')}", "utf-8")
    checked = joined("member", "check", "st-mary", "--offline")
    assert checked.exit_code == 0
    assert "and 16 to test with, 8 of them its own test; samples says 8" in checked.stdout
    assert "ok    fine-tuning: 3 epochs on all samples would take about 0." in checked.stdout
    file.write_text(
        file.read_text("utf-8").replace("fine_tune = 3", f"fine_tune = {10**8}"), "utf-8"
    )
    wrong = findings(joined, "member", "check", "st-mary", "--offline")
    assert list(wrong) == ["fine-tuning"]
    assert "and the server waits 120 s for an answer" in wrong["fine-tuning"][0]


OWN = """\
import torch

def build(dataset):
    return torch.nn.Linear(3, dataset.classes)
"""


def trains_own(run: Run, task: str) -> list[tuple[str, str, str]]:
    """A consortium whose model is its own; what a member's check says about it."""
    words = ("--shape", "3", "--classes", "2", "--rounds", "2", "--host", "server.example")
    made = run("flower", "new", "app", "--client", "St Mary", *words, "--task", task)
    assert made.exit_code == 0, made.stderr
    made = run("member", "new", "own", "app/invitation.toml", "--client", "St Mary", *NUMBERS)
    assert made.exit_code == 0
    shutil.copytree("own/example", "own/data", dirs_exist_ok=True)
    assert run("server", "admit", "app", "own/card.json").exit_code == 0
    assert run("member", "sign", "own", "app/to-sign.toml", "--yes").exit_code == 0
    return about_training(run)


def about_training(run: Run) -> list[tuple[str, str, str]]:
    checked = run("member", "check", "own", "--offline", "--format", "json")
    findings = json.loads(checked.stdout)["findings"]
    found = [one for one in findings if one["about"] == "training"]
    assert checked.exit_code == any(one["grade"] == "wrong" for one in findings)
    return [(one["grade"], one["found"], one["do"]) for one in found]


def test_a_model_that_comes_with_the_app_is_not_yet_at_the_member(run: Run) -> None:
    """It is tried where it lies beside client.toml, and if it is not the one that was agreed on."""
    Path("own_check_model.py").write_text(OWN)
    ((grade, found, do),) = trains_own(run, "own_check_model.py:build")
    assert grade == "note"
    assert found == (
        "not tried: the code of own_check_model:build is not here; a file comes with the server's "
        "app when a slot begins"
    )
    assert do.startswith("to try it now, ask the coordinator for own_check_model.py, ")
    shutil.copy("own_check_model.py", "own")
    ((grade, found, _),) = about_training(run)
    assert grade == "ok"
    assert found.startswith("own_check_model:build: a step on 8 samples took ")
    Path("own/own_check_model.py").write_text(f"{OWN}\n")
    ((grade, found, do),) = about_training(run)
    assert grade == "wrong"
    assert "by the terms its code has the digest" in found
    assert do.startswith("ask the coordinator for the code that was agreed on")


def test_a_package_that_is_not_installed_at_the_member_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Flower sends no packages."""
    package = tmp_path / "elsewhere" / "own_check_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "models.py").write_text(OWN)
    with monkeypatch.context() as installed:
        installed.syspath_prepend(str(package.parent))
        ((grade, _, _),) = trains_own(run, "own_check_package.models:build")
        assert grade == "ok"
    ((grade, found, do),) = about_training(run)
    assert grade == "wrong"
    assert found == (
        "own_check_package.models:build: the package own_check_package is not installed here"
    )
    assert do == "install own_check_package in the version that was agreed on"


def test_a_member_with_survival_times(run: Run) -> None:
    """Its README describes them, the example has them, and the check counts events."""
    words = ("--shape", "3", "--survival", "--rounds", "2", "--host", "server.example")
    assert run("flower", "new", "app", "--client", "St Mary", *words).exit_code == 0
    made = run("member", "new", "own", "app/invitation.toml", "--client", "St Mary", *NUMBERS)
    assert made.exit_code == 0
    readme = Path("own/README.md").read_text("utf-8")
    assert "| `time` | (examples,) | how long each was followed" in readme
    assert 'np.savez("data/St Mary.npz", inputs=inputs, time=time, event=event)' in readme
    assert "3 columns of numbers, and two columns\ncalled `time` and `event`." in readme
    assert "`labels`" not in readme
    shutil.copytree("own/example", "own/data", dirs_exist_ok=True)
    checked = run("member", "check", "own", "--offline").stdout
    assert "ok    data: 8 examples of 3 with 4 events, and 8 to test with" in checked
    assert "ok    training: cox: a step on 8 samples took" in checked


def test_certificates_that_run_out(joined: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        days = 350

        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=cls.days)

    monkeypatch.setattr(surroundings, "datetime", Later)
    soon = joined("member", "check", "st-mary", "--offline")
    assert soon.exit_code == 0
    assert "NOTE  certificate: is valid until" in soon.stdout
    assert "run `fedaccord member renew`, and send card.json to the coordinator" in soon.stdout
    Later.days = 400
    wrong = findings(joined, "member", "check", "st-mary", "--offline")
    assert list(wrong) == ["certificate", "the server's"]
    assert wrong["certificate"][0].startswith("expired on ")


def test_a_server_that_is_away(joined: Run) -> None:
    path = Path("st-mary/client.toml")
    path.write_text(path.read_text().replace("server.example:8443", "127.0.0.1:9"))
    wrong = findings(joined, "member", "check", "st-mary")
    assert list(wrong) == ["server"]
    assert wrong["server"][0] == "nothing listens at 127.0.0.1:9"


def test_a_server_that_does_not_run_yet(joined: Run) -> None:
    wrong = findings(joined, "server", "check", "app")
    assert wrong["members"] == (
        "St Mary, Northgate: not signed, neither these terms nor this app",
        "send them to-sign.toml, and take their signatures with `fedaccord server admit`",
    )
    joined("server", "admit", "app", "st-mary/signature.json", "northgate/signature.json")
    result = joined("server", "check", "app")
    assert result.exit_code == 1
    assert "ok    members: all 2 signed these terms" in result.stdout
    assert "WRONG SuperLink: nothing listens at 127.0.0.1:8000" in result.stdout
    Path("app/keys/signing.key").chmod(0o644)
    assert "others on this machine can read signing.key" in joined("server", "check", "app").stdout


@pytest.mark.parametrize("words", [("member", "check"), ("member", "start"), ("server", "check")])
def test_directories_that_are_something_else(words: tuple[str, ...], run: Run) -> None:
    result = run(*words, ".")
    assert result.exit_code in (1, 2)
    assert "wrote" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "module", "said"),
    [
        (
            ("room", "serve"),
            "torch",
            "fedaccord room needs PyTorch: pip install 'fedaccord[train]'",
        ),
        (
            ("room", "serve"),
            "sklearn",
            "fedaccord room needs scikit-learn: pip install 'fedaccord[train]'",
        ),
        (
            ("member", "serve"),
            "torch",
            "fedaccord member serve needs PyTorch: pip install 'fedaccord[train]'",
        ),
        (
            ("member", "serve"),
            "flwr",
            "fedaccord member serve needs Flower: pip install 'fedaccord[flower]'",
        ),
    ],
)
def test_a_page_says_at_once_what_is_not_installed(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], module: str, said: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    refused = run(*words, "place", "--no-browser")
    assert (refused.exit_code, refused.stderr) == (2, f"Error: {said}\n")
    assert not Path("place").exists()
