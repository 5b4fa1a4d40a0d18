"""How far one client's update may move the model.

A single update of huge but finite numbers would ruin the average for good. So an update is judged
by its norm, the Euclidean length of what it adds to the model, against those of the others in the
same round. The robust bound is `FACTOR` times the median of the others' norms, or of their norms
per local step times the client's own steps if that is more: a client that trains on more samples
takes more steps, and may go further. (It is the upper median, so it takes half of the others to
move it.) With fewer than two others there is nobody to compare with, and no bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from fedaccord.numbers import FloatArray
from fedaccord.protocol import facts
from fedaccord.protocol.guards import Update, read_update, take_replies
from fedaccord.protocol.messages import Ask, Reply
from fedaccord.protocol.parameters import Arrays, average, digest
from fedaccord.protocol.reasons import Reason
from fedaccord.protocol.terms import Terms, TrainingTerms

FACTOR = 30.0
"""Of the others' median: honest clients came to 12 at most, with 2 samples of a single label
beside others with 150 (tests/protocol/test_bounds.py measures it)."""
_FEWEST = 2
"""The fewest others that a client is compared with."""


class Length(NamedTuple):
    """How far an update goes."""

    samples: int
    """What it was trained on."""
    norm: float
    """Of the client's parameters less those of the model that it was given."""


def largest_norms(terms: Terms, lengths: Mapping[str, Length]) -> dict[str, float]:
    """The largest norm that each client's update may have, given everyone's in the round."""
    if terms.update_bound == "off":
        return dict.fromkeys(lengths, inf)
    if terms.update_bound != "robust":
        return dict.fromkeys(lengths, terms.update_bound)
    norms = np.array([length.norm for length in lengths.values()], float)
    steps = np.array([_steps(terms.training, one.samples) for one in lengths.values()], float)
    with np.errstate(over="ignore"):  # beyond what a number can hold there is no bound
        largest = FACTOR * _usual(norms, steps)
    return dict(zip(lengths, np.where(largest > 0, largest, inf).tolist(), strict=True))


def _usual(norms: FloatArray, steps: FloatArray) -> FloatArray:
    """How far each client's update would go if it were like the others'.

    It is 0 if there are too few others, or if most of them did not move: there is no bound then.
    """
    if len(norms) <= _FEWEST:
        return np.zeros_like(norms)
    return np.maximum(_medians_of_others(norms), _medians_of_others(norms / steps) * steps)


def _medians_of_others(values: FloatArray) -> FloatArray:
    """For each value, the upper median of all others.

    In sorted order without one value, those behind it move up by one place.
    """
    order, middle = np.argsort(values), (len(values) - 1) // 2
    place = np.empty_like(order)
    place[order] = np.arange(len(values))
    ordered = values[order]
    found: FloatArray = np.where(middle < place, ordered[middle], ordered[middle + 1])
    return found


def _steps(training: TrainingTerms, samples: int) -> int:
    """How many local steps a client takes in a round on this many samples."""
    if training.local == "gradient step":
        return 1
    return max(1, ceil(samples / training.batch) * training.epochs)


@dataclass(frozen=True)
class RoundResult:
    """The result of a round."""

    contributions: dict[str, facts.Contribution]
    """Of each client whose reply is valid."""
    faults: list[facts.Fault]
    averaged: bool
    """Whether enough clients replied; if not, the model is unchanged."""
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
) -> RoundResult:
    """Average what came back of a model, if `needed` clients replied."""
    read, faults = take_replies(
        ask, replies, lambda name, reply: read_update(reply, samples[name], model)
    )
    good, too_long = _within_bounds(ask, read, terms)
    ordered = [good[name] for name in ask.contents if name in good]
    updates = [(one.samples, one.parameters) for one in ordered if one.parameters is not None]
    enough = len(ordered) >= needed and bool(updates)
    return RoundResult(
        contributions={name: _contribution(ask, name, update) for name, update in good.items()},
        faults=[*faults, *too_long],
        averaged=enough,
        model=average(updates) if enough else model,
        total=sum(count for count, _ in updates) if enough else 0,
    )


def _contribution(ask: Ask, name: str, update: Update) -> facts.Contribution:
    return facts.Contribution(
        slot=ask.slot,
        client=name,
        turn=ask.turn,
        samples=update.samples,
        norm=update.norm,
        update=None if update.parameters is None else digest(update.parameters),
    )


def _within_bounds(
    ask: Ask, read: dict[str, Update], terms: Terms
) -> tuple[dict[str, Update], list[facts.Fault]]:
    """The updates that are not too long, and a fault for each of the others."""
    moved = {name: u for name, u in read.items() if u.parameters is not None}
    lengths = {name: Length(update.samples, update.norm) for name, update in moved.items()}
    largest = largest_norms(terms, lengths)
    wrong = [name for name, length in lengths.items() if length.norm > largest[name]]
    faults = [
        facts.Fault(
            slot=ask.slot,
            client=name,
            stage=ask.stage,
            turn=ask.turn,
            reason=Reason.TOO_LONG,
            samples=lengths[name].samples,
            norm=lengths[name].norm,
        )
        for name in wrong
    ]
    return {name: update for name, update in read.items() if name not in wrong}, faults
