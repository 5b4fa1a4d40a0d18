"""How long a case study takes: everything is trained again, and the page is written.

It needs the original files of heart-disease in `FEDACCORD_DATA`.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Contestant, children_time, race
from benchmarks.row import Row

STUDY = "four-hospitals"
WHAT, AGAINST = f"`fedaccord study {STUDY}`", "3 minutes on two cores"
TARGET = 180.0


def run() -> list[Row]:
    if find_spec("torch") is None:
        note = "skipped: needs PyTorch, pip install 'fedaccord[train]'"
        return [Row("study", WHAT, AGAINST, note=note)]
    if not Path(os.environ.get("FEDACCORD_DATA", "/nowhere"), "heart-disease").is_dir():
        note = "skipped: needs the files of heart-disease in FEDACCORD_DATA"
        return [Row("study", WHAT, AGAINST, note=note)]
    with TemporaryDirectory() as folder:
        page = Path(folder) / f"{STUDY}.html"
        [ours] = race(
            Contestant(lambda _: _write(page), cpu_clock=children_time), repeats=1, warm_up=False
        )
        pages = f"a page of {page.stat().st_size / 1_000:,.0f} kB"
    return [
        Row(
            "study",
            WHAT,
            AGAINST,
            value=ours.wall,
            sense="at most",
            target=TARGET,
            unit="s",
            ours=ours,
            note=f"{pages}; wall time on {os.cpu_count()} cores, once",
        )
    ]


def _write(page: Path) -> None:
    command = [sys.executable, "-m", "fedaccord", "study", STUDY, "--out", str(page)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
