"""Measures what a consortium file asks for: what a sample costs, and what data is worth.

Seconds are measured on this machine for one client at a time, as each would train on its own.
Losses are measured after each round of one slot, on more and more samples.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.data.partition import RandomPartition
from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables
from fedaccord.training.course import Course, Score, train
from fedaccord.training.engine import GradientStep, LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.law import Law, fit_law
from fedaccord.training.task import Model

_TIMED_SAMPLES = 2_000
_TIMED_ROUNDS = 7
_AMOUNTS = 6
_TURNS = 8
_LEAST_TOTAL = 10


@dataclass(frozen=True)
class Speed:
    """How long training takes on this machine."""

    seconds: float
    """For one sample in one round: the median of several rounds."""
    slowest: float
    """For one sample in the slowest of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Losses(Record):
    """Mean test losses over seeds, by total and round."""

    totals: npt.NDArray[np.int64]
    turns: npt.NDArray[np.int64]
    mean: FloatArray
    """One row per total, one column per round."""

    def law(self) -> Law:
        """The law, fitted to all totals and rounds."""
        total, turn = np.meshgrid(self.totals, self.turns, indexing="ij")
        return fit_law(
            total.ravel().astype(np.float64), turn.ravel().astype(np.float64), self.mean.ravel()
        )

    def law_at_the_end(self) -> Law:
        """The law fitted to the last round only: how the loss falls with data when G is fixed.

        Within a slot clients decide only about data, so this is what the game needs.
        """
        turns = np.full(len(self.totals), float(self.turns[-1]))
        return fit_law(self.totals.astype(np.float64), turns, self.mean[:, -1])

    def _facts(self) -> dict[str, Any]:
        return {"totals": len(self.totals), "rounds": len(self.turns)}

    def _tables(self) -> Tables:
        return {"losses": self._losses}

    def _losses(self) -> Columns:
        total, turn = np.meshgrid(self.totals, self.turns, indexing="ij")
        return {"total": total.ravel(), "round": turn.ravel(), "loss": self.mean.ravel()}


def measure_speed(model: Model, local: GradientStep | LocalEpochs) -> Speed:
    """Time several rounds of one client."""
    size = min(model.dataset.size, _TIMED_SAMPLES)
    share = np.random.default_rng(0).permutation(model.dataset.size)[:size]
    plan = TrainingPlan(model, [share], _TIMED_ROUNDS + 1, local)
    times = [time.perf_counter()]
    for _ in PlainEngine().rounds(plan, model.start(seed=0)):
        times.append(time.perf_counter())
    each = np.diff(times)[1:] / size  # the first round is a warm-up
    return Speed(float(np.median(each)), float(each.max()))


def measure_losses(
    model: Model,
    local: GradientStep | LocalEpochs,
    rounds: int,
    *,
    clients: int = 5,
    seeds: int = 3,
    progress: Callable[[int, int], None] | None = None,
) -> Losses:
    """Train on more and more samples, shared evenly by some clients.

    `progress` is called with the rounds that are done, and how many there will be.
    """
    if rounds < 4:
        raise InvalidInput(f"must be 4 or more to fit the law, got {rounds}", field="rounds")
    totals = _spread(max(clients, _LEAST_TOTAL), model.dataset.size, _AMOUNTS)
    turns = _spread(1, rounds, _TURNS)
    done, of = 0, len(totals) * seeds * rounds

    def tell(_slot: int, _turn: int, _score: Score) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, of)

    curves = []
    for total in totals:
        sizes = [len(part) for part in np.array_split(np.arange(total), clients)]

        def partition(seed: int, sizes: list[int] = sizes) -> RandomPartition:
            return RandomPartition(model.dataset, sizes, seed)

        course = Course(model, partition, rounds, local)
        runs = [train(course, sizes, seed=seed, progress=tell) for seed in range(seeds)]
        losses = [[score.loss for score in run.slots[0].rounds] for run in runs]
        curves.append(np.mean(losses, axis=0)[turns - 1])
    return Losses(totals, turns, np.array(curves))


def _spread(low: int, high: int, number: int) -> npt.NDArray[np.int64]:
    """Whole numbers from low to high, about evenly spaced on a log scale."""
    steps = np.geomspace(max(low, high / 64), high, number)
    return np.unique(np.round(steps).astype(np.int64))
