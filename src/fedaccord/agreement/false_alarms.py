"""What false alarms cost: punishments that nobody deserved.

In a slot of cooperation a punishment begins with probability Q although nobody slipped: anyone's
false alarm under reversion, its own (e) under suspension. With W what the slots of the punishment
weigh, it costs a client on average pi s more a slot, s being its saving and pi = Q W / (1 + Q W);
in the long run a share Q L / (1 + Q L) of the slots are punished, L being their number. Under
suspension it also misses the samples of others that are out.

A punishment that weighs more than it must costs more than it must. The mildest one that suffices is
one that is begun by lot: with probability p after an accusation, so that p q and p e count instead
of q and e. Its own false alarms then cost a client e gain / (q - e) a slot, however harsh it is.

>>> import fedaccord as fa
>>> agreement = fa.agreement_on(
...     fa.paper_consortium(), [10_000.0] * 100, fa.Suspension(), fa.Monitoring(false_alarm=0.01)
... )
>>> found = false_alarms(agreement)
>>> round(found.long_run_total), round(float(found.act_on.max()), 3)
(990099, 0.097)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.monitoring import Monitoring
from fedaccord.agreement.punishment import Punishment, PunishmentName, Reversion, as_punishment
from fedaccord.agreement.search import lost_by
from fedaccord.agreement.solve import solve_agreement
from fedaccord.agreement.threats import worth_of
from fedaccord.agreement.watch import watch_of
from fedaccord.checks import check_type, check_whole
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables


@dataclass(frozen=True, eq=False, repr=False)
class FalseAlarms(Record):
    """What false alarms cost each client, all clients keeping to the agreement."""

    agreement: Agreement
    punished: FloatArray
    """pi: the part of its slots, discounted, in which each client is punished."""
    long_run: FloatArray
    """The same in the long run, not discounted."""
    cost: FloatArray
    """What false alarms cost it in a slot on average: its own, and under suspension others'."""
    act_on: FloatArray
    """p: with which probability an accusation must be acted on; NaN under reversion, and infinite
    where the punishment does not suffice."""
    mildest_cost: FloatArray
    """What false alarms cost it if no more are acted on; NaN under reversion."""

    @cached_property
    def long_run_total(self) -> float:
        """Samples trained on in a slot, in the long run."""
        agreement = self.agreement
        if isinstance(agreement.punishment, Reversion):
            start, share = agreement.equilibrium.total, float(self.long_run[0])
            return start + (1.0 - share) * (agreement.total - start)
        return agreement.consortium.total_of(agreement.profile * (1.0 - self.long_run))

    _headline: ClassVar = ("long_run_total", "total_cost")

    def _facts(self) -> dict[str, Any]:
        return {
            "long_run_total": self.long_run_total,
            "total_cost": self.cost.sum(),
            "mildest_total_cost": self.mildest_cost.sum(),
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "punished": self.punished,
            "long_run": self.long_run,
            "cost": self.cost,
            "act_on": self.act_on,
            "mildest_cost": self.mildest_cost,
        }


def false_alarms(agreement: Agreement) -> FalseAlarms:
    """What the agreement's false alarms cost, and the mildest punishment that suffices."""
    check_type("agreement", agreement, Agreement)
    certificate, watch = certify(agreement), watch_of(agreement)
    delta, slots = agreement.consortium.discount_factor, agreement.punishment.slots
    begins, worth = watch.before, worth_of(delta, slots)
    punished = begins * worth / (1.0 + begins * worth)
    ever = np.where(begins > 0, 1.0, 0.0)
    long_run = ever if slots is None else begins * slots / (1.0 + begins * slots)
    cost = punished * certificate.saving
    act_on, mildest = np.full_like(delta, np.nan), np.full_like(delta, np.nan)
    if not isinstance(agreement.punishment, Reversion):
        gain, more = certificate.slips.tempting, watch.rise
        cost = cost + _others_out(agreement, worth, begins)
        left = worth * (more * certificate.saving - begins * gain)
        act_on = np.divide(gain, left, out=np.full_like(gain, np.inf), where=left > 0)
        own = np.divide(begins * gain, more, out=np.zeros_like(gain), where=more > 0)
        mildest = own + _others_out(agreement, worth, begins * np.minimum(act_on, 1.0))
    return FalseAlarms(agreement, punished, long_run, cost, act_on, mildest)


def _others_out(agreement: Agreement, worth: FloatArray, begins: FloatArray) -> FloatArray:
    """What each client misses while others are out because of a false alarm, one at a time.

    `begins` is how likely each client's suspension is to begin in a slot.
    """
    consortium = agreement.consortium
    missing = consortium.quality * agreement.profile
    # what a client's absence costs is the valuation times this, whoever's valuation it is
    dearer = lost_by(consortium, agreement.total - missing, np.float64(agreement.total))
    dearer = dearer / consortium.valuation
    result = np.empty_like(worth)
    for weight in np.unique(worth).tolist():
        lost = begins * weight / (1.0 + begins * weight) * dearer
        result = np.where(worth == weight, consortium.valuation * (lost.sum() - lost), result)
    return result


@dataclass(frozen=True, eq=False, repr=False)
class Lengths(Record):
    """Punishments of several lengths: what is agreed under each, and left of it in the long run."""

    slots: tuple[int, ...]
    found: tuple[FalseAlarms, ...]

    @property
    def best(self) -> int:
        """The length that leaves the most data in the long run."""
        return self.slots[int(np.argmax([one.long_run_total for one in self.found]))]

    def _facts(self) -> dict[str, Any]:
        return {"best": self.best}

    def _tables(self) -> Tables:
        return {"lengths": self._lengths}

    def _lengths(self) -> Columns:
        return {
            "slots": self.slots,
            "total": [one.agreement.total for one in self.found],
            "long_run_total": [one.long_run_total for one in self.found],
        }


def compare_lengths(
    consortium: Consortium | Equilibrium,
    monitoring: Monitoring,
    *,
    most: int = 10,
    punishment: Punishment | PunishmentName = "reversion",
    margin: float = 0.0,
) -> Lengths:
    """The largest agreement under a punishment of 1 to `most` slots, with false alarms.

    A longer punishment enforces more, and is more often undeserved for longer.
    """
    check_whole("most", most)
    kind = as_punishment(punishment)
    slots = tuple(range(1, most + 1))
    found = [
        false_alarms(
            solve_agreement(
                consortium,
                objective="most data",
                punishment=kind.lasting(length),
                margin=margin,
                monitoring=monitoring,
            )
        )
        for length in slots
    ]
    return Lengths(slots, tuple(found))
