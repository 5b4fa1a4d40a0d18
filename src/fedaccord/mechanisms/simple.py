"""The simple mechanisms, and the list of all: built-in ones and those of installed packages.

>>> mechanism_names()[:4]
['equilibrium', 'uniform', 'individual', 'suspension']
>>> find_mechanism("social-optimum").name
'social optimum'
"""

from dataclasses import dataclass
from typing import Any, cast, get_args

from fedaccord.agreement.agreement import SolvedKind
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.agreement.solve import solve_agreement
from fedaccord.checks import check_choice, shown, unknown
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.social_optimum import price_of_anarchy, solve_social_optimum
from fedaccord.mechanisms.clock import Clock, FairExchange, SerialClock
from fedaccord.mechanisms.contract.contract import Contract
from fedaccord.mechanisms.mechanism import Mechanism, Outcome, outcome_of
from fedaccord.mechanisms.posted import Posted
from fedaccord.mechanisms.transfers import Transfers
from fedaccord.numbers import count
from fedaccord.plugins import find, names_in

REVERSION, SUSPENSION = Reversion(), Suspension()


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
            truthful=True,
            truthful_reason=(
                "nothing is asked: a client decides by itself, knowing the total (if a server "
                "computes it from reports instead, lies pay)"
            ),
            verified="nothing",
        )


@dataclass(frozen=True)
class Agreed:
    """The agreement of this kind with this punishment; the equilibrium if there is none."""

    kind: SolvedKind
    punishment: Punishment = REVERSION

    def __post_init__(self) -> None:
        """Refuse an unknown kind."""
        check_choice("kind", self.kind, get_args(SolvedKind))

    @property
    def name(self) -> str:
        """The kind of the agreement; that of the punishment if it is not the paper's."""
        if self.punishment.kind == "reversion":
            return self.kind
        return "suspension" if self.kind == "individual" else f"{self.kind} suspension"

    def outcome(self, consortium: Consortium) -> Outcome:
        """What clients do if they keep to the agreement."""
        agreement = solve_agreement(consortium, self.kind, punishment=self.punishment)
        said: tuple[str, ...] = ()
        if not agreement.exists:
            said = (
                f"No {self.kind} agreement exists: {agreement.reason}. This is the equilibrium "
                "instead.",
            )
        elif agreement.ranges is not None:
            said = ("It holds for every combination of numbers within the ranges.",)
        return outcome_of(
            agreement.equilibrium,
            agreement.profile,
            enforced_by=str(self.punishment) if agreement.exists else "self-interest",
            punishment=self.punishment,
            truthful=False,
            truthful_reason=(
                "computed from the ratios that clients report, which they may understate"
            ),
            verified="data sizes",
            notes=said,
        )


@dataclass(frozen=True)
class Everything:
    """Every client trains on all its data, or gets no model."""

    name: str = "everything"

    def outcome(self, consortium: Consortium) -> Outcome:
        """All samples of all clients."""
        return outcome_of(
            consortium,
            consortium.samples,
            enforced_by=str(SUSPENSION),
            punishment=SUSPENSION,
            truthful=True,
            truthful_reason="nobody is asked for its valuation or its cost",
            verified="data sizes",
        )


@dataclass(frozen=True)
class SocialOptimumWithTransfers:
    """The profile with the least total cost; payments make all clients save the same."""

    name: str = "social optimum"

    def outcome(self, consortium: Consortium) -> Outcome:
        """The cheapest profile for all, and who pays whom."""
        equilibrium, optimum = solve_equilibrium(consortium), solve_social_optimum(consortium)
        dearer = optimum.cost - equilibrium.cost
        price = price_of_anarchy(equilibrium, optimum)
        return outcome_of(
            equilibrium,
            optimum.profile,
            payments=dearer - dearer.mean(),
            enforced_by="a payer",
            punishment=None,
            truthful=False,
            truthful_reason="a client that is paid gains by overstating its cost",
            verified="data sizes",
            notes=(
                f"Clients pay each other so that all save the same. The price of anarchy is "
                f"{price:,.4f}: selfish clients' total cost divided by the least total cost.",
            ),
        )


@dataclass(frozen=True)
class OracleDetection:
    """The equilibrium without its free riders, found by a detector that never errs.

    >>> from fedaccord.game.paper import paper_consortium
    >>> outcome = OracleDetection().outcome(paper_consortium())
    >>> outcome.contributors, outcome.partial_contributors, outcome.free_riders
    (50, 1, 49)
    """

    name: str = "detection"

    def outcome(self, consortium: Consortium) -> Outcome:
        """Who remains when all free riders are dropped."""
        equilibrium = solve_equilibrium(consortium)
        dropped = (
            f"The server drops {count(equilibrium.free_riders, 'free rider')}, found by a detector "
            "that never errs. Their updates contain nothing, so the model is the same."
        )
        return outcome_of(
            equilibrium,
            equilibrium.profile,
            enforced_by="self-interest, and a detector",
            truthful=True,
            truthful_reason="nothing is asked: it depends on updates alone",
            verified="nothing",
            notes=(dropped if equilibrium.free_riders else "There is no free rider to drop.",),
        )


MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        Selfish(),
        Agreed("uniform"),
        Agreed("individual"),
        Agreed("individual", SUSPENSION),
        Posted(),
        Everything(),
        Clock(),
        SerialClock(),
        FairExchange(),
        Transfers(),
        SocialOptimumWithTransfers(),
        Contract(),
        OracleDetection(),
    )
}
"""The built-in mechanisms by name."""
ASKS_NOTHING = (Selfish, Posted, Everything, OracleDetection)
"""Mechanisms in which clients report nothing, so that there is nothing to lie about."""


def mechanism_names() -> list[str]:
    """The names of all mechanisms: built-in ones, then those of installed packages."""
    return [_spaced(name) for name in names_in("mechanisms", MECHANISMS)]


def find_mechanism(name: str) -> Mechanism:
    """The mechanism of this name; hyphens stand for spaces.

    Another package declares its mechanism by an entry point of the group `fedaccord.mechanisms`: a
    class that takes no arguments, or an object.
    """
    entries = {_spaced(entry): entry for entry in names_in("mechanisms", MECHANISMS)}
    entry = entries.get(_spaced(name))
    found: object = None if entry is None else find("mechanisms", entry, MECHANISMS)
    if entry is None or found is None:
        raise InvalidInput(f"there is no mechanism called {name!r}: {unknown(name, entries)}")
    return _checked(entry, found)


def as_mechanism(given: Mechanism | str) -> Mechanism:
    """A mechanism unchanged; one by its name otherwise."""
    if isinstance(given, str):
        return find_mechanism(given)
    named = isinstance(getattr(given, "name", None), str) and not isinstance(given, type)
    if not named or not callable(getattr(given, "outcome", None)):
        raise InvalidInput(
            "must be names, or objects with a name and a method outcome(consortium), "
            f"got {shown(given)}",
            field="mechanisms",
        )
    return given


def _checked(entry: str, found: object) -> Mechanism:
    """Refuse what another package declares but is not a mechanism of that name."""
    try:
        mechanism: Any = found() if isinstance(found, type) else found
        name, _ = mechanism.name, mechanism.outcome
    except (TypeError, AttributeError) as error:
        raise FedaccordError(
            f"mechanism {entry}: must have a name and a method outcome(consortium) ({error})"
        ) from None
    if name != _spaced(entry):
        raise FedaccordError(
            f"mechanism {entry}: calls itself {name!r}; the entry point must have the same name"
        )
    return cast(Mechanism, mechanism)


def _spaced(name: str) -> str:
    return name.replace("-", " ")
