"""A run on disk, so that it can be interrupted at any moment and resumed to the same numbers.

A checkpoint records which run it belongs to, setting by setting: no other run resumes from it.
"""

import hashlib
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedaccord.atomic import write_whole
from fedaccord.data.partition import skew_of
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.training.course import Course, RunState
from fedaccord.training.engine import Engine
from fedaccord.training.optimisers import FedAvg, Moments
from fedaccord.training.records import ALONE, AloneRecord, Score, SlotRecord
from fedaccord.training.task import Parameters

_SECONDS_BETWEEN = 1.0
"""Between two saves: a round may take a millisecond, and at most this much work is lost."""


class Checkpoint:
    """The state of one run in a file, replaced atomically: there is always a whole one."""

    def __init__(self, path: Path, identity: Mapping[str, str]) -> None:
        """Nothing is read or written yet."""
        self.path = path
        self.identity = dict(identity)
        self._saved = time.monotonic()

    def load(self) -> RunState | None:
        """The state to resume from; None if there is no file."""
        if not self.path.exists():
            return None
        content = _read(self.path)
        self._check(content["identity"])
        try:
            return _state(content)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _not_a_checkpoint(self.path) from None

    def save(self, state: RunState, *, at_once: bool = False) -> None:
        """Write the file, unless it was written a moment ago."""
        if not at_once and time.monotonic() - self._saved < _SECONDS_BETWEEN:
            return
        content = {
            "identity": self.identity,
            "slots": [asdict(record) for record in state.slots],
            "rounds": [asdict(score) for score in state.rounds],
            "parameters": _detached(state.parameters),
            "alone": {n: _detached(parameters) for n, parameters in state.alone.items()},
            "own errors": [torch.from_numpy(errors) for errors in state.own_errors],
            "tuned errors": [torch.from_numpy(errors) for errors in state.tuned_errors],
            "moments": {
                kind: {name: torch.from_numpy(array) for name, array in arrays.items()}
                for kind, arrays in state.moments.items()
            },
        }
        _write(self.path, content)
        self._saved = time.monotonic()

    def _check(self, other: Mapping[str, str]) -> None:
        """Reject the checkpoint of another run, and name the setting that differs."""
        for setting in {**self.identity, **other}:
            here, there = self.identity.get(setting, "none"), other.get(setting, "none")
            if here != there:
                raise InvalidInput(
                    f"{self.path} is the checkpoint of another run: "
                    f"its {setting} is {there}, not {here}"
                )


def load_parameters(path: Path) -> Parameters:
    """The parameters of the global model in a checkpoint, for `torch.nn.Module.load_state_dict`."""
    parameters: Parameters = _read(path)["parameters"]
    return parameters


def identity_of(
    course: Course,
    contributions: npt.ArrayLike,
    phases: Sequence[str] | None,
    seed: int,
    engine: Engine,
    *,
    alone: npt.ArrayLike | None = None,
) -> dict[str, str]:
    """Everything that decides the numbers of a run, in words, with digests for what is long."""
    amounts = np.atleast_2d(np.asarray(contributions, dtype=np.float64))
    apart = np.asarray([] if alone is None else alone, dtype=np.float64)
    data = course.model.dataset
    arrays = (data.inputs, data.labels, data.test_inputs, data.test_labels)
    partition = course.partition(seed)
    skew = skew_of(partition)
    return {
        "dataset": f"{data.name} {digest(*arrays)}",
        "task": course.model.task.name,
        "parameters": shapes(course.model.start(seed)),
        "engine": engine.name,
        "number of clients": str(amounts.shape[1]),
        "rounds": str(course.rounds),
        "local training": str(course.local),
        "scale": repr(course.scale),
        "seed": str(seed),
        "skew": "none" if skew is None else repr(skew),
        "partition": digest(*partition.draw(1)),
        "number of slots": str(len(amounts)),
        "contributions": digest(amounts),
        "phases": " ".join(phases or []),
        "clients on their own": digest(apart) if apart.any() else "none",
        "own tests": digest(*partition.tests) if len(partition.tests) else "none",
        "fine-tuning": str(course.fine_tuning or "none"),
        "server optimiser": server_in_words(course),
    }


def server_in_words(course: Course) -> str:
    """The server's optimiser; "none" for plain averages, about which older files say nothing."""
    return "none" if isinstance(course.server, FedAvg) else str(course.server)


def digest(*arrays: npt.NDArray[Any]) -> str:
    """A short name of arrays that no others have."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def shapes(parameters: Parameters) -> str:
    """The parameters by name and shape."""
    return str({name: tuple(value.shape) for name, value in parameters.items()})


def _state(content: dict[str, Any]) -> RunState:
    """The state that was saved; raises one of several errors if it is something else."""
    slots = tuple(_slot_record(record) for record in content["slots"])
    if [record.slot for record in slots] != list(range(1, len(slots) + 1)):
        raise ValueError("slots are missing")
    if shapes(content["parameters"]) != content["identity"]["parameters"]:
        raise ValueError("parameters of another model")
    alone = {int(n): parameters for n, parameters in content.get("alone", {}).items()}
    rounds, parameters = _scores(content["rounds"]), content["parameters"]
    moments = _moments(content.get("moments", {}), parameters)
    if rounds and not moments and content["identity"].get("server optimiser", "none") != "none":
        raise ValueError("moments are missing")
    errors = (_errors(content.get(f"{kind} errors", ())) for kind in ("own", "tuned"))
    return RunState(slots, rounds, parameters, alone, moments, *errors)


def _moments(content: dict[str, Any], parameters: Parameters) -> Moments:
    """The moments of some parameters, which must have their shapes."""
    for tensors in content.values():
        for name, value in tensors.items():
            if value.shape != parameters[name].shape:
                raise ValueError("moments of another model")
    return {kind: {n: v.numpy() for n, v in tensors.items()} for kind, tensors in content.items()}


def _slot_record(record: dict[str, Any]) -> SlotRecord:
    alone = tuple(_alone_record(alone) for alone in record.get("alone", ()))
    return SlotRecord(
        slot=int(record["slot"]),
        phase=str(record["phase"]),
        total=int(record["total"]),
        rounds=_scores(record["rounds"]),
        final=_scores([record["final"]])[0],
        suspended=() if record["phase"] == ALONE else tuple(own.name for own in alone),
        alone=alone,
        own=_scores(record.get("own", ())),
        tuned=_scores(record.get("tuned", ())),
    )


def _alone_record(record: dict[str, Any]) -> AloneRecord:
    return AloneRecord(
        client=int(record["client"]),
        name=str(record["name"]),
        total=int(record["total"]),
        rounds=_scores(record["rounds"]),
        old=_score(record["old"]),
        own=_score(record.get("own")),
    )


def _score(score: dict[str, Any] | None) -> Score | None:
    return None if score is None else _scores([score])[0]


def _scores(scores: Sequence[dict[str, Any]]) -> tuple[Score, ...]:
    return tuple(Score(float(score["loss"]), float(score["accuracy"])) for score in scores)


def _errors(tensors: Sequence[Tensor]) -> tuple[FloatArray, ...]:
    return tuple(each.numpy() for each in tensors)


def _detached(parameters: Parameters) -> Parameters:
    return {name: value.detach() for name, value in parameters.items()}


def _read(path: Path) -> dict[str, Any]:
    """A checkpoint's content; only numbers and text are read, never code."""
    try:
        content = torch.load(path, weights_only=True)
    except Exception as error:  # damaged bytes may raise anything, as pickle documents
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FedaccordError(f"{path}: cannot be read as a checkpoint ({reason})") from None
    if not isinstance(content, dict) or not all(
        isinstance(content.get(part), dict) for part in ("identity", "parameters")
    ):
        raise _not_a_checkpoint(path)
    if not all(isinstance(value, Tensor) for value in content["parameters"].values()):
        raise _not_a_checkpoint(path)
    return content


def _not_a_checkpoint(path: Path) -> FedaccordError:
    return FedaccordError(f"{path}: is not a checkpoint of fedaccord")


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write atomically, readable by the owner only: a model reveals some of its data."""
    packed = io.BytesIO()
    torch.save(content, packed)  # into memory: PyTorch does not report a full disk
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [packed.getbuffer()], private=True)
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be written: {error.strerror or error}") from None
