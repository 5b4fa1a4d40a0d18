"""Free-rider detection that never errs: the server drops exactly those who train on nothing.

That is what the paper's figures call DAGMM: "only aggregate the updates of (partial)
contributors" (section 5.2). Dropping an update that carries nothing changes neither the model
nor anyone's cost, so everyone does as at the equilibrium. Detectors that do err are in
`fedaccord.baselines.detection`.
"""

from dataclasses import dataclass

from fedaccord.baselines.mechanism import Outcome, outcome_of
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.writing import count


@dataclass(frozen=True)
class OracleDetection:
    """The equilibrium, contributors only.

    >>> from fedaccord.game.paper import paper_consortium
    >>> outcome = OracleDetection().outcome(paper_consortium())
    >>> outcome.contributors, outcome.partial_contributors, outcome.free_riders
    (50, 1, 49)
    """

    name: str = "detection"

    def outcome(self, consortium: Consortium) -> Outcome:
        """Who is left when all free riders are dropped."""
        equilibrium = solve_equilibrium(consortium)
        dropped = (
            f"The server drops {count(equilibrium.free_riders, 'free rider')}, by a detector that "
            "never errs. Their updates carried nothing, so the model is the same."
        )
        return outcome_of(
            equilibrium,
            equilibrium.profile,
            enforced_by="self-interest, and a detector",
            survives_private_information=True,
            private_information="looks at updates, not at what clients say",
            notes=(dropped if equilibrium.free_riders else "There is no free rider to drop.",),
        )
