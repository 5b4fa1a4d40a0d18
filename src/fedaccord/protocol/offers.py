"""What may be offered: an agreement of the kind that was signed, which holds with its margin.

The server looks at what it found before it offers it, and whoever audits its ledger looks again.
"""

from collections.abc import Sequence

import numpy as np

from fedaccord.agreement.agreement import Agreement, agreement_on
from fedaccord.agreement.certificate import certify
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.state import Slot
from fedaccord.protocol.terms import Terms

_CLOSE = 1.0 + 1e-12
"""Ratios this near to each other may have been ranked either way."""


def consortium_of(
    slot: Slot, terms: Terms, names: Sequence[str], *, margin: float = 0.0
) -> Consortium:
    """Some clients as the server sees them: it knows ratios, so a sample costs 1 in its books.

    With a `margin` they are that much less patient than they say.
    """
    reports = [slot.reports[name] for name in names]
    patience = [report.get("discount_factor", terms.discount_factor) for report in reports]
    return Consortium(
        valuation=[report["ratio"] for report in reports],
        cost_per_sample=1.0,
        samples=[report["samples"] for report in reports],
        discount_factor=[max(delta - margin, 0.0) for delta in patience],
        rounds=terms.rounds,
        name=terms.name,
        names=names,
    )


def flaw_in(slot: Slot, terms: Terms, amounts: Sequence[float]) -> str | None:
    """Why these amounts may not be offered to those who are willing; None: they may.

    It takes both certificates. Someone more patient minds more what it loses slot by slot, and so
    may break what it would keep to if it were less so.
    """
    said = agreement_on(consortium_of(slot, terms, slot.willing), amounts, terms.punishment_slots)
    if not certify(said).holds:
        return "that somebody would gain by breaking"
    if terms.margin > 0:
        hasty = consortium_of(slot, terms, slot.willing, margin=terms.margin)
        if not certify(agreement_on(hasty, amounts, terms.punishment_slots)).holds:
            return "that somebody would gain by breaking if less patient by the margin"
    if terms.agreement == "uniform" and not _is_uniform(said):
        return "that are not uniform, as the terms say"
    return None


def _is_uniform(agreement: Agreement) -> bool:
    """Whether the free riders from one on give the same level, or all they have.

    Everyone else gives what it gives at the equilibrium, to a whole sample.
    """
    consortium, given, alone = (
        agreement.consortium,
        agreement.profile,
        agreement.equilibrium.profile,
    )
    free = alone == 0
    converted = free & (given > 0)
    level = given.max(where=converted, initial=0.0)
    first = consortium.ratio.min(where=converted, initial=np.inf)
    right = np.where(
        converted,
        given == np.minimum(level, consortium.samples),
        np.where(free, consortium.ratio <= first * _CLOSE, np.abs(given - alone) <= 1.0),
    )
    return bool(right.all())
