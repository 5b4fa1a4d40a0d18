"""What else could be agreed on: other agreements of the same consortium, beside one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.solve import Robust, solve_agreement
from fedaccord.agreement.worth import worth as worth_of
from fedaccord.game.money import amounts, money
from fedaccord.game.social_optimum import SocialOptimum
from fedaccord.numbers import write
from fedaccord.summaries.agreement import consortium_sentence, reason_of, solution_sentences
from fedaccord.summaries.audits import audit_sentences
from fedaccord.summaries.changing import turnover_sentences
from fedaccord.summaries.ranges import range_sentences
from fedaccord.summaries.words import NO_HINTS, Hints, Noun, hinted
from fedaccord.summaries.worth import (
    cheaper_sentence,
    good_news,
    knife_edge,
    law_sentences,
    questions,
    worth_sentences,
)

_SAME = 1e-6
"""Relative: amounts that differ by less are printed alike."""


Assuming = Literal["reversion", "nobody worse", "no margin"]
"""What is different from the agreement in question."""
_ASSUMING: dict[Assuming, str] = {
    "reversion": "With reversion, the paper's punishment,",
    "nobody worse": "If nobody may pay more than without an agreement,",
    "no margin": "Without a margin, on a knife-edge,",
}
"""How a sentence about it begins."""


@dataclass(frozen=True)
class Alternatives:
    """Other agreements of the same consortium, to mention beside one."""

    assuming: Mapping[Assuming, Agreement] = field(default_factory=dict)
    """By what they assume."""
    cheapest: Agreement | None = None
    """The one of least total cost, if that is another."""
    for_the_fit: Agreement | None = None
    """For a measured law: the one that holds for the fitted law alone."""
    as_stated: Agreement | None = None
    """With ranges: the one that holds if the numbers are exactly as stated."""

    def by_name(self) -> dict[str, Agreement]:
        """All of them, as JSON calls them."""
        others = {
            **{str(what): one for what, one in self.assuming.items()},
            "least total cost": self.cheapest,
            "fitted law": self.for_the_fit,
            "as stated": self.as_stated,
        }
        return {name: one for name, one in others.items() if one is not None}


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
    found: dict[Assuming, Agreement] = {}
    if not isinstance(agreement.punishment, Reversion):
        paper = solve(punishment="reversion", nobody_worse=False)
        found["reversion"] = paper
        if agreement.worse_than_equilibrium.any():
            spared = solve(nobody_worse=True)
            found["nobody worse"] = spared
    if agreement.margin > 0 and not agreement.exists and (exact := solve(margin=0.0)).exists:
        found["no margin"] = exact
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
    agreement: Agreement,
    alternatives: Alternatives,
    noun: Noun = "client",
    hints: Hints = NO_HINTS,
) -> list[str]:
    """What each of the alternatives would give."""
    cheaper = cheaper_sentence(agreement, alternatives.cheapest)
    others = alternatives.assuming.items()
    return [
        *([hinted(cheaper, hints.get("cheaper"))] if cheaper else []),
        *(_beside(agreement, other, _ASSUMING[so], noun) for so, other in others),
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


def sentences_of(
    certificate: Certificate,
    optimum: SocialOptimum,
    exists_from: float | None,
    alternatives: Alternatives,
    hints: Hints = NO_HINTS,
) -> dict[str, list[str]]:
    """All that people are told about a solution besides its tables, part by part."""
    agreement, worth = certificate.agreement, worth_of(certificate)
    found, *rest = solution_sentences(certificate, optimum, exists_from, hints)
    edge = hinted(knife_edge(certificate), hints.get("indifferent"))
    consortium = agreement.consortium
    return {
        "consortium": [consortium_sentence(consortium), *turnover_sentences(consortium)],
        "close_call": [edge] if edge else [],
        "agreement": [found, *worth_sentences(worth), *rest],
        "alternatives": alternative_sentences(agreement, alternatives, hints=hints),
        "audits": audit_sentences(certificate),
        "ranges": range_sentences(certificate, alternatives.as_stated),
        "law": law_sentences(certificate, worth, alternatives.for_the_fit),
        "questions": questions(consortium),
    }
