"""A real training process with free riders in it, up to the round that the server looks at."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedaccord.baselines.detection.disguises import Disguise
from fedaccord.baselines.detection.updates import client_updates, flatten, unflatten
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.partition import Partition, RandomPartition, SkewedPartition
from fedaccord.errors import InvalidInput
from fedaccord.game.arrays import BoolArray, FloatArray
from fedaccord.training.engine import LocalEpochs, TrainingPlan
from fedaccord.training.task import Model, find_task

_LOCAL = LocalEpochs(rate=0.1, batch=16)
_TRUSTED = 2
"""The slot in which the trusted clients draw: other examples than in the first."""


@dataclass(frozen=True, eq=False)
class Round:
    """What the server has in front of it."""

    updates: FloatArray
    """Of every client, a row each."""
    free_riders: BoolArray
    """The truth, which the server does not know."""
    reference: FloatArray
    """Updates from the same global model that are known to be honest; there may be none."""


@dataclass(frozen=True)
class Setting:
    """Who trains what. Free riders claim as many samples as the others train on."""

    dataset: str = "digits"
    task: str = "mlp"
    clients: int = 100
    samples: int = 100
    """Of each client."""
    turn: int = 10
    """The round that is looked at; until then everyone's update is averaged."""
    reference: int = 100
    """How many honest updates the server has besides."""
    alpha: float | None = None
    """Clients with few labels each (Dirichlet); None: all draw alike."""
    local: LocalEpochs = _LOCAL
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no training."""
        problems = [
            f"{name}: must be {least} or more, got {value}"
            for name, value, least in (
                ("clients", self.clients, 2),
                ("samples", self.samples, 1),
                ("round", self.turn, 1),
                ("reference", self.reference, 0),
                ("seed", self.seed, 0),
            )
            if value < least
        ]
        if problems:
            raise InvalidInput(problems)

    def check(self, free_riders: int) -> None:
        """Refuse a number of free riders that leaves nobody on one side."""
        if not 0 < free_riders < self.clients:
            raise InvalidInput(
                f"free riders: must be from 1 to {self.clients - 1} of {self.clients} clients, "
                f"got {free_riders}"
            )

    @cached_property
    def _data(self) -> Dataset:
        return load_dataset(self.dataset)

    def play(self, free_riders: int, disguise: Disguise) -> Round:
        """Train up to the round, with the first so many clients not training."""
        self.check(free_riders)
        plan = self._plan(self.clients, slot=1)
        truth = np.arange(self.clients) < free_riders
        nothing = np.array([], dtype=np.int64)
        shares = [nothing if truth[n] else share for n, share in enumerate(plan.shares)]
        plan = replace(plan, shares=shares)
        chance = np.random.default_rng([self.seed, free_riders])
        start = plan.model.start(self.seed)
        models = [flatten(start)]
        while True:
            parameters, turn = unflatten(models[-1], start), len(models)
            updates = client_updates(plan, parameters, turn)
            updates[truth] = disguise.updates(np.array(models), free_riders, chance)
            if turn == self.turn:
                break
            models.append(models[-1] + updates.mean(axis=0))
        reference = np.zeros((0, updates.shape[1]))
        if self.reference:
            trusted = self._plan(self.reference, slot=_TRUSTED)
            reference = client_updates(trusted, parameters, self.turn)
        return Round(updates, truth, reference)

    def _plan(self, clients: int, slot: int) -> TrainingPlan:
        sizes = [self.samples] * clients
        partition: Partition = RandomPartition(self._data, sizes, self.seed)
        if self.alpha is not None:
            partition = SkewedPartition(self._data, sizes, self.alpha, self.seed)
        model = Model(find_task(self.task), self._data)
        return TrainingPlan(
            model, partition.draw(slot), self.turn, self.local, seed=self.seed, slot=slot
        )
