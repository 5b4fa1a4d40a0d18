"""A quick way to verify what most entries of a long ledger are: counts of samples in a round.

It takes a count only if everything about it is right. Whatever else there is goes the usual way
(`verifier`), which then says what is wrong. That both come to the same is a test.
"""

import re
from hashlib import sha256

from fedaccord.ledger.chain import Chain, Entry
from fedaccord.protocol import facts
from fedaccord.protocol.rounds import most_of, part_of, tier_now
from fedaccord.protocol.signatures import Latest
from fedaccord.protocol.verifier import Verifier
from fedaccord.signing.statement import NOTHING

_COUNT = re.compile(
    r'\{"norm":([0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-][0-9]{1,3})?),"samples":([1-9][0-9]{0,11}),'
    r'(?:"signed":\{"signature":"([0-9a-f]{128})","statement":"([0-9a-f]{64})"\},)?'
    r'"turn":([1-9][0-9]{0,8}),"update":"([0-9a-f]{64})"\}'
)
"""The text of such an entry: its keys in their order, and no spelling but the canonical one."""


def took_count(verifier: Verifier, chain: Chain, entry: Entry) -> bool:
    """Whether this entry is a count that is right; then it is taken note of."""
    question, state = verifier.question, verifier.state
    if question is None or question.stage != "train" or verifier.expected or verifier.late:
        return False
    if state.current.basis != "agreement" or verifier.signatures.every:
        return False
    slot, name, text = entry.slot, entry.client, entry.text
    if (type(slot), type(name), type(text)) != (int, str, str) or name is None:
        return False
    found = _COUNT.fullmatch(text)
    if found is None or repr(float(found[1])) != found[1] or name not in question.contents:
        return False
    fact = _fact(slot, name, found)
    if (slot, fact.turn) != (question.slot, question.turn):
        return False
    if name in verifier.heard or name in verifier.too_long:
        return False
    if fact.samples > most_of(state.current, state.rules, name):
        return False
    if (fact.signed is None) != (state.roster is None):
        return False
    latest = None
    if fact.signed is not None:
        latest, digest = _signed(verifier, fact, fact.signed.signature)
        if digest != fact.signed.statement:
            return False
    if not chain.follow_quickly(entry):
        return False
    verifier.take_count(fact, latest)
    return True


def _fact(slot: int, name: str, found: re.Match[str]) -> facts.Contribution:
    """The record."""
    norm, samples, signature, digest, turn, update = found.groups()
    signed = None
    if signature is not None:
        signed = facts.Signed(signature=signature, statement=digest)
    return facts.Contribution(
        slot=slot,
        client=name,
        samples=int(samples),
        signed=signed,
        turn=int(turn),
        norm=float(norm),
        update=update,
    )


def _signed(verifier: Verifier, fact: facts.Contribution, signature: str) -> tuple[Latest, str]:
    """What the client signed if it said this, and the digest of that."""
    state, name = verifier.state, fact.client
    slot, terms, roster, model = state.current, state.rules, state.roster, state.model
    assert roster is not None
    amount = part_of(slot, terms, name, tier_now(slot, terms))
    asked = f'{{"basis":"agreement","contribution":{amount},"model":"{model}"}}'
    question = sha256(asked.encode()).hexdigest()
    body = (
        f'{{"answer":{{"samples":{fact.samples},"update":"{fact.update}"}},"model":"{model}",'
        f'"question":"{question}"}}'
    )
    statement = roster.answer(name, verifier.asked_at, {}, state.received.get(name, NOTHING))
    content = statement.content_with(body)
    digest = sha256(content + bytes.fromhex(signature)).hexdigest()
    about = f"{name} in train of slot {fact.slot}"
    return Latest(content, signature, roster.keys.clients[name], about), digest
