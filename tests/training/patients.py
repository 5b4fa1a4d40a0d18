"""Patients with survival times, made up: a risk that is linear in four numbers, some censored."""

from typing import Any

import numpy as np

from fedaccord.data.dataset import Dataset

RISKS = np.array([1.0, -0.7, 0.4, 0.0])


def patients(size: int, seed: int = 0) -> tuple[Any, Any]:
    """Inputs, and signed times: about a third is censored."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(size, 4)).astype(np.float32)
    times = np.ceil(300 * rng.exponential(np.exp(-inputs @ RISKS))).astype(np.int64)
    seen = np.ceil(600 * rng.random(size)).astype(np.int64)
    return inputs, np.where(times <= seen, times, -seen)


def survival_data(size: int = 400, tested: int = 200, seed: int = 0) -> Dataset:
    inputs, labels = patients(size, seed)
    test_inputs, test_labels = patients(tested, seed + 1)
    return Dataset("patients", inputs, labels, test_inputs, test_labels, 0)
