"""What is written down of a match: totals, discounted costs, events, and the history if asked."""

from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.game.cost import cost
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.repeated.discounting import discounted, power, times, worth
from fedaccord.repeated.rng import Block
from fedaccord.repeated.simulator import Stretch, Table

EventKind = Literal["deviation", "absence", "false alarm", "punishment", "return"]

_UNSETTLED = 1_000
"""After so many changes past the last slot, strategies are taken to go on with what they do."""


class Event(NamedTuple):
    """Something that happened, and in which slot."""

    slot: int
    client: str | None
    """Who; None for what concerns everyone."""
    kind: EventKind
    agreed: float | None = None
    contributed: float | None = None
    lasted: float = 1
    """For how many slots in a row; infinite: for ever."""


class Book:
    """Keeps what happened: totals, costs, events, and everything else if asked to."""

    def __init__(self, agreement: Agreement, slots: int, history: bool) -> None:
        size = agreement.consortium.size
        self.agreement = agreement
        self.slots = slots
        self.history = history
        self.delta = agreement.consortium.discount_factor
        self.sums = _Sums.of_nothing(size)
        self.after = _Sums.of_nothing(size)
        """What comes after the last slot, discounted to the slot that follows it."""
        self.totals = np.empty(slots)
        self.punishing = np.zeros(slots, dtype=bool)
        self.slipped = np.zeros(size, dtype=bool)
        self.diary = _Diary(agreement)
        self.false_alarms, self.deviations, self.missed, self.absences = 0, 0, 0, 0
        self.last_total = agreement.equilibrium.total
        shape = (slots if history else 0, size)
        self.contributions, self.observed, self.cost = (np.empty(shape) for _ in range(3))
        self.client_punishing = np.empty(shape, dtype=bool)

    def enter(self, stretch: Stretch) -> None:
        """Write down a stretch of slots."""
        part = slice(stretch.first - 1, stretch.first - 1 + int(stretch.length))
        costs = self._costs(stretch, stretch.profile)
        self.totals[part] = stretch.contributions.sum(axis=-1)
        self.punishing[part] = stretch.mostly_punishing
        self.sums.add(self._sums(stretch, costs))
        self._count(stretch)
        if self.history:
            self.contributions[part] = stretch.contributions
            self.observed[part] = stretch.observed
            self.client_punishing[part] = stretch.punishing
            self.cost[part] = costs
            self.diary.enter(stretch)

    def enter_tail(self, table: Table) -> None:
        """Add up for ever after: nobody is absent or misread any more.

        Clients that cannot say what they will do are taken to go on with what they did last.
        The match then ends in a stretch without end, or in a cycle (slip, punishment, return,
        slip): the cycle's sum is added as often as it comes, in closed form.
        """
        self._follow(table)
        self.sums.add(self.after.times(power(self.delta, self.slots)))

    def _follow(self, table: Table) -> None:
        """Add up what comes after the last slot."""
        self.diary.close(self.punishing, table.punished_until)
        table.settle()
        met: dict[object, tuple[int, int]] = {}
        passed: list[_Sums] = []
        while table.standing not in met:
            met[table.standing] = (table.slot, len(passed))
            stretch = table.stretch(Block(first=table.slot, last=inf))
            sums = self._sums(stretch, self._costs(stretch, stretch.profile), self.slots + 1)
            self.after.add(sums)
            passed.append(sums)
            if stretch.length == inf:
                return
            if len(passed) == _UNSETTLED:
                table.settle(everyone=True)
        first, index = met[table.standing]
        period = table.slot - first
        again = power(self.delta, period) / ((1.0 - self.delta) * worth(self.delta, period))
        for sums in passed[index:]:
            self.after.add(sums.times(again))

    def _costs(self, stretch: Stretch, profile: FloatArray) -> FloatArray:
        """What each slot costs each client, if everyone present contributes this.

        When everyone who would train is absent, the last model stays in use, and its accuracy
        loss. When nobody means to train there is no model, and the cost is infinite (eq. 5).
        """
        contributions = stretch.of_present(profile)
        total = contributions.sum(axis=-1)
        if profile.any():
            total = np.where(total > 0, total, self._in_use(stretch)[:-1])
        return cost(self.agreement.consortium, contributions, total[:, np.newaxis])

    def _in_use(self, stretch: Stretch) -> FloatArray:
        """How much data is behind the model in use before each slot, and after the last."""
        totals = np.append(self.last_total, stretch.contributions.sum(axis=-1))
        trained = np.where(totals > 0, np.arange(totals.size), 0)
        return np.asarray(totals[np.maximum.accumulate(trained)])

    def _sums(self, stretch: Stretch, costs: FloatArray, now: int = 1) -> "_Sums":
        """The stretch's costs discounted to the slot `now`, in all and for which reason.

        A false alarm costs what is paid above the agreement's cost in its punishment; a slip
        that nobody saw, what is paid above the cost had who slipped given what was agreed. Who
        is absent is so either way.
        """
        start = power(self.delta, stretch.first - now)
        agreed, unseen = self.agreement.profile, stretch.slipped & ~stretch.seen

        def summed(costs: FloatArray) -> FloatArray:
            return times(start, discounted(costs, self.delta, stretch.length))

        sums = _Sums.of_nothing(self.delta.size)
        sums.cost = summed(costs)
        if stretch.undeserved:
            sums.false_alarms = summed(costs - self._costs(stretch, agreed))
        if unseen.any():
            kept = self._costs(stretch, np.where(unseen, agreed, stretch.profile))
            some = True if stretch.absent is None else (unseen & ~stretch.absent).any(axis=-1)
            sums.missed = summed(np.where(np.reshape(some, (-1, 1)), costs - kept, 0.0))
        return sums

    def _count(self, stretch: Stretch) -> None:
        """How often what happened."""
        slots = np.full(self.delta.size, stretch.length)
        if stretch.absent is not None:
            slots -= stretch.absent.sum(axis=0)
            self.absences += int(stretch.absent.sum())
        self.slipped |= stretch.slipped & (slots > 0)
        self.deviations += int(slots[stretch.slipped].sum())
        self.missed += int(slots[stretch.slipped & ~stretch.seen].sum())
        self.false_alarms += stretch.false_alarm
        self.last_total = float(self._in_use(stretch)[-1])


class _Diary:
    """The events, as they come."""

    def __init__(self, agreement: Agreement) -> None:
        self.names, self.agreed = agreement.consortium.names, agreement.profile.tolist()
        self.events: list[Event] = []
        self.lasting: dict[int, int] = {}
        """Where the latest deviation of a client stands among the events."""

    def enter(self, stretch: Stretch) -> None:
        """Who slipped, was absent, or was wronged."""
        for n in np.flatnonzero(stretch.slipped).tolist():
            for first, length in _runs_present(stretch, n):
                self._deviation(n, first, float(stretch.profile[n]), length)
        if stretch.absent is not None:
            for row, n in np.argwhere(stretch.absent).tolist():
                self._note(stretch.first + row, n, "absence", 0.0)
        if stretch.false_alarm:
            for n in np.flatnonzero(stretch.seen).tolist():
                self._note(stretch.first, n, "false alarm", float(stretch.profile[n]))

    def close(self, punishing: BoolArray, until: float) -> None:
        """When the punishments began and ended, `until` if the match ends first."""
        edges = np.flatnonzero(np.diff(np.concatenate([[False], punishing, [False]])))
        for before, last in edges.reshape(-1, 2).tolist():
            ends = last < punishing.size
            lasted = last - before if ends else until - before
            self.events.append(Event(before + 1, None, "punishment", lasted=lasted))
            if ends:
                self.events.append(Event(last + 1, None, "return"))
        self.events.sort(key=lambda event: (event.slot, event.client is not None))

    def _note(self, slot: int, n: int, kind: EventKind, contributed: float) -> None:
        self.events.append(Event(slot, self.names[n], kind, self.agreed[n], contributed))

    def _deviation(self, n: int, first: int, contributed: float, length: float) -> None:
        """One event, however long it lasts."""
        if n in self.lasting:
            where = self.lasting[n]
            event = self.events[where]
            if (event.slot + event.lasted, event.contributed) == (first, contributed):
                self.events[where] = event._replace(lasted=event.lasted + length)
                return
        self.lasting[n] = len(self.events)
        self._note(first, n, "deviation", contributed)
        self.events[-1] = self.events[-1]._replace(lasted=length)


def _runs_present(stretch: Stretch, n: int) -> list[tuple[int, int]]:
    """First slot and length of each run of slots in which a client is present."""
    if stretch.absent is None:
        return [(stretch.first, int(stretch.length))]
    slots = stretch.first + np.flatnonzero(~stretch.absent[:, n])
    runs = np.split(slots, np.flatnonzero(np.diff(slots) > 1) + 1)
    return [(int(run[0]), run.size) for run in runs if run.size]


@dataclass
class _Sums:
    """Discounted costs: in all, for false alarms, for slips that nobody saw."""

    cost: FloatArray
    false_alarms: FloatArray
    missed: FloatArray

    @classmethod
    def of_nothing(cls, size: int) -> "_Sums":
        """Sums to start from."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))

    def add(self, other: "_Sums") -> None:
        """Add another's to these."""
        self.cost = self.cost + other.cost
        self.false_alarms = self.false_alarms + other.false_alarms
        self.missed = self.missed + other.missed

    def times(self, factor: FloatArray) -> "_Sums":
        """These, each client's times its factor."""
        parts = (self.cost, self.false_alarms, self.missed)
        return _Sums(*(times(factor, part) for part in parts))
