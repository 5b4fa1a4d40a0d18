"""A rehearsal with real processes: SuperLink, nginx, and the nodes of three members."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.terms import load_terms
from tests.flower.deployment import ROOT

BUILD = """\
import torch

def build(dataset):
    first, second = torch.nn.Linear(64, 1500), torch.nn.Linear(1500, 3300)
    last = torch.nn.Linear(3300, dataset.classes)
    parts = [torch.nn.Flatten(), first, torch.nn.Tanh(), second, torch.nn.Tanh(), last]
    return torch.nn.Sequential(*parts)
"""
"""Of 20 MB: Flower sends it in parts that no buffer of nginx holds."""
CONSORTIUM = """\
rounds = 2
discount_factor = 0.9
clients = [
    {name = "North", valuation = 800.0, cost_per_sample = 2e-5, samples = 42000},
    {name = "St Mary", valuation = 500.0, cost_per_sample = 2e-5, samples = 9000},
    {name = "West", valuation = 100.0, cost_per_sample = 2e-5, samples = 150},
]
"""
PATH = os.pathsep.join([str(ROOT), str(ROOT / "src")])


def fedaccord(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fedaccord", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": PATH, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def running_in(folder: Path) -> list[str]:
    """Processes whose working directory is in a folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink().is_relative_to(folder):
                found.append(link.parent.name)
        except OSError:  # it ended, or is somebody else's
            continue
    return found


@pytest.mark.slow
def test_a_consortium_rehearses_its_own_model_at_scale(tmp_path: Path) -> None:
    (tmp_path / "own_model.py").write_text(BUILD)
    (tmp_path / "consortium.toml").write_text(CONSORTIUM)
    task = ("--task", "own_model.py:build", "--dataset", "digits")
    made = fedaccord(tmp_path, "flower", "new", "app", "consortium.toml", *task)
    assert made.returncode == 0, made.stderr
    before = files_in(tmp_path / "app")
    options = ("--numbers", "consortium.toml", "--dataset", "digits", "--keep", "kept")
    done = fedaccord(tmp_path, "flower", "rehearse", "app", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "One example stands for 35.64 samples." in done.stdout
    assert "Everyone kept to the agreement." in done.stdout
    assert done.stdout.endswith("Nothing runs any more.\n")
    assert files_in(tmp_path / "app") == before
    if Path("/proc").is_dir():
        assert running_in(tmp_path) == []
    terms = load_terms(tmp_path / "kept" / "server" / "fedaccord_app" / "terms.toml")
    agreed = load_terms(tmp_path / "app" / "fedaccord_app" / "terms.toml")
    assert terms.training == agreed.training
    assert terms.training.task == "own_model:build"
    entries = load_entries(str(tmp_path / "kept" / "server" / "ledger.db"))
    reported = {e.client: e.body["samples"] for e in entries if e.kind == "report"}
    assert reported == {"North": 42_000, "St Mary": 9_000, "West": 150}


def with_mark(mark: str) -> list[str]:
    """What runs with this in its environment, which whatever it starts inherits."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append((path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it ended, or is somebody else's
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
def test_ctrl_c_leaves_no_process_and_no_file_behind(tmp_path: Path) -> None:
    """In the middle of a slot, as a terminal does it, and once more while everything is stopped."""
    (tmp_path / "consortium.toml").write_text(CONSORTIUM)
    made = fedaccord(tmp_path, "flower", "new", "app", "consortium.toml", "--dataset", "digits")
    assert made.returncode == 0, made.stderr
    home, mark = tmp_path / "home", f"FEDACCORD_TEST={tmp_path}"
    home.mkdir()
    before = files_in(tmp_path / "app")
    rehearsal = subprocess.Popen(
        [sys.executable, "-u", "-m", "fedaccord", "flower", "rehearse", "app"],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": PATH, "TMPDIR": str(home), "HOME": str(home)}
        | dict([mark.split("=", 1)]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said = ""
    try:
        assert rehearsal.stdout is not None
        for line in rehearsal.stdout:
            said += line
            if "reported" in line:
                break
        assert any("flwr-serverapp" in one for one in with_mark(mark)), said
        os.killpg(rehearsal.pid, signal.SIGINT)
        for line in rehearsal.stdout:
            said += line
            if "Stopping everything" in line:
                os.killpg(rehearsal.pid, signal.SIGINT)
        assert rehearsal.wait(timeout=300) == 130, said
    finally:
        rehearsal.terminate()  # it stops everything
        rehearsal.wait(timeout=300)
        if rehearsal.stdout is not None:
            rehearsal.stdout.close()
    assert with_mark(mark) == []
    assert list(home.rglob("*")) == []
    assert files_in(tmp_path / "app") == before


@pytest.mark.slow
def test_what_cannot_be_rehearsed(tmp_path: Path) -> None:
    done = fedaccord(tmp_path, "flower", "rehearse", "nowhere")
    assert done.returncode == 2
    assert done.stderr == ("Error: nowhere: is not a directory that `fedaccord flower new` wrote\n")
