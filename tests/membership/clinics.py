"""Clinics with data of their own: two that are alike, and one whose labels mean the opposite."""

import numpy as np

from fedaccord.data.own import OwnPartition, own_partition

NAMES = ("North", "South", "Odd")


def clinics(records: int = 30, tested: int = 200, seed: int = 0) -> OwnPartition:
    """Twelve features, of which two tell the label; at Odd they tell the opposite."""
    rng = np.random.default_rng(seed)
    direction = np.zeros(12)
    direction[:2] = (1.5, -1.5)

    def drawn(name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        inputs = rng.normal(size=(count, 12))
        sign = -1.0 if name == "Odd" else 1.0
        labels = (sign * inputs @ direction + 1.0 * rng.normal(size=count) > 0).astype(np.int64)
        labels[:2] = (0, 1)
        return inputs, labels

    data = {name: drawn(name, records) for name in NAMES}
    tests = {name: drawn(name, tested) for name in NAMES}
    return own_partition(data | {"test": tests}, NAMES, "clinics")
