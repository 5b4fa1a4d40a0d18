"""What an engine is given, what it must do with it (paper, section 2.1), and the plain engine.

A slot has G rounds. In each, every client starts from the global parameters w, trains on the
samples that it contributes, and the server averages: w = sum of x_n / X times client n's w_n. An
optimiser at the server moves w towards that average instead (`fedaccord.training.optimisers`).
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
from fedaccord.training.optimisers import FEDAVG, FedAvg, Moments, ServerOptimiser
from fedaccord.training.rules import (
    GradientStep,
    LocalEpochs,
    LocalRule,
    LocalSteps,
    MiniBatches,
)
from fedaccord.training.task import Model, Parameters
from fedaccord.training.threads import one_thread

__all__ = [
    "AfterStep",
    "Engine",
    "GradientStep",
    "LocalEpochs",
    "LocalRule",
    "LocalSteps",
    "PlainEngine",
    "Server",
    "TrainingFailed",
    "TrainingPlan",
    "is_finite",
]

_ORDERS, _MODEL = 1, 2
"""What a client's random numbers in a round are for: the order of its examples, or the model
itself. This comes last in a list of seeds and is never 0: NumPy pads such lists with zeros, and
the lists that data is drawn with are shorter."""


class TrainingFailed(FedaccordError):
    """A model or a loss that became NaN or infinite."""


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """One slot: who trains on which examples, and how."""

    model: Model
    shares: list[Indices]
    """The examples that each client trains on, x_n of them; a client with none takes no part."""
    rounds: int
    local: LocalRule
    seed: int = 0
    slot: int = 1
    first: int = 1
    """The round to begin with; earlier ones have been run already."""
    names: Sequence[str] = ()
    """The clients' names, for messages."""
    steps: int | None = None
    """How many steps of each round a client takes; None: all of them."""
    server: ServerOptimiser = FEDAVG
    """What becomes of the average; its moments start afresh with the slot."""

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
        share, epochs = self.shares[client], 1
        if isinstance(self.local, MiniBatches):
            epochs = self.local.epochs_for(len(share))
        return [rng.permutation(share) for _ in range(epochs)]

    def batches(self, client: int, turn: int) -> list[Indices]:
        """The mini-batches of a client in a round, epoch after epoch, the same for any engine."""
        share = self.shares[client]
        if not isinstance(self.local, MiniBatches):
            return [share][: self.steps]
        size, steps = self.local.batch, self.local.steps_for(len(share))
        return [
            order[n : n + size]
            for order in self.orders(client, turn)
            for n in range(0, len(order), size)
        ][:steps][: self.steps]

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
        rate = getattr(self.server, "rate", None)
        too = "" if rate is None else f", or a server rate below {rate:g},"
        return TrainingFailed(
            f"the {what} of {who} became NaN or infinite in round {turn} of slot {self.slot}: "
            f"a rate below {self.local.rate:g}{too} may help"
        )


class Server:
    """The server's part in the rounds of one slot: it moves the model, and keeps the moments."""

    def __init__(self, plan: TrainingPlan, moments: Moments | None = None) -> None:
        """In the middle of a slot, `moments` are those after the rounds that are over."""
        self.moments: Moments = {} if moments is None else moments
        self._plan = plan
        self._plain = isinstance(plan.server, FedAvg)

    def precise(self, value: Tensor) -> Tensor:
        """A client's parameter in the precision that averages are taken in.

        That is 64 bits for an optimiser that divides by the size of the change: the rounding errors
        of a 32-bit average would look like changes, of numbers that no client has changed.
        """
        return value if self._plain else value.double()

    def blank(self, parameters: Parameters) -> Parameters:
        """Zeros to add the clients' parameters to, each with its weight."""
        return {n: torch.zeros_like(self.precise(value)) for n, value in parameters.items()}

    def step(self, parameters: Parameters, average: Parameters, turn: int) -> Parameters:
        """The next global parameters, given the average of the clients'."""
        if self._plain:
            return average
        model, wanted = (
            {name: value.double().numpy() for name, value in given.items()}
            for given in (parameters, average)
        )
        optimiser = self._plan.server
        found, self.moments = optimiser.step(model, wanted, self.moments or optimiser.start(model))
        after = {n: torch.from_numpy(found[n]).to(value.dtype) for n, value in parameters.items()}
        if not is_finite(after):
            raise self._plan.failed(None, turn)
        return after


def is_finite(parameters: Parameters) -> bool:
    """Whether none of the numbers is NaN or infinite."""
    return all(bool(value.isfinite().all()) for value in parameters.values())


class Engine(Protocol):
    """Runs the rounds of a slot."""

    name: str

    def rounds(
        self, plan: TrainingPlan, parameters: Parameters, server: Server | None = None
    ) -> Iterator[Parameters]:
        """The global parameters after each round that is left.

        Who wants to resume later passes a `Server`, and keeps its moments after a round as well.
        """
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

    def rounds(
        self, plan: TrainingPlan, parameters: Parameters, server: Server | None = None
    ) -> Iterator[Parameters]:
        """The global parameters after each round."""
        plan, trained = plan.freeze(parameters)
        server = server or Server(plan)
        for turn in plan.turns:
            with one_thread():
                average = self._average(plan, trained, server, turn)
                trained = server.step(trained, average, turn)
            yield parameters | trained

    def _average(
        self, plan: TrainingPlan, parameters: Parameters, server: Server, turn: int
    ) -> Parameters:
        """The weighted average of all clients' parameters after their own steps."""
        average = server.blank(parameters)
        for client in plan.taking_part:
            with plan.seeded(client, turn):
                local = self._train(plan, parameters, client, turn)
            weight = len(plan.shares[client]) / plan.total
            for name, value in local.items():
                average[name] += weight * server.precise(value)
        return average

    def _train(
        self, plan: TrainingPlan, parameters: Parameters, client: int, turn: int
    ) -> Parameters:
        """A client's parameters after its own steps from the global ones."""
        local = {name: value.clone().requires_grad_() for name, value in parameters.items()}
        change = _change(plan.local, parameters, local)
        for batch in plan.batches(client, turn):
            chosen = torch.from_numpy(batch)
            loss = plan.model.losses(local, plan.inputs[chosen], plan.labels[chosen]).mean()
            gradients = torch.autograd.grad(loss, list(local.values()))
            with torch.no_grad():
                change(gradients)
            if self._after_step is not None:
                self._after_step(local)
        if not is_finite(local):
            raise plan.failed(client, turn)
        return {name: value.detach() for name, value in local.items()}


def _change(
    rule: LocalRule, start: Parameters, local: Parameters
) -> Callable[[Sequence[Tensor]], None]:
    """What a step does to the client's parameters, given their gradients."""
    adam = None
    if isinstance(rule, MiniBatches) and rule.optimiser == "adam":
        adam = torch.optim.Adam(local.values(), lr=rule.rate)
    mu = rule.proximal if isinstance(rule, MiniBatches) else 0.0

    def change(gradients: Sequence[Tensor]) -> None:
        for (name, value), gradient in zip(local.items(), gradients, strict=True):
            whole = gradient + mu * (value - start[name]) if mu else gradient
            if adam is None:
                value.sub_(whole, alpha=rule.rate)
            else:
                value.grad = whole
        if adam is not None:
            adam.step()

    return change
