"""Benchmarks run in processes of their own, rows are kept, and compared with those that landed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.landed import CHEAP, FILE, Landed, Measure, check, fallen, renewed
from benchmarks.registry import NAMES
from benchmarks.row import Row, Sense, failed

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = {
    "closes": "asyncio.run(asyncio.sleep(0))\n    yield Row('closes', 'a', 'b', 2.0, target=3.0)",
    "asks": "asyncio.get_event_loop()\n    print('noise')\n    yield Row('asks', 'c', 'd')",
    "fails": "yield Row('fails', 'e', 'f')\n    raise RuntimeError('no such peer')",
    "dies": "yield Row('dies', 'g', 'h')\n    os.kill(os.getpid(), 9)",
    "lasts": "yield Row('lasts', 'i', 'j', ours=Timing(1.0, None, 3, 'minimum'))",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the benchmarks that has these modules instead."""
    copy = tmp_path / "benchmarks"
    copy.mkdir()
    for name in ("__init__", "__main__", "measure", "registry", "row"):
        text = (BENCHMARKS / f"{name}.py").read_text("utf-8")
        if name == "registry":
            start, end = text.index("NAMES = ("), text.index(")", text.index("NAMES = (")) + 1
            text = f"{text[:start]}NAMES = {tuple(MODULES)}{text[end:]}"
        (copy / f"{name}.py").write_text(text, "utf-8")
    for name, body in MODULES.items():
        imports = "import asyncio, os\nfrom benchmarks.measure import Timing\n"
        imports += "from benchmarks.row import Row\n"
        (copy / f"{name}.py").write_text(f"{imports}def run():\n    {body}\n", "utf-8")
    return tmp_path


def _run(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_one_failure_loses_no_row(folder: Path) -> None:
    done = _run(folder, "--output", "build/bench.json")
    assert done.returncode == 1, done.stderr
    assert "fails: RuntimeError: no such peer" not in done.stderr
    report = json.loads((folder / "build" / "bench.json").read_text("utf-8"))
    assert report["unfinished"] == []
    found = [(row["benchmark"], row["what"], row["failed"], row["note"]) for row in report["rows"]]
    assert found == [
        ("closes", "a", False, ""),
        ("asks", "c", False, ""),
        ("fails", "e", False, ""),
        ("fails", "fails", True, "failed: RuntimeError: no such peer"),
        ("dies", "g", False, ""),
        ("dies", "dies", True, "failed: its process was ended by SIGKILL"),
        ("lasts", "i", False, ""),
    ]
    assert report["rows"][0]["met"] is True
    assert report["rows"][-1]["ours"]["repeats"] == 3
    assert "1 of 1 targets are met." in done.stdout
    assert "2 of 5 benchmarks failed: fails, dies." in done.stdout
    assert "noise" not in done.stdout


@pytest.mark.slow
def test_rows_are_printed_and_kept_as_they_come(folder: Path) -> None:
    wait = "yield Row('asks', 'the first', 'd')\n    import time\n    time.sleep(60)\n"
    path = folder / "benchmarks" / "asks.py"
    path.write_text(f"from benchmarks.row import Row\ndef run():\n    {wait}", "utf-8")
    command = [sys.executable, "-u", "-m", "benchmarks", "--output", "bench.json"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        printed = ""
        while "the first" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        # the row is written right after it is printed
        report: dict[str, Any] = {"rows": []}
        while len(report["rows"]) < 2:
            report = json.loads((folder / "bench.json").read_text("utf-8"))
        os.killpg(process.pid, signal.SIGKILL)
    assert [row["benchmark"] for row in report["rows"]] == ["closes", "asks"]
    assert report["unfinished"] == ["asks", "fails", "dies", "lasts"]
    assert not list(folder.glob(".*.new"))


@pytest.mark.slow
def test_a_run_without_failures_ends_with_0(folder: Path) -> None:
    done = _run(folder, "--only", "closes", "--only", "lasts")
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout


def _row(what: str, ratio: float, *, sense: Sense = "at least") -> Row:
    return Row("batch", what, "one call each", 1.0, sense, cpu_ratio=ratio)


def _measured(*runs: list[Row]) -> Measure:
    """What each run finds."""
    left = list(runs)
    return lambda name: left.pop(0)


LANDED = Landed({}, {("batch", "a", "one call each"): 10.0, ("batch", "b", "one call each"): 10.0})


def test_a_row_that_falls_in_all_runs_fails(capsys: pytest.CaptureFixture[str]) -> None:
    slow = [_row("a", 6.9), _row("b", 10.0)]
    wrong = check(LANDED, _measured(slow, slow, [_row("a", 6.0), _row("b", 1.0)]), ["batch"])
    assert wrong == ["batch: a, against one call each: slower by 31% or more in each of 3 runs."]
    assert "batch: a, against one call each: 40% slower than landed" in capsys.readouterr().out


def test_a_row_that_falls_in_two_runs_passes() -> None:
    fine, slow = [_row("a", 10.0), _row("b", 10.0)], [_row("a", 1.0), _row("b", 10.0)]
    assert check(LANDED, _measured(fine), ["batch"]) == []
    assert check(LANDED, _measured(slow, slow, fine), ["batch"]) == []
    assert check(LANDED, _measured([_row("a", 7.1), _row("b", 10.0)]), ["batch"]) == []


def test_what_is_lower_if_better_falls_by_rising() -> None:
    slower, quicker = _row("a", 15.0, sense="at most"), _row("a", 5.0, sense="at most")
    assert fallen(slower, 10.0) == pytest.approx(1 / 3)
    assert fallen(quicker, 10.0) == pytest.approx(-1.0)


def test_rows_that_cannot_be_compared_fail() -> None:
    rows = [_row("a", 10.0), _row("c", 10.0), failed("batch", "failed: MemoryError")]
    assert check(LANDED, _measured(rows), ["batch"]) == [
        "batch failed: MemoryError.",
        "batch: b, against one call each: landed, but not measured now.",
        "batch: c, against one call each: measured, but never landed.",
    ]


def test_renewing_writes_the_medians(tmp_path: Path) -> None:
    runs = [[_row("a", ratio), Row("batch", "seconds", "–", 1.0)] for ratio in (3.0, 9.0, 4.0)]
    renewed(_measured(*runs), ["batch"]).write(tmp_path / "landed.json")
    found = Landed.read(tmp_path / "landed.json")
    assert found.ratios == {("batch", "a", "one call each"): 4.0}
    assert found.machine["numpy"] == np.__version__


def test_every_row_that_landed_is_of_a_cheap_benchmark() -> None:
    landed = Landed.read(FILE)
    assert {key[0] for key in landed.ratios} == set(CHEAP) <= set(NAMES)
