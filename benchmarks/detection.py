"""How long DAGMM trains on the updates of a round."""

from typing import Any

import numpy as np

from benchmarks.measure import Contestant, race
from benchmarks.row import Row

CLIENTS, PARAMETERS = 100, 10_000
REPEATS = 3
TARGET = 20.0
"""Seconds, on two cores."""


def run() -> list[Row]:
    try:
        import torch
    except ImportError:
        return [Row("detection", _what(""), "–", note="skipped: PyTorch is not installed")]
    updates = _updates()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # CPU time then equals wall time on an idle machine
    try:
        return [
            _row("", updates, {}),
            _row(", on all parameters", updates, {"whole": True}),
        ]
    finally:
        torch.set_num_threads(threads)


def _row(how: str, updates: Any, settings: dict[str, bool]) -> Row:
    from fedaccord.mechanisms.detection.methods import Dagmm

    detector = Dagmm(deviation=True, **settings)
    (ours,) = race(Contestant(lambda _: detector.fit(updates)), repeats=REPEATS)
    return Row(
        "detection",
        _what(how),
        "the clock",
        value=ours.cpu,
        target=TARGET if not how else None,
        unit="s",
        ours=ours,
        note=f"seconds of one core, {detector.steps:,} steps",
    )


def _what(how: str) -> str:
    return f"STD-DAGMM trained on {CLIENTS} updates of {PARAMETERS:,} parameters{how}"


def _updates() -> Any:
    """A direction that all clients share, plus noise of the same size for each client."""
    chance = np.random.default_rng(0)
    common = chance.standard_normal(PARAMETERS)
    return 0.01 * (common + chance.standard_normal((CLIENTS, PARAMETERS)))
