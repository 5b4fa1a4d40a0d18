"""What each kind of entry holds: its keys, and the form and range of what stands in them.

A ledger may have been written by anyone. What does not have this form is no entry of ours, and
nothing needs to be worked out from it.

>>> wrong_form(Fact("slot", 1, None, {"phase": "cooperating"}))
>>> wrong_form(Fact("slot", 1, None, {"phase": "cooperating", "note": "hello"}))
'has an unknown key, note'
>>> wrong_form(Fact("slot", 1, "a", {"phase": "cooperating"}))
'is about a client, and should concern everyone'
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fedaccord.ledger.chain import Fact
from fedaccord.protocol.asked import LAST_SLOT, MOST_ENTRIES, Digest, Place, Samples, Total
from fedaccord.protocol.messages import LONGEST_REASON, Stage
from fedaccord.protocol.state import Basis, Phase
from fedaccord.protocol.terms import MOST

Turn = Annotated[int, Field(ge=0, le=MOST)]
Slots = Annotated[int, Field(ge=0, le=LAST_SLOT)]
Verdict = Literal["kept", "deviation", "absence", "refused"]
Amount = Annotated[float, Field(ge=0)]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("cannot be shown")
    return text


Line = Annotated[str, Field(min_length=1, max_length=LONGEST_REASON), AfterValidator(_printable)]
"""For people to read."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Empty(_Body):
    """Of those kinds that follow from others: what is in them is compared with what should be."""

    model_config = ConfigDict(extra="allow")


# --- The server's ledger -------------------------------------------------------------------


class _Terms(_Body):
    terms: dict[str, Any]


class _Model(_Body):
    digest: Digest


class _Slot(_Body):
    phase: Phase


class _Report(_Body):
    ratio: float
    samples: Samples
    discount_factor: float = 0.0


class _Placed(_Body):
    rank: Place
    clients: Place
    above: Total | None
    tied: Total | None


class _Rank(_Placed):
    contribution: Amount


class _Agreement(_Body):
    attempt: Place
    kind: Literal["individual", "uniform"]
    exists: bool
    reason: Line | None
    total: Total | None
    equilibrium_total: Amount
    punishment_slots: Place | None


class _Offer(_Body):
    attempt: Place
    contribution: Samples


class _Answer(_Body):
    attempt: Place
    accepts: bool


class _Contribution(_Body):
    round: Place
    samples: Samples
    norm: Amount
    update: Digest | None


class _Round(_Body):
    round: Place
    averaged: bool
    total: Total
    digest: Digest


class _Absence(_Body):
    stage: Stage
    turn: Turn


class _Fault(_Absence):
    reason: str
    node: Annotated[int, Field(ge=0, lt=2**64)] = 0
    samples: Samples = 0
    norm: Amount = 0.0


class _Told(_Body):
    clients: list[str]


class _Proposal(_Body):
    turn: Place
    to_slot: Slots
    digest: Digest
    reason: Line


class _Consent(_Body):
    turn: Place
    agrees: bool


_OF_ALL: Mapping[str, type[_Body]] = {
    "terms": _Terms,
    "model": _Model,
    "slot": _Slot,
    "agreement": _Agreement,
    "basis": _Empty,
    "round": _Round,
    "settlement": _Empty,
    "told": _Told,
    "proposal": _Proposal,
    "rollback": _Empty,
}
_OF_CLIENTS: Mapping[str, type[_Body]] = {
    "report": _Report,
    "rank": _Rank,
    "offer": _Offer,
    "answer": _Answer,
    "contribution": _Contribution,
    "absence": _Absence,
    "verdict": _Empty,
    "consent": _Consent,
}


def wrong_form(fact: Fact) -> str | None:
    """What is wrong with the form of an entry in a server's ledger, if anything."""
    if fact.kind == "fault":  # about a client, or a node of nobody
        return _mistake(_Fault, fact.body)
    if (form := _OF_ALL.get(fact.kind)) is not None:
        if fact.client is not None:
            return "is about a client, and should concern everyone"
        return _mistake(form, fact.body)
    if (form := _OF_CLIENTS.get(fact.kind)) is None:
        return "is of an unknown kind"
    return "is about nobody" if fact.client is None else _mistake(form, fact.body)


# --- A client's copy -----------------------------------------------------------------------


class _Noted(_Body):
    """What every entry of a copy has."""

    turn: Turn
    ledger: tuple[Annotated[int, Field(ge=0, le=MOST_ENTRIES)], Digest] = Field(strict=False)


class _NotedReport(_Noted, _Report):
    terms: Digest


class _NotedRank(_Noted, _Placed):
    pass


class _NotedOffer(_Noted, _Placed):
    contribution: Samples
    kind: Literal["individual", "uniform"]
    total: Total
    equilibrium_total: Amount
    punishment_slots: Place | None
    tolerance: float = Field(ge=0, lt=1)
    rounds: Place


class _NotedAnswer(_Noted):
    accepts: bool


class _NotedContribution(_Noted):
    basis: Basis
    contribution: Samples
    model: Digest
    samples: Samples
    update: Digest | None
    norm: Amount
    rank: Place | None = None
    """At the equilibrium, like the next three."""
    clients: Place | None = None
    above: Total | None = None
    tied: Total | None = None


class _NotedSettlement(_Noted):
    verdict: Verdict
    agreed: Samples | None
    contributed: Samples | None
    rounds_absent: Turn
    deviated: list[str]
    absent: list[str]
    phase: Phase
    slots_left: Turn | None
    model: Digest | None


class _NotedConsent(_Noted):
    agrees: bool
    to_slot: Slots
    digest: Digest
    reason: Line


_OF_COPIES: Mapping[str, type[_Body]] = {
    "report": _NotedReport,
    "rank": _NotedRank,
    "offer": _NotedOffer,
    "answer": _NotedAnswer,
    "contribution": _NotedContribution,
    "settlement": _NotedSettlement,
    "consent": _NotedConsent,
}


def wrong_note(fact: Fact) -> str | None:
    """What is wrong with the form of an entry in a client's copy, if anything."""
    if fact.client is None or (form := _OF_COPIES.get(fact.kind)) is None:
        return "is no entry of a client's copy"
    return _mistake(form, fact.body)


def _mistake(form: type[_Body], body: Mapping[str, Any]) -> str | None:
    try:
        form.model_validate(body)
    except ValidationError as error:
        mistake = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(map(str, mistake["loc"]))[:40]
        if mistake["type"] == "extra_forbidden":
            return f"has an unknown key, {key}"
        if mistake["type"] == "missing":
            return f"has no {key}"
        return f"has something else for {key} than belongs there"
    return None
