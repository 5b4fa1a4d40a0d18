"""What is trained on: the contributions of every client, slot by slot.

An agreement is played for as many slots as are to be trained, so that a slip and the punishment
that follows show in the training; a client that is suspended trains alone meanwhile. At an
equilibrium every slot is the same. Contributions may also be given as numbers, or as a match that
was played already. Two baselines are there to compare with: `alone`, where every client trains by
itself on as much as pays, and `pooled`, where everyone's data is in one place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fedaccord.agreement.agreement import Agreement, agreement_on
from fedaccord.agreement.punishment import (
    Punishment,
    PunishmentName,
    Suspension,
    as_punishment,
)
from fedaccord.agreement.solve import solve_agreement
from fedaccord.checks import check_type, check_whole, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.alone import alone_contribution
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.numbers import FloatArray
from fedaccord.record import Value
from fedaccord.repeated.match import Match, play
from fedaccord.repeated.strategies import AnyStrategy
from fedaccord.training.records import ALONE, POOLED

BASELINES = (ALONE, POOLED)
KINDS = ("equilibrium", "uniform", "individual", "suspension", *BASELINES)
"""Profiles that a consortium has by name; `suspension` is the individual agreement under it."""

Strategies: TypeAlias = Mapping[str, AnyStrategy]
"""What some clients do instead of keeping to the agreement, by client's name."""


@dataclass(frozen=True)
class Baseline:
    """A profile to compare with, in which nobody trains together with others."""

    kind: str
    """One of BASELINES."""

    def amounts(self, consortium: Consortium | None, held: FloatArray) -> FloatArray:
        """What each client trains on: alone as much as pays, all it has (`held`) otherwise."""
        if self.kind == ALONE and consortium is not None:
            return alone_contribution(consortium)
        return held


@dataclass(frozen=True, eq=False)
class PlayedProfile(Value):
    """A profile, and what was contributed under it in each slot."""

    name: str
    contributions: FloatArray
    """One row per slot, one column per client."""
    phases: tuple[str, ...]
    agreement: Agreement | None = None
    """The agreement that it comes from. If that does not exist, everyone acts selfishly."""
    match: Match | None = None
    """The match in which the agreement was played."""

    @property
    def baseline(self) -> bool:
        """Whether nobody trains together with others."""
        return self.phases[0] in BASELINES

    @property
    def alone(self) -> FloatArray:
        """How many samples each client trains on by itself in each slot; 0 if it is not out."""
        if self.match is None or self.match.suspended is None:
            return np.zeros_like(self.contributions)
        own = alone_contribution(self.match.agreement.consortium)
        return np.where(self.match.suspended, own, 0.0)


def read_profiles(
    agreement: Any,
    profiles: Any = None,
    punishment: Punishment | PunishmentName | None = None,
    margin: float = 0.0,
) -> tuple[Consortium | None, dict[str, Any]]:
    """The profiles that `fedaccord.train` was given, by name, and the consortium if there is one.

    Each profile is then an agreement, an equilibrium, a match, a baseline or an array of
    contributions.
    """
    if isinstance(agreement, Consortium):
        return agreement, _of_consortium(agreement, profiles, punishment or "reversion", margin)
    if profiles is not None:
        raise InvalidInput("can be chosen only for a Consortium", field="profiles")
    if punishment is not None:
        raise InvalidInput("can be chosen only for a Consortium", field="punishment")
    if margin:
        raise InvalidInput("can be chosen only for a Consortium", field="margin")
    if isinstance(agreement, Mapping):
        named = {str(name): _checked(name, each) for name, each in agreement.items()}
    elif isinstance(agreement, Match):
        agreed = agreement.agreement
        named = {"equilibrium": agreed.equilibrium, agreed.kind: agreement}
    elif isinstance(agreement, Agreement):
        named = {"equilibrium": agreement.equilibrium, agreement.kind: agreement}
    elif isinstance(agreement, Equilibrium):
        named = {"equilibrium": agreement}
    elif agreement is None or isinstance(agreement, str):
        raise InvalidInput(
            "must be an Agreement, an Equilibrium, a Match, a Consortium or contributions, "
            f"got {shown(agreement)}",
            field="agreement",
        )
    else:
        named = {"contributions": _amounts("contributions", agreement)}
    if not named or all(isinstance(each, Baseline) for each in named.values()):
        raise InvalidInput(
            "there must be at least one profile, and one of a consortium or of contributions",
            field="agreement",
        )
    return _consortium_of(named), named


def play_profiles(
    consortium: Consortium | None,
    profiles: Mapping[str, Any],
    slots: int | None = None,
    strategies: Strategies | None = None,
) -> list[PlayedProfile]:
    """What is contributed under each profile, for equally many slots."""
    if strategies is not None:
        check_type("strategies", strategies, Mapping)
    nothing_agreed = (Equilibrium, Baseline)
    if strategies and all(isinstance(each, nothing_agreed) for each in profiles.values()):
        raise InvalidInput("at the equilibrium there is nothing to slip from", field="strategies")
    slots = _slots(profiles, slots)
    played = {
        name: _played(name, each, consortium, slots, strategies or {})
        for name, each in profiles.items()
        if not isinstance(each, Baseline)
    }
    held = most_contributed(played.values()) if consortium is None else consortium.samples
    for name, each in profiles.items():
        if isinstance(each, Baseline):
            played[name] = _baseline(name, each, consortium, held, slots)
    return [played[name] for name in profiles]


def with_baselines(consortium: Consortium, played: Sequence[PlayedProfile]) -> list[PlayedProfile]:
    """The profiles between what each client reaches alone and what all data would lead to."""
    alone, pooled = (
        _baseline(kind, Baseline(kind), consortium, consortium.samples, len(played[0].phases))
        for kind in BASELINES
    )
    return [alone, *played, pooled]


def _baseline(
    name: str, baseline: Baseline, consortium: Consortium | None, held: FloatArray, slots: int
) -> PlayedProfile:
    rows = baseline.amounts(consortium, held)[None].repeat(slots, axis=0)
    return PlayedProfile(name, rows, (baseline.kind,) * slots)


def _of_consortium(
    consortium: Consortium,
    profiles: Any,
    punishment: Punishment | PunishmentName,
    margin: float,
) -> dict[str, Any]:
    """The profiles of a consortium: names of kinds, or a mapping from names to anything."""
    if profiles is None:
        profiles = ("equilibrium", "individual")
    if isinstance(profiles, str):
        profiles = (profiles,)
    named = profiles if isinstance(profiles, Mapping) else {name: name for name in profiles}
    if not named or (not isinstance(profiles, Mapping) and len(named) < len(list(profiles))):
        raise InvalidInput("there must be at least one, and none of them twice", field="profiles")
    if {"individual", "suspension"} <= set(map(str, named.values())) and _suspends(punishment):
        raise InvalidInput(
            "individual and suspension are the same with this punishment: leave one out, or choose "
            "reversion as the punishment of the others",
            field="profiles",
        )
    equilibrium = solve_equilibrium(consortium)
    found: dict[str, Any] = {}
    for name, each in named.items():
        if not isinstance(each, str):
            given = _checked(name, each)
            flat = isinstance(given, np.ndarray) and given.ndim == 1
            found[name] = agreement_on(consortium, given, punishment) if flat else given
        elif each in BASELINES:
            found[name] = Baseline(each)
        elif each == "equilibrium":
            found[name] = equilibrium
        elif each == "suspension":
            terms = punishment if _suspends(punishment) else Suspension()
            found[name] = solve_agreement(equilibrium, punishment=terms, margin=margin)
        elif each in ("uniform", "individual"):
            kind: Any = each
            found[name] = solve_agreement(equilibrium, kind, punishment=punishment, margin=margin)
        else:
            raise InvalidInput(f"must be one of {', '.join(KINDS)}, got {each!r}", field="profiles")
    _consortium_of(found, consortium)
    return found


def _suspends(punishment: Punishment | PunishmentName) -> bool:
    return as_punishment(punishment).kind == "suspension"


def _checked(name: object, profile: Any) -> Any:
    """An agreement, an equilibrium, a match, a baseline, or an array of contributions."""
    if isinstance(profile, Agreement | Equilibrium | Match | Baseline):
        return profile
    if isinstance(profile, str) and profile in BASELINES:
        return Baseline(profile)
    return _amounts(name, profile)


def _amounts(name: object, given: Any) -> FloatArray:
    try:
        amounts = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        amounts = np.empty(0)
    if amounts.ndim not in (1, 2) or not amounts.size:
        raise InvalidInput(
            _of(
                str(name),
                "must be an Agreement, an Equilibrium, a Match, or contributions: numbers, "
                "one per client, or a row of them for each slot",
            )
        )
    return amounts


def _of(name: str, message: str) -> Problem:
    """A problem of one of the profiles."""
    return Problem("profiles", message, place=name)


def _consortium_of(
    profiles: Mapping[str, Any], consortium: Consortium | None = None
) -> Consortium | None:
    """The one consortium that all these profiles belong to; None if they are only numbers."""
    for name, each in profiles.items():
        if isinstance(each, np.ndarray | Baseline):
            continue
        own = each.agreement.consortium if isinstance(each, Match) else each.consortium
        consortium = consortium or own
        if own is not consortium and not _same_clients(own, consortium):
            raise InvalidInput(
                _of(name, "belongs to another consortium than the profiles before it")
            )
    return consortium


def _same_clients(one: Consortium, other: Consortium) -> bool:
    return (
        one.names == other.names
        and one.rounds == other.rounds
        and np.array_equal(one.samples, other.samples)
    )


def _slots(profiles: Mapping[str, Any], slots: int | None) -> int:
    """How many slots to train: as asked for, or as many as the given contributions have."""
    wanted = slots
    for name, each in profiles.items():
        own = _own_slots(each)
        if own is None:
            continue
        if wanted is not None and wanted != own:
            raise InvalidInput(f"{name} has contributions for {own}, not {wanted}", field="slots")
        wanted = own
    if wanted is None:
        return 1
    check_whole("slots", wanted, least=1)
    return int(wanted)


def _own_slots(profile: Any) -> int | None:
    if isinstance(profile, Match):
        return profile.slots
    return len(profile) if isinstance(profile, np.ndarray) and profile.ndim == 2 else None


def _played(
    name: str, profile: Any, consortium: Consortium | None, slots: int, strategies: Strategies
) -> PlayedProfile:
    if isinstance(profile, Equilibrium):
        return _repeated(name, profile, slots)
    if isinstance(profile, np.ndarray):
        rows = profile if profile.ndim == 2 else profile[None].repeat(slots, axis=0)
        if consortium is not None:
            _check_rows(name, rows, consortium)
        elif not ((rows >= 0) & np.isfinite(rows)).all():
            raise InvalidInput(_of(name, "must be 0 or more and finite"))
        return PlayedProfile(name, rows, ("cooperating",) * slots)
    if isinstance(profile, Match):
        match = profile
    elif not profile.exists:
        return _repeated(name, profile.equilibrium, slots, profile)
    else:
        match = play(profile, strategies, slots)
    if match.contributions is None:
        raise InvalidInput(_of(name, "the match must be played with history=True"))
    return PlayedProfile(name, match.contributions, match.phases, match.agreement, match)


def _repeated(
    name: str, equilibrium: Equilibrium, slots: int, agreement: Agreement | None = None
) -> PlayedProfile:
    """The equilibrium, slot after slot."""
    contributions = equilibrium.profile[None].repeat(slots, axis=0)
    return PlayedProfile(name, contributions, ("equilibrium",) * slots, agreement)


def _check_rows(name: str, rows: FloatArray, consortium: Consortium) -> None:
    """Reject contributions of other clients, or of more samples than there are."""
    if rows.shape[1] != consortium.size:
        raise InvalidInput(
            _of(
                name,
                f"has contributions of {rows.shape[1]} clients, not {consortium.size}",
            )
        )
    wrong = np.argwhere(~((rows >= 0) & (rows <= consortium.samples)))
    if len(wrong):
        slot, n = wrong[0]
        raise InvalidInput(
            _of(
                name,
                f"{consortium.names[n]} must contribute from 0 to "
                f"{consortium.samples[n]:.15g} samples, got {rows[slot, n]:g} in slot {slot + 1}",
            )
        )


def most_contributed(profiles: Iterable[PlayedProfile]) -> FloatArray:
    """The most that each client contributes in any slot under any profile."""
    rows = [profile.contributions for profile in profiles]
    if len({each.shape[1] for each in rows}) > 1:
        raise InvalidInput("all profiles must be of equally many clients", field="contributions")
    most: FloatArray = np.concatenate(rows).max(axis=0)
    return most
