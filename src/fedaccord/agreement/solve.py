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

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from fedaccord.agreement import individual, uniform
from fedaccord.agreement.agreement import Agreement, FirstConverted, Objective, SolvedKind
from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.fair import NO_UNIFORM_SHARE, FairShare
from fedaccord.agreement.monitoring import BELIEVED, Monitoring
from fedaccord.agreement.objectives import least_cost_profile, total_cost
from fedaccord.agreement.patience import equilibrium_of
from fedaccord.agreement.punishment import (
    Punishment,
    PunishmentName,
    Reversion,
    as_punishment,
)
from fedaccord.agreement.reasons import (
    NO_USE,
    NOTHING_WHOLE,
    why_no_individual,
    why_no_uniform,
    why_none,
)
from fedaccord.agreement.robust import Terms, solve_for_all
from fedaccord.agreement.whole import largest_whole_profile
from fedaccord.checks import check_choice, check_type
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.law import Law
from fedaccord.game.law_rows import stacked
from fedaccord.numbers import FloatArray, as_text

Robust = Literal["law", "ranges"]


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
    robust: bool | Robust = True,
    laws: Sequence[Law] | None = None,
    monitoring: Monitoring = BELIEVED,
) -> Agreement:
    """The agreement of a consortium; if there is none, the record says so and why.

    Args:
        consortium: The clients, or their equilibrium if it has been solved already.
        kind: "individual", an amount for each client, or "uniform", the paper's equal level.
        objective: "fair share" (individual only; see `fair`), "most data" or "least total cost". By
            default the most data under reversion and the least total cost under suspension, which
            is strong enough to enforce totals that are worse for everyone than the equilibrium.
        margin: Design for discount factors that are this much lower than stated.
        whole_samples: Ask for whole samples only, rounded such that the agreement still holds.
        punishment: What follows a deviation, or the name of its kind.
        nobody_worse: Let no client pay more than at the equilibrium. Under reversion none does.
        first_converted: Uniform: convert from the "paper"'s client l, which does not depend on
            discount factors, or from the first "feasible" one.
        robust: Let the agreement hold for every combination of numbers within the consortium's
            ranges, and if the law of the loss is a measured one, for every law that resampling the
            measurements gives; not only for the numbers as stated and the fitted law. "law" and
            "ranges" are for one of both.
        laws: Further laws that it must hold for, besides the consortium's own.
        monitoring: How a slip is seen; by default for certain, before the next slot.

    Returns:
        An `Agreement`; `certify` proves that it holds.
    """
    check_choice("kind", kind, get_args(SolvedKind))
    check_type("monitoring", monitoring, Monitoring)
    punishment = as_punishment(punishment)
    if objective is None:
        objective = default_objective(punishment)
    check_choice("objective", objective, get_args(Objective))
    if kind == "uniform" and objective == "fair share":
        raise InvalidInput(NO_UNIFORM_SHARE, field="objective")
    check_choice("first_converted", first_converted, get_args(FirstConverted))
    equilibrium = equilibrium_of(consortium)
    if whole_samples:
        _check_whole(equilibrium.consortium)
    # in samples of quality 1 it is the paper's game
    effective = equilibrium.effective

    over_ranges = robust in (True, "ranges")
    others = _other_laws(equilibrium.consortium.law, laws, robust=robust in (True, "law"))
    terms = Terms(effective, margin, punishment, nobody_worse, over_ranges, monitoring, others)

    def solve(terms: Terms) -> Agreement:
        def of_game(game: ScaledGame) -> Agreement:
            if kind == "uniform":
                return _uniform(
                    terms,
                    game,
                    whole_samples=whole_samples,
                    objective=objective,
                    first_converted=first_converted,
                )
            return individual_of(terms, game, whole_samples, objective)

        if terms.others is None:
            return of_game(terms.fitted)
        return solve_for_all(of_game, terms.game, stacked([terms.law, terms.others]))

    agreement = solve(terms)
    if not agreement.exists:
        agreement = replace(agreement, reason=why_none(terms, solve, agreement.reason))
    return replace(
        agreement,
        equilibrium=equilibrium,
        profile=in_own_samples(agreement.profile, equilibrium),
        margin=margin,
        whole_samples=whole_samples,
        punishment=punishment,
        monitoring=monitoring,
        nobody_worse=nobody_worse,
        laws=others,
        ranges=None if terms.box is None else equilibrium.consortium.ranges,
    )


def _other_laws(law: Law, given: Sequence[Law] | None, *, robust: bool) -> Law | None:
    """Laws that the agreement must hold for besides the consortium's own, if there are any."""
    resampled = [law.evidence.resampled] if robust and law.evidence is not None else []
    others = [*resampled, *(given or ())]
    if not others:
        return None
    if law.is_personal:
        wrong = "further laws cannot be given where each client has a law of its own"
        raise InvalidInput(wrong, field="laws")
    for other in others:
        check_type("laws", other, Law)
    return stacked(others)


def in_own_samples(profile: FloatArray, equilibrium: Equilibrium) -> FloatArray:
    """A profile in samples of quality 1 as the clients' own samples."""
    if equilibrium.effective is equilibrium:
        return profile
    return _frozen(equilibrium.consortium.in_samples(profile))


def default_objective(punishment: Punishment) -> Objective:
    """The most data is good advice only under reversion, where it leaves nobody worse off."""
    return "most data" if isinstance(punishment, Reversion) else "least total cost"


def individual_of(
    terms: Terms, game: ScaledGame, whole_samples: bool, objective: Objective
) -> Agreement:
    """The individual agreement under these terms, in samples of quality 1."""
    equilibrium = terms.equilibrium
    largest, reason = individual.largest_profile_for_all(game), None
    profile = game.equilibrium[0]
    if not game.worthwhile(largest):
        reason = why_no_individual(
            equilibrium, game, margin=terms.margin, monitoring=terms.monitoring
        )
    else:
        profile = _best(terms, game, largest, objective, whole=whole_samples)
        if whole_samples and not game.worthwhile(profile):
            reason = NOTHING_WHOLE
            real = _best(terms, game, largest, objective, whole=False)
            if _is_useless(equilibrium, game, real, objective):
                reason = NO_USE[objective]
        elif _is_useless(equilibrium, game, profile, objective):
            reason = NO_USE[objective]
    return Agreement(
        equilibrium=equilibrium,
        profile=equilibrium.profile if reason else _frozen(profile),
        kind="individual",
        exists=reason is None,
        reason=reason,
        objective=objective,
    )


def _best(
    terms: Terms,
    game: ScaledGame,
    largest: FloatArray,
    objective: Objective,
    *,
    whole: bool,
) -> FloatArray:
    """The best enforceable profile by an objective, given the largest one; one row of it."""
    if objective == "most data":
        return largest_whole_profile(game, largest)[0] if whole else largest
    if objective == "least total cost":
        return least_cost_profile(terms.equilibrium, game, largest, whole=whole)
    rule = FairShare(terms.stated, [game.rows(np.array([row])) for row in range(len(game.pull))])
    real = rule.profiles(np.array([[largest.sum()]]))
    if not whole:
        return np.asarray(real[0])
    names = terms.equilibrium.consortium.names
    rounded = rule.whole_profile(float(real.sum()), names)
    return np.asarray(game.equilibrium[0] if rounded is None else rounded[0])


def _uniform(
    terms: Terms,
    game: ScaledGame,
    *,
    whole_samples: bool,
    objective: Objective,
    first_converted: FirstConverted,
) -> Agreement:
    equilibrium, stated = terms.equilibrium, terms.stated
    rows = uniform.solve_uniform_for_all(
        game, stated, feasible_first=first_converted == "feasible", whole=whole_samples
    )
    if objective == "least total cost" and game.worthwhile(rows.profile):
        loss_of = total_cost(equilibrium)
        rows = uniform.at_best_level(game, stated, rows, loss_of, whole=whole_samples)
    first, reason = int(rows.first.item()), None
    if not game.worthwhile(rows.profile):
        reason = why_no_uniform(
            equilibrium,
            game,
            first,
            first_converted,
            whole=whole_samples,
            margin=terms.margin,
            monitoring=terms.monitoring,
        )
    elif _is_useless(equilibrium, game, rows.profile[0], objective):
        reason = NO_USE[objective]
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


def _is_useless(
    equilibrium: Equilibrium, game: ScaledGame, profile: FloatArray, objective: Objective
) -> bool:
    """Whether even the best profile is no better than the equilibrium by the objective."""
    if objective != "least total cost":
        return not game.worthwhile(profile)
    loss_of = total_cost(equilibrium)
    better = loss_of(profile) < loss_of(equilibrium.profile)
    return not better or not game.worthwhile(profile)


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
