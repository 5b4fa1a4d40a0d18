"""Whether clients keep to an outcome, judged from the cost function.

With one model for all, the certificate of the contributions decides, under the outcome's
punishment. Payments among clients are part of what is kept to: whoever slips is not paid, and does
not pay. So a client that is paid p_n gains p_n less by slipping and loses p_n more in each slot of
the punishment,

    gain_n - p_n  <=  w_n (saving_n + p_n),

where w_n is the weight of the punishment. Money from outside the consortium does not count: clients
cannot threaten to withhold it.

With tiers nothing follows a slip but a lesser model in the same slot. Then the outcome has to be an
equilibrium of one slot, and each client's best level is searched for.
"""

from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.agreement.weight import effective_discount_factor
from fedaccord.mechanisms.mechanism import ROUNDING, Outcome
from fedaccord.mechanisms.tiers import best_level
from fedaccord.numbers import BoolArray
from fedaccord.record import Value


@dataclass(frozen=True, eq=False)
class Verdict(Value):
    """Who keeps to an outcome, and who would not if there were only one slot."""

    keeps: BoolArray
    """Whether each client keeps to it."""
    tempted: BoolArray
    """Whether each client would gain by doing something else in the last slot of all."""
    certificate: Certificate | None
    """For the contributions under the punishment, without payments; None if there are tiers."""

    @property
    def holds(self) -> bool:
        """Whether every client keeps to it."""
        return bool(self.keeps.all())

    @property
    def in_one_slot(self) -> bool:
        """Whether it is an equilibrium of a single slot, so that it needs no punishment."""
        return not self.tempted.any()


def judge(outcome: Outcome) -> Verdict:
    """Whether clients keep to an outcome.

    If somebody outside enforces it, the question is whether it would also hold by itself, under
    the paper's punishment.
    """
    return _with_one_model(outcome) if outcome.tier_weights is None else _with_tiers(outcome)


def _with_tiers(outcome: Outcome) -> Verdict:
    assert outcome.tier_weights is not None
    consortium, given = outcome.consortium, outcome.contributions
    best, gain = best_level(consortium, given, outcome.tier_weights)
    # a gain is a difference of two accuracy losses, each rounded
    law = consortium.law
    rounding = ROUNDING * consortium.valuation * (law.loss(outcome.access) - law.floor)
    tempted = gain > TOLERANCE * consortium.cost_per_sample * (given + best) + rounding
    return Verdict(keeps=~tempted, tempted=tempted, certificate=None)


def _with_one_model(outcome: Outcome) -> Verdict:
    punishment = outcome.punishment or Reversion()
    agreement = Agreement(
        outcome.equilibrium, outcome.contributions, kind="given", punishment=punishment
    )
    certificate = certify(agreement)
    gives_more = certificate.gives_more & outcome.more_counts
    # who wants to contribute more gains by no slip, since the cost is convex; but it may leave
    in_vain = certificate.gives_more & ~gives_more & ~outcome.prefers_alone
    keeps = certificate.keeps | in_vain
    tempted = (certificate.threshold > 0) & ~certificate.gives_more | gives_more
    if outcome.punishment is not None and outcome.paid > 0 and outcome.budget_balanced:
        keeps = _keeps_paying(outcome, certificate) & ~gives_more
        tempted |= outcome.payments < 0
    return Verdict(keeps & certificate.punishment_holds, tempted, certificate)


def _keeps_paying(outcome: Outcome, certificate: Certificate) -> BoolArray:
    """The condition above, times 1 - delta for the discount factor delta = w / (1 + w)."""
    consortium, paid = outcome.consortium, outcome.payments
    slots = certificate.agreement.punishment.slots
    delta = effective_discount_factor(consortium.discount_factor, slots)
    gained = (1.0 - delta) * certificate.gain - delta * certificate.saving - paid
    allowed = TOLERANCE * consortium.cost_per_sample * outcome.contributions
    return np.asarray(gained <= allowed + ROUNDING * certificate.cost_agreement)
