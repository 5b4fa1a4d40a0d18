"""How patient clients must be for an agreement, and how long a punishment must last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np

from fedaccord.agreement import individual, uniform
from fedaccord.agreement.agreement import Agreement, FirstConverted, SolvedKind
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.enforcement import SOLVED, ScaledGame, scale_one
from fedaccord.agreement.monitoring import BELIEVED, Monitoring, Rates
from fedaccord.agreement.punishment import Punishment, PunishmentName, as_punishment
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.agreement.weight import weight_of
from fedaccord.checks import check_choice, check_type
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.numbers import FloatArray

_SHARP = 1e-9
"""Accuracy of a smallest discount factor that is found by bisection over whole agreements."""

_CLEARLY = 0.01
"""A discount factor this much above the smallest one is clearly enough."""

_MOST = 1.0 - _SHARP
"""As patient as clients are taken to be."""

_LONGEST = 2**20
"""Slots of a punishment; more would not differ from one without end."""

_HALVINGS = 60
"""Bisection steps that determine a discount factor to the last bit."""


def equilibrium_of(consortium: Consortium | Equilibrium) -> Equilibrium:
    """The equilibrium, solved unless it is given."""
    return consortium if isinstance(consortium, Equilibrium) else solve_equilibrium(consortium)


def smallest_discount_factor(
    consortium: Consortium | Equilibrium,
    kind: SolvedKind = "individual",
    *,
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
    nobody_worse: bool = False,
    first_converted: FirstConverted = "paper",
    monitoring: Monitoring = BELIEVED,
) -> float | None:
    """The discount factor above which an agreement of this kind exists if all clients have it.

    None if none is enough: everyone contributes everything already, nobody could gain, the margin
    is too large, or the punishment too short. Agreements in whole samples are not considered. The
    arguments are those of `solve_agreement`.
    """
    check_choice("kind", kind, get_args(SolvedKind))
    check_choice("first_converted", first_converted, get_args(FirstConverted))
    equilibrium, chosen = equilibrium_of(consortium).effective, as_punishment(punishment)
    game = scale_one(equilibrium, 0.0, chosen, nobody_worse=nobody_worse, monitoring=monitoring)
    feasible = first_converted == "feasible"
    rates = monitoring.rates(equilibrium.consortium)
    differ = any(np.ptp(rate) > 0 for rate in rates)
    if not differ and not monitoring.accuses_falsely:  # one stands for all
        rates = Rates(*(rate[:1] for rate in rates))

    def weighs(delta: float) -> FloatArray:
        """Everyone's effective discount factor if all have this one."""
        everyone = np.full(rates.audit.shape, delta)
        return weight_of(everyone, rates, chosen, monitoring, margin).patience

    def exists(patience: FloatArray) -> bool:
        return _exists(game.with_patience(patience), kind, feasible=feasible)

    if differ:
        found = _smallest_by_halving(lambda delta: exists(weighs(delta)), float("nan"))
        return None if np.isnan(found) else found
    uneven = game.reverts and kind == "uniform" and not equilibrium.consortium.equal_samples
    least = float("nan")
    if kind == "individual" and game.steady:
        least = individual.smallest_common_discount_factor(game)
    elif game.steady:
        least = uniform.smallest_common_discount_factor(game, feasible_first=feasible).item()
    if uneven or not game.steady:
        least = _smallest_by_halving(lambda delta: exists(np.array(delta)), least)
    elif game.samples_checked is not None and not np.isnan(least):
        # a contributor that gains nothing by a full slip may gain by a tiny one
        enough = exists(np.array(min(least + _CLEARLY, _MOST)))
        found = least if enough else float("nan")
        least = found if enough else _smallest_by_halving(lambda d: exists(np.array(d)), found)
    return _said(float(least), margin, lambda delta: float(weighs(delta)[0]))


def _exists(game: ScaledGame, kind: SolvedKind, *, feasible: bool) -> bool:
    """Whether there is an agreement of this kind."""
    if kind == "individual":
        return game.worthwhile(individual.largest_profiles(game))
    return game.worthwhile(uniform.solve_uniform_rows(game, feasible_first=feasible).profile)


def _said(effective: float, margin: float, weighs: Callable[[float], float]) -> float | None:
    """The discount factor whose effective value this is, by `weighs`; None: there is none.

    The effective value increases with the discount factor, so bisection finds it.
    """
    low, high = margin, float(np.nextafter(1.0, 0.0))
    if np.isnan(effective) or weighs(high) <= effective:
        return None
    if effective == 0.0 or weighs(effective + margin) == effective:
        return effective + margin
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if weighs(middle) > effective else (middle, high)
    return high


def _smallest_by_halving(exists: Callable[[float], bool], enough: float) -> float:
    """The smallest discount factor at which there is an agreement; `enough` is one, or NaN.

    More patience never breaks an agreement, so bisection finds it.
    """
    low, high = 0.0, float(np.nan_to_num(enough, nan=1.0 - _SHARP))
    if np.isnan(enough) and not exists(high):
        return float("nan")
    if exists(_SHARP):
        return 0.0
    # often the closed form is the answer, as with equal data, and one check is enough to see it
    if high <= _SHARP or not exists(high - _SHARP):
        return high
    while high - low > _SHARP:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if exists(middle) else (middle, high)
    return high


def shortest_punishment(agreement: Agreement) -> int | None:
    """The fewest slots of punishment that enforce the agreement; None if no number of them does.

    A deviation gains a client `gain` once and costs it `saving` in each of the T slots of the
    punishment, after which it (or everyone) returns to the agreement. So it keeps to it if

        gain <= (delta + delta^2 + ... + delta^T) saving.

    Nobody gains by deviating during the punishment: in each of its slots a client does what is best
    for it, at the equilibrium or alone, and what follows does not depend on it.

    An agreement without any slack (the most data, no margin) needs a punishment without end, so
    the answer is None for it, too. The certificate's tolerance is not used to shorten the
    punishment: where there is hardly any slack, `certify` may accept a few slots less.
    """
    check_type("agreement", agreement, Agreement)
    if not certify(replace(agreement, punishment=agreement.punishment.lasting(None))).holds:
        return None
    if not agreement.monitoring.is_plain:
        return _shortest_for_all(agreement, 1)
    game = scale_one(agreement.equilibrium, punishment=agreement.punishment.lasting(None))
    contribution = (agreement.consortium.quality * agreement.profile)[np.newaxis]
    total = np.array([[agreement.total]])
    gain, saving = game.gain(contribution, total), game.saving(contribution, total)
    tempted = gain > TOLERANCE * (contribution + game.punished)
    gain -= SOLVED * (contribution + game.punished)  # solved for T slots, it takes T and not T + 1
    delta, gain, saving = game.patience[tempted], gain[tempted], saving[tempted]
    if (saving <= 0).any() or (delta <= 0).any():
        return None
    # the condition above solved for T: delta (1 - delta^T) / (1 - delta) >= gain / saving
    spare = 1.0 - (gain / saving) * (1.0 - delta) / delta
    if (spare <= TOLERANCE).any():
        return None
    slots = max(1, int(np.ceil((np.log(spare) / np.log(delta)).max(initial=1.0))))
    return slots if not agreement.robust else _shortest_for_all(agreement, slots)


def _shortest_for_all(agreement: Agreement, slots: int) -> int | None:
    """The fewest slots, from `slots` on, under which the agreement is certified to hold.

    A longer punishment never enforces less, so doubling and halving find them.
    """

    def enough(tried: int) -> bool:
        punishment = agreement.punishment.lasting(tried)
        return certify(replace(agreement, punishment=punishment)).holds

    low, high = slots - 1, slots
    while not enough(high):
        low, high = high, 2 * high
        if high > _LONGEST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
