"""The end of a round: which of the replies count, and the average of the models in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedaccord.flower.ledger.chain import Fact
from fedaccord.flower.protocol.guards import read_update, take_replies
from fedaccord.flower.protocol.messages import Ask, Reply
from fedaccord.flower.protocol.parameters import Arrays, average


@dataclass(frozen=True)
class Round:
    """What came of a round."""

    counts: dict[str, int]
    """What each client trained on whose reply is good."""
    faults: list[Fact]
    averaged: bool
    """Whether enough of them replied; if not, the model is as it was."""
    model: Arrays

    @property
    def total(self) -> int:
        """The samples in the average."""
        return sum(self.counts.values()) if self.averaged else 0


def take_round(
    ask: Ask, replies: Sequence[Reply], model: Arrays, samples: Mapping[str, int], needed: int
) -> Round:
    """Average what came back of a model, if `needed` clients or all that were asked replied."""
    good, faults = take_replies(
        ask, replies, lambda name, reply: read_update(reply, samples[name], model)
    )
    given = [good[name] for name in ask.bodies if name in good]
    updates = [(count, arrays) for count, arrays in given if arrays is not None]
    enough = len(given) >= min(needed, len(ask.bodies)) and bool(updates)
    counts = {name: count for name, (count, _) in good.items()}
    return Round(counts, faults, enough, average(updates) if enough else model)
