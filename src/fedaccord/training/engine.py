"""What an engine is given, and what it must do with it (paper, section 2.1).

A slot has G rounds. In each, every client starts from the global parameters w, trains on the
samples that it contributes, and the server averages: w = sum of x_n / X times client n's w_n.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedaccord.data.partition import Indices
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.training.task import Model, Parameters


class TrainingFailed(FedaccordError):
    """Parameters that are no numbers any more."""


@dataclass(frozen=True)
class GradientStep:
    """Each client takes one step along the gradient of all its samples (batch B = X in all)."""

    rate: float = 1.0


@dataclass(frozen=True)
class LocalEpochs:
    """Each client goes through its samples in mini-batches, `epochs` times."""

    rate: float = 0.1
    batch: int = 64
    epochs: int = 1


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """One slot: who trains on which examples, and how."""

    model: Model
    shares: list[Indices]
    """The examples that each client trains on, x_n of them; none: it does not take part."""
    rounds: int
    local: GradientStep | LocalEpochs
    seed: int = 0
    slot: int = 1

    def __post_init__(self) -> None:
        """Refuse what can't be trained."""
        if self.rounds < 1:
            raise InvalidInput(f"rounds: must be 1 or more, got {self.rounds}")
        if not 0 < self.local.rate < np.inf:
            raise InvalidInput(f"rate: must be more than 0, got {self.local.rate}")
        if isinstance(self.local, LocalEpochs) and min(self.local.batch, self.local.epochs) < 1:
            raise InvalidInput("batch and epochs: must be 1 or more")
        if not sum(len(share) for share in self.shares):
            raise InvalidInput("nobody contributes a sample: there is nothing to train on")

    @cached_property
    def inputs(self) -> Tensor:
        """All examples of the dataset."""
        return torch.from_numpy(self.model.dataset.inputs)

    @cached_property
    def labels(self) -> Tensor:
        """Their labels."""
        return torch.from_numpy(self.model.dataset.labels)

    @property
    def taking_part(self) -> list[int]:
        """Positions of the clients that contribute anything."""
        return [n for n, share in enumerate(self.shares) if len(share)]

    @property
    def total(self) -> int:
        """X, all samples that are trained on."""
        return sum(len(share) for share in self.shares)

    def batches(self, client: int, turn: int) -> list[Indices]:
        """The mini-batches of a client in a round, epoch after epoch, the same for any engine."""
        if not isinstance(self.local, LocalEpochs):
            return [self.shares[client]]
        chance = np.random.default_rng([self.seed, self.slot, turn, client])
        share, size = self.shares[client], self.local.batch
        orders = [chance.permutation(share) for _ in range(self.local.epochs)]
        return [order[n : n + size] for order in orders for n in range(0, len(order), size)]

    def failed(self, client: int | None, turn: int) -> TrainingFailed:
        """What to raise when a client's parameters are no numbers any more."""
        who = "the clients' average" if client is None else f"clients[{client}]"
        return TrainingFailed(
            f"the model of {who} is no number any more in round {turn} of slot {self.slot}: "
            f"a rate below {self.local.rate:g} may help"
        )


class Engine(Protocol):
    """Runs the rounds of a slot."""

    name: str

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round."""
        ...
