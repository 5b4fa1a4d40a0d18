"""`play`: the repeated game slot by slot, and for ever after (paper, section 4.1).

Everyone sees what each client contributes. When in a slot of cooperation someone is seen to
give less than agreed, by more than the tolerance, a punishment starts with the next slot: the
equilibrium, for as long as the agreement says. An absent client gave nothing, but did not slip.
Giving more than was agreed is no slip, either: it hurts nobody.

As long as nobody is seen to slip most strategies repeat themselves, so slots are worked out
many at a time: a stretch ends where a strategy or the phase changes.

>>> from fedaccord.game.paper import paper_consortium
>>> from fedaccord.agreement.solve import solve_agreement
>>> from fedaccord.repeated.strategies import DeviateOnce
>>> agreement = solve_agreement(paper_consortium(), "uniform", punishment_slots=5, margin=0.02)
>>> match = play(agreement, {"client-7": DeviateOnce(slot=3)}, slots=12)
>>> [int(slot) for slot in match.slots_punished]
[4, 5, 6, 7, 8]
>>> n = agreement.consortium.index("client-7")
>>> bool(match.discounted_cost[n] > match.discounted_cost_if_kept[n])
True
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables, jsonable, rows_of
from fedaccord.repeated.recorder import Book, Event
from fedaccord.repeated.rng import Chance
from fedaccord.repeated.simulator import Table
from fedaccord.repeated.strategies import (
    AnyStrategy,
    DeviateOnce,
    KeepAndPunish,
    Loyal,
    Strategy,
    as_strategy,
    slips_of,
)


@dataclass(frozen=True, eq=False, repr=False)
class Match(Record):
    """What happened, slot by slot, and what it cost each client for ever."""

    agreement: Agreement
    strategies: tuple[Strategy, ...]
    slots: int
    noise: float
    dropout: float
    tolerance: float
    seed: int
    totals: FloatArray
    """All samples trained on in each slot."""
    punishing: BoolArray
    """Whether each slot was one of punishment, for more than half of the clients."""
    discounted_cost: FloatArray
    """C_n (eq. 9): costs of all slots discounted to the first, those after the last played one
    included, in which nobody is absent or misread any more."""
    cost_after: FloatArray
    """The part of it after the last played slot, discounted to the slot that follows that one."""
    events: tuple[Event, ...]
    """What happened, slot by slot; without the history only what concerns everyone."""
    slipped: BoolArray
    """Which clients slipped at all."""
    deviations: int
    """Slips, each client and slot counted."""
    missed_deviations: int
    """Slips that nobody saw, likewise."""
    false_alarms: int
    """Punishments that nobody had earned."""
    absences: int
    """Each client and slot counted."""
    false_alarm_cost: FloatArray
    """Of the discounted cost, what each client paid for false alarms."""
    missed_deviation_cost: FloatArray
    """Of the discounted cost, what each client paid for slips that went unseen (a client that
    slipped saved, so its own is negative)."""
    contributions: FloatArray | None = None
    """One row a slot, one column a client, like the next three; None unless asked for."""
    observed: FloatArray | None = None
    """What everyone saw; NaN for an absent client."""
    client_punishing: BoolArray | None = None
    """Whether each client was punishing. All are at once, unless they punish for longer or
    shorter than others."""
    cost: FloatArray | None = None

    @property
    def phases(self) -> tuple[str, ...]:
        """The phase of each slot."""
        return tuple("punishing" if p else "cooperating" for p in self.punishing.tolist())

    @property
    def slots_punished(self) -> npt.NDArray[np.int64]:
        """The slots of punishment, counted from 1."""
        return np.flatnonzero(self.punishing) + 1

    @cached_property
    def discounted_cost_if_kept(self) -> FloatArray:
        """What each client would have paid had it alone never slipped, the rest being equal.

        Only who slipped would have paid something else; each is played again without.
        """
        result = self.discounted_cost.copy()
        for n in np.flatnonzero(self.slipped).tolist():
            result[n] = self.without_slips(n, history=False).discounted_cost[n]
        return result

    def without_slips(self, n: int, *, history: bool = True) -> "Match":
        """The same match, had the client at position `n` never slipped: as lucky as this one."""
        names = self.agreement.consortium.names
        strategies = dict(zip(names, self.strategies, strict=True))
        strategies[names[n]] = _kept(self.strategies[n])
        return play(
            self.agreement,
            strategies,
            self.slots,
            noise=self.noise,
            dropout=self.dropout,
            tolerance=self.tolerance,
            seed=self.seed,
            history=history,
        )

    def to_dict(self) -> dict[str, Any]:
        """The match slot by slot, what happened in it, and what it cost each client."""
        facts = jsonable(self._facts())
        return {
            "slots": facts.pop("slots"),
            "phases": list(self.phases),
            "totals": jsonable(self.totals),
            "events": rows_of(self._events()),
            "clients": rows_of(self._clients()),
            **facts,
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "slots": self.slots,
            "noise": self.noise,
            "dropout": self.dropout,
            "tolerance": self.tolerance,
            "seed": self.seed,
            "false_alarms": self.false_alarms,
            "missed_deviations": self.missed_deviations,
            "absences": self.absences,
            "false_alarm_cost": self.false_alarm_cost.sum(),
            "missed_deviation_cost": self.missed_deviation_cost.sum(),
        }

    def _main_facts(self) -> dict[str, Any]:
        return {
            "slots": self.slots,
            "punished": int(self.punishing.sum()),
            "deviations": self.deviations,
            "missed_deviations": self.missed_deviations,
            "false_alarms": self.false_alarms,
            "absences": self.absences,
        }

    def _tables(self) -> Tables:
        return {"slots": self._slots, "clients": self._clients, "events": self._events}

    def _slots(self) -> Columns:
        return {
            "slot": np.arange(1, self.slots + 1),
            "phase": self.phases,
            "total": self.totals,
        }

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "discounted_cost": self.discounted_cost,
            "discounted_cost_if_kept": self.discounted_cost_if_kept,
        }

    def _events(self) -> Columns:
        columns = {field: [getattr(e, field) for e in self.events] for field in Event._fields}
        return columns | {"lasted": [n if n == inf else int(n) for n in columns["lasted"]]}


def play(
    agreement: Agreement | Consortium,
    strategies: Mapping[str, AnyStrategy] | None = None,
    slots: int = 50,
    *,
    noise: float = 0.0,
    dropout: float = 0.0,
    tolerance: float = 0.0,
    seed: int = 0,
    history: bool = True,
) -> Match:
    """Play the repeated game for some slots, and add up what follows for ever.

    A consortium plays its individual agreement. `strategies` are by client's name; who has
    none keeps to the agreement and punishes with the others. Contributions are seen with a
    relative error of standard deviation `noise`; a client is absent from a slot with
    probability `dropout`; a shortfall of up to `tolerance` of what was agreed is put up with.
    Without `history` neither arrays of slots by clients nor the events of single clients are
    kept, however many slots there are.
    """
    _check(slots=slots, noise=noise, dropout=dropout, tolerance=tolerance, seed=seed)
    if isinstance(agreement, Consortium):
        agreement = solve_agreement(agreement)
    table = Table(agreement, _by_client(agreement, strategies or {}, slots), tolerance)
    book = Book(agreement, slots, history)
    chance = Chance(agreement.consortium.size, slots, noise, dropout, seed)
    while table.slot <= slots:
        block = chance.block_of(table.slot)
        book.enter(table.stretch(block))
    book.enter_tail(table)
    return Match(
        agreement=agreement,
        strategies=table.strategies,
        slots=slots,
        noise=noise,
        dropout=dropout,
        tolerance=tolerance,
        seed=seed,
        totals=book.totals,
        punishing=book.punishing,
        discounted_cost=book.sums.cost,
        cost_after=book.after.cost,
        events=tuple(book.diary.events),
        slipped=book.slipped,
        deviations=book.deviations,
        missed_deviations=book.missed,
        false_alarms=book.false_alarms,
        absences=book.absences,
        false_alarm_cost=book.sums.false_alarms,
        missed_deviation_cost=book.sums.missed,
        contributions=book.contributions if history else None,
        observed=book.observed if history else None,
        client_punishing=book.client_punishing if history else None,
        cost=book.cost if history else None,
    )


def _by_client(
    agreement: Agreement, given: Mapping[str, AnyStrategy], slots: int
) -> tuple[Strategy, ...]:
    """A strategy for each client, every one checked."""
    consortium = agreement.consortium
    strategies: list[Strategy] = [KeepAndPunish()] * consortium.size
    for name, strategy in given.items():
        n = consortium.index(name)
        strategies[n] = as_strategy(strategy)
        for slip in slips_of(strategies[n]):
            _check_slip(name, slip, slots, float(consortium.samples[n]))
    return tuple(strategies)


def _check_slip(name: str, slip: DeviateOnce, slots: int, samples: float) -> None:
    """Refuse a slip after the match, or of more than a client has."""
    if slip.slot > slots:
        raise InvalidInput(f"{name}: slot {slip.slot} is not from 1 to {slots}")
    if slip.amount is not None and slip.amount > samples:
        raise InvalidInput(
            f"{name}: amount must be from 0 to {samples:.15g}, got {slip.amount:.15g}"
        )


def _kept(strategy: Strategy) -> Strategy:
    """What a client that slipped would have played without: what it does otherwise, or signed."""
    if isinstance(strategy, DeviateOnce):
        return _kept(strategy.usual)
    return strategy if isinstance(strategy, KeepAndPunish | Loyal) else KeepAndPunish()


def _check(*, slots: object, seed: object, **rates: object) -> None:
    """Refuse numbers that make no sense."""
    for field, value, least in (("slots", slots, 1), ("seed", seed, 0)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:  # type: ignore[operator]
            raise InvalidInput(f"{field}: must be a whole number, {least} or more, got {value!r}")
    for field, value in rates.items():
        number = isinstance(value, int | float | np.number)
        if field == "noise" and not (number and 0 <= value < inf):  # type: ignore[operator]
            raise InvalidInput(f"noise: must be 0 or more, got {value!r}")
        if field != "noise" and not (number and 0 <= value < 1):  # type: ignore[operator]
            raise InvalidInput(f"{field}: must be from 0 to less than 1, got {value!r}")
