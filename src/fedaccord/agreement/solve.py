"""`solve_agreement`: the agreement of a consortium, uniform or individual.

>>> from fedaccord.game.paper import paper_consortium
>>> agreement = solve_agreement(paper_consortium(), kind="uniform")
>>> round(agreement.level, 1), round(agreement.total, 1), agreement.first_converted
(7966.3, 887448.1, 'client-2')
>>> agreement = solve_agreement(paper_consortium())
>>> round(agreement.total), agreement.free_riders
(993957, 0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from fedaccord.agreement import individual, uniform
from fedaccord.agreement.agreement import Agreement, FirstConverted, Objective
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.enforcement import (
    SOLVED,
    WORTHWHILE,
    ScaledGame,
    effective_patience,
    scale_one,
)
from fedaccord.agreement.objectives import (
    LOSSES,
    fairest_profile,
    least_cost_profile,
)
from fedaccord.agreement.punishment import (
    Punishment,
    PunishmentName,
    Reversion,
    as_punishment,
)
from fedaccord.agreement.robust import game_of_laws, solve_for_all
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.agreement.whole import largest_whole_profile
from fedaccord.checks import check_choice, check_type
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray, as_text

SolvedKind = Literal["individual", "uniform"]

_NOTHING_WHOLE = "in whole samples nothing is left of the agreement"

_NO_USE = {
    "least total cost": "none lowers the total cost",
    "fairest": "none leaves every client at least as well off as at the equilibrium",
}
_NOT_FOR_ALL = (
    "none holds for every law of the loss that fits the measurements, which are too vague: measure "
    "with more seeds or test examples"
)
_TOO_MILD = (
    "suspension deters too little: what a suspended client keeps, its old model or its fees, is "
    "worth too much to it"
)

_SHARP = 1e-9
"""Accuracy of a smallest discount factor that is found by bisection over whole agreements."""

_HALVINGS = 60
"""Bisection steps that determine a discount factor to the last bit."""


def solve_agreement(
    consortium: Consortium | Equilibrium,
    kind: SolvedKind = "individual",
    *,
    objective: Objective | None = None,
    margin: float = 0.0,
    whole_samples: bool = False,
    punishment: Punishment | PunishmentName = "reversion",
    nobody_worse: bool = False,
    first_converted: FirstConverted = "paper",
    robust: bool = True,
    laws: Sequence[Law] | None = None,
) -> Agreement:
    """The agreement of a consortium; if there is none, the record says so and why.

    Args:
        consortium: The clients, or their equilibrium if it has been solved already.
        kind: "individual", an amount for each client, or "uniform", the paper's equal level.
        objective: "most data", "least total cost" or "fairest". By default the most data under
            reversion and the least total cost under suspension, which is strong enough to enforce
            totals that are worse for everyone than the equilibrium.
        margin: Design for discount factors that are this much lower than stated.
        whole_samples: Ask for whole samples only, rounded such that the agreement still holds.
        punishment: What follows a deviation, or the name of its kind.
        nobody_worse: Let no client pay more than at the equilibrium. Under reversion none does.
        first_converted: Uniform: convert from the "paper"'s client l, which does not depend on
            discount factors, or from the first "feasible" one.
        robust: If the law of the loss is a measured one, let the agreement hold for every law that
            resampling the measurements gives, and not for the fitted one alone.
        laws: Further laws that it must hold for, besides the consortium's own.

    Returns:
        An `Agreement`; `certify` proves that it holds.
    """
    check_choice("kind", kind, get_args(SolvedKind))
    punishment = as_punishment(punishment)
    if objective is None:
        objective = default_objective(punishment)
    check_choice("objective", objective, get_args(Objective))
    check_choice("first_converted", first_converted, get_args(FirstConverted))
    equilibrium = _equilibrium_of(consortium)
    if whole_samples:
        _check_whole(equilibrium.consortium)
    # in samples of quality 1 it is the paper's game
    effective = equilibrium.effective

    def solve(game: ScaledGame) -> Agreement:
        if kind == "uniform":
            return _uniform(effective, game, whole_samples, objective, first_converted)
        return _individual(effective, game, whole_samples, objective)

    def game_of(rows: Law) -> ScaledGame:
        return game_of_laws(effective, rows, margin, punishment, nobody_worse=nobody_worse)

    others = _other_laws(equilibrium.consortium.law, laws, robust=robust)
    if others:
        others = [Law.stacked([equilibrium.consortium.law, *others])]
        agreement = solve_for_all(solve, game_of, others[0])
    else:
        agreement = solve(scale_one(effective, margin, punishment, nobody_worse=nobody_worse))
    return replace(
        agreement,
        equilibrium=equilibrium,
        profile=_in_own_samples(agreement.profile, equilibrium),
        margin=margin,
        whole_samples=whole_samples,
        punishment=punishment,
        nobody_worse=nobody_worse,
        laws=others[0] if others else None,
    )


def _other_laws(law: Law, given: Sequence[Law] | None, *, robust: bool) -> list[Law]:
    """Laws that the agreement must hold for, besides the consortium's own."""
    resampled = [law.evidence.resampled] if robust and law.evidence is not None else []
    others = [*resampled, *(given or ())]
    if others and law.is_personal:
        wrong = "further laws cannot be given where each client has a law of its own"
        raise InvalidInput(wrong, field="laws")
    return others


def _in_own_samples(profile: FloatArray, equilibrium: Equilibrium) -> FloatArray:
    """A profile in samples of quality 1 as the clients' own samples."""
    if equilibrium.effective is equilibrium:
        return profile
    return _frozen(equilibrium.consortium.in_samples(profile))


def default_objective(punishment: Punishment) -> Objective:
    """The most data is good advice only under reversion, where it leaves nobody worse off."""
    return "most data" if isinstance(punishment, Reversion) else "least total cost"


def _equilibrium_of(consortium: Consortium | Equilibrium) -> Equilibrium:
    return consortium if isinstance(consortium, Equilibrium) else solve_equilibrium(consortium)


def smallest_discount_factor(
    consortium: Consortium | Equilibrium,
    kind: SolvedKind = "individual",
    *,
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
    nobody_worse: bool = False,
    first_converted: FirstConverted = "paper",
) -> float | None:
    """The discount factor above which an agreement of this kind exists if all clients have it.

    None if none is enough: everyone contributes everything already, nobody could gain, the margin
    is too large, or the punishment too short. Agreements in whole samples are not considered. The
    arguments are those of `solve_agreement`.
    """
    check_choice("kind", kind, get_args(SolvedKind))
    check_choice("first_converted", first_converted, get_args(FirstConverted))
    equilibrium, chosen = _equilibrium_of(consortium).effective, as_punishment(punishment)
    game = scale_one(equilibrium, punishment=chosen.lasting(None), nobody_worse=nobody_worse)
    feasible = first_converted == "feasible"
    uneven = game.reverts and kind == "uniform" and not equilibrium.consortium.equal_samples
    least = float("nan")
    if kind == "individual" and game.steady:
        least = individual.smallest_common_discount_factor(game)
    elif game.steady:
        least = uniform.smallest_common_discount_factor(game, feasible_first=feasible).item()
    if uneven or not game.steady:

        def exists(delta: float) -> bool:
            patient = game.with_patience(np.full_like(game.patience, delta))
            if kind == "individual":
                return _worthwhile(game, individual.largest_profiles(patient))
            rows = uniform.solve_uniform_rows(patient, feasible_first=feasible)
            return _worthwhile(game, rows.profile)

        least = _smallest_by_halving(exists, least)
    return _said(float(least), margin, chosen.slots)


def _said(effective: float, margin: float, punishment_slots: int | None) -> float | None:
    """The discount factor whose effective value this is, after margin and length; None: no such.

    The effective value increases with the discount factor, so bisection finds it.
    """

    def counts(delta: float) -> float:
        return float(effective_patience(np.array([delta]), margin, punishment_slots).item())

    low, high = margin, np.nextafter(1.0, 0.0)
    if np.isnan(effective) or counts(high) <= effective:
        return None
    if punishment_slots is None or effective == 0.0:
        return effective + margin
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if counts(middle) > effective else (middle, high)
    return float(high)


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


def _individual(
    equilibrium: Equilibrium, game: ScaledGame, whole_samples: bool, objective: Objective
) -> Agreement:
    largest, reason = individual.largest_profile_for_all(game), None
    profile = game.equilibrium[0]
    if not _worthwhile(game, largest):
        reason = _why_no_individual(equilibrium, game)
    else:
        profile = _best(equilibrium, game, largest, objective, whole=whole_samples)
        if whole_samples and not _worthwhile(game, profile):
            reason = _NOTHING_WHOLE
            real = _best(equilibrium, game, largest, objective, whole=False)
            if _is_useless(equilibrium, game, real, objective):
                reason = _NO_USE[objective]
        elif _is_useless(equilibrium, game, profile, objective):
            reason = _NO_USE[objective]
    return Agreement(
        equilibrium=equilibrium,
        profile=equilibrium.profile if reason else _frozen(profile),
        kind="individual",
        exists=reason is None,
        reason=reason,
        objective=objective,
    )


def _best(
    equilibrium: Equilibrium,
    game: ScaledGame,
    largest: FloatArray,
    objective: Objective,
    *,
    whole: bool,
) -> FloatArray:
    """The best enforceable profile by an objective, given the largest one; one row of it."""
    if objective == "most data":
        return largest_whole_profile(game, largest)[0] if whole else largest
    best_profile = least_cost_profile if objective == "least total cost" else fairest_profile
    return best_profile(equilibrium, game, largest, whole=whole)


def _uniform(
    equilibrium: Equilibrium,
    game: ScaledGame,
    whole_samples: bool,
    objective: Objective,
    first_converted: FirstConverted,
) -> Agreement:
    rows = uniform.solve_uniform_for_all(
        game, feasible_first=first_converted == "feasible", whole=whole_samples
    )
    if objective != "most data" and _worthwhile(game, rows.profile):
        loss_of = LOSSES[objective](equilibrium)
        rows = uniform.at_best_level(game, rows, loss_of, whole=whole_samples)
    first, reason = int(rows.first.item()), None
    if not _worthwhile(game, rows.profile):
        reason = _why_no_uniform(equilibrium, game, first, first_converted, whole_samples)
    elif _is_useless(equilibrium, game, rows.profile[0], objective):
        reason = _NO_USE[objective]
    return Agreement(
        equilibrium=equilibrium,
        profile=equilibrium.profile if reason else _frozen(rows.profile[0]),
        kind="uniform",
        exists=reason is None,
        reason=reason,
        objective=objective,
        first_converted=equilibrium.consortium.names[first] if first >= 0 else None,
        first_converted_by=first_converted,
        level=0.0 if reason else rows.level.item(),
        largest_level=rows.largest_level.item() if first >= 0 else None,
    )


def _worthwhile(game: ScaledGame, profile: FloatArray) -> bool:
    """Whether a profile raises the total of the equilibrium, in every row."""
    return float(profile.sum()) > float(game.start.max()) * (1.0 + WORTHWHILE)


def _is_useless(
    equilibrium: Equilibrium, game: ScaledGame, profile: FloatArray, objective: Objective
) -> bool:
    """Whether even the best profile is no better than the equilibrium by the objective."""
    if objective == "most data":
        return False
    loss_of = LOSSES[objective](equilibrium)
    better = loss_of(profile) < loss_of(equilibrium.profile)
    return not better or not _worthwhile(game, profile)


def _why_no_individual(equilibrium: Equilibrium, game: ScaledGame) -> str:
    if len(game.pull) > 1:
        return _NOT_FOR_ALL
    least = individual.smallest_common_discount_factor(game)
    if (equilibrium.profile == game.samples).all():
        return "everyone already contributes all it has at the equilibrium"
    if np.isnan(least):
        return "however patient the clients are, nobody could gain from contributing more"
    if not game.steady:
        harsh = individual.largest_profiles(game.at_its_harshest())
        if _worthwhile(game, harsh):
            return _TOO_MILD
    return f"the clients are not patient enough: it takes {_patience(least, game)}"


def _why_no_uniform(
    equilibrium: Equilibrium, game: ScaledGame, first: int, chosen: FirstConverted, whole: bool
) -> str:
    if len(game.pull) > 1:
        return _NOT_FOR_ALL
    if equilibrium.free_riders == 0:
        return "there is no free rider at the equilibrium to convert"
    if first < 0 and chosen == "paper":
        return "however patient the free riders are, none could gain from contributing more"
    real = uniform.solve_uniform_rows(game, feasible_first=chosen == "feasible")
    if whole and _worthwhile(game, real.profile):
        return _NOTHING_WHOLE
    if not game.steady:
        harsh = game.at_its_harshest()
        plain = uniform.solve_uniform_rows(harsh, feasible_first=chosen == "feasible")
        if _worthwhile(game, plain.profile):
            return _TOO_MILD
    least = None  # with unequal data, finding it takes thirty times as long as solving
    if equilibrium.consortium.equal_samples:
        least = smallest_discount_factor(
            equilibrium,
            "uniform",
            punishment=game.punishment.lasting(None),
            nobody_worse=game.nobody_worse,
            first_converted=chosen,
        )
    names = equilibrium.consortium.names
    who = f"converting {names[first]} and above" if first >= 0 else "converting any free rider"
    needed = "more patience" if least is None else _patience(least, game)
    reason = f"the clients are not patient enough: {who} takes {needed}"
    other = uniform.solve_uniform_rows(game, feasible_first=True, whole=whole)
    if chosen == "paper" and _worthwhile(game, other.profile):
        only = "only " if other.converted.sum() < real.converted.sum() else ""
        start = names[int(other.first.item())]
        reason += f"; converting {only}{start} and above works (first converted: feasible)"
    return reason


def _patience(least: float, game: ScaledGame) -> str:
    """The discount factor required, and the clients' effective ones."""
    low, high = game.patience.min(), game.patience.max()
    theirs = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    return f"discount factors above {least:.4g}, and theirs count as {theirs}"


def _check_whole(consortium: Consortium) -> None:
    """Refuse clients whose own samples are not a whole number, or do not count as one each."""
    if consortium.effective is not consortium:
        wrong = "whole samples cannot be asked for if samples count by their quality"
        raise InvalidInput(wrong, field="whole_samples")
    broken = np.flatnonzero(consortium.samples != np.floor(consortium.samples)).tolist()
    if broken:
        got = as_text(consortium.samples[broken[0]])
        wrong = f"must be a whole number to agree on whole samples, got {got}"
        raise InvalidInput(Problem("samples", wrong, f"clients[{broken[0]}].samples"))


def _frozen(profile: FloatArray) -> FloatArray:
    result = np.ascontiguousarray(profile)
    result.flags.writeable = False
    return result


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
    slots = np.log(spare) / np.log(delta)
    return max(1, int(np.ceil(slots.max(initial=1.0))))
