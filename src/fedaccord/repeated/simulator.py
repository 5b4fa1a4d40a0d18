"""The simulator: everyone's next contribution, what is observed of it, and what follows.

What an alarm leads to, and for whom, depends on the agreement's punishment; see
`fedaccord.repeated.aftermath`.

Random numbers decide who is absent from a slot, by how much each is misread, and if the agreement
says how clients are audited, whom audits accuse (`random_slots`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import KEPT, Agreement
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.repeated.aftermath import Standing, aftermath_of
from fedaccord.repeated.judgement import Judgement, Pending
from fedaccord.repeated.random_slots import Block
from fedaccord.repeated.strategies import Steady, Strategy, View, answer_of

_LOOK_AHEAD = 8
"""How many slots are searched for an alarm at first; then twice as many, and so on."""


@dataclass(frozen=True)
class Stretch:
    """Slots in a row with the same intentions; a slot with an alarm is a stretch of its own."""

    first: int
    length: float
    """How many slots; infinite at the very end."""
    profile: FloatArray
    """What each client intends to contribute; 0 for one that is out."""
    standing: Standing
    """Who punishes, and who is out."""
    less: BoolArray
    """Who intends to contribute less than agreed."""
    seen: BoolArray
    """Who is observed to contribute less than agreed, and judged."""
    falsely: BoolArray
    """Who of these is accused of a slip that nobody made."""
    absent: BoolArray | None
    """Who is absent, one row per slot; None: nobody."""
    error: FloatArray | None
    """By what fraction each contribution is misread, one row per slot; None: by nothing."""

    @property
    def mostly_punishing(self) -> bool:
        """Whether more than half of the clients are."""
        return 2 * int(self.standing.punishing.sum()) > self.less.size

    @property
    def slipped(self) -> BoolArray:
        """Who contributes less than agreed, if present, while expected to keep to it."""
        return self.less & self.standing.keeping

    @property
    def missing(self) -> BoolArray | None:
        """Who is absent of those that are not out, one row per slot; None: nobody."""
        return None if self.absent is None else self.absent & ~self.standing.out

    @cached_property
    def contributions(self) -> FloatArray:
        """One row per slot, or a single row if all slots are the same."""
        return np.where(self.gone(self.standing.out), 0.0, self.profile)

    def gone(self, out: BoolArray) -> BoolArray:
        """Who takes no part, absent or out, if these are out; rows as above."""
        return out[np.newaxis] if self.absent is None else self.absent | out

    @property
    def observed(self) -> FloatArray:
        """The contributions as everyone observes them; NaN for a client that takes no part."""
        seen = self.contributions
        if self.error is not None:
            seen = np.maximum(seen * (1.0 + self.error), 0.0)
        return np.where(self.gone(self.standing.out), np.nan, seen)

    @property
    def seen_last(self) -> FloatArray:
        """What is observed in the last slot; 0 for a client that takes no part."""
        end = replace(
            self,
            absent=None if self.absent is None else self.absent[-1:],
            error=None if self.error is None else self.error[-1:],
        )
        return np.asarray(np.nan_to_num(end.observed[0]))


@dataclass
class Group:
    """The clients that play one strategy."""

    strategy: Strategy
    clients: npt.NDArray[np.int64]


class Simulator:
    """The state of a match: the slot, where everyone stands, and what was observed last."""

    def __init__(
        self, agreement: Agreement, strategies: tuple[Strategy, ...], tolerance: float
    ) -> None:
        self.agreement = agreement
        self.strategies = strategies
        self.judgement = Judgement.of(agreement, tolerance)
        self.groups = grouped(strategies)
        self.aftermath = aftermath_of(
            agreement, [getattr(each, "punishes_for", None) for each in strategies]
        )
        self.slot = 1
        self.last: FloatArray | None = None
        self.intended = agreement.profile
        self.look_ahead = _LOOK_AHEAD
        self.pending = Pending(agreement.monitoring.seen_late)

    @property
    def key(self) -> tuple[Any, ...]:
        """All that the future depends on: where everyone stands, and the last intentions."""
        return (
            self.aftermath.key(self.slot),
            self.pending.key(self.slot),
            self.intended.tobytes(),
        )

    def stretch(self, block: Block) -> Stretch:
        """Play until something changes, at most to the end of the block."""
        standing = self.aftermath.standing(self.slot)
        self.intended, until = self._intentions(standing)
        profile = np.where(standing.out, 0.0, self.intended)
        last = min(until, self.aftermath.same_until(self.slot), self.pending.same_until, block.last)
        length = last - self.slot + 1
        rows = block.rows(self.slot, min(length, self.look_ahead))
        short = self.judgement.accused(profile, rows) & standing.judged
        alarms = np.flatnonzero(short.any(axis=-1))
        if alarms.size:
            length = max(int(alarms[0]), 1)
        elif rows.is_random:
            length = len(short)
        self.look_ahead = _LOOK_AHEAD if alarms.size else 2 * len(short)
        less = profile < self.agreement.profile * (1.0 - KEPT)
        seen = short[0] & (length == 1)
        stretch = Stretch(
            first=self.slot,
            length=length,
            profile=profile,
            standing=standing,
            less=less,
            seen=seen,
            falsely=self.aftermath.falsely(seen, less),
            absent=None if rows.absent is None else rows.absent[: int(length)],
            error=None if rows.error is None else rows.error[: int(length)],
        )
        self._move_on(stretch)
        return stretch

    def settle(self, everyone: bool = False) -> None:
        """From now on, clients that cannot say what they will do repeat what they did last."""
        standing = self.aftermath.standing(self.slot)
        for group in self.groups:
            unsure = group.strategy.steady_until(self._view(group, standing)) < self.slot
            if unsure or everyone:
                group.strategy = _Fixed(self.intended)

    def _move_on(self, stretch: Stretch) -> None:
        """Go to the slot after a stretch."""
        self.last = stretch.seen_last
        if stretch.seen.any():
            self.pending.add(self.slot, stretch.seen, stretch.falsely)
        self.slot += int(stretch.length) if stretch.length < inf else 0
        for seen, falsely in self.pending.due(self.slot):
            self.aftermath.alarm(self.slot - 1, seen, falsely)

    def _intentions(self, standing: Standing) -> tuple[FloatArray, float]:
        """What everyone would contribute, and the last slot for which that is certain."""
        names = self.agreement.consortium.names
        profile = np.empty(len(names))
        until = inf
        for group in self.groups:
            view = self._view(group, standing)
            profile[group.clients] = answer_of(group.strategy, view, names)
            steady = group.strategy.steady_until(view)
            until = min(until, steady if steady >= self.slot else self.slot)
        return profile, until if until == inf else floor(until)

    def _view(self, group: Group, standing: Standing) -> View:
        consortium, agreement = self.agreement.consortium, self.agreement
        first = group.clients[0]
        return View(
            slot=self.slot,
            clients=group.clients,
            agreed=agreement.profile[group.clients],
            equilibrium=agreement.equilibrium.profile[group.clients],
            samples=consortium.samples[group.clients],
            satiation=consortium.satiation[group.clients],
            quality=consortium.quality,
            agreed_total=standing.agreed_total,
            last_alarm=int(self.aftermath.last_alarm[first]) or None,
            punishing=bool(standing.punishing[first]),
            last=self.last,
            out=standing.out,
            slots_left=standing.left[group.clients],
        )


@dataclass(frozen=True, eq=False)
class _Fixed(Steady):
    """Repeat the same profile for ever."""

    profile: FloatArray

    def contribution(self, view: View) -> FloatArray:
        """The same again."""
        return self.profile[view.clients]


def grouped(strategies: tuple[Strategy, ...]) -> list[Group]:
    """Each strategy once, with the positions of the clients that play it."""
    clients: dict[Any, tuple[Strategy, list[int]]] = {}
    for n, strategy in enumerate(strategies):
        key: Any = strategy if _hashable(strategy) else id(strategy)
        clients.setdefault(key, (strategy, []))[1].append(n)
    return [Group(strategy, np.array(positions)) for strategy, positions in clients.values()]


def _hashable(strategy: Strategy) -> bool:
    try:
        hash(strategy)
    except TypeError:
        return False
    return True
