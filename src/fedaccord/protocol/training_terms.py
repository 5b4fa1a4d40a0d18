"""What the terms say about training: the table `[training]`."""

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from fedaccord.data.scale import examples_for
from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.protocol.limits import MOST, Count
from fedaccord.training.optimisers import OPTIMISERS, ServerOptimiser, find_optimiser

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
_OWN = re.compile(r"(?!.*\.py:)[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""module:function; the path of a file is another one on every machine."""

_NUMBERS = {"server_rate": "rate", "beta1": "beta1", "beta2": "beta2", "tau": "tau"}
"""The numbers of an optimiser in the terms, and what it calls them itself."""


def _numbers_of(kind: str) -> dict[str, float]:
    """The numbers that an optimiser takes, as the terms call them, with their usual values."""
    usual: Any = OPTIMISERS[kind]()
    takes = {field.name for field in fields(usual)}
    return {name: getattr(usual, own) for name, own in _NUMBERS.items() if own in takes}


def optimiser_in_terms(optimiser: ServerOptimiser) -> dict[str, Any]:
    """A server optimiser as the terms have it.

    >>> optimiser_in_terms(find_optimiser("fedadagrad", rate=0.5))
    {'optimiser': 'fedadagrad', 'server_rate': 0.5, 'beta1': 0.9, 'tau': 0.001}
    """
    if OPTIMISERS.get(optimiser.name) is not type(optimiser):
        raise InvalidInput(
            f"on Flower it must be one of {', '.join(OPTIMISERS)}, which the terms can name",
            field="server",
        )
    numbers = {name: getattr(optimiser, _NUMBERS[name]) for name in _numbers_of(optimiser.name)}
    return {"optimiser": optimiser.name, **numbers}


class TrainingTerms(BaseModel):
    """What is trained, and how."""

    model_config = _STRICT
    task: str = "softmax"
    """A built-in task, one that a package adds which everyone has installed, or one of your own, by
    module:function. If it is left out: softmax, or cox for survival times."""
    code: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """For a task by module:function: the digest of its code. Nobody trains with other code."""
    shape: tuple[PositiveInt, ...] = Field(min_length=1, strict=False)
    """Of one example."""
    classes: int = Field(ge=0, le=MOST)
    """How many labels there are, 2 or more; 0 if labels are survival times."""
    local: Literal["gradient step", "epochs", "steps"] = "gradient step"
    """What a client does in a round: one step on all its samples, so many times through them in
    mini-batches, or so many mini-batches."""
    rate: float = Field(default=0.5, gt=0)
    batch: Count = 64
    """For epochs and steps."""
    epochs: Count = 1
    """For epochs."""
    steps: Count | None = Field(default=None, validate_default=True)
    """For steps."""
    proximal: float = Field(default=0.0, ge=0, validate_default=True)
    """FedProx, for epochs and steps: how strongly a client is held to the model that came in."""
    local_optimiser: Literal["sgd", "adam"] = Field(default="sgd", validate_default=True)
    """For epochs and steps; Adam begins anew in each round."""
    optimiser: Literal["fedavg", "fedadam", "fedyogi", "fedadagrad"] = "fedavg"
    """What the server makes of the average of the clients' models: the next model (fedavg), or a
    step towards it that adapts to the rounds before."""
    server_rate: float | None = Field(default=None, gt=0, validate_default=True)
    """Of the server's step; 0.1 if it is left out. Not for fedavg, as are the next ones."""
    beta1: float | None = Field(default=None, ge=0, lt=1, validate_default=True)
    """How much of the earlier steps the server's step keeps; 0.9 if it is left out."""
    beta2: float | None = Field(default=None, ge=0, lt=1, validate_default=True)
    """How much of the earlier squares; 0.99 if it is left out. Not for fedadagrad, which adds
    them up."""
    tau: float | None = Field(default=None, gt=0, validate_default=True)
    """How little a parameter must move before the server's step adapts to it; 0.001 if it is left
    out."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    scale: float = Field(default=1.0, gt=0)
    """Examples per sample; other than 1 for a rehearsal with a dataset that is too small."""

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("classes") == 0:
            return {"task": "cox"} | given
        return given

    @field_validator("classes")
    @classmethod
    def _learnable(cls, classes: int) -> int:
        if classes == 1:
            raise ValueError("must be 2 or more, got 1; 0 is for survival times")
        return classes

    @field_validator("steps")
    @classmethod
    def _counted(cls, steps: int | None, info: ValidationInfo) -> int | None:
        local = info.data.get("local")
        if local == "steps" and steps is None:
            raise ValueError('is missing: how many mini-batches in a round, for local = "steps"')
        if local != "steps" and steps is not None:
            raise ValueError('is for local = "steps"')
        return steps

    @field_validator("proximal", "local_optimiser")
    @classmethod
    def _in_several_steps(cls, value: Any, info: ValidationInfo) -> Any:
        """There is no pull back to the model that came in before the second step from it."""
        usual = cls.model_fields[str(info.field_name)].default
        if value != usual and info.data.get("local") == "gradient step":
            raise ValueError('is for local = "epochs" or "steps"')
        return value

    @field_validator(*_NUMBERS)
    @classmethod
    def _of_optimiser(cls, value: float | None, info: ValidationInfo) -> float | None:
        """Add what is usual, and refuse what an optimiser does not take."""
        if (kind := info.data.get("optimiser")) is None:  # it is wrong itself
            return value
        usual = _numbers_of(kind)
        if info.field_name not in usual:
            if value is not None:
                raise ValueError(f"is not for {kind}")
            return None
        return usual[info.field_name] if value is None else value

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        own = ":" in self.task
        if own and not _OWN.fullmatch(self.task):
            raise ValueError(f"task must be module:function, got {self.task!r}")
        if own and self.code is None:
            raise ValueError("code is missing, the digest of the task's code")
        if not own and "code" in self.model_fields_set:
            raise ValueError("code is for a task by module:function")
        if self.local == "steps" and "epochs" in self.model_fields_set:
            raise ValueError('epochs is for local = "epochs"')
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only some terms have, as older terms do."""
        rules: dict[str, Any] = dump(self)
        for field, usual in _LEFT_OUT.items():
            if getattr(self, field) == usual:
                del rules[field]
        if self.local == "steps":
            del rules["epochs"]
        return rules

    @property
    def survival(self) -> bool:
        """Whether labels are survival times, and not classes."""
        return self.classes == 0

    def other_labels(self, *, survival: bool) -> str | None:
        """Why data is not of the kind in the terms, given whether its labels are survival times."""
        if survival == self.survival:
            return None
        if survival:
            return "it has survival times, but by the terms it must have labels"
        return "it has labels, but by the terms it must have survival times: time and event"

    @property
    def server(self) -> ServerOptimiser:
        """What the server does after each round."""
        numbers = {_NUMBERS[name]: getattr(self, name) for name in _numbers_of(self.optimiser)}
        return find_optimiser(self.optimiser, **numbers)

    def steps_on(self, samples: Sequence[int]) -> FloatArray:
        """How many local steps clients take in a round on this many samples each."""
        if self.local == "gradient step":
            return np.ones(len(samples))
        if self.steps is not None:
            return np.full(len(samples), float(self.steps))
        batches = np.ceil(examples_for(samples, self.scale) / self.batch)
        found: FloatArray = np.maximum(1.0, batches * self.epochs)
        return found


_LEFT_OUT: dict[str, Any] = {
    "code": None,
    "steps": None,
    "proximal": 0.0,
    "local_optimiser": "sgd",
    "optimiser": "fedavg",
    **dict.fromkeys(_NUMBERS),
    "scale": 1.0,
}
"""Fields that are not written if they have this value."""
