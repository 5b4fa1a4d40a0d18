"""How a free rider makes up an update without training.

Random weights, delta weights and delta with noise are from Lin, Du, Liu (arXiv 1911.12560); nothing
and decaying noise are from Fraboni, Vidal, Lorenzi (AISTATS 2021). A free rider knows only the
global models that the server has sent out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedaccord.checks import unknown
from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray


class Disguise(Protocol):
    """A way to make up updates."""

    def updates(self, models: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """The updates of `count` free riders, one row each.

        `models` has a row for each global model so far; the last is the one to train from. In round
        t there are t of them.
        """
        ...


@dataclass(frozen=True)
class Nothing:
    """The global model is sent back unchanged."""

    def updates(self, models: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Zeros."""
        del rng
        return np.zeros((count, models.shape[1]))


@dataclass(frozen=True)
class RandomWeights:
    """Each value is drawn from U(-R, R)."""

    largest: float = 1e-3
    """R."""

    def updates(self, models: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Noise of the same size in every round."""
        return rng.uniform(-self.largest, self.largest, (count, models.shape[1]))


@dataclass(frozen=True)
class DeltaWeights:
    """The last step of the global model, w_t - w_(t-1), repeated; zeros in the first round."""

    def updates(self, models: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """The same for every free rider."""
        del rng
        return np.tile(_step(models, -1), (count, 1))


@dataclass(frozen=True)
class NoisyDelta:
    """The last step of the global model plus normal noise, different for each free rider."""

    noise: float = 0.5
    """Standard deviation of the noise, in standard deviations of that step."""

    def updates(self, models: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Similar, but not identical."""
        step = _step(models, -1)
        noise = rng.normal(0.0, self.noise * step.std(), (count, len(step)))
        return step + noise


@dataclass(frozen=True)
class DecayingNoise:
    """Normal noise with standard deviation sigma t^-gamma, which vanishes as training converges.

    Sigma is the standard deviation of the first step of the global model; in the first round,
    before there is one, the update is zero.
    """

    decay: float = 1.0
    """Gamma."""

    def updates(self, models: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Noise that decreases from round to round."""
        sigma = _step(models, 1).std() * float(len(models)) ** -self.decay
        return rng.normal(0.0, sigma, (count, models.shape[1]))


def _step(models: FloatArray, number: int) -> FloatArray:
    """The step that led to a global model; zeros before the first step."""
    if len(models) < 2:
        return np.zeros(models.shape[1])
    step: FloatArray = models[number] - models[number - 1]
    return step


DISGUISES: dict[str, Callable[..., Disguise]] = {
    "nothing": Nothing,
    "random": RandomWeights,
    "delta": DeltaWeights,
    "noisy-delta": NoisyDelta,
    "decaying-noise": DecayingNoise,
}
_NUMBER = {"random": "R", "noisy-delta": "the noise", "decaying-noise": "gamma"}
"""Disguises that take a number after a colon, and its meaning."""


def read_disguise(text: str) -> Disguise:
    """A disguise by name, with its number if it has one: "random", "random:0.01".

    >>> read_disguise("noisy-delta:2")
    NoisyDelta(noise=2.0)
    """
    name, colon, number = text.partition(":")
    if name not in DISGUISES:
        raise InvalidInput(f"there is no disguise called {name!r}: {unknown(name, DISGUISES)}")
    if not colon:
        return DISGUISES[name]()
    if name not in _NUMBER:
        raise InvalidInput(f"disguise {name}: takes no number, got {number!r}")
    try:
        value = float(number)
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        raise InvalidInput(f"disguise {name}: {_NUMBER[name]} must be 0 or more, got {number!r}")
    return DISGUISES[name](value)
