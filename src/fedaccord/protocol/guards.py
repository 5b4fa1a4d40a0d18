"""What the server refuses, how far an update may go, and the average of what is left.

Flower's FedAvg believes whatever it is told; this does not. A reply that is refused becomes a fault
in the ledger. Its client counts as absent, and the others continue.

A single update of huge but finite numbers would ruin the average for good. So an update is judged
by its norm, the Euclidean length of what it adds to the model, against those of the others in the
same round. The robust bound is `FACTOR` times the median of the others' norms, or of their norms
per local step times the client's own steps if that is more: a client that trains on more samples
takes more steps, and may go further. (It is the upper median, so it takes half of the others to
move it.) With fewer than two others there is nobody to compare with, and no bound.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import ValidationError

from fedaccord.audits.commitment import Commitment
from fedaccord.numbers import FloatArray
from fedaccord.protocol import facts
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.limits import MOST_SAMPLES, RATIOS
from fedaccord.protocol.messages import (
    ClockAnswer,
    ConsentAnswer,
    OfferAnswer,
    PresenceAnswer,
    RankAnswer,
    ReportAnswer,
)
from fedaccord.protocol.parameters import Arrays, average, digest, distance, unlike
from fedaccord.protocol.reasons import Reason
from fedaccord.protocol.receiving import ReplyRefused, read_signed
from fedaccord.protocol.terms import SAME_EQUILIBRIUM, Terms

PROBLEMS = {
    "refusal": Reason.REFUSES,
    "failure": Reason.FAILED,
}
"""What a client may say instead of an answer. It gives no details, which might reveal too much."""

Read = TypeVar("Read")


def take_replies(
    ask: Ask, replies: Sequence[Reply], read: Callable[[str, Reply], Read]
) -> tuple[dict[str, Read], list[facts.Fault]]:
    """The valid replies, by client, and the faults of the others.

    If a client replies several times, its first valid reply counts.
    """
    good: dict[str, Read] = {}
    faults = []
    for reply in replies:
        try:
            name = _sender(ask, reply)
            _check_place(ask, name, reply.body)
            if name in good:
                raise ReplyRefused(Reason.DUPLICATE)
            good[name] = read(name, reply)
        except ReplyRefused as fault:
            faults.append(_fault(ask, reply, str(fault)))
    return good, faults


def _fault(ask: Ask, reply: Reply, reason: str) -> facts.Fault:
    return facts.Fault(
        slot=ask.slot,
        client=reply.client,
        stage=ask.stage,
        turn=ask.turn,
        reason=reason,
        node=reply.node if reply.client is None else None,
    )


def _sender(ask: Ask, reply: Reply) -> str:
    if reply.problem is not None:
        raise ReplyRefused(reply.problem)
    if reply.client is None:
        raise ReplyRefused(Reason.UNKNOWN_NODE)
    if reply.client not in ask.contents:
        raise ReplyRefused(Reason.NOT_ASKED)
    return reply.client


def _check_place(ask: Ask, name: str, body: Any) -> None:
    """It must answer this question."""
    if not isinstance(body, Mapping):
        raise ReplyRefused(Reason.NO_CONTENT)
    for field, wanted in (("slot", ask.slot), ("stage", ask.stage), ("turn", ask.turn)):
        given = body.get(field)
        if type(given) is not type(wanted) or given != wanted:
            raise ReplyRefused(Reason.OTHER_PLACE.format(place=field))
    if body.get("token") != ask.token(name):
        raise ReplyRefused(Reason.REPLAYED)
    if "problem" in body:
        raise ReplyRefused(PROBLEMS.get(str(body["problem"]), Reason.WENT_WRONG))


# --- What is in a reply --------------------------------------------------------------------


def whole(body: Mapping[str, Any], field: str, most: int) -> int:
    """A count: a whole number from 0 to `most`, and nothing that only looks like one."""
    value = body.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ReplyRefused(Reason.NOT_A_COUNT.format(field=field))
    if value < 0:
        raise ReplyRefused(Reason.NEGATIVE.format(field=field))
    if value > most:
        raise ReplyRefused(Reason.ABOVE.format(field=field, most=most))
    return value


def number(body: Mapping[str, Any], field: str) -> float:
    """A finite number."""
    value = body.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReplyRefused(Reason.NO_NUMBER.format(field=field))
    try:
        value = float(value)
    except OverflowError:
        raise ReplyRefused(Reason.BEYOND_NUMBERS.format(field=field)) from None
    if not isfinite(value):
        raise ReplyRefused(Reason.NOT_FINITE.format(field=field))
    return value


def read_report(body: Mapping[str, Any]) -> ReportAnswer:
    """Ratio, samples, and what else a client reveals."""
    ratio, samples = number(body, "ratio"), whole(body, "samples", MOST_SAMPLES)
    told = body.get("discount_factor") is not None
    delta = number(body, "discount_factor") if told else None
    fees = number(body, "fees") if body.get("fees") is not None else None
    return check_report(
        ReportAnswer(
            ratio=ratio,
            samples=samples,
            discount_factor=delta,
            fees=fees,
            commitment=_commitment(body),
        )
    )


def read_presence(body: Mapping[str, Any]) -> PresenceAnswer:
    """That a client is there, and what it commits to."""
    return PresenceAnswer(commitment=_commitment(body))


def _commitment(body: Mapping[str, Any]) -> Commitment | None:
    given = body.get("commitment")
    try:
        return None if given is None else Commitment.model_validate(given)
    except ValidationError:
        raise ReplyRefused(Reason.NO_COMMITMENT) from None


def check_commitment(answer: PresenceAnswer, samples: int, terms: Terms) -> None:
    """Check that a client commits to all its samples if training is audited, and only then."""
    committed = answer.commitment
    if (committed is not None) != (terms.audits is not None):
        raise ReplyRefused(Reason.NO_COMMITMENT)
    if committed is not None and committed.records < samples:
        raise ReplyRefused(Reason.NO_COMMITMENT)


def check_report(report: ReportAnswer) -> ReportAnswer:
    """Check that everything that follows from a report can be computed."""
    if not RATIOS[0] <= report.ratio <= RATIOS[1]:
        least, most = (f"{end:g}" for end in RATIOS)
        raise ReplyRefused(Reason.OUT_OF_RANGE.format(field="ratio", least=least, most=most))
    if report.samples == 0:
        raise ReplyRefused(Reason.NO_SAMPLES)
    if report.discount_factor is not None and not 0 <= report.discount_factor < 1:
        raise ReplyRefused(Reason.OUT_OF_RANGE.format(field="discount_factor", least=0, most=1))
    if report.fees is not None and not 0 <= report.fees <= RATIOS[1]:
        most = f"{RATIOS[1]:g}"
        raise ReplyRefused(Reason.OUT_OF_RANGE.format(field="fees", least=0, most=most))
    return report


def read_rank(body: Mapping[str, Any], expected: float, samples: int) -> RankAnswer:
    """The client's own equilibrium contribution."""
    contribution = number(body, "contribution")
    check_equilibrium(contribution, expected, samples)
    return RankAnswer(contribution=contribution)


def check_equilibrium(contribution: float, expected: float, samples: int) -> None:
    """Check an equilibrium contribution, which the server can compute as well."""
    if abs(contribution - expected) > SAME_EQUILIBRIUM * samples:
        raise ReplyRefused(Reason.OTHER_EQUILIBRIUM)


def read_clock(body: Mapping[str, Any]) -> ClockAnswer:
    """Whether the client goes on."""
    return ClockAnswer(stays=_bool(body, "stays"))


def read_answer(body: Mapping[str, Any]) -> OfferAnswer:
    """Whether the client accepts."""
    return OfferAnswer(accepts=_bool(body, "accepts"))


def read_consent(body: Mapping[str, Any]) -> ConsentAnswer:
    """Whether the client agrees to a rollback."""
    return ConsentAnswer(agrees=_bool(body, "agrees"))


def _bool(body: Mapping[str, Any], field: str) -> bool:
    value = body.get(field)
    if not isinstance(value, bool):
        raise ReplyRefused(Reason.NOT_A_BOOL.format(field=field))
    return value


class Update(NamedTuple):
    """The result of a client's training in a round."""

    samples: int
    parameters: Arrays | None = None
    """None: it trained on nothing."""
    norm: float = 0.0
    """How far it moved the model."""
    digest: str | None = None
    """Of the parameters."""
    signed: facts.Signed | None = None


def read_update(ask: Ask, name: str, reply: Reply, samples: int, model: Arrays) -> Update:
    """How many samples a client trained on, and the parameters if it trained; all signed."""
    update = _read_update(reply, samples, model)
    answer = {"samples": update.samples, "update": update.digest}
    return update._replace(signed=read_signed(ask, name, reply.body, answer))


def _read_update(reply: Reply, samples: int, model: Arrays) -> Update:
    count = whole(reply.body, "samples", samples)
    if count == 0:
        return Update(0)
    if reply.parameters is None:
        raise ReplyRefused(Reason.NO_PARAMETERS)
    if not all(isinstance(array, np.ndarray) for array in reply.parameters.values()):
        raise ReplyRefused(Reason.NO_ARRAY)
    if (difference := unlike(reply.parameters, model)) is not None:
        raise ReplyRefused(difference)
    parameters = {name: reply.parameters[name] for name in model}
    norm = distance(parameters, model)
    if not isfinite(norm):
        raise ReplyRefused(Reason.ENDLESS_UPDATE)
    return Update(count, parameters, norm, digest(parameters))


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
    steps = terms.training.steps_on([length.samples for length in lengths.values()])
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


@dataclass(frozen=True)
class RoundResult:
    """The result of a round."""

    contributions: dict[str, facts.Contribution]
    """Of each client whose reply is valid."""
    faults: list[facts.Fault]
    average: Arrays | None
    """Of the clients' models; None: too few clients replied."""
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
        ask, replies, lambda name, reply: read_update(ask, name, reply, samples[name], model)
    )
    good, too_long = _within_bounds(ask, read, terms)
    ordered = [good[name] for name in ask.contents if name in good]
    updates = [(one.samples, one.parameters) for one in ordered if one.parameters is not None]
    enough = len(ordered) >= needed and bool(updates)
    return RoundResult(
        contributions={name: _contribution(ask, name, update) for name, update in good.items()},
        faults=[*faults, *too_long],
        average=average(updates) if enough else None,
        total=sum(count for count, _ in updates) if enough else 0,
    )


def _contribution(ask: Ask, name: str, update: Update) -> facts.Contribution:
    return facts.Contribution(
        slot=ask.slot,
        client=name,
        turn=ask.turn,
        samples=update.samples,
        norm=update.norm,
        update=update.digest,
        signed=update.signed,
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
