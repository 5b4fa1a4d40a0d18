"""What the terms say about training: the table `[training]`."""

import re
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from fedaccord.data.scale import examples_for
from fedaccord.numbers import FloatArray
from fedaccord.protocol.limits import MOST, Count

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
_OWN = re.compile(r"(?!.*\.py:)[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""module:function; the path of a file is another one on every machine."""


class TrainingTerms(BaseModel):
    """What is trained, and how."""

    model_config = _STRICT
    task: str = "softmax"
    """A built-in task, one that a package adds which everyone has installed, or one of your own, by
    module:function."""
    code: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """For a task by module:function: the digest of its code. Nobody trains with other code."""
    shape: tuple[PositiveInt, ...] = Field(min_length=1, strict=False)
    """Of one example."""
    classes: int = Field(ge=2, le=MOST)
    local: Literal["gradient step", "epochs"] = "gradient step"
    rate: float = Field(default=0.5, gt=0)
    batch: Count = 64
    """For epochs, as is the next."""
    epochs: Count = 1
    seed: int = Field(default=0, ge=0, lt=2**63)
    scale: float = Field(default=1.0, gt=0)
    """Examples per sample; other than 1 for a rehearsal with a dataset that is too small."""

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        own = ":" in self.task
        if own and not _OWN.fullmatch(self.task):
            raise ValueError(f"task must be module:function, got {self.task!r}")
        if own and self.code is None:
            raise ValueError("code is missing, the digest of the task's code")
        if not own and "code" in self.model_fields_set:
            raise ValueError("code is for a task by module:function")
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only some terms have, as older terms do."""
        rules: dict[str, Any] = dump(self)
        if self.code is None:
            del rules["code"]
        if self.scale == 1:
            del rules["scale"]
        return rules

    def steps(self, samples: Sequence[int]) -> FloatArray:
        """How many local steps clients take in a round on this many samples each."""
        if self.local == "gradient step":
            return np.ones(len(samples))
        batches = np.ceil(examples_for(samples, self.scale) / self.batch)
        found: FloatArray = np.maximum(1.0, batches * self.epochs)
        return found
