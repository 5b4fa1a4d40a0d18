"""Posted amounts: computed from what everybody knows, so that nobody is asked for anything.

What is known of each client's ratio is a range. Under suspension a client keeps to an amount,
whatever its ratio, if it does with the lowest one; no other client's numbers matter. So the amounts
follow from the ranges alone, a client that checks its own row needs only its own numbers, and there
is nothing to lie about. The one thing left to do is to refuse, and whoever refuses trains alone,
which is never cheaper for a client whose numbers are within the ranges.

>>> from fedaccord.game.paper import paper_consortium
>>> round(Posted().outcome(paper_consortium()).total)
1000000
"""

from dataclasses import dataclass

from fedaccord.agreement.punishment import Suspension
from fedaccord.agreement.solve import solve_agreement
from fedaccord.game.consortium import Consortium
from fedaccord.mechanisms.mechanism import Outcome, outcome_of

SUSPENSION = Suspension()
WITHIN = 0.3
"""How well ratios are known in a consortium that has no ranges: to so much either way."""


@dataclass(frozen=True)
class Posted:
    """Amounts from public ranges alone; whoever refuses or slips gets no model for a slot."""

    name: str = "posted"

    def outcome(self, consortium: Consortium) -> Outcome:
        """The agreement of least total cost that holds for every ratio within the ranges."""
        public = consortium if consortium.ranges is not None else consortium.within(WITHIN)
        agreement = solve_agreement(public, punishment=SUSPENSION)
        none = f"No agreement can be posted: {agreement.reason}. This is the equilibrium instead."
        known = (
            "Computed from the ranges of the file."
            if consortium.ranges is not None
            else f"Computed as if ratios were known to {100 * WITHIN:.0f} % either way."
        )
        return outcome_of(
            consortium,
            agreement.profile,
            enforced_by=str(SUSPENSION) if agreement.exists else "self-interest",
            punishment=SUSPENSION,
            truthful=True,
            truthful_reason="nothing is asked: amounts follow from public ranges",
            verified="data sizes",
            notes=(known,) if agreement.exists else (known, none),
        )
