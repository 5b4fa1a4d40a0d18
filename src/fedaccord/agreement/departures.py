"""What if this one leaves? For every client at once: what the others lose, and what still holds.

If client n leaves, the others either keep their amounts, in a consortium of N - 1, and whether that
holds is certified anew; or they agree again. What each of them saves is counted against being
alone: that does not depend on the others, so a saving that falls is a cost that rises by as much.

>>> from fedaccord.files.consortium import example_consortium
>>> found = departures(example_consortium())
>>> found.total_new.round().tolist()
[83086.0, 87933.0, 87412.0, 86377.0, 96599.0, 93059.0]
>>> found.most_missed, found.least_missed, found.slipping(0)
('University Hospital', 'Lakeside Clinic', ['Lakeside Clinic'])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedaccord.agreement.agreement import Agreement, Objective, agreement_on
from fedaccord.agreement.batch import solve_batch
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.monitoring import BELIEVED, Monitoring
from fedaccord.agreement.punishment import Punishment, PunishmentName, as_punishment
from fedaccord.agreement.solve import default_objective, solve_agreement
from fedaccord.checks import check_type
from fedaccord.errors import InvalidInput
from fedaccord.game.alone import alone_cost
from fedaccord.game.changing import some_members
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables, rows_of


@dataclass(frozen=True, eq=False, repr=False)
class Departures(Record):
    """For each client that leaves (row) and each that stays (column); NaN for the same client."""

    agreement: Agreement
    """What everyone agrees on together."""
    keeps: BoolArray
    """Whether each of the others trains on its amount, or on more; true for who leaves."""
    exists: BoolArray
    """Whether the others find an agreement of their own with a larger total than selfish play."""
    profiles: FloatArray
    """What they would then agree on; selfish play where there is no agreement."""

    @property
    def consortium(self) -> Consortium:
        """Everyone."""
        return self.agreement.consortium

    @cached_property
    def saving(self) -> FloatArray:
        """What each saves now per slot, against being alone: what leaving costs it itself."""
        return alone_cost(self.consortium) - self.agreement.cost

    @cached_property
    def saving_kept(self) -> FloatArray:
        """What each saves after a departure if the others keep their amounts."""
        others = ~np.eye(self.consortium.size, dtype=bool)
        return self._saving(np.where(others, self.agreement.profile, np.nan))

    @cached_property
    def saving_new(self) -> FloatArray:
        """What each saves after a departure if the others agree again."""
        return self._saving(self.profiles)

    @cached_property
    def holds_kept(self) -> BoolArray:
        """Whether the others' amounts still hold without the one that leaves."""
        return np.asarray(self.keeps.all(axis=1))

    @property
    def total_kept(self) -> FloatArray:
        """The total after each departure if the others keep their amounts."""
        return self.agreement.total - self.consortium.quality * self.agreement.profile

    @cached_property
    def total_new(self) -> FloatArray:
        """The total after each departure if the others agree again."""
        return np.asarray(np.nansum(self.profiles * self.consortium.quality, axis=1))

    @cached_property
    def cost_to_others(self) -> FloatArray:
        """What each departure costs the others together, per slot, if they agree again."""
        return np.asarray(np.nansum(self.saving - self.saving_new, axis=1))

    @property
    def indispensable(self) -> list[str]:
        """Those without whom the others find no agreement."""
        return [self.consortium.names[n] for n in np.flatnonzero(~self.exists).tolist()]

    @property
    def most_missed(self) -> str:
        """Whose departure costs the others most."""
        return self.consortium.names[int(np.argmax(self.cost_to_others))]

    @property
    def least_missed(self) -> str:
        """Whose departure costs the others least."""
        return self.consortium.names[int(np.argmin(self.cost_to_others))]

    def slipping(self, n: int) -> list[str]:
        """Who would not keep its amount if client n left."""
        return [self.consortium.names[m] for m in np.flatnonzero(~self.keeps[n]).tolist()]

    def _saving(self, profiles: FloatArray) -> FloatArray:
        total = np.nansum(profiles * self.consortium.quality, axis=1)
        return alone_cost(self.consortium) - cost(self.consortium, profiles, total[:, np.newaxis])

    _headline: ClassVar = ("total", "most_missed", "least_missed", "indispensable")

    def to_dict(self) -> dict[str, Any]:
        """What is agreed, and each departure with what it does to each of the others."""
        record = super().to_dict()
        for n, row in enumerate(record["departures"]):
            row["slips"] = self.slipping(n)
            row["clients"] = rows_of(self._others(n))
        return record

    def _facts(self) -> dict[str, Any]:
        return {
            "total": self.agreement.total,
            "exists": self.agreement.exists,
            "objective": self.agreement.objective,
            "margin": self.agreement.margin,
            "punishment": self.agreement.punishment,
            "most_missed": self.most_missed,
            "least_missed": self.least_missed,
            "indispensable": self.indispensable,
        }

    def _tables(self) -> Tables:
        return {"departures": self._departures}

    def _departures(self) -> Columns:
        return {
            "name": self.consortium.names,
            "contribution": self.agreement.profile,
            "own_loss": self.saving,
            "total_kept": self.total_kept,
            "holds_kept": self.holds_kept,
            "exists": self.exists,
            "total_new": self.total_new,
            "cost_to_others": self.cost_to_others,
        }

    def _others(self, n: int) -> Columns:
        stays = np.arange(self.consortium.size) != n
        names = [name for m, name in enumerate(self.consortium.names) if m != n]
        return {
            "name": names,
            "saving": self.saving[stays],
            "saving_kept": self.saving_kept[n, stays],
            "saving_new": self.saving_new[n, stays],
            "contribution_new": self.profiles[n, stays],
        }


def departures(
    consortium: Consortium,
    *,
    objective: Objective | None = None,
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
    nobody_worse: bool = False,
    monitoring: Monitoring = BELIEVED,
) -> Departures:
    """What happens if any one client leaves; the options are those of `solve_agreement`."""
    check_type("consortium", consortium, Consortium)
    if consortium.size == 1:
        raise InvalidInput("if the only client leaves, nobody is left", field="consortium")
    chosen = as_punishment(punishment)
    options: dict[str, Any] = {
        "margin": margin,
        "punishment": chosen,
        "nobody_worse": nobody_worse,
        "monitoring": _for_any(monitoring),
    }
    aim = objective or default_objective(chosen)
    agreement = solve_agreement(consortium, objective=aim, **options)
    others = ~np.eye(consortium.size, dtype=bool)
    left = [some_members(consortium, stay) for stay in others]
    profiles, keeps = np.full(others.shape, np.nan), np.ones(others.shape, dtype=bool)
    for n, stay in enumerate(others):
        kept = agreement_on(left[n], agreement.profile[stay], chosen, monitoring)
        certificate = certify(kept)
        keeps[n, stay] = certificate.keeps | certificate.gives_more
    if aim == "most data" and _plain(consortium):
        profiles[others], exists = _largest(consortium, options)
        return Departures(agreement, keeps, exists, profiles)
    new = [solve_agreement(one, objective=aim, **options) for one in left]
    profiles[others] = np.concatenate([one.profile for one in new])
    return Departures(agreement, keeps, np.array([one.exists for one in new]), profiles)


def _for_any(monitoring: Monitoring) -> Monitoring:
    """The monitoring, if it is the same for all clients: whoever leaves is not audited."""
    if any(not isinstance(rate, float) for rate in (monitoring.audit, monitoring.false_alarm)):
        wrong = "must be the same for all clients, since any of them may leave"
        raise InvalidInput(wrong, field="monitoring")
    return monitoring


def _plain(consortium: Consortium) -> bool:
    """Whether all can be solved in one batch: exact numbers, one law, samples of one quality."""
    law = consortium.law
    exact = consortium.ranges is None and law.evidence is None
    return exact and consortium.equal_quality and not law.is_personal


def _largest(consortium: Consortium, options: dict[str, Any]) -> tuple[FloatArray, BoolArray]:
    """The largest agreements of all but one client each, one after the other, in one batch."""
    size = consortium.size
    stay = np.nonzero(~np.eye(size, dtype=bool))[1].reshape(size, size - 1)
    batch = solve_batch(
        valuation=consortium.valuation[stay],
        cost_per_sample=consortium.cost_per_sample[stay],
        samples=consortium.samples[stay],
        discount_factor=consortium.discount_factor[stay],
        fees=consortium.communication_cost[stay] + consortium.server_fee,
        law=consortium.law,
        **options,
    )
    return batch.profile.ravel(), batch.exists
