"""Slots that were played, and forgeries of what was written down about them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from fedaccord.ledger.chain import START, Entry, Fact, extend
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import Content, Refusal
from fedaccord.protocol.roster import Roster
from fedaccord.protocol.terms import Terms
from tests.flower.consortia import (
    NOON,
    START_MODEL,
    Clients,
    key_of,
    keys_of,
    ledger_at,
    privates_of,
    run,
    server_key,
    terms_of,
)

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES)
SUSPENDING = terms_of(NAMES, punishment="suspension")
SIGNED = terms_of(NAMES, keys=keys_of(NAMES))


def told(
    path: Path,
    slots: int = 1,
    lie: Callable[[Ask], Ask] = lambda ask: ask,
    terms: Terms = TERMS,
) -> tuple[list[Entry], Clients]:
    """Some slots, b slips in the first; the clients are asked what `lie` makes of the question."""
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 0})
    clients = Clients(terms, privates)

    def replies(ask: Ask) -> list[Reply]:
        given = []
        for name in ask.contents:
            with suppress(Refusal):
                given.append(clients.reply(name, lie(ask)))
        return given

    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL, server_key(terms)), replies, slots)
        return list(ledger.entries()), clients


def rewritten(
    entries: list[Entry], forge: Callable[[Fact], Fact | list[Fact] | None]
) -> list[Entry]:
    """The whole chain rebuilt with other facts: no digest in it is wrong."""
    facts: list[Fact] = []
    for entry in entries:
        forged = forge(entry.fact)
        facts += forged if isinstance(forged, list) else [forged] if forged else []
    return list(extend(START, facts, NOON))


def resealed(
    entries: list[Entry],
    forge: Callable[[Fact], Fact | list[Fact] | None],
    terms: Terms = SIGNED,
) -> list[Entry]:
    """The same by a server that signs what it forged: it has its own key, and nobody else's."""
    roster, made, head = Roster.of(terms), list[Entry](), START
    assert roster is not None
    for entry in entries:
        forged = forge(entry.fact)
        for fact in forged if isinstance(forged, list) else [forged] if forged else []:
            if fact.kind == "seal":
                signature = roster.seal(fact.slot, head).sign(key_of("the server"))
                fact = fact._replace(body={"signature": signature})  # noqa: PLW2901
            made += extend(head, [fact], NOON)
            head = made[-1].head
    return made


class Anything(Content):
    """What a server of ours never tells."""

    model_config = ConfigDict(extra="allow")


def telling(ask: Ask, *clients: str, **content: Any) -> Ask:
    """The same question, but these clients are told something else."""
    told: dict[str, Any] = {
        name: Anything(**{**ask.contents[name].body, **content}) for name in clients
    }
    return replace(ask, contents={**ask.contents, **told})


def instead(
    kind: str, slot: int, client: str | None = None, /, **content: Any
) -> Callable[[Fact], Fact]:
    def forge(fact: Fact) -> Fact:
        if (fact.kind, fact.slot) == (kind, slot) and client in (None, fact.client):
            return fact._replace(body={**fact.body, **content})
        return fact

    return forge


def left_out(kind: str, slot: int, client: str | None = None) -> Callable[[Fact], Fact | None]:
    def forge(fact: Fact) -> Fact | None:
        gone = (fact.kind, fact.slot) == (kind, slot) and client in (None, fact.client)
        return None if gone else fact

    return forge


def inserted(
    *facts: Fact, after: str, slot: int, client: str | None = None, turn: int = 1
) -> Callable[[Fact], list[Fact]]:
    def forge(fact: Fact) -> list[Fact]:
        here = (fact.kind, fact.slot, fact.client) == (after, slot, client)
        return [fact, *facts] if here and fact.body.get("turn", turn) == turn else [fact]

    return forge


def twice(kind: str, slot: int, client: str | None = None) -> Callable[[Fact], list[Fact]]:
    def forge(fact: Fact) -> list[Fact]:
        return [fact] * (2 if (fact.kind, fact.slot, fact.client) == (kind, slot, client) else 1)

    return forge
