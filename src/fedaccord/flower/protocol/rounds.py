"""The end of a round: which of the replies count, and the average of the models in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedaccord.flower.ledger.chain import Fact
from fedaccord.flower.protocol.bounds import Length, largest_norms
from fedaccord.flower.protocol.guards import Update, read_update, take_replies
from fedaccord.flower.protocol.messages import Ask, Reply
from fedaccord.flower.protocol.parameters import Arrays, average, digest
from fedaccord.flower.protocol.reasons import Reason
from fedaccord.flower.protocol.terms import Terms


@dataclass(frozen=True)
class Round:
    """What came of a round."""

    contributions: dict[str, dict[str, object]]
    """Of each client whose reply is good: its samples, the norm and the digest of its update."""
    faults: list[Fact]
    averaged: bool
    """Whether enough of them replied; if not, the model is as it was."""
    model: Arrays
    total: int
    """The samples in the average."""


def take_round(
    ask: Ask,
    replies: Sequence[Reply],
    model: Arrays,
    samples: Mapping[str, int],
    *,
    needed: int,
    terms: Terms,
) -> Round:
    """Average what came back of a model, if `needed` clients replied."""
    read, faults = take_replies(
        ask, replies, lambda name, reply: read_update(reply, samples[name], model)
    )
    good, too_long = _within_bounds(ask, read, terms)
    ordered = [good[name] for name in ask.bodies if name in good]
    updates = [(one.samples, one.parameters) for one in ordered if one.parameters is not None]
    enough = len(ordered) >= needed and bool(updates)
    return Round(
        contributions={name: _content(update) for name, update in good.items()},
        faults=[*faults, *too_long],
        averaged=enough,
        model=average(updates) if enough else model,
        total=sum(count for count, _ in updates) if enough else 0,
    )


def _content(update: Update) -> dict[str, object]:
    found = None if update.parameters is None else digest(update.parameters)
    return {"samples": update.samples, "norm": update.norm, "update": found}


def _within_bounds(
    ask: Ask, read: dict[str, Update], terms: Terms
) -> tuple[dict[str, Update], list[Fact]]:
    """The updates that are not too long, and a fault for each of the others."""
    moved = {name: u for name, u in read.items() if u.parameters is not None}
    lengths = {name: Length(update.samples, update.norm) for name, update in moved.items()}
    largest = largest_norms(terms, lengths)
    wrong = [name for name, length in lengths.items() if length.norm > largest[name]]
    faults = [
        Fact(
            "fault",
            ask.slot,
            name,
            {"stage": ask.stage, "turn": ask.turn, "reason": Reason.TOO_LONG}
            | lengths[name]._asdict(),
        )
        for name in wrong
    ]
    return {name: update for name, update in read.items() if name not in wrong}, faults
