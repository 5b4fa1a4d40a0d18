"""The software and the machine of a round, which decide the bits of an update."""

import inspect
import os
import platform
import re
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict

from fedaccord.audits.commitment import Digest
from fedaccord.audits.lots import digest_for
from fedaccord.training.task import Task

_TASKS = 100
"""For how many tasks the software is remembered while the process lasts."""


class Software(BaseModel):
    """What decides the bits of an update, apart from the inputs."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    task: str
    source: Digest
    """Of the code of the task, or of the source text of its two functions."""
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
def software_of(task: Task) -> Software:
    """The software that a task is trained with here."""
    functions = [_source(task.build), _source(task.loss)]
    return Software(
        task=task.name,
        source=task.code or digest_for("source of a task", functions),
        versions={name: _version(name) for name in ("fedaccord", "numpy", "torch")},
        machine=_machine(torch.backends.cpu.get_cpu_capability()),
    )


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
