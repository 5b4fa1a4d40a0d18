"""What the server does with the clients' average: FedAvg takes it, the others move towards it.

With the global model w, the average of the clients' models a, and delta = a - w, the optimisers of
Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan (Adaptive federated optimization,
ICLR 2021, Algorithm 2) keep two moments, m and v, and compute in each round

    m = beta1 m + (1 - beta1) delta
    v = v + delta^2                                      (FedAdagrad)
    v = v - (1 - beta2) delta^2 sign(v - delta^2)        (FedYogi)
    v = beta2 v + (1 - beta2) delta^2                    (FedAdam)
    w = w + rate m / (sqrt(v) + tau).

There is no bias correction. m starts at 0 and v at tau^2, the least that the paper allows. Moments
start afresh in each slot. Everything is computed in 64 bits; arrays may have a leading axis that
counts models.

>>> import numpy as np
>>> optimiser = find_optimiser("fedadam", rate=0.1)
>>> print(optimiser)
FedAdam, rate 0.1, beta1 0.9, beta2 0.99, tau 0.001
>>> model, average = {"w": np.zeros(2)}, {"w": np.array([1.0, -0.01])}
>>> moments = optimiser.start(model)
>>> after, moments = optimiser.step(model, average, moments)
>>> after["w"].round(3).tolist()
[0.099, -0.041]
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from fedaccord.checks import unknown, wrong_number
from fedaccord.errors import InvalidInput, Problem
from fedaccord.numbers import FloatArray
from fedaccord.training.arrays import Arrays

Moments: TypeAlias = dict[str, Arrays]
"""What an optimiser keeps from round to round, by kind: `first` is m and `second` is v."""


class ServerOptimiser(Protocol):
    """How the global model follows from the clients' average."""

    name: ClassVar[str]

    def start(self, model: Arrays) -> Moments:
        """The moments before the first round of a slot."""
        ...

    def step(self, model: Arrays, average: Arrays, moments: Moments) -> tuple[Arrays, Moments]:
        """The next global model, in the types of the last one, and the moments after this round."""
        ...


@dataclass(frozen=True)
class FedAvg:
    """The average itself is the next model (McMahan et al., AISTATS 2017)."""

    name: ClassVar[str] = "fedavg"

    def __str__(self) -> str:
        """In words."""
        return "FedAvg"

    def start(self, model: Arrays) -> Moments:
        """Nothing is kept."""
        del model
        return {}

    def step(self, model: Arrays, average: Arrays, moments: Moments) -> tuple[Arrays, Moments]:
        """The average, in the types of the model."""
        return {name: _as_type(average[name], model[name]) for name in model}, moments


FEDAVG = FedAvg()
"""What a server does unless something else is asked for."""


class _Adaptive(ABC):
    """What FedAdagrad, FedYogi and FedAdam have in common: all but v."""

    rate: float
    beta1: float
    tau: float

    def __post_init__(self) -> None:
        """Reject numbers with which there is no step."""
        bounds = {name: {"least": 0.0, "below": 1.0} for name in ("beta1", "beta2")}
        bounds |= {name: {"above": 0.0} for name in ("rate", "tau")}
        wrong = {name: wrong_number(value, **bounds[name]) for name, value in self._numbers()}
        if problems := [Problem(name, message) for name, message in wrong.items() if message]:
            raise InvalidInput(problems)

    def __str__(self) -> str:
        """In words, with every digit: checkpoints are distinguished by it."""
        return ", ".join([type(self).__name__, *(f"{n} {value!r}" for n, value in self._numbers())])

    def _numbers(self) -> list[tuple[str, float]]:
        return [(each.name, getattr(self, each.name)) for each in fields(self)]  # type: ignore[arg-type]

    def start(self, model: Arrays) -> Moments:
        """m is 0 and v is tau^2."""
        return {
            "first": {name: np.zeros(value.shape) for name, value in model.items()},
            "second": {name: np.full(value.shape, self.tau**2) for name, value in model.items()},
        }

    def step(self, model: Arrays, average: Arrays, moments: Moments) -> tuple[Arrays, Moments]:
        """A step along m, for each number by its own v."""
        after: Arrays = {}
        kept: Moments = {"first": {}, "second": {}}
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for NaN and infinity
            for name, value in model.items():
                delta = np.subtract(average[name], value, dtype=np.float64)
                m = self.beta1 * moments["first"][name] + (1.0 - self.beta1) * delta
                v = self._second(moments["second"][name], delta**2)
                after[name] = _as_type(value + self.rate * m / (np.sqrt(v) + self.tau), value)
                kept["first"][name], kept["second"][name] = m, v
        return after, kept

    @abstractmethod
    def _second(self, v: FloatArray, square: FloatArray) -> FloatArray:
        """The next v, given delta^2."""


@dataclass(frozen=True)
class FedAdagrad(_Adaptive):
    """Steps that shrink with all that was ever averaged."""

    name: ClassVar[str] = "fedadagrad"
    rate: float = 0.1
    beta1: float = 0.9
    """The paper's own experiments with FedAdagrad have 0."""
    tau: float = 1e-3

    def _second(self, v: FloatArray, square: FloatArray) -> FloatArray:
        return v + square


@dataclass(frozen=True)
class FedAdam(_Adaptive):
    """Steps that shrink with what was averaged lately."""

    name: ClassVar[str] = "fedadam"
    rate: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def _second(self, v: FloatArray, square: FloatArray) -> FloatArray:
        return self.beta2 * v + (1.0 - self.beta2) * square


@dataclass(frozen=True)
class FedYogi(_Adaptive):
    """As FedAdam, but v changes by no more than (1 - beta2) delta^2 at a time."""

    name: ClassVar[str] = "fedyogi"
    rate: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def _second(self, v: FloatArray, square: FloatArray) -> FloatArray:
        return v - (1.0 - self.beta2) * square * np.sign(v - square)


OPTIMISERS: dict[str, Callable[..., ServerOptimiser]] = {
    kind.name: kind for kind in (FedAvg, FedAdam, FedYogi, FedAdagrad)
}


def find_optimiser(name: str, **options: float) -> ServerOptimiser:
    """A server optimiser by name, with some of its numbers; the others have their defaults.

    >>> find_optimiser("fedadagrad", beta2=0.9)
    Traceback (most recent call last):
    fedaccord.errors.InvalidInput: beta2: fedadagrad has no such number
    """
    if name not in OPTIMISERS:
        raise InvalidInput(
            f"there is no server optimiser called {name!r}: {unknown(name, OPTIMISERS)}"
        )
    known = {each.name for each in fields(OPTIMISERS[name])}  # type: ignore[arg-type]
    if problems := [Problem(each, f"{name} has no such number") for each in options.keys() - known]:
        raise InvalidInput(sorted(problems, key=str))
    return OPTIMISERS[name](**options)


def _as_type(found: FloatArray, wanted: FloatArray) -> FloatArray:
    """In the type of another array; integers are rounded to the nearest."""
    whole = np.issubdtype(wanted.dtype, np.integer)
    return (np.rint(found) if whole else found).astype(wanted.dtype, copy=False)
