"""Nothing is done: every client looks at itself and at one slot."""

from dataclasses import dataclass

from fedaccord.baselines.mechanism import Outcome, outcome_of
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium


@dataclass(frozen=True)
class Selfish:
    """The stage game's equilibrium."""

    name: str = "equilibrium"

    def outcome(self, consortium: Consortium) -> Outcome:
        """What selfish clients do."""
        equilibrium = solve_equilibrium(consortium)
        return outcome_of(
            equilibrium,
            equilibrium.profile,
            enforced_by="self-interest",
            survives_private_information=True,
            private_information="a client need know only the total and itself",
        )
