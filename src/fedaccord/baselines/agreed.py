"""The agreements: a profile that each keeps to, on pain of the equilibrium ever after."""

from dataclasses import dataclass
from typing import get_args

from fedaccord.agreement.solve import SolvedKind, check_choice, solve_agreement
from fedaccord.baselines.mechanism import Outcome, outcome_of
from fedaccord.game.consortium import Consortium


@dataclass(frozen=True)
class Agreed:
    """The agreement of a kind; where there is none, the equilibrium."""

    kind: SolvedKind

    def __post_init__(self) -> None:
        """Refuse a kind that isn't one."""
        check_choice("kind", self.kind, get_args(SolvedKind))

    @property
    def name(self) -> str:
        """Its kind."""
        return self.kind

    def outcome(self, consortium: Consortium) -> Outcome:
        """What clients that keep to it do."""
        agreement = solve_agreement(consortium, self.kind)
        none = f"{agreement.none_exists}: {agreement.reason}. So this is the equilibrium."
        return outcome_of(
            agreement.equilibrium,
            agreement.profile,
            enforced_by="punishment" if agreement.exists else "self-interest",
            survives_private_information=not agreement.exists,
            private_information=(
                "built on the ratios that clients tell, which they may understate"
                if agreement.exists
                else "there is no agreement to misstate anything for"
            ),
            notes=() if agreement.exists else (none,),
        )
