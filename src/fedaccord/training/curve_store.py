"""A measurement of learning curves on disk, so that it can be interrupted and resumed.

The file records which measurement it belongs to, setting by setting: no other one resumes from it.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from fedaccord.atomic import write_whole
from fedaccord.errors import FedaccordError
from fedaccord.numbers import FloatArray
from fedaccord.training.checkpoint import digest, server_in_words, shapes
from fedaccord.training.course import Course
from fedaccord.training.learning_curve import MEASURED, CurveState, Measure

_SECONDS_BETWEEN = 1.0
"""Between two saves: at most this much work is lost."""


class CurveFile:
    """The state of one measurement in a file, replaced atomically: there is always a whole one."""

    def __init__(self, path: Path, identity: Mapping[str, str]) -> None:
        """Nothing is read or written yet."""
        self.path = path
        self.identity = dict(identity)
        self._saved = time.monotonic()

    def load(self) -> CurveState | None:
        """The state to resume from; None if there is no file."""
        if not self.path.exists():
            return None
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            known = json.loads(str(arrays.pop("identity")))
            state = CurveState(*(_group(arrays, name) for name in _GROUPS))
        except (OSError, ValueError, KeyError, EOFError, TypeError, BadZipFile):
            raise FedaccordError(f"{self.path}: is not a measurement to resume from") from None
        for setting, value in self.identity.items():
            before = known.get(setting, "none")
            if before != value:
                raise FedaccordError(
                    f"{self.path}: belongs to another measurement ({setting}: "
                    f"{before}, now {value}); delete it to start anew"
                )
        return state

    def save(self, state: CurveState, *, at_once: bool = False) -> None:
        """Write the file, unless it was written a moment ago."""
        if not at_once and time.monotonic() - self._saved < _SECONDS_BETWEEN:
            return
        packed = io.BytesIO()
        arrays = {
            f"{name} {measure}": getattr(state, name)[measure]
            for name in _GROUPS
            for measure in MEASURED
        }
        np.savez(packed, identity=np.array(json.dumps(self.identity)), **arrays)
        try:
            write_whole(self.path, [packed.getbuffer()])
        except OSError as error:
            why = error.strerror or error
            raise FedaccordError(f"{self.path}: cannot be written: {why}") from None
        self._saved = time.monotonic()


_GROUPS = tuple(field.name for field in fields(CurveState))


def _group(arrays: Mapping[str, FloatArray], name: str) -> dict[Measure, FloatArray]:
    return {measure: arrays[f"{name} {measure}"] for measure in MEASURED}


def identity_of(course: Course, sizes: Sequence[int], seeds: int, alone: bool) -> dict[str, str]:
    """Everything that decides the numbers of a measurement, in words."""
    data, tests = course.model.dataset, course.partition(0).tests
    arrays = (data.inputs, data.labels, data.test_inputs, data.test_labels)
    return {
        "dataset": f"{data.name} {digest(*arrays)}",
        "task": course.model.task.name,
        "parameters": shapes(course.model.start(0)),
        "rounds": str(course.rounds),
        "local training": str(course.local),
        "sizes": " ".join(map(str, sizes)),
        "seeds": str(seeds),
        "clients": digest(*course.partition(0).draw(1)),
        "clients alone": "yes" if alone else "no",
        "own tests": digest(*tests) if alone and len(tests) else "none",
        "server optimiser": server_in_words(course),
        "fine-tuning": str(course.fine_tuning or "none"),
    }
