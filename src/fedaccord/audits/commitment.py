"""What a member commits to when it reports: its records, its code, and a seed it does not choose.

The root of a Merkle tree fixes the records. The seed of everything random (which records are
trained on, in which order, dropout) follows from a head of the ledger that comes after all
commitments, so a round of training is a function of what was committed to, the contribution and the
incoming model.
"""

import inspect
import os
import platform
import re
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fedaccord.audits.lots import digest_for
from fedaccord.audits.merkle import MerkleTree
from fedaccord.audits.records import Records
from fedaccord.data.partition import Indices

if TYPE_CHECKING:
    from fedaccord.training.task import Task

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

_ORDER = 0
"""The round whose seed decides which records are trained on in a slot; rounds count from 1."""


_TASKS = 100
"""For how many tasks the software is remembered while the process lasts."""


class Commitment(BaseModel):
    """What a member is bound to for a slot."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    root: Digest
    """Of the Merkle tree of its records."""
    records: int = Field(ge=1)
    code: Digest
    """Of the program that it trains with (`Software`)."""


class RoundInputs(BaseModel):
    """What a member's part of a round depends on, besides its records and the incoming model."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    client: str
    position: int = Field(ge=0)
    """The client's position among all."""
    slot: int = Field(ge=1)
    turn: int = Field(ge=1)
    head: Digest
    """Of the ledger, from which the seeds of this slot follow."""
    first: int = Field(default=0, ge=0)
    """Where its samples begin in its order of the slot."""
    amount: int = Field(ge=1)


class Software(BaseModel):
    """What decides the bits of an update, apart from the inputs."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    task: str
    source: Digest
    """Of the source text of the task."""
    versions: dict[str, str]
    """Of fedaccord, NumPy and PyTorch."""
    machine: str
    """The processor, the instructions that PyTorch uses on it, and settings that limit them."""

    @property
    def digest(self) -> str:
        """What a commitment has as its code."""
        pairs = [f"{name} {number}" for name, number in sorted(self.versions.items())]
        parts = [self.task, self.source, *pairs, self.machine]
        return digest_for("code of training", parts)


@lru_cache(_TASKS)
def software_of(task: "Task") -> Software:
    """The software that a task is trained with here."""
    import torch

    source = digest_for("source of a task", [_source(task.build), _source(task.loss)])
    return Software(
        task=task.name,
        source=source,
        versions={name: _version(name) for name in ("fedaccord", "numpy", "torch")},
        machine=_machine(torch.backends.cpu.get_cpu_capability()),
    )


def commit(records: Records, secret: bytes, code: str) -> Commitment:
    """The commitment to these records; the secret makes the salts."""
    tree = MerkleTree(records, secret)
    return Commitment(root=tree.root, records=len(tree), code=code)


def training_seed(head: str, slot: int, turn: int, client: str) -> int:
    """The seed of a client's round, from the head of the ledger (its digest)."""
    return int(digest_for("training seed", [head, slot, turn, client]), 16)


def slot_order(head: str, slot: int, client: str, records: int) -> Indices:
    """The order of a client's records in a slot: with x samples it trains on the first x."""
    seed = training_seed(head, slot, _ORDER, client)
    return np.random.default_rng(seed).permutation(records)


def _machine(capability: str) -> str:
    """Whatever is known to change the order in which a processor adds numbers."""
    found = re.search(r"^model name\s*: (.*)$", _read(_PROCESSORS), re.MULTILINE)
    name = found[1] if found else platform.processor()
    limits = [f"{key}={os.environ[key]}" for key in _LIMITS if key in os.environ]
    return ", ".join([platform.machine(), name, capability, *limits])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


_PROCESSORS = Path("/proc/cpuinfo")
_LIMITS = ("DNNL_MAX_CPU_ISA", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
"""Settings of the libraries that PyTorch multiplies matrices with."""


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # made without a file, as in an interactive session
        return f"{getattr(function, '__qualname__', 'a function')} without source"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
