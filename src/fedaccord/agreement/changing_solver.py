"""`solve_changing`: an agreement of a consortium that changes, by a fixed-point iteration.

The solver keeps a discount factor d_n(o) for each client and state, and solves every state's
individual agreement with it as if that state lasted for ever. The client keeps to that if
g <= d/(1-d) s, so d = K/(K + s) makes it (E) of `changing`. It is iterated halfway to that until it
is still, near the end with Anderson's acceleration (D. G. Anderson, "Iterative procedures for
nonlinear integral equations", Journal of the ACM 12, 1965); afterwards d is only lowered, where (E)
fails, until (E) holds. That ends: at d = 0 the equilibrium holds.

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

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Objective
from fedaccord.agreement.changing import ChangingAgreement, changing_punishment
from fedaccord.agreement.enforcement import (
    SOLVED,
    WORTHWHILE,
    ScaledGame,
    scale,
)
from fedaccord.agreement.fair import FairShare
from fedaccord.agreement.individual import largest_profiles
from fedaccord.agreement.objectives import least_cost_profile
from fedaccord.agreement.punishment import Punishment, PunishmentName
from fedaccord.agreement.solve import default_objective
from fedaccord.agreement.weight import Weight, effective_discount_factor
from fedaccord.checks import check_choice, check_number, check_type
from fedaccord.game.changing import ChangingConsortium
from fedaccord.numbers import BoolArray, FloatArray

_STILL = 1e-13
"""Change of a discount factor below which the iteration has settled. The error left is about twice
that; a bound changes by some 1e-12 of itself with it, as much as `SOLVED` allows."""

_MOST_STEPS = 500
"""The iteration takes 10 to 100 steps to settle; after these, d is only lowered."""

_NO_CLOSER = 5
"""Steps without coming closer than ever, after which the iteration has settled as well as it can.
The least total cost is found by comparing costs, so its total is known to about the square root of
rounding only, 1e-8 of itself. Discount factors that differ by so little then lead to totals that
differ at random, and no step could be as small as `_STILL`."""

_ROUGHLY = 1e-6
"""Change of a discount factor that this may explain: 1e-8 of a total that saves a client a hundred
times less than it is worth."""

_NEAR = 0.01
"""Change of the discount factors below which the iteration is accelerated."""

_REMEMBERED = 5
"""Steps that the acceleration looks back."""

_NEARLY_ONE = 1.0 - 1e-9
"""The largest d: where the saving of a state is 0 or less, what other states save keeps the client
to it, and no discount factor would be the same. Nor are clients taken to be more patient than that:
what they save would be lost in rounding."""

_AT_FIRST = 1e-13
"""The part by which d is lowered beyond K/(K + s), twice as much in every step: so the lowering
ends soon, where it would otherwise take ever smaller steps."""


def solve_changing(
    changing: ChangingConsortium,
    *,
    objective: Objective | None = None,
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
) -> ChangingAgreement:
    """An agreement of a consortium that changes, by the fixed-point iteration above.

    Args:
        changing: The states and their transitions.
        objective: What is aimed at in each state: "fair share", "most data" or "least total cost";
            by default as in `solve_agreement`.
        margin: Design for discount factors that are this much lower than stated.
        punishment: What follows a deviation, or the name of its kind.

    Returns:
        A `ChangingAgreement`; `certify_changing` proves that it holds. Not the largest one.
    """
    search = _search_of(changing, objective, margin, punishment)
    patience = np.broadcast_to(search.start, changing.present.shape)
    steps, memory = 0, _Memory()
    closest, least, since = patience, np.inf, 0
    while steps < _MOST_STEPS:
        steps += 1
        missing = search.at(patience).wanted - patience
        most = np.abs(missing).max()
        if most <= _STILL:
            break
        since = since + 1 if least <= min(most, _ROUGHLY) else 0
        if most < least:
            closest, least = patience, most
        if since == _NO_CLOSER:
            patience = closest
            break
        patience = np.clip(memory.next(patience, missing), 0.0, _NEARLY_ONE)
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
    objective: Objective | None = None,
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


class _Memory:
    """Anderson's acceleration: the last steps tell how the next one will turn out."""

    def __init__(self) -> None:
        self.points: list[FloatArray] = []
        self.missing: list[FloatArray] = []

    def next(self, point: FloatArray, missing: FloatArray) -> FloatArray:
        """Where to go from a point at which so much is missing."""
        if np.abs(missing).max() > _NEAR:
            self.points, self.missing = [], []
            return np.asarray(point + 0.5 * missing)
        self.points = [*self.points[-_REMEMBERED:], point]
        self.missing = [*self.missing[-_REMEMBERED:], missing]
        if len(self.points) == 1:
            return np.asarray(point + 0.5 * missing)
        moved = np.diff([one.ravel() for one in self.points], axis=0)
        gained = np.diff([one.ravel() for one in self.missing], axis=0)
        share = np.linalg.lstsq(gained.T, missing.ravel(), rcond=None)[0]
        step = 0.5 * missing.ravel() - share @ (moved + 0.5 * gained)
        return np.asarray(point + step.reshape(point.shape))


class _Search:
    """The states as rows of a game, and what later slots are worth."""

    def __init__(
        self,
        changing: ChangingConsortium,
        objective: Objective,
        margin: float,
        punishment: Punishment,
    ) -> None:
        self.changing, self.objective = changing, objective
        self.margin, self.punishment = margin, punishment
        self.game = _game_of(changing, punishment)
        delta = np.clip(changing.discount_factor - margin, 0.0, _NEARLY_ONE)
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
        # without a temptation any discount factor will do, and without a threat none
        without = np.where(gain > 0, 0.0, patience)
        wanted = np.where(later > 0, np.minimum(share, _NEARLY_ONE), without)
        rounding = SOLVED * (profiles + game.punished + self._at_stake(saving))
        tempted = (profiles > 0) | (not game.reverts)
        fails = present & tempted & (gain > later + rounding) & (patience > 0)
        return _Found(profiles, np.where(present, wanted, patience), fails)

    def _at_stake(self, saving: FloatArray) -> FloatArray:
        """The largest saving of each client: K is a sum over all states, and so is its rounding."""
        return np.asarray(np.abs(saving).max(axis=0))

    def _profiles(self, game: ScaledGame) -> FloatArray:
        largest = largest_profiles(game)
        if self.objective == "most data":
            return largest
        best = largest.copy()
        for o, here in enumerate(self.changing.present):
            row, most = game.rows(np.array([o])).clients(here), largest[o, here]
            if not row.worthwhile(most):
                continue
            if self.objective == "fair share":
                best[o, here] = FairShare(row, [row]).profiles(np.array([[most.sum()]]))[0]
            else:
                equilibrium = self.changing.equilibria[o].effective
                best[o, here] = least_cost_profile(equilibrium, row, most)
        return best

    def agreement(self, profiles: FloatArray) -> ChangingAgreement:
        """The record of these profiles, which count by quality."""
        changing = self.changing
        everything = profiles >= changing.samples * changing.quality
        own = np.minimum(profiles / changing.quality, changing.samples)
        own = np.where(changing.present, np.where(everything, changing.samples, own), 0.0)
        own.flags.writeable = False
        larger = profiles.sum(axis=1) > self.game.start[:, 0] * (1.0 + WORTHWHILE)
        exists = bool(larger.any())
        return ChangingAgreement(
            changing, own, self.punishment, self.objective, self.margin, exists
        )


def _search_of(
    changing: ChangingConsortium,
    objective: Objective | None,
    margin: float,
    punishment: Punishment | PunishmentName,
) -> _Search:
    """The search for these options, checked."""
    check_type("changing", changing, ChangingConsortium)
    check_number("margin", margin, least=0, below=1)
    chosen = changing_punishment(punishment)
    aim: Any = objective or default_objective(chosen)
    check_choice("objective", aim, get_args(Objective))
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
        Weight(np.zeros(present.shape), np.zeros(present.shape)),
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


def weighed(later: FloatArray, which: npt.NDArray[np.int64], saving: FloatArray) -> FloatArray:
    """K: each client's savings by state, weighed by the matrix of its discount factor."""
    if len(later) == 1:
        return np.asarray(later[0] @ saving)
    return np.asarray(np.einsum("nop,pn->on", later[which], saving))
