"""A real training process with free riders in disguise, up to the round the server looks at.

A disguise is how a free rider makes up an update without training. Random weights, delta weights
and delta with noise are from Lin, Du, Liu (arXiv 1911.12560); nothing and decaying noise are from
Fraboni, Vidal, Lorenzi (AISTATS 2021). A free rider knows only the global models that the server
has sent out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from fedaccord.checks import unknown
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.partition import Partition, RandomPartition, SkewedPartition
from fedaccord.errors import InvalidInput, Problem
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.training.engine import LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.task import Model, Parameters, find_task


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


def flatten(parameters: Parameters) -> FloatArray:
    """A model's parameters as one row, in the order in which the model names them."""
    parts = [value.detach().reshape(-1) for value in parameters.values()]
    row: FloatArray = torch.cat(parts).double().numpy()
    return row


def unflatten(row: FloatArray, like: Parameters) -> Parameters:
    """The inverse of `flatten`."""
    parts = np.split(row, np.cumsum([value.numel() for value in like.values()])[:-1])
    return {
        name: torch.from_numpy(part).reshape(value.shape).to(value.dtype)
        for (name, value), part in zip(like.items(), parts, strict=True)
    }


def client_updates(plan: TrainingPlan, parameters: Parameters, number: int) -> FloatArray:
    """The updates of all clients in this round, one row each; zeros for those without data."""
    start = flatten(parameters)
    rows = np.zeros((len(plan.shares), len(start)))
    for client in plan.taking_part:
        # the average over a single client is that client's model
        (trained,) = PlainEngine().rounds(_alone(plan, client, number), parameters)
        rows[client] = flatten(trained) - start
    return rows


def _alone(plan: TrainingPlan, client: int, number: int) -> TrainingPlan:
    """One round of one client."""
    nothing = np.array([], dtype=np.int64)
    shares = [share if n == client else nothing for n, share in enumerate(plan.shares)]
    return replace(plan, shares=shares, rounds=number, first=number)


def check_updates(updates: npt.ArrayLike, names: Sequence[str] | None = None) -> FloatArray:
    """The updates as 64-bit numbers, one row each; NaN and infinite values are refused.

    >>> check_updates([[0.1, 0.2], [0.3, float("nan")]], ["St Mary", "St Luke"])
    Traceback (most recent call last):
    fedaccord.errors.InvalidInput: the update of St Luke has 1 value that is NaN or infinite
    """
    rows = np.asarray(updates, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise InvalidInput(
            f"must be a matrix with one row per client, got shape {rows.shape}", field="updates"
        )
    if names is not None and len(names) != len(rows):
        raise InvalidInput(f"there are {len(rows)} updates but {len(names)} names")
    wrong = (~np.isfinite(rows)).sum(axis=1)
    problems = [
        f"the update of {names[n] if names is not None else f'clients[{n}]'} has "
        f"{wrong[n]:,} value{'s that are' if wrong[n] > 1 else ' that is'} NaN or infinite"
        for n in np.flatnonzero(wrong).tolist()
    ]
    if problems:
        raise InvalidInput(problems)
    return rows


_LOCAL = LocalEpochs(rate=0.1, batch=16)
_TRUSTED = 2
"""The slot of the trusted clients, so that they have other examples than the clients."""


@dataclass(frozen=True, eq=False)
class ObservedRound:
    """What the server observes."""

    updates: FloatArray
    """The updates of all clients, one row each."""
    free_riders: BoolArray
    """The truth, which the server does not know."""
    reference: FloatArray
    """Updates from the same global model that are known to be honest; may be empty."""


@dataclass(frozen=True)
class DetectionSetting:
    """Who trains on what. Free riders claim as many samples as the others train on."""

    dataset: str = "digits"
    task: str = "mlp"
    clients: int = 100
    samples: int = 100
    """Samples of each client."""
    round: int = 10
    """The round that is examined; before it, the updates of all clients are averaged."""
    reference: int = 100
    """How many honest updates the server has in addition."""
    alpha: float | None = None
    """Gives each client only a few labels (Dirichlet); None for the same distribution for all."""
    local: LocalEpochs = _LOCAL
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse impossible settings."""
        problems = [
            Problem(name, f"must be {least} or more, got {value}")
            for name, value, least in (
                ("clients", self.clients, 2),
                ("samples", self.samples, 1),
                ("round", self.round, 1),
                ("reference", self.reference, 0),
                ("seed", self.seed, 0),
            )
            if value < least
        ]
        if problems:
            raise InvalidInput(problems)

    def check(self, free_riders: int) -> None:
        """Refuse a number of free riders that leaves no free rider or no contributor."""
        if not 0 < free_riders < self.clients:
            raise InvalidInput(
                f"must be from 1 to {self.clients - 1} of {self.clients} clients, "
                f"got {free_riders}",
                field="free_riders",
            )

    @cached_property
    def _data(self) -> Dataset:
        return load_dataset(self.dataset)

    def observe(self, free_riders: int, disguise: Disguise) -> ObservedRound:
        """Train up to the round in question; the first clients are the free riders."""
        self.check(free_riders)
        plan = self._plan(self.clients, slot=1)
        truth = np.arange(self.clients) < free_riders
        nothing = np.array([], dtype=np.int64)
        shares = [nothing if truth[n] else share for n, share in enumerate(plan.shares)]
        plan = replace(plan, shares=shares)
        rng = np.random.default_rng([self.seed, free_riders])
        start = plan.model.start(self.seed)
        models = [flatten(start)]
        while True:
            parameters, number = unflatten(models[-1], start), len(models)
            updates = client_updates(plan, parameters, number)
            updates[truth] = disguise.updates(np.array(models), free_riders, rng)
            if number == self.round:
                break
            models.append(models[-1] + updates.mean(axis=0))
        reference = np.zeros((0, updates.shape[1]))
        if self.reference:
            trusted = self._plan(self.reference, slot=_TRUSTED)
            reference = client_updates(trusted, parameters, self.round)
        return ObservedRound(updates, truth, reference)

    def _plan(self, clients: int, slot: int) -> TrainingPlan:
        sizes = [self.samples] * clients
        partition: Partition = RandomPartition(self._data, sizes, self.seed)
        if self.alpha is not None:
            partition = SkewedPartition(self._data, sizes, self.alpha, self.seed)
        model = Model(find_task(self.task), self._data)
        return TrainingPlan(
            model, partition.draw(slot), self.round, self.local, seed=self.seed, slot=slot
        )
