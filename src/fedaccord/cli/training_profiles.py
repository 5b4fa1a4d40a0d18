"""What is trained on: the contributions of each slot, from playing the repeated game."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import fedaccord as fa
from fedaccord.agreement.agreement import Agreement
from fedaccord.cli.slips import read_strategies
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.numbers import FloatArray
from fedaccord.repeated.match import Match, play
from fedaccord.repeated.strategies import Strategy
from fedaccord.summaries.match import account_of


@dataclass(frozen=True, eq=False)
class PlayedProfile:
    """A profile, and what became of it slot by slot."""

    name: str
    contributions: FloatArray
    """One row a slot, one column a client."""
    phases: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Who slipped, and whether there was an agreement at all."""
    match: Match | None = None
    """The match in which they were played; None: everyone acts alone."""


def read_profiles(
    consortium: Consortium,
    words: Sequence[str],
    slots: int,
    deviate: Sequence[str],
    punishment_slots: int | None,
) -> list[PlayedProfile]:
    """Each `--profile`, played for as many slots as are to be trained."""
    strategies = read_strategies(consortium, slots, deviate, [])
    if len({file_name(word) for word in words}) < len(words):
        raise InvalidInput("--profile: each profile once, and files of different names")
    if strategies and set(words) == {"equilibrium"}:
        raise InvalidInput("--deviate: at the equilibrium there is nothing to slip from")
    return [_played(consortium, word, slots, strategies, punishment_slots) for word in words]


def file_name(profile: str) -> str:
    """A profile's name, fit for a file."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", profile).strip("-") or "profile"


def _played(
    consortium: Consortium,
    word: str,
    slots: int,
    strategies: dict[str, Strategy],
    punishment_slots: int | None,
) -> PlayedProfile:
    if word == "equilibrium":
        return _alone(word, fa.solve_equilibrium(consortium), slots)
    agreement = _agreement(consortium, word, punishment_slots)
    if not agreement.exists:
        why = f"{word}: no such agreement exists ({agreement.reason}), so everyone acts alone"
        return _alone(word, agreement.equilibrium, slots, why)
    match = play(agreement, strategies, slots)
    assert match.contributions is not None  # the history is kept unless told otherwise
    notes = tuple(f"{word}: {line}" for line in account_of(match, None).slips)
    return PlayedProfile(word, match.contributions, match.phases, notes, match)


def _alone(name: str, equilibrium: Equilibrium, slots: int, *notes: str) -> PlayedProfile:
    """The equilibrium, slot after slot."""
    contributions = equilibrium.profile[None].repeat(slots, axis=0)
    return PlayedProfile(name, contributions, ("equilibrium",) * slots, notes)


def _agreement(consortium: Consortium, word: str, punishment_slots: int | None) -> Agreement:
    """The agreement of that kind, or the one in that file."""
    kinds: dict[str, Literal["uniform", "individual"]] = {
        "uniform": "uniform",
        "individual": "individual",
    }
    if word in kinds:
        return fa.solve_agreement(consortium, kinds[word], punishment_slots=punishment_slots)
    if not Path(word).exists():
        raise InvalidInput(
            f"--profile {word}: must be equilibrium, uniform, individual, or an existing file"
        )
    return fa.load_agreement(word, consortium, punishment_slots)
