"""What an engine is given, and what it must do with it (paper, section 2.1).

A slot has G rounds. In each, every client starts from the global parameters w, trains on the
samples that it contributes, and the server averages: w = sum of x_n / X times client n's w_n.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedaccord.data.partition import Indices
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.training.task import Model, Parameters

_ORDERS, _CHANCE = 1, 2
"""What a client's chance in a round is for. Last in a list of seeds, and never 0: NumPy fills up
with zeros, and the lists that data is drawn with are shorter."""


class TrainingFailed(FedaccordError):
    """Parameters that are no numbers any more."""


def _check_rate(rate: float) -> None:
    """Refuse what is no number in the precision of most models."""
    limits = np.finfo(np.float32)
    if not float(limits.tiny) <= rate <= float(limits.max):
        raise InvalidInput(f"rate: must be more than 0 and fit 32 bits, got {rate:g}")


@dataclass(frozen=True)
class GradientStep:
    """Each client takes one step along the gradient of all its samples (batch B = X in all)."""

    rate: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what can't be trained with."""
        _check_rate(self.rate)

    def __str__(self) -> str:
        """In words, every digit of the rate kept: checkpoints are told apart by it."""
        return f"one gradient step, rate {self.rate!r}"


@dataclass(frozen=True)
class LocalEpochs:
    """Each client goes through its samples in mini-batches, `epochs` times."""

    rate: float = 0.1
    batch: int = 64
    epochs: int = 1

    def __post_init__(self) -> None:
        """Likewise."""
        _check_rate(self.rate)
        if min(self.batch, self.epochs) < 1:
            raise InvalidInput("batch and epochs: must be 1 or more")

    def __str__(self) -> str:
        """Likewise."""
        return f"mini-batches of {self.batch}, epochs {self.epochs}, rate {self.rate!r}"


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
    first: int = 1
    """The round to begin with; those before it were run already."""
    names: Sequence[str] = ()
    """What the clients are called, for messages."""

    def __post_init__(self) -> None:
        """Refuse what can't be trained."""
        if self.rounds < 1:
            raise InvalidInput(f"rounds: must be 1 or more, got {self.rounds}")
        if not sum(len(share) for share in self.shares):
            raise InvalidInput("nobody contributes a sample: there is nothing to train on")

    @property
    def inputs(self) -> Tensor:
        """All examples of the dataset."""
        return self.model.inputs

    @cached_property
    def labels(self) -> Tensor:
        """Their labels."""
        return torch.from_numpy(self.model.dataset.labels)

    @property
    def turns(self) -> range:
        """The rounds that are left."""
        return range(self.first, self.rounds + 1)

    def freeze(self, parameters: Parameters) -> tuple["TrainingPlan", Parameters]:
        """The same slot with a model that holds what is not trained; and what is."""
        model, trained = self.model.freeze(parameters)
        return replace(self, model=model), trained

    def from_round(self, first: int) -> "TrainingPlan":
        """The same slot, to go on with."""
        return replace(self, first=first)

    @property
    def taking_part(self) -> list[int]:
        """Positions of the clients that contribute anything."""
        return [n for n, share in enumerate(self.shares) if len(share)]

    @property
    def total(self) -> int:
        """X, all samples that are trained on."""
        return sum(len(share) for share in self.shares)

    def orders(self, client: int, turn: int) -> list[Indices]:
        """A client's examples as it goes through them in a round, one order an epoch."""
        chance = np.random.default_rng([self.seed, self.slot, turn, client, _ORDERS])
        epochs = self.local.epochs if isinstance(self.local, LocalEpochs) else 1
        return [chance.permutation(self.shares[client]) for _ in range(epochs)]

    def batches(self, client: int, turn: int) -> list[Indices]:
        """The mini-batches of a client in a round, epoch after epoch, the same for any engine."""
        if not isinstance(self.local, LocalEpochs):
            return [self.shares[client]]
        size = self.local.batch
        return [
            order[n : n + size]
            for order in self.orders(client, turn)
            for n in range(0, len(order), size)
        ]

    @contextmanager
    def chance(self, client: int, turn: int) -> Iterator[None]:
        """What a model that draws at random (dropout) draws for a client in a round."""
        if not self.model.random:
            yield
            return
        seeds = np.random.SeedSequence([self.seed, self.slot, turn, client, _CHANCE])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
            yield

    def failed(self, client: int | None, turn: int, what: str = "model") -> TrainingFailed:
        """What to raise when a client's parameters, or its loss, are no numbers any more."""
        who = "the clients' average"
        if client is not None:
            who = self.names[client] if self.names else f"clients[{client}]"
        return TrainingFailed(
            f"the {what} of {who} is no number any more in round {turn} of slot {self.slot}: "
            f"a rate below {self.local.rate:g} may help"
        )


class Engine(Protocol):
    """Runs the rounds of a slot."""

    name: str

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round that is left."""
        ...
