"""What else could be agreed on: other agreements of the same consortium, beside one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.solve import Robust, solve_agreement
from fedaccord.game.money import amounts, money
from fedaccord.numbers import write
from fedaccord.summaries.agreement import reason_of
from fedaccord.summaries.words import Noun
from fedaccord.summaries.worth import cheaper_sentence, good_news

_SAME = 1e-6
"""Relative: amounts that differ by less are printed alike."""


@dataclass(frozen=True)
class Alternatives:
    """Other agreements of the same consortium, to mention beside one."""

    assuming: Mapping[str, Agreement] = field(default_factory=dict)
    """By what they assume, as a sentence begins."""
    cheapest: Agreement | None = None
    """The one of least total cost, if that is another."""
    for_the_fit: Agreement | None = None
    """For a measured law: the one that holds for the fitted law alone."""
    as_stated: Agreement | None = None
    """With ranges: the one that holds if the numbers are exactly as stated."""


def alternatives_to(agreement: Agreement) -> Alternatives:
    """What reversion would give, the least total cost, the fitted law alone, and no margin."""
    if agreement.kind == "given" or good_news(agreement):
        return Alternatives()
    solve = partial(
        solve_agreement,
        agreement.equilibrium,
        agreement.kind,
        objective=agreement.objective,
        margin=agreement.margin,
        whole_samples=agreement.whole_samples,
        punishment=agreement.punishment,
        nobody_worse=agreement.nobody_worse,
        first_converted=agreement.first_converted_by or "paper",
        robust=_robust(agreement),
        monitoring=agreement.monitoring,
    )
    found: dict[str, Agreement] = {}
    if not isinstance(agreement.punishment, Reversion):
        paper = solve(punishment="reversion", nobody_worse=False)
        found["With reversion, the paper's punishment,"] = paper
        if agreement.worse_than_equilibrium.any():
            spared = solve(nobody_worse=True)
            found["If nobody may pay more than without an agreement,"] = spared
    if agreement.margin > 0 and not agreement.exists and (exact := solve(margin=0.0)).exists:
        found["Without a margin, on a knife-edge,"] = exact
    dearer = agreement.exists and agreement.objective != "least total cost"
    return Alternatives(
        found,
        cheapest=solve(objective="least total cost") if dearer else None,
        for_the_fit=solve(robust="ranges") if agreement.laws is not None else None,
        as_stated=solve(robust="law") if agreement.ranges is not None else None,
    )


def _robust(agreement: Agreement) -> bool | Robust:
    """What the agreement was made to hold for, as `solve_agreement` has it."""
    if agreement.laws is not None and agreement.ranges is not None:
        return True
    return "law" if agreement.laws is not None else agreement.ranges is not None and "ranges"


def alternative_sentences(
    agreement: Agreement, alternatives: Alternatives, noun: Noun = "client"
) -> list[str]:
    """What each of the alternatives would give."""
    cheaper = cheaper_sentence(agreement, alternatives.cheapest)
    others = alternatives.assuming.items()
    return [
        *([cheaper] if cheaper else []),
        *(_beside(agreement, other, so, noun) for so, other in others),
    ]


def _beside(agreement: Agreement, other: Agreement, assuming: str, noun: Noun) -> str:
    """What another agreement would give, beside this one."""
    if not other.exists:
        return f"{assuming} there would be none: {reason_of(other, noun)}."
    if agreement.exists and np.allclose(other.profile, agreement.profile, rtol=_SAME, atol=0.0):
        return f"{assuming} the best agreement would be the same."
    total, saved = write([other.total])[0], float(other.saving.sum())
    here, currency = float(agreement.saving.sum()), agreement.consortium.currency
    amount, now = amounts([abs(saved), abs(here)], currency)
    if not agreement.exists:
        beside = ""
    elif here < 0:
        beside = f", while this one costs {money(now, currency)} more than none"
    else:
        beside = f", instead of {now}"
    amount = money(amount, currency)
    effect = f"save {amount}" if saved >= 0 else f"cost {amount} more"
    return (
        f"{assuming} the best agreement would be on {total} samples and {effect} in a slot in "
        f"all{beside}."
    )
