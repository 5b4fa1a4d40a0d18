"""From the numbers in an agreement file to its certificate, to make the file and to verify it.

The proof rests on what is in the file and on nothing else: the shared rules and the law of the loss
in the terms, the clients' numbers and ranges, and the amounts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import agreement_on
from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.ranges import RANGED, Ranges
from fedaccord.numbers import FloatArray
from fedaccord.protocol.terms import SAME_NUMBER, Terms
from fedaccord.record import Columns, jsonable, rows_of
from fedaccord.signed.document import Numbers, RangesOfNumbers

FITTED = "The law of the loss was fitted to measurements, and the proof is for the fitted law."
"""What is assumed if the law is a measured one: the measurements are not in the file."""


def consortium_in(
    terms: Terms, numbers: Numbers, ranges: RangesOfNumbers | None, *, less: float = 0.0
) -> Consortium:
    """The consortium that a file describes, perhaps with clients less patient by a margin."""
    clients = numbers.clients
    if tuple(one.name for one in clients) != terms.clients:
        raise InvalidInput("must be those of the clients in the terms", field="numbers.clients")
    pairs = None if ranges is None else ranges.model_dump()
    if pairs is not None:
        pairs["discount_factor"] = _lower(pairs["discount_factor"], less)
    return Consortium(
        valuation=[one.valuation for one in clients],
        cost_per_sample=[one.cost_per_sample for one in clients],
        samples=[one.samples for one in clients],
        discount_factor=_lower([one.discount_factor for one in clients], less),
        communication_cost=[one.communication_cost for one in clients],
        names=terms.clients,
        rounds=terms.rounds,
        law=terms.law_of_loss,
        server_fee=terms.server_fee,
        name=terms.name,
        currency=numbers.currency,
        slot=numbers.slot,
        ranges=pairs,
    )


def _lower(patience: npt.ArrayLike, less: float) -> FloatArray:
    given = np.asarray(patience, np.float64)
    return given if less == 0 else np.maximum(given - less, 0.0)


def posted_numbers(terms: Terms) -> Numbers:
    """The numbers that posted terms are proved with: the lowest, and a cost of 1 per sample."""
    if terms.agreement != "posted" or terms.public is None:
        raise InvalidInput("the terms post no amounts, so the proof needs the clients' numbers")
    return Numbers.model_validate(
        {
            "shared": False,
            "currency": "times the cost of a sample",
            "slot": "",
            "clients": [
                {
                    "name": name,
                    "valuation": terms.public[name].lowest_ratio,
                    "cost_per_sample": 1.0,
                    "samples": float(terms.public[name].samples),
                    "discount_factor": terms.public[name].lowest_discount_factor,
                    "communication_cost": 0.0,
                }
                for name in terms.clients
            ],
        }
    )


def proved(
    terms: Terms, numbers: Numbers, ranges: RangesOfNumbers | None, amounts: Sequence[float]
) -> Certificate:
    """The certificate of these amounts, which must hold with the margin in the terms, too."""
    for less in sorted({terms.margin, 0.0}, reverse=True):
        consortium = consortium_in(terms, numbers, ranges, less=less)
        agreed = agreement_on(consortium, amounts, terms.after_slip)
        box = consortium.ranges if numbers.shared else _box(consortium)
        certificate = certify(replace(agreed, ranges=box))
        if not certificate.holds:
            patient = f" by members less patient by the margin of {less:g}" if less else ""
            worst = certificate.worst_client
            raise InvalidInput(f"the amounts would not be kept{patient}: {worst} would slip first")
    return certificate


def _box(consortium: Consortium) -> Ranges:
    """The numbers as they are, as ranges: posted amounts hold for all that are not lower."""
    return Ranges(**{field: np.stack([getattr(consortium, field)] * 2) for field in RANGED})


def profile_said(certificate: Certificate, *, shared: bool) -> dict[str, Any]:
    """What is agreed, as the file says it.

    What would be without an agreement is left out if it would follow from numbers that are not the
    clients' own.
    """
    agreement = certificate.agreement
    names, amounts = agreement.consortium.names, [int(each) for each in agreement.profile.tolist()]
    without: list[Any] = agreement.equilibrium.profile.tolist()
    saving = jsonable(certificate.cost_equilibrium - certificate.cost_agreement)
    total_without: float | None = float(agreement.equilibrium.profile.sum())
    if not shared:
        without, saving, total_without = [None] * len(names), [None] * len(names), None
    columns = {"name": names, "contribution": amounts, "without": without, "saving": saving}
    return {
        "total": int(agreement.profile.sum()),
        "total_without": total_without,
        "clients": rows_of(columns),
    }


def certificate_said(certificate: Certificate) -> dict[str, Any]:
    """What the certificate says, as the file says it.

    A client that would rather train on more than agreed has nothing to gain by a slip.
    """
    consortium, more = certificate.agreement.consortium, certificate.gives_more
    threshold = np.where(more, 0.0, certificate.threshold)
    slack = consortium.discount_factor - threshold
    worst = int(np.argmax(slack <= slack.min() + SAME_NUMBER))
    columns: Columns = {
        "name": consortium.names,
        "gain": np.where(more, 0.0, certificate.gain),
        "saving": certificate.saving,
        "threshold": threshold,
        "slack": slack,
    }
    fitted = [FITTED] if consortium.law.kind == "measured" else []
    return {
        "holds": certificate.holds,
        "over_ranges": consortium.ranges is not None,
        "smallest_discount_factor": float(threshold.max()),
        "worst_client": consortium.names[worst],
        "assumptions": [*certificate.assumptions, *fitted],
        "clients": rows_of(columns),
    }
