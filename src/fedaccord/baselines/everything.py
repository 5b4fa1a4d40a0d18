"""Everyone trains on everything, for no reason."""

from dataclasses import dataclass

from fedaccord.baselines.mechanism import Outcome, outcome_of
from fedaccord.game.consortium import Consortium


@dataclass(frozen=True)
class Everything:
    """All the data there is."""

    name: str = "everything"

    def outcome(self, consortium: Consortium) -> Outcome:
        """All that clients have."""
        return outcome_of(
            consortium,
            consortium.samples,
            enforced_by="nobody",
            survives_private_information=True,
            private_information="asks for all, whatever clients say",
        )
