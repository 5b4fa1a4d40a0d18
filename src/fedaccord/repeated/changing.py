"""`play_changing`: the repeated game of a consortium whose state is drawn anew for every slot.

The first slot is in the first state; the states of the others are drawn with a seed. In each slot
everyone who takes part contributes what is agreed for its state, unless its strategy says
otherwise. Whoever is observed to contribute less brings on the agreement's punishment, as in
`play`: from the next slot on everyone plays the equilibrium of whatever state it is (reversion), or
the client itself trains alone (suspension). The slots of a punishment count also while a client is
away.

After the last slot everyone keeps to the agreement, or to a punishment that is under way, and the
costs of all later slots are expected ones.

>>> import fedaccord as fa
>>> from fedaccord.files.consortium import example_consortium
>>> from fedaccord.repeated import DeviateOnce
>>> changing = fa.ChangingConsortium(
...     example_consortium(),
...     [fa.State("all six"), fa.State("without Riverside", without=["Riverside"])],
...     {"all six": {"all six": 0.9, "without Riverside": 0.1}},
... )
>>> agreement = fa.solve_changing(changing, margin=0.01)
>>> match = fa.play_changing(agreement, {"St Mary": DeviateOnce(slot=2)}, slots=12, seed=1)
>>> match.states.count("without Riverside"), [int(slot) for slot in match.slots_punished][:2]
(10, [3, 4])
>>> n = changing.everyone.index("St Mary")
>>> bool(match.discounted_cost[n] > match.discounted_cost_if_kept[n])
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import KEPT
from fedaccord.agreement.changing import ChangingAgreement
from fedaccord.agreement.changing_solver import later_slots
from fedaccord.agreement.punishment import Reversion, Suspension
from fedaccord.checks import check_type, check_whole
from fedaccord.errors import InvalidInput
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables, jsonable, rows_of
from fedaccord.repeated.match import by_client
from fedaccord.repeated.recorder import (
    Event,
    EventKind,
    discounted,
    event_columns,
    phase_names,
)
from fedaccord.repeated.simulator import Group, grouped
from fedaccord.repeated.strategies import AnyStrategy, Strategy, View, answer_of, without_slips


@dataclass(frozen=True, eq=False, repr=False)
class ChangingMatch(Record):
    """What happened, slot by slot, and what it cost each client."""

    agreement: ChangingAgreement
    strategies: tuple[Strategy, ...]
    slots: int
    seed: int
    state: npt.NDArray[np.int64]
    """The position of each slot's state."""
    totals: FloatArray
    """X: all samples trained on in each slot, by the clients that are not out."""
    punishing: BoolArray
    """Whether everyone reverts to the equilibrium in each slot."""
    contributions: FloatArray
    """One row per slot, one column per client, like the next three; 0 for who is away or out."""
    suspended: BoolArray
    """Whether each client is out."""
    slipped: BoolArray
    """Whether each client contributes less than agreed while it is expected to keep to it."""
    cost: FloatArray
    """What each slot costs each client; 0 while it is away."""
    cost_after: FloatArray
    """What the slots after the last one are expected to cost, discounted to the slot after it."""
    events: tuple[Event, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """The state of each slot, by name."""
        return tuple(self.agreement.changing.states[o] for o in self.state.tolist())

    @property
    def phases(self) -> tuple[str, ...]:
        """The phase of each slot."""
        return phase_names(self.punishing)

    @property
    def slots_punished(self) -> npt.NDArray[np.int64]:
        """The slots of punishment, counted from 1."""
        return np.flatnonzero(self.punishing) + 1

    @property
    def names_out(self) -> list[list[str]]:
        """The clients that were out in each slot, by name."""
        names = self.agreement.changing.names
        return [[names[n] for n in np.flatnonzero(row).tolist()] for row in self.suspended]

    @cached_property
    def discounted_cost(self) -> FloatArray:
        """The costs of all slots discounted to the first; after the last one they are expected."""
        delta = self.agreement.changing.discount_factor
        return discounted(np.vstack([self.cost, self.cost_after]), delta, self.slots + 1)

    @cached_property
    def discounted_cost_if_kept(self) -> FloatArray:
        """What each client would have paid in the same states if it alone had never slipped."""
        result, names = self.discounted_cost.copy(), self.agreement.changing.names
        for n in np.flatnonzero(self.slipped.any(axis=0)).tolist():
            strategies = dict(zip(names, self.strategies, strict=True))
            strategies[names[n]] = without_slips(self.strategies[n])
            again = play_changing(self.agreement, strategies, self.slots, seed=self.seed)
            result[n] = again.discounted_cost[n]
        return result

    def to_dict(self) -> dict[str, Any]:
        """The match slot by slot, what happened in it, and what it cost each client."""
        return {
            "slots": self.slots,
            "states": list(self.states),
            "phases": list(self.phases),
            "totals": jsonable(self.totals),
            "suspended": self.names_out,
            "events": rows_of(self._events()),
            "clients": rows_of(self._clients()),
            "seed": self.seed,
        }

    _headline: ClassVar = ("slots", "seed", "punished", "deviations")

    def _facts(self) -> dict[str, Any]:
        return {
            "slots": self.slots,
            "seed": self.seed,
            "punished": int(self.punishing.sum()),
            "deviations": int(self.slipped.sum()),
        }

    def _tables(self) -> Tables:
        return {"slots": self._slots, "clients": self._clients, "events": self._events}

    def _slots(self) -> Columns:
        return {
            "slot": np.arange(1, self.slots + 1),
            "state": self.states,
            "phase": self.phases,
            "total": self.totals,
            "suspended": self.names_out,
        }

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.changing.names,
            "discounted_cost": self.discounted_cost,
            "discounted_cost_if_kept": self.discounted_cost_if_kept,
        }

    def _events(self) -> Columns:
        return event_columns(self.events)


def play_changing(
    agreement: ChangingAgreement,
    strategies: Mapping[str, AnyStrategy] | None = None,
    slots: int = 50,
    *,
    seed: int = 0,
) -> ChangingMatch:
    """Play the repeated game for some slots in states that are drawn at random.

    Args:
        agreement: What the clients agreed on, for every state.
        strategies: Strategies by client name, as in `play`; all others keep to the agreement.
        slots: How many slots to play.
        seed: Seed of the states.
    """
    check_type("agreement", agreement, ChangingAgreement)
    check_whole("slots", slots)
    check_whole("seed", seed, 0)
    changing = agreement.changing
    chosen = by_client(changing.everyone, {} if strategies is None else strategies, slots)
    for name, strategy in zip(changing.names, chosen, strict=True):
        if getattr(strategy, "punishes_for", None) is not None:
            raise InvalidInput(
                f"the strategy of {name} punishes for a length of its own, which is not possible "
                "with states: a punishment lasts as long as the agreement says"
            )
    state = draw_states(changing.transitions, slots, seed)
    game = _Game(agreement, chosen, state)
    for _ in range(slots):
        game.play_slot()
    return ChangingMatch(
        agreement=agreement,
        strategies=chosen,
        slots=slots,
        seed=seed,
        state=state,
        totals=np.array(game.totals),
        punishing=np.array(game.punishing),
        contributions=np.array(game.contributions),
        suspended=np.array(game.suspended),
        slipped=np.array(game.slipped),
        cost=np.array(game.costs),
        cost_after=game.cost_after(),
        events=tuple(game.events),
    )


def draw_states(transitions: FloatArray, slots: int, seed: int) -> npt.NDArray[np.int64]:
    """The states of so many slots, the first one being state 0; the same for the same seed."""
    up_to = transitions.cumsum(axis=1)
    state = np.zeros(slots, dtype=np.int64)
    for t, number in enumerate(np.random.default_rng(seed).random(slots - 1), start=1):
        row = up_to[state[t - 1]]
        state[t] = np.searchsorted(row, number * row[-1], side="right")
    return state


class _Game:
    """A match under way: the slot, who is punished until when, and what happened so far."""

    def __init__(
        self, agreement: ChangingAgreement, strategies: tuple[Strategy, ...], state: Any
    ) -> None:
        changing = agreement.changing
        self.agreement, self.changing, self.state = agreement, changing, state
        self.groups = grouped(strategies)
        self.length = inf if agreement.punishment.slots is None else agreement.punishment.slots
        self.reverts = isinstance(agreement.punishment, Reversion)
        self.until = np.zeros(len(changing.names))
        """The last slot of each client's punishment; under reversion all have the same."""
        self.satiation = changing.everyone.law.stop(
            changing.quality * changing.valuation / changing.cost_per_sample
        )
        self.alone = self._alone()
        self.slot, self.last_alarm = 1, 0
        self.last: FloatArray | None = None
        self.totals: list[float] = []
        self.punishing: list[bool] = []
        self.contributions: list[FloatArray] = []
        self.suspended: list[BoolArray] = []
        self.slipped: list[BoolArray] = []
        self.costs: list[FloatArray] = []
        self.events: list[Event] = []

    def play_slot(self) -> None:
        """Play one slot, and start the punishments that follow it."""
        o = int(self.state[self.slot - 1])
        here, agreed = self.changing.present[o], self.agreement.profiles[o]
        running = self.slot <= self.until
        punishing, out = self.reverts and bool(running.any()), running & (not self.reverts)
        self.events += self._returned()
        given = np.where(here & ~out, self._intended(o, punishing, out), 0.0)
        slipped = here & ~out & (not punishing) & (given < agreed * (1.0 - KEPT))
        self.totals.append(float((given * self.changing.quality[o]).sum()))
        self.costs.append(self._paid(given, out)[o])
        self.punishing.append(punishing)
        self.contributions.append(given)
        self.suspended.append(out)
        self.slipped.append(slipped)
        self.events += self._seen(slipped, agreed, given)
        self.last = given
        self.slot += 1

    def _returned(self) -> Iterator[Event]:
        """Whose punishment ended with the slot before."""
        back = (self.until > 0) & (self.until == self.slot - 1)
        if self.reverts and back.any():
            yield Event(self.slot, None, "return")
        elif back.any():
            for n in np.flatnonzero(back).tolist():
                yield Event(self.slot, self.changing.names[n], "return")

    def _seen(self, slipped: BoolArray, agreed: FloatArray, given: FloatArray) -> Iterator[Event]:
        """Who slipped, and the punishments that follow."""
        for n in np.flatnonzero(slipped).tolist():
            amounts = float(agreed[n]), float(given[n])
            yield Event(self.slot, self.changing.names[n], "deviation", *amounts)
        if not slipped.any():
            return
        self.until[slipped | self.reverts] = self.slot + self.length
        self.last_alarm = self.slot
        if self.slot == len(self.state):
            return
        kind: EventKind = "punishment" if self.reverts else "suspension"
        concerned = [None] if self.reverts else np.flatnonzero(slipped).tolist()
        for who in concerned:
            client = None if who is None else self.changing.names[who]
            yield Event(self.slot + 1, client, kind, lasted=self.length)

    def _intended(self, o: int, punishing: bool, out: BoolArray) -> FloatArray:
        """What everyone who takes part would contribute."""
        here = self.changing.present[o]
        intended = np.zeros(here.size)
        for group in self.groups:
            members = Group(group.strategy, group.clients[here[group.clients]])
            if members.clients.size:
                view = self._view(members, o, punishing, out)
                intended[members.clients] = answer_of(group.strategy, view, self.changing.names)
        return intended

    def _view(self, group: Group, o: int, punishing: bool, out: BoolArray) -> View:
        changing, clients, agreed = self.changing, group.clients, self.agreement.profiles[o]
        return View(
            slot=self.slot,
            clients=clients,
            agreed=agreed[clients],
            equilibrium=self.agreement.equilibrium_profiles[o, clients],
            samples=changing.samples[o, clients],
            satiation=self.satiation[o, clients],
            quality=changing.quality[o],
            agreed_total=float((agreed * changing.quality[o])[~out].sum()),
            last_alarm=self.last_alarm or None,
            punishing=punishing,
            last=self.last,
            out=out | ~changing.present[o],
            slots_left=np.where(out, self.until - self.slot + 1, 0.0)[clients],
        )

    def _alone(self) -> FloatArray:
        """What a slot of suspension costs each client in each state."""
        changing, punishment = self.changing, self.agreement.punishment
        amount = np.minimum(self.satiation / changing.quality, changing.samples)
        fees = isinstance(punishment, Suspension) and punishment.fees_saved
        paid = self._cost(amount, amount * changing.quality)
        return paid - (changing.communication_cost + changing.everyone.server_fee) * fees

    def _cost(self, given: FloatArray, total: FloatArray) -> FloatArray:
        """F_n (eq. 5) with the numbers of each state (rows)."""
        changing = self.changing
        return np.asarray(
            changing.valuation * changing.everyone.law.loss(total)
            + changing.cost_per_sample * given
            + changing.communication_cost
            + changing.everyone.server_fee
        )

    def _paid(self, given: FloatArray, out: BoolArray) -> FloatArray:
        """What a slot costs each client in each state: nothing while it is away."""
        total = (given * self.changing.quality).sum(axis=-1, keepdims=True)
        paid = self._cost(given, total)
        if not self.reverts:
            paid = np.where(out | (total == 0), self.alone, paid)
        return np.where(self.changing.present, paid, 0.0)

    def cost_after(self) -> FloatArray:
        """What all slots after the last are expected to cost, discounted to the one after it.

        Punishments that are under way end one after the other; in between the costs of a state
        stay the same.
        """
        left = np.maximum(self.until - self.slot + 1, 0.0)
        delta, which = np.unique(self.changing.discount_factor, return_inverse=True)
        result, passed = np.zeros(left.size), 0.0
        for end in [*np.unique(left[left > 0]).tolist(), inf]:
            weight = self._weight(delta, end) - self._weight(delta, passed)
            result += np.einsum("no,on->n", weight[which], self._expected(left >= end))
            passed = end
            if end == inf:
                break
        return result

    def _expected(self, punished: BoolArray) -> FloatArray:
        """What a slot of each state costs while these are punished."""
        if self.reverts and punished.any():
            return self._paid(self.agreement.equilibrium_profiles, punished)
        return self._paid(np.where(punished, 0.0, self.agreement.profiles), punished)

    def _weight(self, delta: FloatArray, slots: float) -> FloatArray:
        """sum of delta^(t-1) M^t over the next slots, from the state of the last slot."""
        one = np.eye(self.changing.size)
        if slots == 0:
            return np.zeros((delta.size, len(one)))
        transitions = self.changing.transitions
        more = None if slots == inf else int(slots) - 1
        later = 0.0 if more == 0 else later_slots(transitions, delta, more)
        every = np.broadcast_to(one + later, (delta.size, *one.shape))
        return np.asarray(transitions[self.state[-1]] @ every)
