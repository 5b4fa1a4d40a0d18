"""`play`: the repeated game slot by slot, and for ever after (paper, section 4.1).

Everyone observes what each client contributes. If in a slot of cooperation someone is observed to
contribute less than agreed, by more than the tolerance, a punishment starts with the next slot, for
as long as the agreement says: everyone plays the equilibrium (reversion), or the accused is out and
trains alone while the others go on (suspension). An absent client contributes nothing, but that is
not a slip. Contributing more than agreed is not one, either: it hurts nobody. If the agreement says
that slips are seen by audits, they are drawn at random in each slot, false alarms too, and acted on
as late as it says; after the last slot every slip is seen.

As long as no slip is observed most strategies repeat themselves, so many slots are computed at a
time: a stretch ends where a strategy or a phase changes.

>>> import fedaccord as fa
>>> from fedaccord.repeated import DeviateOnce
>>> agreement = fa.solve_agreement(
...     fa.paper_consortium(), "uniform", punishment=fa.Reversion(5), margin=0.02
... )
>>> match = fa.play(agreement, {"client-7": DeviateOnce(slot=3)}, slots=12)
>>> [int(slot) for slot in match.slots_punished]
[4, 5, 6, 7, 8]
>>> n = agreement.consortium.index("client-7")
>>> bool(match.discounted_cost[n] > match.discounted_cost_if_kept[n])
True

The same slip, if only the client that slips is punished:

>>> suspension = fa.agreement_on(agreement.consortium, agreement.profile, fa.Suspension(2))
>>> match = fa.play(suspension, {"client-7": DeviateOnce(slot=3)}, slots=12)
>>> [(event.slot, event.client, event.kind) for event in match.events]
[(3, 'client-7', 'deviation'), (4, 'client-7', 'suspension'), (6, 'client-7', 'return')]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.checks import check_number, check_type, check_whole
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import BoolArray, FloatArray, as_text
from fedaccord.record import Columns, Record, Tables, jsonable, rows_of
from fedaccord.repeated.random_slots import MatchRng
from fedaccord.repeated.recorder import Event, Recorder, event_columns, phase_names
from fedaccord.repeated.simulator import Simulator
from fedaccord.repeated.strategies import (
    AnyStrategy,
    DeviateOnce,
    KeepAndPunish,
    Strategy,
    as_strategy,
    slips_of,
    without_slips,
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
    """X: all samples trained on in each slot, by the clients that are not out; each counts by its
    quality."""
    punishing: BoolArray
    """Whether each slot was one of punishment, for more than half of the clients. Under suspension
    none is: the consortium goes on."""
    discounted_cost: FloatArray
    """C_n (eq. 9): the costs of all slots discounted to the first, including those after the last
    played one, in which nobody is absent or misread."""
    cost_after: FloatArray
    """The costs after the last played slot, discounted to the slot that follows it."""
    events: tuple[Event, ...]
    """What happened, slot by slot; without the history only what concerns everyone."""
    slipped: BoolArray
    """Which clients slipped at all."""
    deviations: int
    """How often anyone slipped, counted per client and slot."""
    missed_deviations: int
    """How many of these nobody observed."""
    false_alarms: int
    """Punishments (under suspension: suspensions) for a slip that nobody made."""
    absences: int
    """How often anyone was absent, counted per client and slot."""
    slots_out: int
    """How often anyone was suspended, counted per client and slot."""
    false_alarm_cost: FloatArray
    """The part of the discounted cost that is due to false alarms."""
    missed_deviation_cost: FloatArray
    """The part of the discounted cost that is due to unobserved slips (negative for a client that
    slipped and saved by it)."""
    contributions: FloatArray | None = None
    """One row per slot, one column per client, like the next four; None without the history. A
    client that is out contributes 0: what it trains on alone is `fedaccord.game.alone`'s m_n."""
    observed: FloatArray | None = None
    """The contributions as everyone observed them; NaN for a client that was absent or out."""
    client_punishing: BoolArray | None = None
    """Whether each client was punishing. All are at the same time, unless they punish for
    different numbers of slots."""
    suspended: BoolArray | None = None
    """Whether each client was out."""
    cost: FloatArray | None = None
    """F_n of each slot; V_n for a client without a model of the slot, under suspension."""

    @property
    def phases(self) -> tuple[str, ...]:
        """The phase of each slot."""
        return phase_names(self.punishing)

    @property
    def slots_punished(self) -> npt.NDArray[np.int64]:
        """The slots of punishment, counted from 1."""
        return np.flatnonzero(self.punishing) + 1

    @cached_property
    def names_out(self) -> list[list[str]] | None:
        """The clients that were out in each slot, by name; None without the history."""
        if self.suspended is None:
            return None
        names: list[list[str]] = [[] for _ in range(self.slots)]
        for slot, n in np.argwhere(self.suspended).tolist():
            names[slot].append(self.agreement.consortium.names[n])
        return names

    @cached_property
    def discounted_cost_if_kept(self) -> FloatArray:
        """What each client would have paid if it alone had never slipped.

        It differs only for clients that slipped; for each, the match is played again without.
        """
        result = self.discounted_cost.copy()
        for n in np.flatnonzero(self.slipped).tolist():
            result[n] = self.without_slips(n, history=False).discounted_cost[n]
        return result

    def without_slips(self, n: int, *, history: bool = True) -> Match:
        """The same match, with the same random numbers, if client `n` had never slipped."""
        names = self.agreement.consortium.names
        strategies = dict(zip(names, self.strategies, strict=True))
        strategies[names[n]] = without_slips(self.strategies[n])
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
            "suspended": self.names_out,
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
            "slots_out": self.slots_out,
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
            "slots_out": self.slots_out,
        }

    def _tables(self) -> Tables:
        return {"slots": self._slots, "clients": self._clients, "events": self._events}

    def _slots(self) -> Columns:
        return {
            "slot": np.arange(1, self.slots + 1),
            "phase": self.phases,
            "total": self.totals,
            "suspended": self.names_out or [None] * self.slots,
        }

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "discounted_cost": self.discounted_cost,
            "discounted_cost_if_kept": self.discounted_cost_if_kept,
        }

    def _events(self) -> Columns:
        return event_columns(self.events)


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
    """Play the repeated game for some slots, and add up the costs of all slots after them.

    Args:
        agreement: What the clients agreed on; a consortium plays its individual agreement.
        strategies: Strategies by client name: those of `fedaccord.repeated`, or functions of a
            `View`. All other clients keep to the agreement and punish with the others.
        slots: How many slots to play.
        noise: Standard deviation of the relative error with which contributions are observed.
        dropout: Probability that a client is absent from a slot.
        tolerance: A shortfall of up to this fraction of what was agreed is tolerated.
        seed: Seed of the random numbers, those of audits included.
        history: Whether to keep the arrays of slots by clients and the events of single clients.
            Without, memory does not grow with the number of slots.
    """
    check_whole("slots", slots)
    check_whole("seed", seed, 0)
    check_number("noise", noise, least=0)
    check_number("dropout", dropout, least=0, below=1)
    check_number("tolerance", tolerance, least=0, below=1)
    if isinstance(agreement, Consortium):
        agreement = solve_agreement(agreement)
    check_type("agreement", agreement, Agreement, Consortium)
    given = {} if strategies is None else strategies
    chosen = by_client(agreement.consortium, given, slots)
    simulator = Simulator(agreement, chosen, tolerance)
    recorder = Recorder(simulator.aftermath, slots, history)
    audited = not agreement.monitoring.is_certain and agreement.exists
    rng = MatchRng(agreement.consortium.size, slots, noise, dropout, seed, audited=audited)
    while simulator.slot <= slots:
        block = rng.block_of(simulator.slot)
        recorder.enter(simulator.stretch(block))
    recorder.enter_tail(simulator)
    return Match(
        agreement=agreement,
        strategies=simulator.strategies,
        slots=slots,
        noise=noise,
        dropout=dropout,
        tolerance=tolerance,
        seed=seed,
        totals=recorder.totals,
        punishing=recorder.punishing,
        discounted_cost=recorder.sums.cost,
        cost_after=recorder.after.cost,
        events=tuple(recorder.log.events),
        slipped=recorder.slipped,
        deviations=recorder.deviations,
        missed_deviations=recorder.missed,
        false_alarms=recorder.false_alarms,
        absences=recorder.absences,
        slots_out=recorder.slots_out,
        false_alarm_cost=recorder.sums.false_alarms,
        missed_deviation_cost=recorder.sums.missed,
        contributions=recorder.contributions if history else None,
        observed=recorder.observed if history else None,
        client_punishing=recorder.client_punishing if history else None,
        suspended=recorder.suspended if history else None,
        cost=recorder.cost if history else None,
    )


def by_client(
    consortium: Consortium, given: Mapping[str, AnyStrategy], slots: int
) -> tuple[Strategy, ...]:
    """A strategy for each client, every one checked."""
    check_type("strategies", given, Mapping)
    strategies: list[Strategy] = [KeepAndPunish()] * consortium.size
    for name, strategy in given.items():
        n = consortium.index(name)
        strategies[n] = as_strategy(strategy)
        for slip in slips_of(strategies[n]):
            _check_slip(name, slip, slots, float(consortium.samples[n]))
    return tuple(strategies)


def _check_slip(name: str, slip: DeviateOnce, slots: int, samples: float) -> None:
    """Refuse a slip after the match, or to more than a client has."""
    if slip.slot > slots:
        raise InvalidInput(Problem("slot", f"slot {slip.slot} is not from 1 to {slots}", name))
    if slip.amount is not None and slip.amount > samples:
        wrong = f"amount must be from 0 to {as_text(samples)}, got {as_text(slip.amount)}"
        raise InvalidInput(Problem("amount", wrong, name))
