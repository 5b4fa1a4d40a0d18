"""The envelopes in which the protocol's records travel, and who signed what is in them.

The server signs each question, and the client each answer, if the terms have their keys. A question
shows the end of the server's ledger, and names the last statement of this client that the server
has; an answer names the question that it answers, both ends. So neither can be used elsewhere.
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError

from fedaccord.ledger.chain import Head
from fedaccord.protocol.keys import Signature
from fedaccord.protocol.messages import (
    FORMAT,
    LAST_SLOT,
    Asked,
    AskedClock,
    AskedConsent,
    AskedEquilibrium,
    AskedOffer,
    AskedPosted,
    AskedRank,
    AskedReport,
    AskedSettlement,
    AskedTier,
    AskedTraining,
    Content,
    Digest,
    Out,
    Refusal,
    ShownHead,
    Stage,
    Turn,
)
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.roster import At, Roster, Signer
from fedaccord.protocol.terms import Terms
from fedaccord.signing.canonical import canonical
from fedaccord.signing.statement import NOTHING, Statement

_FORMS: dict[str, type[Asked]] = {
    "report": AskedReport,
    "rank": AskedRank,
    "clock": AskedClock,
    "offer": AskedOffer,
    "tier": AskedTier,
    "settle": AskedSettlement,
    "consent": AskedConsent,
}
_BASES: dict[str, type[Asked]] = {"agreement": AskedTraining, "equilibrium": AskedEquilibrium}


class Place(Content):
    """Which question it is."""

    format: int
    stage: Stage
    slot: Annotated[int, Field(ge=1, le=LAST_SLOT)]
    turn: Turn
    token: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    ledger: ShownHead
    received: Digest = NOTHING
    """The digest of the last statement of this client that the server has: its receipt."""
    signature: Signature | None = None
    """The server's, on all of the question."""

    @property
    def head(self) -> Head:
        """The head of the server's ledger when it asked."""
        return Head(*self.ledger)

    @property
    def at(self) -> At:
        """When it is asked."""
        return At(self.slot, self.stage, self.turn, self.head)


class Question(NamedTuple):
    """A question as a client reads it."""

    place: Place
    content: Asked


@dataclass(frozen=True)
class Ask:
    """A question that the server puts to some clients at once."""

    stage: Stage
    slot: int
    turn: int
    head: Head
    """The head of the server's ledger; clients keep it."""
    contents: Mapping[str, Asked]
    """What each client is told."""
    parameters: Arrays | None = None
    """The model, when it is trained or handed out."""
    received: Mapping[str, str] = field(default_factory=dict)
    """The digest of the last statement of each client that the server has."""
    signer: Signer | None = None
    """Signs for the server, if the terms have its key."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Secret, so that nobody can compute another client's token."""

    def token(self, client: str) -> str:
        """Tells this question to this client from all others; a reply must repeat it."""
        content = canonical([self.stage, self.slot, self.turn, *self.head, client])
        return hmac.digest(self.secret, content.encode(), "sha256").hex()[:32]

    def sends_model(self, client: str) -> bool:
        """Whether the model goes to this client: it is told the digest of what it is sent."""
        told = getattr(self.contents[client], "model", None)
        return self.parameters is not None and told is not None

    def body(self, client: str) -> dict[str, Any]:
        """The complete body of the message to a client."""
        content = self.contents[client]
        place = Place(
            format=FORMAT,
            stage=self.stage,
            slot=self.slot,
            turn=self.turn,
            token=self.token(client),
            ledger=self.head,
            received=self.received.get(client, NOTHING),
        )
        body = place.body | content.body
        if self.signer is None:
            return body
        signature = asked_statement(self.signer.roster, client, place, content).sign(
            self.signer.key
        )
        return body | {"signature": signature}

    @property
    def at(self) -> At:
        """When it is asked."""
        return At(self.slot, self.stage, self.turn, self.head)


def asked_statement(roster: Roster, client: str, place: Place, content: Content) -> Statement:
    """What the server says when it asks this."""
    body = {"format": place.format, "token": place.token, "received": place.received}
    return roster.question(client, place.at, body | {"asks": content.body})


@dataclass(frozen=True)
class Reply:
    """What came back from a node, not examined yet."""

    node: int
    client: str | None
    """Whose node it is; None: nobody knows."""
    body: Any = None
    parameters: Mapping[str, Any] | None = field(default=None, repr=False)
    problem: str | None = None
    """What is wrong with the message as such, so that there is nothing to examine."""


def read_question(asked: Mapping[str, Any], terms: Terms) -> Question:
    """The question in a body; a refusal names the field that is wrong, but not its content."""
    form = _form_of(asked.get("stage"), asked.get("basis"), terms)
    if asked.get("format") != FORMAT:
        raise Refusal(f"the server does not use format {FORMAT} of the protocol, as this client")
    about = Place.model_fields.keys()
    try:
        place = Place.model_validate({key: asked[key] for key in about if key in asked})
        content = form.model_validate({k: v for k, v in asked.items() if k not in about})
    except ValidationError as error:
        raise _wrong(error.errors(include_input=False)[0]["loc"]) from None
    for key in ("deviated", "absent", "returned"):
        names = getattr(content, key, [])
        if len(set(names)) < len(names) or not set(names) <= set(terms.clients):
            raise _wrong((key,))
    if isinstance(content, AskedReport | AskedSettlement):
        _check_out(content.suspended, place.slot, terms)
    if isinstance(content, AskedConsent) and content.returns not in (None, *terms.clients):
        raise _wrong(("returns",))
    return Question(place, content)


def _check_out(suspended: Out, slot: int, terms: Terms) -> None:
    """Refuse suspensions that do not follow from the terms."""
    for name, one in suspended.items():
        if name not in terms.clients or not 1 <= one.slipped_in <= slot:
            raise _wrong(("suspended",))
        if one.slots_left != terms.still("suspension", one.slots_left):
            raise Refusal("the server suspends a client for longer than the terms say")


def _form_of(stage: Any, basis: Any, terms: Terms) -> type[Asked]:
    if stage == "offer" and terms.reports == "none":
        return AskedPosted
    if stage == "train":
        form = _BASES.get(basis) if isinstance(basis, str) else None
        if form is None:
            raise Refusal("only an agreement or the equilibrium can be played")
        return form
    form = _FORMS.get(stage) if isinstance(stage, str) else None
    if form is None:
        raise Refusal("this is not a question of the protocol")
    return form


def _wrong(place: tuple[int | str, ...]) -> Refusal:
    name = ".".join(map(str, place))[:40] or "content"
    return Refusal(f"the question's {name!r} is missing, or not what it should be")
