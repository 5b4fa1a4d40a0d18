"""Agreements of a consortium that changes: an amount for each client in each state.

After a slip in state o the punishment follows in whatever states come next. With g_n(o) what the
best deviation gains in one slot and s_n(o) what the agreement saves in a slot against the
punishment, both 0 where n is away, everyone keeps to the profiles x(o) if and only if

    g_n(o)  <=  K_n(o) = sum over t = 1, 2, ... of delta_n^t (M^t s_n)(o)     for all n and o     (E)

by the one-stage deviation principle in each state; for a punishment of L slots the sum has L terms.
Without end it is delta M (I - delta M)^-1 s.

The solver keeps a discount factor d_n(o) for each client and state, and solves every state's
individual agreement with it as if that state lasted for ever. The client keeps to that if
g <= d/(1-d) s, so d = K/(K + s) makes it (E). It is iterated halfway to that until it is still;
afterwards d is only lowered, where (E) fails, until (E) holds. That ends: at d = 0 the equilibrium
holds.

The result holds, but it is not the largest agreement: asking less in one state may allow more in
another, which this does not try.

>>> from fedaccord.files.consortium import example_consortium
>>> from fedaccord.game.changing import ChangingConsortium, State
>>> changing = ChangingConsortium(
...     example_consortium(),
...     [State("all six"), State("without Riverside", without=["Riverside"])],
...     {"all six": {"all six": 0.9, "without Riverside": 0.1}},
... )
>>> solve_changing(changing).totals.round().tolist()
[108088.0, 86377.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.enforcement import (
    SOLVED,
    WORTHWHILE,
    ScaledGame,
    effective_discount_factor,
    scale,
)
from fedaccord.agreement.individual import largest_profiles
from fedaccord.agreement.objectives import least_cost_profile
from fedaccord.agreement.punishment import Punishment, PunishmentName, Reversion, Suspension, as_punishment
from fedaccord.agreement.solve import default_objective
from fedaccord.checks import check_choice, check_number, check_type
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.changing import ChangingConsortium
from fedaccord.numbers import BoolArray, FloatArray, as_profile
from fedaccord.record import Columns, Record, Tables

ChangingObjective = Literal["most data", "least total cost"]

_STILL = 1e-13
"""Change of a discount factor below which the iteration has settled. The error left is about twice
that; a bound changes by some 1e-12 of itself with it, as much as `SOLVED` allows."""

_MOST_STEPS = 1_000
"""The iteration takes 30 to 400 steps to settle; after these, d is only lowered."""

_NEARLY_ONE = 1.0 - 1e-9
"""The largest d: where the saving of a state is 0 or less, what other states save keeps the client
to it, and no discount factor would be the same."""

_AT_FIRST = 1e-13
"""The part by which d is lowered beyond K/(K + s), twice as much in every step: so the lowering ends
soon, where it would otherwise take ever smaller steps."""


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
    objective: ChangingObjective | None = None
    margin: float = 0.0
    """By how much the clients' discount factors may be lower than stated."""
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
    def exists(self) -> bool:
        """Whether some state has a larger total than its equilibrium."""
        return bool((self.totals > self.equilibrium_totals * (1.0 + WORTHWHILE)).any())

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
        wrong = f"{changing.names[n]} is away in {changing.states[o]!r} and can be asked for nothing"
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


def solve_changing(
    changing: ChangingConsortium,
    *,
    objective: ChangingObjective | None = None,
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
) -> ChangingAgreement:
    """An agreement of a consortium that changes, by the fixed-point iteration above.

    Args:
        changing: The states and their transitions.
        objective: What is optimised in each state, "most data" or "least total cost"; by default as
            in `solve_agreement`.
        margin: Design for discount factors that are this much lower than stated.
        punishment: What follows a deviation, or the name of its kind.

    Returns:
        A `ChangingAgreement`; `certify_changing` proves that it holds. Not the largest one.
    """
    search = _search_of(changing, objective, margin, punishment)
    patience = np.broadcast_to(search.start, changing.present.shape)
    steps = 0
    while steps < _MOST_STEPS:
        steps += 1
        wanted = search.at(patience).wanted
        settled = np.abs(wanted - patience)[changing.present].max() <= _STILL
        patience = 0.5 * (patience + wanted)
        if settled:
            break
    found, extra = search.at(patience), _AT_FIRST
    while found.fails.any():
        steps, extra = steps + 1, min(2.0 * extra, 1.0)
        lower = np.minimum(patience, found.wanted) * (1.0 - extra)
        patience = np.where(found.fails, lower, patience)
        found = search.at(patience)
    return replace(search.agreement(found.profiles), steps=steps)


def solve_each_for_ever(
    changing: ChangingConsortium,
    *,
    objective: ChangingObjective | None = None,
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
) -> ChangingAgreement:
    """What would be agreed in each state if it lasted for ever, which need not hold."""
    search = _search_of(changing, objective, margin, punishment)
    patience = np.broadcast_to(search.start, changing.present.shape)
    return search.agreement(search.at(patience).profiles)


@dataclass(frozen=True)
class _Found:
    """The agreements of all states for one array of discount factors."""

    profiles: FloatArray
    wanted: FloatArray
    """K/(K + s): the discount factors for which clients would keep to just this."""
    fails: BoolArray
    """Where (E) fails."""


class _Search:
    """The states as rows of a game, and what later slots are worth."""

    def __init__(
        self,
        changing: ChangingConsortium,
        objective: ChangingObjective,
        margin: float,
        punishment: Punishment,
    ) -> None:
        self.changing, self.objective = changing, objective
        self.margin, self.punishment = margin, punishment
        self.game = _game_of(changing, punishment)
        delta = np.maximum(changing.discount_factor - margin, 0.0)
        self.start = effective_discount_factor(delta, punishment.slots)
        different, self.which = np.unique(delta, return_inverse=True)
        self.later = later_slots(changing.transitions, different, punishment.slots)

    def at(self, patience: FloatArray) -> _Found:
        """Solve every state with these discount factors, and see what they should be."""
        game, present = self.game.with_patience(patience), self.changing.present
        profiles = self._profiles(game)
        total = profiles.sum(axis=1, keepdims=True)
        worthwhile = total > game.start * (1.0 + WORTHWHILE)
        profiles = np.where(worthwhile, profiles, game.equilibrium)
        total = np.where(worthwhile, total, game.start)
        saving = np.where(present, game.saving(profiles, total), 0.0)
        gain = np.where(present, game.gain(profiles, total), 0.0)
        later = weighed(self.later, self.which, saving)
        whole = later + saving
        share = np.divide(later, whole, out=np.full_like(later, _NEARLY_ONE), where=whole > 0)
        wanted = np.where(later > 0, np.minimum(share, _NEARLY_ONE), 0.0)
        rounding = SOLVED * (profiles + game.punished + self._at_stake(saving))
        tempted = (profiles > 0) | (not game.reverts)
        fails = present & tempted & (gain > later + rounding) & (patience > 0)
        return _Found(profiles, np.where(present, wanted, patience), fails)

    def _at_stake(self, saving: FloatArray) -> FloatArray:
        """The largest saving of each client: K is a sum over all states, and so is its rounding."""
        return np.abs(saving).max(axis=0)

    def _profiles(self, game: ScaledGame) -> FloatArray:
        largest = largest_profiles(game)
        if self.objective == "most data":
            return largest
        cheapest = largest.copy()
        for o, here in enumerate(self.changing.present):
            row = game.rows(np.array([o])).clients(here)
            if row.worthwhile(largest[o, here]):
                equilibrium = self.changing.equilibria[o].effective
                cheapest[o, here] = least_cost_profile(equilibrium, row, largest[o, here])
        return cheapest

    def agreement(self, profiles: FloatArray) -> ChangingAgreement:
        """The record of these profiles, which count by quality."""
        changing = self.changing
        everything = profiles >= changing.samples * changing.quality
        own = np.minimum(profiles / changing.quality, changing.samples)
        own = np.where(changing.present, np.where(everything, changing.samples, own), 0.0)
        own.flags.writeable = False
        return ChangingAgreement(changing, own, self.punishment, self.objective, self.margin)


def _search_of(
    changing: ChangingConsortium,
    objective: ChangingObjective | None,
    margin: float,
    punishment: Punishment | PunishmentName,
) -> _Search:
    """The search for these options, checked."""
    check_type("changing", changing, ChangingConsortium)
    check_number("margin", margin, least=0, below=1)
    chosen = changing_punishment(punishment)
    aim: Any = objective or default_objective(chosen)
    check_choice("objective", aim, get_args(ChangingObjective))
    return _Search(changing, aim, margin, chosen)


def _game_of(changing: ChangingConsortium, punishment: Punishment) -> ScaledGame:
    """One row per state, counted in samples of quality 1; who is away has no samples."""
    present, quality = changing.present, changing.quality
    price = changing.cost_per_sample / quality
    paid = changing.communication_cost + changing.everyone.server_fee
    game, _ = scale(
        changing.valuation / price,
        np.where(present, quality * changing.samples, 0.0),
        changing.everyone.law,
        np.zeros(present.shape),
        punishment,
        fees=np.where(present, paid / price, 0.0),
    )
    # alone, a client without samples would have an infinite loss; it is not punished
    total = np.where(present, game.punished_total, game.equilibrium_total)
    return replace(game, punished_total=total)


def later_slots(
    transitions: FloatArray, discount_factors: FloatArray, slots: int | None
) -> FloatArray:
    """sum of delta^t M^t over the slots of a punishment, one matrix for each discount factor."""
    moved = discount_factors[:, np.newaxis, np.newaxis] * transitions
    one = np.eye(len(transitions))
    for_ever = np.linalg.solve(one - moved, moved)
    if slots is None:
        return np.asarray(for_ever)
    return np.asarray(for_ever - for_ever @ np.linalg.matrix_power(moved, slots))


def weighed(
    later: FloatArray, which: npt.NDArray[np.int64], saving: FloatArray
) -> FloatArray:
    """K: each client's savings by state, weighed by the matrix of its discount factor."""
    if len(later) == 1:
        return np.asarray(later[0] @ saving)
    return np.asarray(np.einsum("nop,pn->on", later[which], saving))
