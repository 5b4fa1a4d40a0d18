"""The memory of training at the paper's scale, in a separate process.

`python -m benchmarks.training_memory` is that process: it prints its peak memory in bytes.
"""

import subprocess
import sys

from benchmarks.measure import peak_memory
from benchmarks.row import Row

GIGABYTE = 1e9


def run() -> Row:
    command = [sys.executable, "-m", "benchmarks.training_memory"]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return Row(
        "training",
        "softmax and mlp, 100 clients x 10,000 of 60,000 images, memory",
        "–",
        value=int(result.stdout) / GIGABYTE,
        target=1.5,
        unit="GB",
        note="peak of the whole process, PyTorch and the images included, after two rounds of one "
        "gradient and one of mini-batches",
    )


def _train() -> None:
    from benchmarks import training_setting as setting
    from fedaccord.training.engine import GradientStep
    from fedaccord.training.vectorised.engine import VectorisedEngine

    sizes = [setting.PAPER_SAMPLES] * setting.CLIENTS
    for task in setting.TASKS:
        setting.final(VectorisedEngine(), setting.plan(task, sizes, GradientStep(0.5), rounds=2))
        setting.final(VectorisedEngine(), setting.plan(task, sizes, setting.MINI_BATCHES))


if __name__ == "__main__":
    _train()
    print(peak_memory())
