"""The recorder of a match: totals, discounted costs, events, and on request the whole history.

Discounted sums are computed by multiplication and addition only: those two are rounded in the same
way on every machine; powers and logarithms are not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns
from fedaccord.repeated.aftermath import Aftermath, Spell
from fedaccord.repeated.random_slots import Block
from fedaccord.repeated.simulator import Simulator, Stretch


def power(delta: FloatArray, exponent: int) -> FloatArray:
    """delta^exponent, by squaring.

    >>> power(np.array([0.5, 0.0]), 10).tolist(), power(np.array([0.0]), 0).tolist()
    ([0.0009765625, 0.0], [1.0])
    """
    result, factor = np.ones_like(delta), delta
    while exponent:
        if exponent % 2:
            result = result * factor
        exponent //= 2
        factor = factor * factor
    return result


def worth(delta: FloatArray, slots: float) -> FloatArray:
    """1 + delta + ... + delta^(slots - 1); `slots` may be infinite.

    Doubling the number of terms k multiplies the sum by (1 + delta^k), so few steps are needed.

    >>> worth(np.array([0.5, 0.0]), 3).tolist(), worth(np.array([0.5, 0.0]), inf).tolist()
    ([1.75, 1.0], [2.0, 1.0])
    """
    if slots == inf:
        return np.asarray(1.0 / (1.0 - delta))
    left = int(slots)
    result, terms, factor = np.zeros_like(delta), np.ones_like(delta), delta
    while left:
        if left % 2:
            result = terms + factor * result
        left //= 2
        terms = terms * (1.0 + factor)
        factor = factor * factor
    return result


def discounted(costs: FloatArray, delta: FloatArray, slots: float) -> FloatArray:
    """The sum of delta^k times the k-th row of `costs`; a single row stands for all slots."""
    if len(costs) == 1:
        return np.asarray(costs[0] * worth(delta, slots))
    result: FloatArray = costs[-1].copy()
    for row in costs[-2::-1]:
        result = times(delta, result)
        result += row
    return result


def times(factor: FloatArray, values: FloatArray) -> FloatArray:
    """Their product, where 0 times infinity is 0."""
    if np.isfinite(values).all():
        return np.asarray(factor * values)
    return np.where(factor > 0, factor * np.where(factor > 0, values, 0.0), 0.0)


EventKind = Literal["deviation", "absence", "false alarm", "punishment", "suspension", "return"]
_FIRST: tuple[EventKind, ...] = ("punishment", "suspension", "return")
"""What is so from the beginning of a slot on."""

_UNSETTLED = 1_000
"""After this many changes past the last slot, strategies are assumed to repeat themselves."""


class Event(NamedTuple):
    """Something that happened in a slot."""

    slot: int
    client: str | None
    """The client in question; None if it concerns everyone."""
    kind: EventKind
    agreed: float | None = None
    contributed: float | None = None
    lasted: float = 1
    """For how many slots in a row; infinite: for ever."""


def event_columns(events: Sequence[Event]) -> Columns:
    """The events as columns of a table."""
    columns = {field: [getattr(event, field) for event in events] for field in Event._fields}
    return columns | {"lasted": [n if n == inf else int(n) for n in columns["lasted"]]}


def phase_names(punishing: BoolArray) -> tuple[str, ...]:
    """The phase of each slot in words."""
    return tuple("punishing" if p else "cooperating" for p in punishing.tolist())


class Recorder:
    """Records stretches of slots: totals, costs, events, and on request the whole history."""

    def __init__(self, aftermath: Aftermath, slots: int, history: bool) -> None:
        agreement = aftermath.agreement
        size = agreement.consortium.size
        self.agreement, self.aftermath = agreement, aftermath
        self.slots = slots
        self.history = history
        self.delta = agreement.consortium.discount_factor
        self.sums = _Sums.of_nothing(size)
        self.after = _Sums.of_nothing(size)
        """The costs after the last slot, discounted to the slot that follows it."""
        self.totals = np.empty(slots)
        self.punishing = np.zeros(slots, dtype=bool)
        self.slipped = np.zeros(size, dtype=bool)
        self.log = _EventLog(agreement)
        self.false_alarms, self.deviations, self.missed, self.absences = 0, 0, 0, 0
        self.slots_out = 0
        self.last_total = agreement.equilibrium.total
        shape = (slots if history else 0, size)
        self.contributions, self.observed, self.cost = (np.empty(shape) for _ in range(3))
        self.client_punishing, self.suspended = (np.empty(shape, dtype=bool) for _ in range(2))

    def enter(self, stretch: Stretch) -> None:
        """Record a stretch of slots."""
        part = slice(stretch.first - 1, stretch.first - 1 + int(stretch.length))
        costs = self._costs(stretch, stretch.profile, stretch.standing.out)
        self.totals[part] = self.agreement.consortium.totals_of(stretch.contributions)
        self.punishing[part] = stretch.mostly_punishing
        self.sums.add(self._sums(stretch, costs))
        self._count(stretch)
        if self.history:
            self.contributions[part] = stretch.contributions
            self.observed[part] = stretch.observed
            self.client_punishing[part] = stretch.standing.punishing
            self.suspended[part] = stretch.standing.out
            self.cost[part] = costs
            self.log.enter(stretch)

    def enter_tail(self, simulator: Simulator) -> None:
        """Add up all costs after the last slot, where nobody is absent or misread.

        Clients that cannot say what they will do are assumed to repeat what they did last. The
        match then ends in a stretch without end, or in a cycle (slip, punishment, return, slip),
        whose repetitions are summed in closed form.
        """
        self._follow(simulator)
        self.sums.add(self.after.times(power(self.delta, self.slots)))

    def _follow(self, simulator: Simulator) -> None:
        """Add up the costs after the last slot."""
        self.log.close(self.aftermath.spells(self.punishing, self.suspended))
        simulator.settle()
        met: dict[object, tuple[int, int]] = {}
        passed: list[_Sums] = []
        while simulator.key not in met:
            met[simulator.key] = (simulator.slot, len(passed))
            stretch = simulator.stretch(Block(first=simulator.slot, last=inf))
            costs = self._costs(stretch, stretch.profile, stretch.standing.out)
            sums = self._sums(stretch, costs, self.slots + 1)
            self.after.add(sums)
            passed.append(sums)
            if stretch.length == inf:
                return
            if len(passed) == _UNSETTLED:
                simulator.settle(everyone=True)
        first, index = met[simulator.key]
        period = simulator.slot - first
        again = power(self.delta, period) / ((1.0 - self.delta) * worth(self.delta, period))
        for sums in passed[index:]:
            self.after.add(sums.times(again))

    def _costs(self, stretch: Stretch, profile: FloatArray, out: BoolArray) -> FloatArray:
        """What each slot costs each client, if everyone present contributes this, and some are out.

        If nobody intends to train, there is no model to use, either.
        """
        gone = stretch.gone(out)
        in_use = self._in_use(stretch)[:-1] * profile.any()
        return self.aftermath.paid(np.where(gone, 0.0, profile), gone, in_use)

    def _in_use(self, stretch: Stretch) -> FloatArray:
        """The total behind the model in use before each slot, and after the last."""
        trained_on = self.agreement.consortium.totals_of(stretch.contributions)
        totals = np.append(self.last_total, trained_on)
        trained = np.where(totals > 0, np.arange(totals.size), 0)
        return np.asarray(totals[np.maximum.accumulate(trained)])

    def _sums(self, stretch: Stretch, costs: FloatArray, now: int = 1) -> "_Sums":
        """The stretch's costs discounted to the slot `now`, in total and by cause.

        A false alarm costs what is paid, during its punishment, above the cost if the clients that
        it concerns had contributed what was agreed; an unobserved slip, what is paid above the cost
        if the slipping clients had. Absences are the same in both cases.
        """
        start = power(self.delta, stretch.first - now)
        agreed, unseen = self.agreement.profile, stretch.slipped & ~stretch.seen
        out, spared = stretch.standing.out, stretch.standing.undeserved

        def summed(costs: FloatArray) -> FloatArray:
            return times(start, discounted(costs, self.delta, stretch.length))

        sums = _Sums.of_nothing(self.delta.size)
        sums.cost = summed(costs)
        if spared.any():
            kept = np.where(spared, agreed, stretch.profile)
            sums.false_alarms = summed(costs - self._costs(stretch, kept, out & ~spared))
        if unseen.any():
            kept = self._costs(stretch, np.where(unseen, agreed, stretch.profile), out)
            some = True if stretch.absent is None else (unseen & ~stretch.absent).any(axis=-1)
            sums.missed = summed(np.where(np.reshape(some, (-1, 1)), costs - kept, 0.0))
        return sums

    def _count(self, stretch: Stretch) -> None:
        """Count slips, unobserved slips, absences, false alarms, and who is out."""
        slots = np.full(self.delta.size, stretch.length)
        if stretch.missing is not None:
            slots -= stretch.missing.sum(axis=0)
            self.absences += int(stretch.missing.sum())
        self.slipped |= stretch.slipped & (slots > 0)
        self.deviations += int(slots[stretch.slipped].sum())
        self.missed += int(slots[stretch.slipped & ~stretch.seen].sum())
        self.false_alarms += self.aftermath.false_alarms(stretch.falsely)
        self.slots_out += int(stretch.standing.out.sum() * stretch.length)
        self.last_total = float(self._in_use(stretch)[-1])


class _EventLog:
    """The events of a match, in order."""

    def __init__(self, agreement: Agreement) -> None:
        self.names, self.agreed = agreement.consortium.names, agreement.profile.tolist()
        self.events: list[Event] = []
        self.lasting: dict[int, int] = {}
        """Index of each client's latest deviation among the events."""

    def enter(self, stretch: Stretch) -> None:
        """Who slipped, was absent, or caused a false alarm."""
        for n in np.flatnonzero(stretch.slipped).tolist():
            for first, length in _runs_present(stretch, n):
                self._deviation(n, first, float(stretch.profile[n]), length)
        if stretch.missing is not None:
            for row, n in np.argwhere(stretch.missing).tolist():
                self._note(stretch.first + row, n, "absence", 0.0)
        for n in np.flatnonzero(stretch.falsely).tolist():
            self._note(stretch.first, n, "false alarm", float(stretch.profile[n]))

    def close(self, spells: Iterable[Spell]) -> None:
        """When punishments and suspensions began and ended, in order with the other events."""
        for spell in spells:
            self._began_and_ended(spell)
        self.events.sort(key=lambda event: (event.slot, event.kind not in _FIRST))

    def _began_and_ended(self, spell: Spell) -> None:
        client = None if spell.client is None else self.names[spell.client]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], spell.during, [False]])))
        for before, last in edges.reshape(-1, 2).tolist():
            ends = last < spell.during.size
            lasted = last - before if ends else spell.until - before
            self.events.append(Event(before + 1, client, spell.kind, lasted=lasted))
            if ends:
                self.events.append(Event(last + 1, client, "return"))

    def _note(self, slot: int, n: int, kind: EventKind, contributed: float) -> None:
        self.events.append(Event(slot, self.names[n], kind, self.agreed[n], contributed))

    def _deviation(self, n: int, first: int, contributed: float, length: float) -> None:
        """One event for a deviation of any number of slots in a row."""
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
    """Discounted costs: in total, of false alarms, of unobserved slips."""

    cost: FloatArray
    false_alarms: FloatArray
    missed: FloatArray

    @classmethod
    def of_nothing(cls, size: int) -> "_Sums":
        """Zeros to start from."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))

    def add(self, other: "_Sums") -> None:
        """Add the others to these."""
        self.cost = self.cost + other.cost
        self.false_alarms = self.false_alarms + other.false_alarms
        self.missed = self.missed + other.missed

    def times(self, factor: FloatArray) -> "_Sums":
        """These, each multiplied by its client's factor."""
        parts = (self.cost, self.false_alarms, self.missed)
        return _Sums(*(times(factor, part) for part in parts))
