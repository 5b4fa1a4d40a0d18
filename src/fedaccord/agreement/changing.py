"""Agreements of a consortium that changes: an amount for each client in each state.

After a slip in state o the punishment follows in whatever states come next. With g_n(o) what the
best deviation gains in one slot and s_n(o) what the agreement saves in a slot against the
punishment, both 0 where n is away, everyone keeps to the profiles x(o) if and only if

    g_n(o)  <=  K_n(o) = sum over t = 1, 2, ... of delta_n^t (M^t s_n)(o)    for all n and o    (E)

by the one-stage deviation principle in each state; for a punishment of L slots the sum has L terms.
Without end it is delta M (I - delta M)^-1 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement, Objective
from fedaccord.agreement.punishment import (
    Punishment,
    PunishmentName,
    Reversion,
    Suspension,
    as_punishment,
)
from fedaccord.checks import check_type
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.changing import ChangingConsortium
from fedaccord.numbers import FloatArray, as_profile
from fedaccord.record import Columns, Record, Tables


@dataclass(frozen=True, eq=False, repr=False)
class ChangingAgreement(Record):
    """An amount for each client in each state, and what follows if one contributes less.

    It only states this; `certify_changing` proves whether it holds. There may be larger agreements
    that do, unless everyone trains on all it has (`largest`).
    """

    changing: ChangingConsortium
    profiles: FloatArray
    """x(o): what each client is asked for in each state; 0 where it is away."""
    punishment: Punishment = field(default_factory=Reversion)
    objective: Objective | None = None
    margin: float = 0.0
    """By how much the clients' discount factors may be lower than stated."""
    exists: bool = True
    """False if no state has a larger total than its equilibrium."""
    steps: int = 0
    """How many steps the solver took; 0 for an agreement that was written by hand."""

    def in_state(self, o: int) -> Agreement:
        """What is agreed in a state, as an agreement of those who take part in it.

        As if that state lasted for ever: `certify` then proves another thing than (E).
        """
        here = self.changing.present[o]
        return Agreement(
            equilibrium=self.changing.equilibria[o],
            profile=self.profiles[o, here],
            kind="given",
            punishment=self.punishment,
        )

    @cached_property
    def totals(self) -> FloatArray:
        """X(o): all samples trained on in a slot of each state, each counted by its quality."""
        return np.asarray((self.profiles * self.changing.quality).sum(axis=1))

    @cached_property
    def equilibrium_profiles(self) -> FloatArray:
        """x*(o), the equilibrium of each state."""
        return self.changing.spread([one.profile for one in self.changing.equilibria])

    @cached_property
    def equilibrium_totals(self) -> FloatArray:
        """S(o), their totals."""
        return np.array([one.total for one in self.changing.equilibria])

    @cached_property
    def saving(self) -> FloatArray:
        """What each client saves per slot of each state, compared with its equilibrium."""
        return self.changing.spread(
            [self.in_state(o).saving for o in range(self.changing.size)],
        )

    @property
    def largest(self) -> bool:
        """Whether no other agreement has more data: everyone trains on all it has in every state.

        Otherwise there may be a larger one that holds.
        """
        present = self.changing.present
        return bool((self.profiles == self.changing.samples)[present].all())

    _headline: ClassVar = ("exists", "states", "totals", "punishment")

    def _facts(self) -> dict[str, Any]:
        return {
            "exists": self.exists,
            "states": list(self.changing.states),
            "totals": self.totals,
            "equilibrium_totals": self.equilibrium_totals,
            "objective": self.objective,
            "margin": self.margin,
            "punishment": self.punishment,
            "largest": self.largest,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        """One row for each client and state."""
        changing = self.changing
        row, column = np.nonzero(changing.present)
        return {
            "state": [changing.states[o] for o in row.tolist()],
            "name": [changing.names[n] for n in column.tolist()],
            "samples": changing.samples[row, column],
            "equilibrium": self.equilibrium_profiles[row, column],
            "contribution": self.profiles[row, column],
            "saving": self.saving[row, column],
        }


def changing_agreement_on(
    changing: ChangingConsortium,
    profiles: npt.ArrayLike | Sequence[npt.ArrayLike],
    punishment: Punishment | PunishmentName = "reversion",
) -> ChangingAgreement:
    """An agreement on any profiles, one row per state; who is away must be asked for 0."""
    check_type("changing", changing, ChangingConsortium)
    rows = np.array(profiles, dtype=np.float64)
    if rows.shape != changing.present.shape:
        height, width = changing.present.shape
        raise InvalidInput(f"must have {height} rows of {width} amounts", field="profiles")
    for o, row in enumerate(rows):
        as_profile(row, changing.samples[o])
    strange = np.argwhere(~changing.present & (rows != 0))
    if strange.size:
        o, n = strange[0].tolist()
        wrong = (
            f"{changing.names[n]} is away in {changing.states[o]!r} and can be asked for nothing"
        )
        raise InvalidInput(Problem("profiles", wrong))
    rows.flags.writeable = False
    return ChangingAgreement(changing, rows, changing_punishment(punishment))


def changing_punishment(given: Punishment | PunishmentName) -> Punishment:
    """The punishment, if it is one that a changing consortium can have."""
    punishment = as_punishment(given)
    if isinstance(punishment, Suspension) and (punishment.model_keeps or punishment.or_reversion):
        wrong = "an old model, or the harsher of both punishments, is not possible with states"
        raise InvalidInput(wrong, field="punishment")
    return punishment
