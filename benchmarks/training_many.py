"""Every group of clients at once, against the engines slot by slot, on one thread.

Settings as large as FLamby's: four hospitals whose patients are classified, and six regions with
survival times. The numbers are made up. Slot by slot, every so many-th slot is timed, and the time
for the rest is extrapolated.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster
from benchmarks.training_setting import with_threads
from fedaccord.data.dataset import Dataset
from fedaccord.training.engine import Engine, PlainEngine, TrainingPlan
from fedaccord.training.optimisers import FEDAVG, FedAdam, ServerOptimiser
from fedaccord.training.rules import GradientStep, LocalRule, LocalSteps
from fedaccord.training.task import Model, find_task
from fedaccord.training.vectorised.engine import VectorisedEngine
from fedaccord.training.vectorised.many import train_many

HOSPITALS, REGIONS = [199, 172, 30, 85], [248, 156, 164, 129, 129, 40]
SEEDS, TIMED = 10, 3


def run() -> Iterator[Row]:
    small, adam = LocalSteps(0.01, 4, 100), LocalSteps(0.01, 4, 100, optimiser="adam")
    yield from _compare("softmax", groups("softmax", HOSPITALS, small, 15))
    yield from _compare(
        "softmax, Adam, FedAdam", groups("softmax", HOSPITALS, adam, 15, FedAdam(0.01))
    )
    yield from _compare("mlp", groups("mlp", HOSPITALS, small, 15))
    yield from _compare(
        "softmax, one gradient", groups("softmax", HOSPITALS, GradientStep(0.5), 50)
    )
    yield from _compare("cox", groups("cox", REGIONS, LocalSteps(0.01, 8, 100), 5))


def groups(
    task: str,
    sizes: Sequence[int],
    local: LocalRule,
    rounds: int,
    server: ServerOptimiser = FEDAVG,
) -> list[TrainingPlan]:
    """A slot for every group of clients and every seed."""
    model = Model(find_task(task), _patients(sum(sizes), survival=task == "cox"))
    everyone = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    clients = range(len(sizes))
    return [
        TrainingPlan(
            model,
            [everyone[n] if n in group else everyone[n][:0] for n in clients],
            rounds,
            local,
            seed,
            server=server,
        )
        for seed in range(SEEDS)
        for size in range(1, len(sizes) + 1)
        for group in combinations(clients, size)
    ]


def _patients(size: int, *, survival: bool) -> Dataset:
    """Made up: 13 numbers and a class, or 39 numbers and a time, one in five with the event."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(size, 39 if survival else 13)).astype(np.float32)
    if not survival:
        labels = (inputs[:, 0] + rng.normal(size=size) > 0).astype(np.int64)
        return Dataset("patients", inputs, labels, inputs, labels, 2)
    times = np.ceil(300 * rng.exponential(np.exp(-inputs[:, 0]))).astype(np.int64)
    labels = np.where(rng.random(size) < 0.2, times, -times)
    return Dataset("patients", inputs, labels, inputs, labels, 0)


def _compare(what: str, plans: list[TrainingPlan]) -> list[Row]:
    some = plans[:: max(1, len(plans) // TIMED)]
    engines: list[Engine] = [VectorisedEngine(), PlainEngine()]
    starts = [plan.model.start(plan.seed) for plan in plans]
    ours, *theirs = race(
        Contestant(with_threads(1, lambda: train_many(plans, starts))),
        *(_slot_by_slot(engine, some) for engine in engines),
        repeats=1,
    )
    clients = len(plans[0].shares)
    return [
        faster(
            "training",
            f"{what}, {len(plans)} slots: all groups of {clients} clients, {SEEDS} seeds",
            f"the {engine.name} engine, slot by slot",
            ours,
            time.extrapolated(len(some) / len(plans)),
            target=3.0,
            note="one thread",
        )
        for engine, time in zip(engines, theirs, strict=True)
    ]


def _slot_by_slot(engine: Engine, plans: Sequence[TrainingPlan]) -> Contestant:
    def each() -> None:
        for plan in plans:
            list(engine.rounds(plan, plan.model.start(plan.seed)))

    return Contestant(with_threads(1, each))
