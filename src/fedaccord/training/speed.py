"""Measures what a sample costs: seconds on this machine, one client at a time, round by round."""

import time
from dataclasses import dataclass

import numpy as np

from fedaccord.training.engine import PlainEngine, TrainingPlan
from fedaccord.training.rules import LocalRule
from fedaccord.training.task import Model

_TIMED_SAMPLES = 2_000
_TIMED_ROUNDS = 7


@dataclass(frozen=True)
class Speed:
    """How long training takes on this machine."""

    seconds: float
    """For one sample in one round: the median of several rounds."""
    slowest: float
    """For one sample in the slowest of them."""


def measure_speed(model: Model, local: LocalRule) -> Speed:
    """Time several rounds of one client."""
    size = min(model.dataset.size, _TIMED_SAMPLES)
    share = np.random.default_rng(0).permutation(model.dataset.size)[:size]
    plan = TrainingPlan(model, [share], _TIMED_ROUNDS + 1, local)
    times = [time.perf_counter()]
    for _ in PlainEngine().rounds(plan, model.start(seed=0)):
        times.append(time.perf_counter())
    each = np.diff(times)[1:] / size  # the first round is a warm-up
    return Speed(float(np.median(each)), float(each.max()))
