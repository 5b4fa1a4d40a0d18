"""The social optimum, with transfers that leave nobody worse off than the equilibrium.

The cheapest profile for all together asks much of those whose samples are cheap. Who gains by
it pays, who loses is paid: everyone then saves the same, an equal part of what all save
together, and the payments add up to nothing.
"""

from dataclasses import dataclass

from fedaccord.baselines.mechanism import Outcome, outcome_of
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.social_optimum import price_of_anarchy, solve_social_optimum


@dataclass(frozen=True)
class SocialOptimumWithTransfers:
    """Least total cost, and its saving shared equally."""

    name: str = "social optimum"

    def outcome(self, consortium: Consortium) -> Outcome:
        """What is cheapest for all, and who pays whom."""
        equilibrium, optimum = solve_equilibrium(consortium), solve_social_optimum(consortium)
        dearer = optimum.cost - equilibrium.cost
        price = price_of_anarchy(equilibrium, optimum)
        return outcome_of(
            equilibrium,
            optimum.profile,
            payments=dearer - dearer.mean(),
            enforced_by="a payer",
            survives_private_information=False,
            private_information="who is paid gains by overstating its cost",
            notes=(
                f"Clients pay each other, so that all save the same. The price of anarchy is "
                f"{price:,.4f}: selfish clients together pay so many times the least cost.",
            ),
        )
