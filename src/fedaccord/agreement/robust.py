"""Agreements that hold for every law of the loss that fits the measurements, not for one alone.

The clients know the truth sooner or later; we know a set of laws. Under law k they would play its
own equilibrium, of total S_k, and be punished by it. A profile with a total above every S_k holds
if each client keeps to it under each law: u_n(T) is the least of its bounds over all laws, and the
rest is as for one law. The worst law is not the same for every client, nor the flattest one.

Only few laws matter. So the agreement is solved for the fitted law first, then all laws are
examined at that profile, those that a client would slip under are added (for each client the worst
of them, and the one with the largest S), and it is solved again, until nobody slips under any.

A client that would contribute *more* than agreed under some law is no problem, and is not counted
as one: it helps everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.box import Box
from fedaccord.agreement.enforcement import ScaledGame, scale, scale_one
from fedaccord.agreement.monitoring import Monitoring
from fedaccord.agreement.punishment import Punishment
from fedaccord.agreement.weight import Weight, weight_of
from fedaccord.errors import NotConverged
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.law import Law
from fedaccord.game.law_rows import some_rows
from fedaccord.numbers import FloatArray

_TOGETHER = 2**20
"""How many clients, over all laws, are examined at once."""

_MOST_CUTS = 100
"""Far more rounds of adding laws than are needed: each adds some, and only few matter."""


@dataclass(frozen=True)
class Terms:
    """What an agreement is to hold for, in samples of quality 1."""

    equilibrium: Equilibrium
    margin: float
    punishment: Punishment
    nobody_worse: bool
    over_ranges: bool
    monitoring: Monitoring
    others: Law | None = None
    """Laws (rows) that it is to hold for besides the consortium's own."""

    @property
    def law(self) -> Law:
        """The consortium's own law: of a measured one, the one that fits best."""
        return self.equilibrium.consortium.law

    @cached_property
    def box(self) -> Box | None:
        """The types that clients may have; None: exactly those that are stated."""
        ranges = self.equilibrium.consortium.ranges
        if not self.over_ranges or ranges is None:
            return None
        agreed = self.margin, self.punishment, self.nobody_worse, self.monitoring
        return Box(self.equilibrium, ranges, *agreed)

    @cached_property
    def stated(self) -> ScaledGame:
        """The game of the numbers as stated and the fitted law."""
        game = scale_one(
            self.equilibrium,
            self.margin,
            self.punishment,
            nobody_worse=self.nobody_worse,
            monitoring=self.monitoring,
        )
        return game if self.box is None else self.box.stated(game)

    @property
    def fitted(self) -> ScaledGame:
        """The game of the fitted law, with every client in its worst corner."""
        if self.box is None:
            return self.stated
        return self.box.game(self.equilibrium.consortium.law, 1)

    def game(self, laws: Law) -> ScaledGame:
        """One row for each of the laws, with every client in its worst corner."""
        if self.box is not None:
            return self.box.game(laws, laws.value.shape[1])
        agreed = self.margin, self.punishment, self.monitoring
        return game_of_laws(self.equilibrium, laws, *agreed, nobody_worse=self.nobody_worse)


def game_of_laws(
    equilibrium: Equilibrium,
    laws: Law,
    margin: float,
    punishment: Punishment,
    monitoring: Monitoring,
    *,
    nobody_worse: bool,
) -> ScaledGame:
    """One row for each of the laws (rows of laws), with the equilibrium that it leads to.

    The equilibrium counts samples of quality 1.
    """
    consortium = equilibrium.consortium
    shape = (laws.value.shape[1], consortium.size)
    rates = monitoring.rates(consortium)
    weight = weight_of(consortium.discount_factor, rates, punishment, monitoring, margin)
    fees = (consortium.communication_cost + consortium.server_fee) / consortium.cost_per_sample
    rows = [consortium.ratio, consortium.samples, weight.patience, weight.late, fees]
    ratio, samples, patience, late, fees = (np.broadcast_to(row, shape) for row in rows)
    game, _ = scale(
        ratio,
        samples,
        laws,
        Weight(patience, late),
        punishment,
        fees=fees,
        nobody_worse=nobody_worse,
        samples_checked=monitoring.samples_checked,
    )
    return game


def solve_for_all(
    solve: Callable[[ScaledGame], Agreement], game_of: Callable[[Law], ScaledGame], laws: Law
) -> Agreement:
    """The agreement that `solve` returns for as many of the laws (rows) as make it hold for all.

    The first row is the fitted law.
    """
    chosen, agreement = [0], solve(game_of(some_rows(laws, np.array([0]))))
    for _ in range(_MOST_CUTS):
        found = _cuts(agreement.profile, game_of, laws) if agreement.exists else []
        added = [law for law in found if law not in chosen]
        if not added:
            return agreement
        chosen += added
        agreement = solve(game_of(some_rows(laws, np.array(chosen))))
    raise NotConverged(f"no agreement was found that holds for all {laws.value.shape[1]} laws")


def _cuts(profile: FloatArray, game_of: Callable[[Law], ScaledGame], laws: Law) -> list[int]:
    """For each client that would slip under some law, the worst one; and the largest S."""
    height, width = laws.value.shape[1], profile.size
    at_once = max(1, _TOGETHER // width)
    amounts, total = profile.reshape(1, -1), np.array([[profile.sum()]])
    worst, by_how_much = np.full(width, -1), np.full(width, -np.inf)
    largest, most = 0, -np.inf
    for n in range(0, height, at_once):
        game = game_of(some_rows(laws, np.arange(n, min(n + at_once, height))))
        slips = game.slips(amounts, total)
        excess = np.where(slips, game.excess(amounts, total), -np.inf)
        row = np.argmax(excess, axis=0)
        here = np.take_along_axis(excess, row[np.newaxis], axis=0)[0]
        worst = np.where(here > by_how_much, n + row, worst)
        by_how_much = np.maximum(here, by_how_much)
        top = int(np.argmax(game.start))
        if game.start[top].item() > most:
            largest, most = n + top, game.start[top].item()
    found = sorted(set(worst[worst >= 0].tolist()))
    return [*found, largest] if found else []
