"""The social optimum, held by payments among clients (Levin 2003).

After each slot client n pays tau_n to the others; whoever slips does not pay, and everyone reverts
to the equilibrium. Client n keeps to that if and only if

    tau_n  <=  slack_n  =  delta_n (F_n(equilibrium) - F_n) - (1 - delta_n) (F_n - F_n(slip)),

where F_n(slip) is its cost in the slot of its best slip. Payments add up to 0, so such payments
exist if and only if the slacks add up to 0 or more: slack can be pooled. Those whose slack is
negative are paid just that; the others pay in proportion to their slack.

>>> from fedaccord.game.paper import paper_consortium
>>> outcome = Transfers().outcome(paper_consortium())
>>> round(outcome.total), int((outcome.payments > 0).sum()), f"{outcome.paid:.2e}"
(1000000, 2, '5.84e-05')
"""

from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.punishment import Reversion
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.social_optimum import solve_social_optimum
from fedaccord.mechanisms.mechanism import Outcome, outcome_of
from fedaccord.numbers import FloatArray, patience

REVERSION = Reversion()


@dataclass(frozen=True)
class Transfers:
    """The social optimum; clients with slack pay those that would slip."""

    name: str = "transfers"

    def outcome(self, consortium: Consortium) -> Outcome:
        """The cheapest profile for all, and the payments that hold it if any do."""
        equilibrium, optimum = solve_equilibrium(consortium), solve_social_optimum(consortium)
        slipped = _cost_of_slip(consortium, optimum.profile)
        delta = consortium.discount_factor
        slack = delta * equilibrium.cost + (1.0 - delta) * slipped - optimum.cost
        payments = pooled(slack)
        return outcome_of(
            equilibrium,
            optimum.profile,
            payments=payments,
            enforced_by=f"{REVERSION}, payments included",
            punishment=REVERSION,
            truthful=False,
            truthful_reason="who pays whom depends on the ratios that clients report",
            verified="data sizes",
            notes=(_note(consortium, optimum.profile, payments),),
        )


def pooled(slack: FloatArray) -> FloatArray:
    """What each client is paid: those without slack what they lack, by those with slack.

    If all slack together is not enough, all of it is paid out.

    >>> pooled(np.array([-1.0, 3.0, 1.0])).tolist()
    [1.0, -0.75, -0.25]
    """
    lacks, has = np.maximum(-slack, 0.0), np.maximum(slack, 0.0)
    flow = min(lacks.sum(), has.sum())
    if flow == 0.0:
        return np.zeros_like(slack)
    return np.asarray(flow * (lacks / lacks.sum() - has / has.sum()))


def common_patience(consortium: Consortium) -> float:
    """The discount factor from which on the payments hold if all clients have it; 0: any will do.

    It is where the slacks add up to 0.
    """
    optimum = solve_social_optimum(consortium)
    slipped = _cost_of_slip(consortium, optimum.profile)
    stake = float((solve_equilibrium(consortium).cost - slipped).sum())
    return float((optimum.cost - slipped).sum()) / stake if stake > 0 else 0.0


def _cost_of_slip(consortium: Consortium, profile: FloatArray) -> FloatArray:
    """F_n(slip): the least that a client can pay in one slot while the others keep to it."""
    quality = consortium.quality
    others = consortium.total_of(profile) - quality * profile
    slip = np.clip((consortium.satiation - others) / quality, 0.0, profile)
    return cost(consortium, slip, others + quality * slip)


def _note(consortium: Consortium, profile: FloatArray, payments: FloatArray) -> str:
    """Who is paid how much, and the patience that would do if all had the same."""
    needed = patience(common_patience(consortium))
    common = f"With payments a discount factor of {needed} for all is enough."
    paid = payments[payments > 0]
    if paid.size == 0:
        return f"Nobody has to be paid. {common}"
    part = paid.sum() / float((consortium.cost_per_sample * profile).sum())
    names = [consortium.names[n] for n in np.flatnonzero(payments > 0)[:3].tolist()]
    rest = f" and {paid.size - 3:,} more" if paid.size > 3 else ""
    return (
        f"Paid: {', '.join(names)}{rest}, with {100 * part:.2f} % of the cost of training. {common}"
    )
