"""Ways to train together, and which of them suits these clients.

A way is a server optimiser, what clients do in a round, and for how many epochs each of them
fine-tunes the shared model at the end. Which way is best is found by cross-validation on training
examples alone. So the test examples, by which clients decide whether to join, had no part in the
choice, and do not flatter it. What clients do alone is chosen in the same manner, since a client
that trains by itself is free to do it well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.data.own import OwnPartition
from fedaccord.errors import InvalidInput
from fedaccord.membership.group_scores import GroupScores
from fedaccord.membership.holding_out import held_out
from fedaccord.membership.measuring import measure_groups
from fedaccord.numbers import BoolArray, FloatArray, count
from fedaccord.record import Record, Value
from fedaccord.training.course import Course
from fedaccord.training.optimisers import FEDAVG, FedAdam, FedAvg, ServerOptimiser
from fedaccord.training.rules import LocalRule
from fedaccord.training.task import Model, Task

FOLDS = 5
"""Parts of everyone's training examples, each held out once."""


@dataclass(frozen=True)
class Way:
    """How clients train together."""

    local: LocalRule
    server: ServerOptimiser = FEDAVG
    fine_tuning: int = 0
    """Epochs that each client trains the shared model for on its own data, at the end."""

    @property
    def name(self) -> str:
        """The optimiser and the fine-tuning."""
        return self._optimiser() + self._tuned()

    @property
    def plain(self) -> bool:
        """Whether this is FedAvg and nothing else."""
        return self._optimiser() == FedAvg.__name__ and not self.fine_tuning

    def __str__(self) -> str:
        """With the rates, too."""
        rate = getattr(self.server, "rate", None)
        server = "" if rate is None else f", server rate {rate:g}"
        return f"{self._optimiser()}, rate {self.local.rate:g}{server}{self._tuned()}"

    def _optimiser(self) -> str:
        held = bool(getattr(self.local, "proximal", 0.0)) and isinstance(self.server, FedAvg)
        return "FedProx" if held else type(self.server).__name__

    def _tuned(self) -> str:
        epochs = count(self.fine_tuning, "epoch")
        return f" and {epochs} of fine-tuning" if self.fine_tuning else ""


@dataclass(frozen=True, eq=False)
class Setting(Value):
    """What is trained, whatever the way: everyone's examples, the task and the rounds of a slot."""

    partition: OwnPartition
    task: Task
    rounds: int
    scale: float = 1.0
    """Examples per sample of a consortium, if there is one."""

    def course(self, way: Way) -> Course:
        """The training that goes this way."""
        return Course(
            model=Model(self.task, self.partition.dataset),
            partition=self.partition.reordered,
            rounds=self.rounds,
            local=way.local,
            scale=self.scale,
            names=self.partition.names,
            server=way.server,
            fine_tuning=way.fine_tuning,
        )

    def fold(self, number: int) -> Setting:
        """The same with a part of the training examples as the test."""
        return replace(self, partition=held_out(self.partition, number, FOLDS))


@dataclass(frozen=True, eq=False)
class TriedWay(Record):
    """A way, and its loss on examples that were held out from training.

    The loss says more about few examples than how many of them are right.
    """

    way: Way
    each_together: tuple[float, ...] = ()
    """Of everyone's model: the loss on each client's own examples. Empty if it was not tried."""
    each_alone: tuple[float, ...] = ()
    """Of each client's own model, likewise."""

    @property
    def together(self) -> float:
        """The mean over clients of the loss of everyone's model."""
        return float(np.mean(self.each_together)) if self.each_together else np.nan

    @property
    def alone(self) -> float:
        """The mean over clients of the loss of their own models."""
        return float(np.mean(self.each_alone)) if self.each_alone else np.nan

    def _facts(self) -> dict[str, Any]:
        return {
            "way": str(self.way),
            "together": self.together,
            "alone": self.alone,
            "each_together": list(self.each_together),
            "each_alone": list(self.each_alone),
        }


@dataclass(frozen=True)
class TriedWays:
    """All ways that were tried."""

    tried: tuple[TriedWay, ...]
    forced: TriedWay | None = None
    """One to train together by, even if another one is better."""

    @cached_property
    def best_together(self) -> TriedWay:
        """The best for everyone together, unless one is forced."""
        return self.forced or min(self.tried, key=lambda each: each.together)

    @cached_property
    def best_alone(self) -> TriedWay:
        """The best for clients by themselves."""
        return min(self.tried, key=lambda each: each.alone)

    @property
    def together(self) -> Way:
        """How everyone trains together."""
        return self.best_together.way

    @property
    def alone(self) -> Way:
        """How clients train by themselves."""
        return self.best_alone.way

    @cached_property
    def plain(self) -> TriedWays | None:
        """The same with plain FedAvg together, at its best rate; None if it is that, or untried."""
        plain = [each for each in self.tried if each.way.plain]
        if not plain or self.together.plain:
            return None
        return replace(self, forced=min(plain, key=lambda each: each.together))


_RATES = (0.3, 1.0, 3.0)
"""Times the rate of the local rule."""
_SERVER_RATES = (0.01, 0.1)
"""Of FedAdam."""
_FINE_TUNING = 3
"""Epochs."""


def usual_ways(local: LocalRule, *, own_tests: bool) -> list[Way]:
    """The ways to try where nobody says how to train: FedAvg and FedAdam, some with fine-tuning.

    Fine-tuning takes tests of the clients' own to judge by.
    """
    tuned = (0, _FINE_TUNING) if own_tests else (0,)
    averaged = [replace(local, rate=times * local.rate) for times in _RATES]
    return [
        *(Way(rule, fine_tuning=epochs) for rule in averaged for epochs in tuned),
        *(Way(local, FedAdam(rate), epochs) for rate in _SERVER_RATES for epochs in tuned),
    ]


Told = Callable[[int, int], None]
"""Called with the trainings that are over, and how many there will be."""


def try_ways(
    setting: Setting, ways: Sequence[Way], seeds: Sequence[int], progress: Told | None = None
) -> TriedWays:
    """Cross-validate each way, for everyone together and for each client alone.

    A single way is not tried: there is nothing to choose.
    """
    if len(ways) == 1:
        return TriedWays((TriedWay(ways[0]),))
    _check_sizes(setting.partition)
    groups = everyone_and_alone(len(setting.partition.names))
    of = len(ways) * FOLDS
    tried = []
    for k, way in enumerate(ways):
        losses = []
        for fold in range(FOLDS):
            scores = measure_groups(setting.fold(fold).course(way), groups, seeds)
            losses.append(_held_out_losses(scores))
            if progress is not None:
                progress(k * FOLDS + fold + 1, of)
        together, alone = np.mean(losses, axis=0).tolist()
        tried.append(TriedWay(way, tuple(together), tuple(alone)))
    return TriedWays(tuple(tried))


def _check_sizes(partition: OwnPartition) -> None:
    """Refuse clients that have nothing to hold out in one of the parts."""
    if problems := [
        f"{name}: has {count(size, 'record')} to train with, and {FOLDS} are needed to choose how "
        "to train: name the optimiser"
        for name, size in zip(partition.names, partition.sizes, strict=True)
        if size < FOLDS
    ]:
        raise InvalidInput(problems)


def everyone_and_alone(clients: int) -> BoolArray:
    """The group of everyone, then each client by itself."""
    return np.concatenate([np.ones((1, clients), bool), np.eye(clients, dtype=bool)])


def _held_out_losses(scores: GroupScores) -> FloatArray:
    """Together and alone (rows): the loss on each client's own examples."""
    own = np.array([scores.by_loss.by_seed(n + 1).mean(axis=1) for n in range(scores.clients)])
    return np.stack([own[:, 0], np.diag(own[:, 1:])])
