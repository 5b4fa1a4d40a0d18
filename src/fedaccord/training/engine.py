"""What an engine is given, what it must do with it (paper, section 2.1), and the plain engine.

A slot has G rounds. In each, every client starts from the global parameters w, trains on the
samples that it contributes, and the server averages: w = sum of x_n / X times client n's w_n.
`PlainEngine` does just that, in a loop; the other engines are tested against it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from fedaccord.data.partition import Indices
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.training.task import Model, Parameters
from fedaccord.training.threads import one_thread

_ORDERS, _MODEL = 1, 2
"""What a client's random numbers in a round are for: the order of its examples, or the model
itself. This comes last in a list of seeds and is never 0: NumPy pads such lists with zeros, and
the lists that data is drawn with are shorter."""


class TrainingFailed(FedaccordError):
    """A model or a loss that became NaN or infinite."""


def _check_rate(rate: float) -> None:
    """Reject a rate that is 0 or infinite in 32-bit precision, which most models use."""
    limits = np.finfo(np.float32)
    if not float(limits.tiny) <= rate <= float(limits.max):
        raise InvalidInput(f"must be more than 0 and fit 32 bits, got {rate:g}", field="rate")


@dataclass(frozen=True)
class GradientStep:
    """Each client takes one step along the gradient of all its samples (batch B = X in all)."""

    rate: float = 1.0

    def __post_init__(self) -> None:
        """Reject an unusable rate."""
        _check_rate(self.rate)

    def __str__(self) -> str:
        """In words, with every digit of the rate: checkpoints are distinguished by it."""
        return f"one gradient step, rate {self.rate!r}"


@dataclass(frozen=True)
class LocalEpochs:
    """Each client goes through its samples in mini-batches, `epochs` times."""

    rate: float = 0.1
    batch: int = 64
    epochs: int = 1

    def __post_init__(self) -> None:
        """Reject unusable numbers."""
        _check_rate(self.rate)
        if min(self.batch, self.epochs) < 1:
            raise InvalidInput("batch and epochs: must be 1 or more")

    def __str__(self) -> str:
        """In words, with every digit of the rate."""
        return f"mini-batches of {self.batch}, epochs {self.epochs}, rate {self.rate!r}"


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """One slot: who trains on which examples, and how."""

    model: Model
    shares: list[Indices]
    """The examples that each client trains on, x_n of them; a client with none takes no part."""
    rounds: int
    local: GradientStep | LocalEpochs
    seed: int = 0
    slot: int = 1
    first: int = 1
    """The round to begin with; earlier ones have been run already."""
    names: Sequence[str] = ()
    """The clients' names, for messages."""
    steps: int | None = None
    """How many steps of each round a client takes; None: all of them."""

    def __post_init__(self) -> None:
        """Reject a slot without rounds or without samples."""
        if self.rounds < 1:
            raise InvalidInput(f"must be 1 or more, got {self.rounds}", field="rounds")
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
        """The same slot with a model that holds the frozen parameters, and the trained ones."""
        model, trained = self.model.freeze(parameters)
        return replace(self, model=model), trained

    def from_round(self, first: int) -> "TrainingPlan":
        """The same slot, from this round on."""
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
        """The order of a client's examples in each epoch of a round."""
        rng = np.random.default_rng([self.seed, self.slot, turn, client, _ORDERS])
        epochs = self.local.epochs if isinstance(self.local, LocalEpochs) else 1
        return [rng.permutation(self.shares[client]) for _ in range(epochs)]

    def batches(self, client: int, turn: int) -> list[Indices]:
        """The mini-batches of a client in a round, epoch after epoch, the same for any engine."""
        if not isinstance(self.local, LocalEpochs):
            return [self.shares[client]][: self.steps]
        size = self.local.batch
        return [
            order[n : n + size]
            for order in self.orders(client, turn)
            for n in range(0, len(order), size)
        ][: self.steps]

    @contextmanager
    def seeded(self, client: int, turn: int) -> Iterator[None]:
        """Seed PyTorch's rng for a client in a round, if the model uses it (dropout)."""
        if not self.model.random:
            yield
            return
        seeds = np.random.SeedSequence([self.seed, self.slot, turn, client, _MODEL])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
            yield

    def failed(self, client: int | None, turn: int, what: str = "model") -> TrainingFailed:
        """What to raise when a client's model, or its loss, became NaN or infinite."""
        who = "the clients' average"
        if client is not None:
            who = self.names[client] if self.names else f"clients[{client}]"
        return TrainingFailed(
            f"the {what} of {who} became NaN or infinite in round {turn} of slot {self.slot}: "
            f"a rate below {self.local.rate:g} may help"
        )


class Engine(Protocol):
    """Runs the rounds of a slot."""

    name: str

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round that is left."""
        ...


AfterStep: TypeAlias = Callable[[Parameters], None]


class PlainEngine:
    """FedAvg as a textbook has it: one client after another, one batch after another.

    It runs on one thread, so that its numbers do not depend on how many there are.
    """

    name = "plain"

    def __init__(self, after_step: AfterStep | None = None) -> None:
        """`after_step` is shown the parameters that a client has after each of its steps."""
        self._after_step = after_step

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round."""
        plan, trained = plan.freeze(parameters)
        for turn in plan.turns:
            with one_thread():
                trained = self._round(plan, trained, turn)
            yield parameters | trained

    def _round(self, plan: TrainingPlan, parameters: Parameters, turn: int) -> Parameters:
        """The weighted average of all clients' parameters after their own steps."""
        average = {name: torch.zeros_like(value) for name, value in parameters.items()}
        for client in plan.taking_part:
            with plan.seeded(client, turn):
                local = self._train(plan, parameters, client, turn)
            weight = len(plan.shares[client]) / plan.total
            for name, value in local.items():
                average[name] += weight * value
        return average

    def _train(
        self, plan: TrainingPlan, parameters: Parameters, client: int, turn: int
    ) -> Parameters:
        """A client's parameters after its own steps from the global ones."""
        local = {name: value.clone().requires_grad_() for name, value in parameters.items()}
        for batch in plan.batches(client, turn):
            chosen = torch.from_numpy(batch)
            loss = plan.model.losses(local, plan.inputs[chosen], plan.labels[chosen]).mean()
            gradients = torch.autograd.grad(loss, list(local.values()))
            with torch.no_grad():
                for value, gradient in zip(local.values(), gradients, strict=True):
                    value.sub_(gradient, alpha=plan.local.rate)
            if self._after_step is not None:
                self._after_step(local)
        if not all(bool(value.isfinite().all()) for value in local.values()):
            raise plan.failed(client, turn)
        return {name: value.detach() for name, value in local.items()}
