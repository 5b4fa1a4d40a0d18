"""What the server refuses. Flower's FedAvg believes whatever it is told; this does not.

A reply that is refused is a fault in the ledger. Its client counts as absent, the others go on.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fedaccord.ledger.chain import Fact
from fedaccord.protocol.messages import Ask, Reply
from fedaccord.protocol.parameters import Arrays, distance, unlike
from fedaccord.protocol.reasons import Reason
from fedaccord.protocol.terms import MOST_SAMPLES, RATIOS

PROBLEMS = {
    "refusal": Reason.REFUSES,
    "failure": Reason.FAILED,
}
"""What a client may say instead of an answer. It gives no reasons, which might tell too much."""
_CLOSE = 1e-6
"""Two machines may round differently."""

Read = TypeVar("Read")


class Fault(Exception):
    """Why a reply is refused."""


def take_replies(
    ask: Ask, replies: Sequence[Reply], read: Callable[[str, Reply], Read]
) -> tuple[dict[str, Read], list[Fact]]:
    """The replies that are what was asked for, by client, and the faults of the others.

    Of several replies of one client the first good one counts.
    """
    good: dict[str, Read] = {}
    faults = []
    for reply in replies:
        try:
            name = _sender(ask, reply)
            _check_place(ask, name, reply.body)
            if name in good:
                raise Fault(Reason.DUPLICATE)
            good[name] = read(name, reply)
        except Fault as fault:
            faults.append(_fact(ask, reply, str(fault)))
    return good, faults


def _fact(ask: Ask, reply: Reply, reason: str) -> Fact:
    body: dict[str, Any] = {"stage": ask.stage, "turn": ask.turn, "reason": reason}
    if reply.client is None:
        body["node"] = reply.node
    return Fact("fault", ask.slot, reply.client, body)


def _sender(ask: Ask, reply: Reply) -> str:
    if reply.problem is not None:
        raise Fault(reply.problem)
    if reply.client is None:
        raise Fault(Reason.UNKNOWN_NODE)
    if reply.client not in ask.bodies:
        raise Fault(Reason.NOT_ASKED)
    return reply.client


def _check_place(ask: Ask, name: str, body: Any) -> None:
    """It must answer this question of this slot and round."""
    if not isinstance(body, Mapping):
        raise Fault(Reason.NO_CONTENT)
    for field, wanted in (("slot", ask.slot), ("stage", ask.stage), ("turn", ask.turn)):
        given = body.get(field)
        if type(given) is not type(wanted) or given != wanted:
            word = "round" if field == "turn" and ask.stage == "train" else field
            raise Fault(Reason.OTHER_PLACE.format(place=word))
    if body.get("token") != ask.token(name):
        raise Fault(Reason.REPLAYED)
    if "problem" in body:
        raise Fault(PROBLEMS.get(str(body["problem"]), Reason.WENT_WRONG))


# --- What is in a reply --------------------------------------------------------------------


def whole(body: Mapping[str, Any], field: str, most: int) -> int:
    """A count: a whole number from 0 to `most`, and nothing that only looks like one."""
    value = body.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Fault(Reason.NOT_A_COUNT.format(field=field))
    if value < 0:
        raise Fault(Reason.NEGATIVE.format(field=field))
    if value > most:
        raise Fault(Reason.ABOVE.format(field=field, most=most))
    return value


def number(body: Mapping[str, Any], field: str) -> float:
    """A finite number."""
    value = body.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Fault(Reason.NO_NUMBER.format(field=field))
    try:
        value = float(value)
    except OverflowError:
        raise Fault(Reason.BEYOND_NUMBERS.format(field=field)) from None
    if not isfinite(value):
        raise Fault(Reason.NOT_FINITE.format(field=field))
    return value


def read_report(body: Mapping[str, Any]) -> dict[str, Any]:
    """Ratio, samples, and the discount factor of a client that tells it."""
    ratio = number(body, "ratio")
    if not RATIOS[0] <= ratio <= RATIOS[1]:
        least, most = (f"{end:g}" for end in RATIOS)
        raise Fault(Reason.OUT_OF_RANGE.format(field="ratio", least=least, most=most))
    samples = whole(body, "samples", MOST_SAMPLES)
    if samples == 0:
        raise Fault(Reason.NO_SAMPLES)
    report = {"ratio": ratio, "samples": samples}
    if body.get("discount_factor") is not None:
        delta = number(body, "discount_factor")
        if not 0 <= delta < 1:
            raise Fault(Reason.OUT_OF_RANGE.format(field="discount_factor", least=0, most=1))
        report["discount_factor"] = delta
    return report


def read_equilibrium(body: Mapping[str, Any], expected: float, samples: int) -> float:
    """The client's own equilibrium contribution, which the server can work out as well."""
    value = number(body, "contribution")
    if abs(value - expected) > _CLOSE * samples:
        raise Fault(Reason.OTHER_EQUILIBRIUM)
    return value


def read_answer(body: Mapping[str, Any]) -> bool:
    """Whether it accepts."""
    accepts = body.get("accepts")
    if not isinstance(accepts, bool):
        raise Fault(Reason.NOT_A_BOOL.format(field="accepts"))
    return accepts


class Update(NamedTuple):
    """What came of a client's training in a round."""

    samples: int
    parameters: Arrays | None = None
    """None: it trained on nothing."""
    norm: float = 0.0
    """How far it moved the model."""


def read_update(reply: Reply, samples: int, model: Arrays) -> Update:
    """How many samples a client trained on, and the parameters if there were any."""
    count = whole(reply.body, "samples", samples)
    if count == 0:
        return Update(0)
    if reply.parameters is None:
        raise Fault(Reason.NO_PARAMETERS)
    if not all(isinstance(array, np.ndarray) for array in reply.parameters.values()):
        raise Fault(Reason.NO_ARRAY)
    if (difference := unlike(reply.parameters, model)) is not None:
        raise Fault(difference)
    parameters = {name: reply.parameters[name] for name in model}
    norm = distance(parameters, model)
    if not isfinite(norm):
        raise Fault(Reason.ENDLESS_UPDATE)
    return Update(count, parameters, norm)


def read_consent(body: Mapping[str, Any]) -> bool:
    """Whether it agrees to a rollback."""
    agrees = body.get("agrees")
    if not isinstance(agrees, bool):
        raise Fault(Reason.NOT_A_BOOL.format(field="agrees"))
    return agrees
