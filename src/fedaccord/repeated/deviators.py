"""What each slip of a client saved and cost it.

A slip (a deviation of one slot or several in a row) saves its client something at once and costs
it something later. Both are relative to the same match without that client's slips, and discounted
to the slot of the slip:

    saved = what it would have paid in the slots of the slip, minus what it paid;
    lost  = what it paid afterwards, up to its next slip or for ever, minus what it would have paid.

So all slips of a client, each discounted to the first slot, add up to what the slips cost it. (What
it does during a punishment is not a slip, and what that costs it is in none of them.)
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
    with np.errstate(invalid="ignore"):
        extra = paid - paid_if_kept
        after = float(match.cost_after[n] - kept.cost_after[n])
    if abs(after) <= SUMS_DIFFER * abs(kept.cost_after[n]):
        after = 0.0
    weights = delta ** np.arange(extra.size + 1.0)
    unavoidable = float(cost(consortium, 0.0, inf)[n])
    so_far = np.cumsum(weights[:-1] * extra)
    return Deviator(
        client=name,
        slips=tuple(_slips(deviations, extra, after, weights)),
        slots=np.arange(first, match.slots + 1.0),
        paid=np.cumsum(weights[:-1] * (paid - unavoidable)),
        paid_if_kept=np.cumsum(weights[:-1] * (paid_if_kept - unavoidable)),
        extra=so_far,
        extra_for_ever=float(so_far[-1] + weights[-1] * after),
    )


def _slips(
    deviations: list[Event], extra: FloatArray, after: float, weights: FloatArray
) -> Iterable[Slip]:
    """The slips of one client; `extra` and `after` are what they cost it from the first on."""
    start = deviations[0].slot
    ends = [event.slot - start for event in deviations[1:]] + [extra.size]
    for event, end in zip(deviations, ends, strict=True):
        first = event.slot - start
        back = first + int(event.lasted)
        saved = -float(weights[: back - first] @ extra[first:back])
        lost = float(weights[back - first : end - first] @ extra[back:end])
        if end == extra.size:
            lost += float(weights[end - first]) * after
        yield Slip(
            client=event.client or "",
            first=event.slot,
            last=event.slot + int(event.lasted) - 1,
            agreed=event.agreed or 0.0,
            contributed=event.contributed or 0.0,
            saved=saved,
            lost=lost,
        )
