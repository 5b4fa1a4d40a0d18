"""What each slip of a client saved and cost it, and what it cost the others.

A slip (a deviation of one slot or several in a row) saves its client something at once and costs
it something later. Both are relative to the same match without that client's slips, and discounted
to the slot of the slip:

    saved = what it would have paid in the slots of the slip, minus what it paid;
    lost  = what it paid afterwards, up to its next slip or for ever, minus what it would have paid.

So all slips of a client, each discounted to the first slot, add up to what the slips cost it. (What
it does during a punishment is not a slip, and what that costs it is in none of them.)

The others lose twice: by the slip itself, and by what follows. Under reversion everyone is
punished; under suspension the others only miss the samples of the client that is out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from fedaccord.game.cost import cost
from fedaccord.numbers import SUMS_DIFFER, FloatArray
from fedaccord.record import Columns, Record, Tables
from fedaccord.repeated.match import Match
from fedaccord.repeated.recorder import Event


@dataclass(frozen=True)
class Slip:
    """One deviation of a client, of one slot or several in a row."""

    client: str
    first: int
    last: int
    agreed: float
    contributed: float
    saved: float
    lost: float
    others_lost: float
    """What all others together paid more, in the slots of the slip and afterwards."""
    others_lost_after: float
    """The part of it that they paid afterwards, because of the punishment."""


@dataclass(frozen=True, eq=False, repr=False)
class Deviator(Record):
    """A client that slipped, and its costs with and without its slips."""

    client: str
    slips: tuple[Slip, ...]
    slots: FloatArray
    """The slots from its first slip on; the sums below are discounted to the first of them."""
    paid: FloatArray
    """What it paid up to each slot, minus the costs that it could not have avoided."""
    paid_if_kept: FloatArray
    """What it would have paid without its slips, minus the same costs."""
    extra: FloatArray
    """What its slips cost it up to each slot: negative as long as they save it something."""
    extra_for_ever: float
    """What its slips cost it in all slots, those after the match included."""

    def _facts(self) -> dict[str, Any]:
        return {
            "client": self.client,
            "slips": len(self.slips),
            "extra_for_ever": self.extra_for_ever,
        }

    def _tables(self) -> Tables:
        return {"slots": self._slots}

    def _slots(self) -> Columns:
        return {
            "slot": self.slots.astype(np.int64),
            "paid": self.paid,
            "paid_if_kept": self.paid_if_kept,
            "extra": self.extra,
        }


def deviator_of(match: Match, n: int) -> Deviator:
    """What a client's slips saved and cost it, by playing the match again without them."""
    kept = match.without_slips(n)
    assert match.cost is not None
    assert kept.cost is not None
    consortium = match.agreement.consortium
    name, delta = consortium.names[n], float(consortium.discount_factor[n])
    deviations = [e for e in match.events if e.kind == "deviation" and e.client == name]
    first = deviations[0].slot
    paid, paid_if_kept = match.cost[first - 1 :, n], kept.cost[first - 1 :, n]
    more = _more_paid(match, kept, first)
    weights = delta ** np.arange(len(paid) + 1.0)
    unavoidable = float(cost(consortium, 0.0, inf)[n])
    so_far = np.cumsum(weights[:-1] * more.costs[:, n])
    return Deviator(
        client=name,
        slips=tuple(_slips(n, deviations, more)),
        slots=np.arange(first, match.slots + 1.0),
        paid=np.cumsum(weights[:-1] * (paid - unavoidable)),
        paid_if_kept=np.cumsum(weights[:-1] * (paid_if_kept - unavoidable)),
        extra=so_far,
        extra_for_ever=float(so_far[-1] + weights[-1] * more.after[n]),
    )


@dataclass(frozen=True, eq=False)
class _MorePaid:
    """What everyone paid more than without the slips of one client."""

    first: int
    """The slot of the first slip."""
    costs: FloatArray
    """One row for each slot from then on."""
    after: FloatArray
    """After the last slot, discounted to the one that follows it."""
    delta: FloatArray

    def between(self, start: int, end: float, now: int) -> FloatArray:
        """By each client from one slot until just before another, discounted to the slot `now`."""
        rows = self.costs[start - self.first :]
        if end < inf:
            rows = rows[: int(end) - start]
        weights = self.delta ** (start - now + np.arange(len(rows) + 1.0)[:, np.newaxis])
        with np.errstate(invalid="ignore"):
            paid: FloatArray = (weights[:-1] * rows).sum(axis=0)
            return paid + weights[-1] * self.after if end == inf else paid


def _more_paid(match: Match, kept: Match, first: int) -> _MorePaid:
    assert match.cost is not None
    assert kept.cost is not None
    with np.errstate(invalid="ignore"):
        costs = match.cost[first - 1 :] - kept.cost[first - 1 :]
        after = match.cost_after - kept.cost_after
    after[np.abs(after) <= SUMS_DIFFER * np.abs(kept.cost_after)] = 0.0
    return _MorePaid(first, costs, after, match.agreement.consortium.discount_factor)


def _slips(n: int, deviations: list[Event], more: _MorePaid) -> Iterable[Slip]:
    """The slips of client n, each with what follows until the next one."""
    ends = [*(event.slot for event in deviations[1:]), inf]
    for event, end in zip(deviations, ends, strict=True):
        back = event.slot + int(event.lasted)
        at_once = more.between(event.slot, back, event.slot)
        later = more.between(back, end, event.slot)
        yield Slip(
            client=event.client or "",
            first=event.slot,
            last=back - 1,
            agreed=event.agreed or 0.0,
            contributed=event.contributed or 0.0,
            saved=-float(at_once[n]),
            lost=float(later[n]),
            others_lost=float(np.delete(at_once + later, n).sum()),
            others_lost_after=float(np.delete(later, n).sum()),
        )
