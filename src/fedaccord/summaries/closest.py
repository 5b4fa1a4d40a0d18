"""Who is closest to slipping, for whoever has to persuade them."""

from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.certificate import Certificate
from fedaccord.numbers import patience


@dataclass(frozen=True)
class Close:
    """One that is close to slipping, every number formatted."""

    position: int
    name: str
    needs: str
    """The smallest discount factor with which it keeps to the agreement."""
    has: str
    room: str
    """How much less patient it could be."""


def closest_to_slipping(certificate: Certificate, most: int = 3) -> list[Close]:
    """Those with the least slack, among those that are asked for anything."""
    agreement = certificate.agreement
    if not agreement.exists:
        return []
    consortium, slack = agreement.consortium, certificate.slack
    asked = (agreement.profile > 0) & (certificate.threshold > 0)
    return [
        Close(
            n,
            consortium.names[n],
            patience(certificate.threshold[n]),
            patience(consortium.discount_factor[n]),
            f"{slack[n]:.3f}" if np.isfinite(slack[n]) else "none",
        )
        for n in certificate.closest(asked, most)
    ]
