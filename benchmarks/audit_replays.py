"""How much an update depends on the machine: the same rounds, with other instructions and threads.

`python -m benchmarks.audit_replays` prints the largest differences, by precision. A processor with
fewer instructions is imitated by the settings of the libraries that PyTorch uses.
"""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    "two threads": {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
    "PyTorch without AVX2": {"ATEN_CPU_CAPABILITY": "default"},
    "oneDNN with SSE4.1 only": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "MKL in compatible mode": {"MKL_CBWR": "COMPATIBLE"},
    "all of these": {
        "OMP_NUM_THREADS": "2",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
    },
}
"""What the environment is set to, by what that stands for."""
TASKS, SEEDS = ("softmax", "mlp", "cnn"), range(5)


def write_updates(path: Path) -> None:
    """Train every case here and store the updates."""
    import torch

    from fedaccord.audits.commitment import RoundInputs
    from fedaccord.audits.replay import train_round
    from fedaccord.data.dataset import load_dataset
    from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule, LocalSteps
    from fedaccord.training.task import Model, find_task

    steps: list[LocalRule] = [
        GradientStep(0.5),
        LocalEpochs(0.1, 64, 1),
        LocalEpochs(0.5, 16, 5),
        LocalSteps(0.1, 64, 20, proximal=1.0),
        LocalSteps(0.001, 64, 20, optimiser="adam"),
    ]
    digits, found = load_dataset("digits"), {}
    for name, precision in product(TASKS, ("float32", "float64")):
        model = Model(_in_precision(find_task(name), getattr(torch, precision)), digits)
        for seed, local in product(SEEDS, steps):
            start = {key: value.numpy() for key, value in model.start(seed).items()}
            one = RoundInputs(
                client="A", position=0, slot=1, turn=1, head=f"{seed:064x}", amount=1_000
            )
            update = train_round(model, local, one, start)
            case = f"{precision}/{name}/{local}/{seed}"
            found[case] = np.concatenate([update[key].ravel() for key in update])
            found[case + "/moved"] = found[case] - np.concatenate(
                [start[key].ravel() for key in start]
            )
    np.savez(path, allow_pickle=False, **found)


def _in_precision(task: Any, kind: Any) -> Any:
    """The same task with parameters of another type."""
    from fedaccord.training.task import Task

    return Task(task.name, lambda dataset: task.build(dataset).to(kind))


def differences() -> dict[str, dict[str, float]]:
    """The largest relative difference from the updates as they are here, by setting and case."""
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder, f"{n}.npz") for n, name in enumerate(SETTINGS)}
        for name, setting in SETTINGS.items():
            command = [sys.executable, "-m", "benchmarks.audit_replays", str(paths[name])]
            subprocess.run(command, check=True, env=os.environ | setting)
        here, others = np.load(paths["as it is"]), {n: np.load(p) for n, p in paths.items()}
        return {name: _largest(here, other) for name, other in others.items()}


def _largest(here: np.lib.npyio.NpzFile, other: np.lib.npyio.NpzFile) -> dict[str, float]:
    """By precision, task and local steps, over all seeds."""
    found: dict[str, float] = {}
    for name in here.files:
        if not name.endswith("/moved"):
            apart = np.linalg.norm(np.float64(here[name]) - np.float64(other[name]))
            part = float(apart / np.linalg.norm(np.float64(here[name + "/moved"])))
            case = name.rsplit("/", 1)[0]
            found[case] = max(found.get(case, 0.0), part)
    return found


def main() -> None:
    """Print the table, or store the updates of this process."""
    if len(sys.argv) > 1:
        write_updates(Path(sys.argv[1]))
        return
    found = differences()
    threads = max(found.pop("two threads").values())
    print(f"two threads, any task: {threads:.1e}")
    for case in found["as it is"]:
        worst = max(found, key=lambda name: found[name][case])
        print(f"{case}: {found[worst][case]:.1e} ({worst})")


if __name__ == "__main__":
    main()
