"""What is trained in the benchmarks: 100 clients, images of 28 x 28, softmax regression and MLP."""

import os
from collections.abc import Callable, Sequence
from functools import cache
from math import prod

import numpy as np
import torch

from benchmarks.measure import Contestant, Timing
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.training.engine import Engine, GradientStep, LocalEpochs, TrainingPlan
from fedaccord.training.task import Model, Parameters, find_task
from fedaccord.training.vectorised.engine import VectorisedEngine

CLIENTS = 100
TASKS = ("softmax", "mlp")
MINI_BATCHES = LocalEpochs(rate=0.05, batch=64, epochs=1)
MINI_BATCH_SAMPLES = 1_000
PAPER_SAMPLES = 10_000
THREADS = sorted({1, os.cpu_count() or 1})
"""One thread, and one per core."""


@cache
def images() -> Dataset:
    """MNIST if `FEDACCORD_DATA` is set, otherwise noise of the same shape."""
    if "FEDACCORD_DATA" in os.environ:
        return load_dataset("mnist")
    rng = np.random.default_rng(0)
    inputs, labels = rng.random((60_000, 28, 28), dtype=np.float32), rng.integers(0, 10, 60_000)
    return Dataset("noise", inputs, labels, inputs[:10], labels[:10], 10)


def plan(
    task: str, sizes: Sequence[int], local: GradientStep | LocalEpochs, rounds: int = 1
) -> TrainingPlan:
    """One slot of clients that train on as many random images as `sizes` says."""
    shares = RandomPartition(images(), sizes).draw(slot=1)
    return TrainingPlan(Model(find_task(task), images()), shares, rounds, local)


def mini_batch_plan(task: str) -> TrainingPlan:
    """Everyone goes through its 1,000 images once, in batches of 64."""
    return plan(task, [MINI_BATCH_SAMPLES] * CLIENTS, MINI_BATCHES)


def paper_plan(task: str) -> TrainingPlan:
    """One gradient of 10,000 of the 60,000 images from everyone, as in the paper's setting."""
    return plan(task, [PAPER_SAMPLES] * CLIENTS, GradientStep(0.5))


def final(engine: Engine, given: TrainingPlan) -> Parameters:
    """The global parameters after all rounds."""
    *_, last = engine.rounds(given, given.model.start(seed=0))
    return last


def apart(here: Parameters, there: Parameters) -> float:
    """The largest difference of parameters, relative to the largest in each tensor."""
    return max(
        float((value - there[name]).abs().max() / there[name].abs().max())
        for name, value in here.items()
    )


def operations(parameters: Parameters, samples: int) -> float:
    """Additions and multiplications of a forward and a backward pass through linear layers.

    Per weight and sample: two forward, two for the gradient of the weight, and two for the gradient
    of the layer's input, which the first layer does not need.
    """
    weights = [prod(value.shape) for value in parameters.values() if value.ndim == 2]
    return samples * (6.0 * sum(weights) - 2.0 * weights[0])


def with_threads(threads: int, run: Callable[[], object]) -> Callable[[object], None]:
    """A function for a contestant, run with this number of PyTorch threads."""

    def timed(_: object) -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            run()
        finally:
            torch.set_num_threads(before)

    return timed


def our_engine(given: TrainingPlan) -> Contestant:
    """The vectorised engine, on all cores."""
    return Contestant(with_threads(THREADS[-1], lambda: final(VectorisedEngine(), given)))


def with_one_and_all_threads(loop: Callable[[], object]) -> list[Contestant]:
    """Another loop, with each number of threads."""
    return [Contestant(with_threads(threads, loop)) for threads in THREADS]


def better(timings: Sequence[Timing]) -> tuple[Timing, str]:
    """The shortest time, and its number of threads as text."""
    n = min(range(len(timings)), key=lambda n: timings[n].wall)
    return timings[n], f"threads: ours {THREADS[-1]}, theirs {THREADS[n]}"
