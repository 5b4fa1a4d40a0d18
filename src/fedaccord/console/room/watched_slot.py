"""A slot as pages show it: who takes part, its rounds, and how it ended."""

from dataclasses import dataclass
from typing import Literal

from fedaccord.protocol.messages import BasisName, Phase, VerdictName
from fedaccord.summaries.slots import Moment

Stage = Literal["reports", "offers", "training", "settlement", "over"]
Part = Literal["awaited", "there", "absent", "refused", "suspended"]


@dataclass(frozen=True)
class MemberInSlot:
    """One member in a slot."""

    name: str
    part: Part
    """Whether it takes part."""
    because: str
    """Why it is absent, in words; empty if it is not."""
    asked: int | None
    """Samples that it was offered, or is to train on."""
    answer: Literal["accepted", "refused"] | None
    trained: int | None
    """Samples that it trained on: the least in any round so far."""
    rounds: int
    """Rounds in which it trained."""
    missed: int
    """Rounds in which it was absent."""
    verdict: VerdictName | None


@dataclass(frozen=True)
class RoundInSlot:
    """A round that is over."""

    number: int
    at: str
    members: int
    """Who trained on something."""
    samples: int
    """What they trained on, if there were enough to average."""
    averaged: bool
    movement: float | None
    """How far their updates moved the model on average: the mean of the norms in the ledger."""
    loss: float | None = None
    """Of the model after it on the server's test examples, if the server has any."""
    accuracy: float | None = None
    """The same, or what else the task is measured by."""
    measure: str | None = None
    """The name of that."""


@dataclass(frozen=True)
class SuspendedMember:
    """Who takes no part."""

    name: str
    slipped_in: int
    until: int | None
    """The last slot of it, if every slot until then is played; for ever if there is none."""
    day: str | None
    """About the day on which it ends, if the length of a slot is known."""


@dataclass(frozen=True)
class WatchedSlot:
    """A slot, as far as it has come."""

    consortium: str
    slot: int
    phase: Phase
    stage: Stage
    begun: str
    """When, in UTC, by the server's clock."""
    latest: str
    """The time of the latest entry about it."""
    entries: int
    head: str
    """The digest of the latest entry about it."""
    asks: str
    """What is asked at the moment, in words; empty if nothing is."""
    waiting: list[str]
    """Who is asked it."""
    reports: bool
    """Whether members report numbers, or only that they are there."""
    expected: int
    """Members that are not suspended."""
    here: int
    offered: int
    answered: int
    refused: int
    basis: BasisName | None
    total_asked: int
    rounds_in_all: int
    rounds: list[RoundInSlot]
    members: list[MemberInSlot]
    suspended: list[SuspendedMember]
    """In this slot."""
    suspended_next: list[SuspendedMember]
    """From the next slot on, once this one is settled."""
    settled: bool
    void: str | None
    """Why nothing was trained, if the slot is over and nothing was."""
    total: int | None
    """Samples that the slot was trained on, when it is settled."""
    next_phase: Phase | None
    timeline: list[Moment]
    """The latest first."""
    problem: str | None = None
    """Why the rest cannot be read, if somebody changed the ledger."""
