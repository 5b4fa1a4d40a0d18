"""Amounts that the terms post, so that nobody is asked for a number, and who would slip from them.

An agreement that is computed from reports can be gamed: a client that reports a lower ratio is
asked for less. Where the terms post what is publicly known of each client, and the amounts that
follow from that, there is nothing to report.

Under suspension a client's worst case is its own lowest ratio and its own lowest discount factor,
whatever the others' numbers are. So the amounts are proved with these alone, and hold for every
combination of numbers that are not lower. A client that would like to train on more than its
amount breaks nothing.
"""

from collections.abc import Mapping

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fedaccord.agreement.agreement import agreement_on
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.punishment import Punishment
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.protocol.limits import MOST_SAMPLES, RATIOS


class PublicNumbers(BaseModel):
    """What everyone knows of a client."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    samples: int = Field(ge=1, le=MOST_SAMPLES)
    """D, which somebody has verified."""
    contribution: int | None = Field(default=None, ge=0, le=MOST_SAMPLES)
    """The amount that is posted, as are the next two."""
    lowest_ratio: float | None = Field(default=None, ge=RATIOS[0], le=RATIOS[1])
    lowest_discount_factor: float | None = Field(default=None, ge=0, lt=1)

    @property
    def complete(self) -> bool:
        """Whether it has everything that a posted amount is proved from."""
        needed = (self.contribution, self.lowest_ratio, self.lowest_discount_factor)
        return None not in needed

    @property
    def sizes_only(self) -> bool:
        """Whether it says nothing but how many samples the client has."""
        return self.contribution is self.lowest_ratio is self.lowest_discount_factor is None


def who_would_slip(
    public: Mapping[str, PublicNumbers],
    law: Law,
    rounds: int,
    punishment: Punishment,
    margin: float = 0.0,
) -> str | None:
    """The client that gains most by breaking the posted amounts with its lowest numbers, if any.

    With a `margin`, clients are less patient than their lowest discount factor by that, too.
    """
    numbers = list(public.values())
    patience = np.array([one.lowest_discount_factor for one in numbers], np.float64)
    for less in {0.0, margin}:
        consortium = Consortium(
            valuation=[one.lowest_ratio or 0.0 for one in numbers],
            cost_per_sample=1.0,
            samples=[one.samples for one in numbers],
            discount_factor=np.maximum(patience - less, 0.0),
            rounds=rounds,
            law=law,
        )
        amounts = [one.contribution or 0 for one in numbers]
        proof = certify(agreement_on(consortium, amounts, punishment))
        content = proof.keeps | (proof.gives_more & (proof.cost_agreement <= proof.cost_punished))
        if not content.all():
            return list(public)[int(np.argmin(np.where(content, np.inf, proof.slack)))]
    return None
