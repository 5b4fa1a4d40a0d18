"""What the server checks before it takes an answer: that the client signed it, for this question.

An answer that is not signed is refused like any other that cannot be right: what the server cannot
prove afterwards, it does not write down.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fedaccord.protocol import facts
from fedaccord.protocol.envelopes import Ask
from fedaccord.protocol.messages import MOST_LATE, LateAnswer
from fedaccord.protocol.reasons import Reason
from fedaccord.protocol.roster import At, Roster, said_to
from fedaccord.signing.statement import NOTHING, Statement


class ReplyRefused(Exception):
    """Why a reply is refused."""


def read_signed(
    ask: Ask, name: str, body: Mapping[str, Any], answer: Mapping[str, Any]
) -> facts.Signed | None:
    """The signature of a client on its answer; None if nobody signs."""
    if ask.signer is None:
        return None
    late = [one.signed.statement for one in read_late(ask, name, body)]
    said = said_to(ask.contents[name], answer, late)
    received = ask.received.get(name, NOTHING)
    statement = ask.signer.roster.answer(name, ask.at, said, received)
    return _checked(statement, ask.signer.roster, name, body.get("signature"), Reason.NOT_SIGNED)


def read_late(ask: Ask, name: str, body: Mapping[str, Any]) -> list[facts.Late]:
    """Earlier answers that a client sends along when a slot begins."""
    given = body.get("late", [])
    if ask.signer is None or given == []:
        return []
    if ask.stage != "report" or not isinstance(given, list) or len(given) > MOST_LATE:
        raise ReplyRefused(Reason.NOT_LATE)
    return [_late(ask, ask.signer.roster, name, one) for one in given]


def _late(ask: Ask, roster: Roster, name: str, given: Any) -> facts.Late:
    if not isinstance(given, dict):
        raise ReplyRefused(Reason.NOT_LATE)
    signature = given.get("signature")
    try:
        content = {key: value for key, value in given.items() if key != "signature"}
        answer = LateAnswer.model_validate(content)
    except ValidationError:
        raise ReplyRefused(Reason.NOT_LATE) from None
    if answer.slot > ask.slot:
        raise ReplyRefused(Reason.NOT_LATE)
    statement = late_statement(roster, name, answer)
    signed = _checked(statement, roster, name, signature, Reason.NOT_LATE)
    return facts.Late(slot=ask.slot, client=name, answers=answer, signed=signed)


def late_statement(roster: Roster, name: str, answer: LateAnswer) -> Statement:
    """What the client said then; it may have been under other terms, but with the same key."""
    head = (answer.ledger[0], answer.ledger[1])
    at = At(answer.slot, answer.stage, answer.turn, head)
    then = roster._replace(terms=answer.terms)
    return then.answer(name, at, answer.said, answer.previous)


def _checked(
    statement: Statement, roster: Roster, name: str, signature: Any, reason: Reason
) -> facts.Signed:
    try:
        signed = isinstance(signature, str) and statement.is_signed(
            roster.keys.clients[name], signature
        )
    except (ValueError, RecursionError):  # it cannot be written as JSON
        signed = False
    if not signed:
        raise ReplyRefused(reason)
    return facts.Signed(statement=statement.digest(signature), signature=signature)
