"""The simple mechanisms: selfish play, agreements, the optimum with transfers, and detection."""

from dataclasses import dataclass
from typing import get_args

from fedaccord.agreement.solve import SolvedKind, solve_agreement
from fedaccord.checks import check_choice
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.social_optimum import price_of_anarchy, solve_social_optimum
from fedaccord.mechanisms.mechanism import Outcome, outcome_of
from fedaccord.numbers import count


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
        none = f"No {self.kind} agreement exists: {agreement.reason}. This is the equilibrium."
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
