"""What may be offered: an agreement of the kind in the terms, which holds with its margin.

The server checks what it found before it offers it, and anyone who audits its ledger checks again.
"""

from collections.abc import Sequence

import numpy as np

from fedaccord.agreement.agreement import Agreement, agreement_on
from fedaccord.agreement.certificate import certify
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray
from fedaccord.protocol.state import Slot
from fedaccord.protocol.terms import SAME_NUMBER, TIED_RATIOS, Terms


def consortium_of(
    slot: Slot, terms: Terms, names: Sequence[str], *, margin: float = 0.0
) -> Consortium:
    """Some clients as the server sees them: it knows only ratios, and uses a cost of 1 per sample.

    With a `margin` they are less patient by that than they say.
    """
    reports = [slot.reports[name] for name in names]
    told = [report.discount_factor for report in reports]
    patience = [terms.discount_factor if delta is None else delta for delta in told]
    return Consortium(
        valuation=[report.ratio for report in reports],
        cost_per_sample=1.0,
        samples=[report.samples for report in reports],
        discount_factor=[max(delta - margin, 0.0) for delta in patience],
        communication_cost=[report.fees or 0.0 for report in reports],
        rounds=terms.rounds,
        law=terms.law_of_loss,
        name=terms.name,
        names=names,
    )


def flaw_in(slot: Slot, terms: Terms, amounts: Sequence[float]) -> str | None:
    """Why these amounts may not be offered to those who are willing; None: they may.

    Both certificates are needed. A more patient client weighs more what it loses in each slot, and
    may break an agreement that it would keep if it were less patient.
    """
    said = agreement_on(consortium_of(slot, terms, slot.willing), amounts, terms.after_slip)
    proof = certify(said)
    if not proof.holds:
        return "that somebody would gain by breaking"
    if terms.nobody_worse and not costs_no_more(proof.cost_agreement, proof.cost_equilibrium):
        return "under which somebody would pay more than at the equilibrium"
    if terms.margin > 0:
        hasty = consortium_of(slot, terms, slot.willing, margin=terms.margin)
        if not certify(agreement_on(hasty, amounts, terms.after_slip)).holds:
            return "that somebody would gain by breaking if less patient by the margin"
    if terms.agreement == "uniform" and not _is_uniform(said):
        return "that are not uniform, as the terms say"
    return None


def costs_no_more(agreed: FloatArray | float, alone: FloatArray | float) -> bool:
    """Whether nobody pays more under an agreement than at the equilibrium, rounding aside."""
    return bool(np.all(agreed <= np.multiply(alone, 1.0 + SAME_NUMBER)))


def _is_uniform(agreement: Agreement) -> bool:
    """Whether all free riders from some ratio on contribute the same level, or all they have.

    Everyone else contributes what it does at the equilibrium, to a whole sample.
    """
    consortium, given = agreement.consortium, agreement.profile
    alone = agreement.equilibrium.profile
    free = alone == 0
    converted = free & (given > 0)
    level = given.max(where=converted, initial=0.0)
    first = consortium.ratio.min(where=converted, initial=np.inf) * (1.0 + TIED_RATIOS)
    right = np.where(
        converted,
        given == np.minimum(level, consortium.samples),
        np.where(free, consortium.ratio <= first, np.abs(given - alone) <= 1.0),
    )
    return bool(right.all())
