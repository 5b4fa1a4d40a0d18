"""The certificate of an agreement of a consortium that changes, from the cost function alone.

In every state each client's best deviation is searched for, and what the punishment of that state
does to it is computed as in `certify`. What later slots are worth is the sum of delta^t M^t s,
added up by doubling the number of terms: no equation is solved. Nothing comes from the solver but
the profiles, and the equilibria of the states, which are checked to be equilibria.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedaccord.agreement.changing import ChangingAgreement
from fedaccord.agreement.loss import is_in_class
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.search import best_deviation, total_of
from fedaccord.agreement.threats import TOLERANCE, threat_of, worth_of
from fedaccord.checks import check_type
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables

_DOUBLINGS = 64
"""How often the number of terms is doubled: delta^(2^64) is 0 for every delta below 1."""

_NOTHING = 1e-18
"""Later terms of less than this part of 1 do not change the sum of the others."""

ASSUMED = (
    "The states, and the probabilities with which they follow each other, are as stated; nobody "
    "changes them by what it contributes.",
    "Everyone knows the state of a slot before it begins, and sees afterwards what each client "
    "trained on.",
    "Costs follow the law of the loss, and each client's numbers are as stated.",
)
"""What the proof takes for granted."""

_WITHHELD = (
    "An old model is worth nothing to a suspended client, and nobody passes the new one on to it.",
)
"""The same of suspension."""


@dataclass(frozen=True, eq=False, repr=False)
class ChangingCertificate(Record):
    """For every state (row) and client (column): what a deviation gains, and what it loses later.

    Where a client is away everything is 0, and it keeps to the agreement.
    """

    agreement: ChangingAgreement
    deviation: FloatArray
    """What the client would contribute in the slot of its best deviation."""
    gain: FloatArray
    """g: what that saves it in that slot."""
    saving: FloatArray
    """s: what the agreement saves it in a slot, against the punishment."""
    later: FloatArray
    """K: what the punishment costs it, expected and discounted to the slot of the deviation."""
    keeps: BoolArray
    """Whether it keeps to the agreement in that state."""
    gives_more: BoolArray
    """Whether it does not because contributing more than agreed pays."""
    punishment_holds: BoolArray
    """Whether it has nothing to gain by leaving the punishment in that state."""

    @property
    def holds(self) -> bool:
        """Whether (E) holds for every client in every state, and the punishment is carried out."""
        return bool(self.keeps.all() and self.punishment_holds.all() and self.law_holds)

    @property
    def law_holds(self) -> bool:
        """Whether the law of the loss is of the class that the search rests on."""
        return is_in_class(self.agreement.changing.everyone.law)

    @property
    def slack(self) -> FloatArray:
        """K - g: how much more a deviation costs than it gains; negative where it pays."""
        return self.later - self.gain

    @cached_property
    def used(self) -> FloatArray:
        """g / K: the part of what it would lose that a deviation gains; 1: indifferent."""
        used = np.divide(self.gain, self.later, out=np.zeros_like(self.gain), where=self.later > 0)
        hopeless = ~self.keeps & ((self.later <= 0) | self.gives_more)
        return np.where(hopeless, np.inf, used)

    @cached_property
    def closest(self) -> tuple[int, int]:
        """The state and the client with the least to lose, among those that slip if any do."""
        used = self.used if self.keeps.all() else np.where(self.keeps, -1.0, self.used)
        state, client = divmod(int(np.argmax(used >= used.max() - TOLERANCE)), used.shape[1])
        return state, client

    @property
    def closest_state(self) -> str:
        """The name of that state."""
        return self.agreement.changing.states[self.closest[0]]

    @property
    def closest_client(self) -> str:
        """The name of that client."""
        return self.agreement.changing.names[self.closest[1]]

    def slipping(self, o: int) -> list[str]:
        """Who does not keep to the agreement in a state."""
        return [self.agreement.changing.names[n] for n in np.flatnonzero(~self.keeps[o]).tolist()]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed and not proved, in sentences."""
        reverts = isinstance(self.agreement.punishment, Reversion)
        return () if not self.holds else ASSUMED if reverts else ASSUMED + _WITHHELD

    _headline: ClassVar = ("holds", "closest_client", "closest_state", "slack")

    def _facts(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "closest_client": self.closest_client,
            "closest_state": self.closest_state,
            "slack": self.slack[self.closest],
            "punishment_holds": bool(self.punishment_holds.all()),
            "law_holds": self.law_holds,
            "assumptions": self.assumptions,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        """One row for each client and state."""
        changing = self.agreement.changing
        row, column = np.nonzero(changing.present)
        return {
            "state": [changing.states[o] for o in row.tolist()],
            "name": [changing.names[n] for n in column.tolist()],
            "contribution": self.agreement.profiles[row, column],
            "deviation": self.deviation[row, column],
            "gain": self.gain[row, column],
            "saving": self.saving[row, column],
            "later": self.later[row, column],
            "slack": self.slack[row, column],
            "keeps": self.keeps[row, column],
        }


def certify_changing(agreement: ChangingAgreement) -> ChangingCertificate:
    """Prove or refute an agreement of a changing consortium, state by state.

    A client keeps to it in a state if what its best deviation gains there is no more than what the
    punishment is expected to cost it in the slots that follow. A client that is asked for nothing
    cannot slip; under suspension it can still stay away.

    Args:
        agreement: Any agreement, solved or written by hand (`changing_agreement_on`).
    """
    check_type("agreement", agreement, ChangingAgreement)
    changing, slots = agreement.changing, agreement.punishment.slots
    rows = [_in_state(agreement, o) for o in range(changing.size)]
    deviation, gain, saving, decided, more, proper = (
        changing.spread(values) for values in zip(*rows, strict=True)
    )
    later = _later(changing.transitions, changing.discount_factor, saving, slots)
    weight = 1.0 + worth_of(changing.discount_factor, slots)
    # later slots may be in states where more is at stake, and rounding is of that size
    allowed = TOLERANCE * decided.max(axis=0)
    with np.errstate(invalid="ignore"):  # infinite costs, if nobody contributes
        deterred = (gain - later) / weight <= allowed
    asked = (agreement.profiles > 0) | (not isinstance(agreement.punishment, Reversion))
    gives_more = changing.present & (more > 0)
    return ChangingCertificate(
        agreement=agreement,
        deviation=deviation,
        gain=gain,
        saving=saving,
        later=later,
        keeps=(deterred | ~asked) & ~gives_more | ~changing.present,
        gives_more=gives_more,
        punishment_holds=(proper > 0) | ~changing.present,
    )


def _in_state(agreement: ChangingAgreement, o: int) -> tuple[FloatArray, ...]:
    """What those present would do, what that gains, what they save, and what they decide on.

    In costs; then whether contributing more pays, and whether the punishment is proper (0 or 1).
    """
    here = agreement.in_state(o)
    consortium, profile = here.consortium, here.profile
    deviation, gain = best_deviation(consortium, profile, total_of(consortium, profile))
    threat = threat_of(here)
    decided = consortium.cost_per_sample * (profile + threat.contribution + deviation)
    more = (gain > TOLERANCE * decided) & (deviation > profile)
    saved = np.where(deviation > profile, 0.0, gain)
    flags = more.astype(np.float64), threat.holds.astype(np.float64)
    return deviation, saved, threat.saving, decided, *flags


def _later(
    transitions: FloatArray, discount_factor: FloatArray, saving: FloatArray, slots: int | None
) -> FloatArray:
    """sum over t = 1 ... slots of delta^t M^t s, for each client with its own delta."""
    result = np.empty_like(saving)
    for delta in np.unique(discount_factor).tolist():
        its = discount_factor == delta
        result[:, its] = _sum_of_powers(delta * transitions, slots) @ saving[:, its]
    return result


def _sum_of_powers(step: FloatArray, slots: int | None) -> FloatArray:
    """A + A^2 + ... + A^slots, by doubling: A + ... + A^2k = (1 + A^k)(A + ... + A^k)."""
    left = 2**_DOUBLINGS if slots is None else slots
    total, done = np.zeros_like(step), np.eye(len(step))
    power, run = step, step  # A^k, and the sum of the first k powers
    while left and power.max() > _NOTHING:
        if left % 2:
            total, done = total + done @ run, done @ power
        left //= 2
        run, power = run + power @ run, power @ power
    return total + done @ run if left else total
