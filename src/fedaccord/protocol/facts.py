"""The entries of a server's ledger, as records: one class for each kind.

A ledger may have been written by anyone. An entry that does not have this form is not one of ours,
and nothing needs to be derived from it.

>>> read_fact(Fact("slot", 1, None, {"phase": "cooperating"}))
Slot(slot=1, phase='cooperating')
>>> read_fact(Fact("slot", 1, None, {"phase": "cooperating", "note": "hello"}))
Traceback (most recent call last):
...
fedaccord.protocol.forms.WrongForm: has an unknown key, note
>>> read_fact(Fact("slot", 1, "a", {"phase": "cooperating"}))
Traceback (most recent call last):
...
fedaccord.protocol.forms.WrongForm: is about a client, and should concern everyone
"""

from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, Field, model_validator

from fedaccord.agreement.punishment import PunishmentName
from fedaccord.audits.attestation import Attestation
from fedaccord.audits.verdict import Verdict as AuditVerdict
from fedaccord.ledger.chain import Fact
from fedaccord.protocol import terms as rules
from fedaccord.protocol.forms import WrongForm, check_format, read_as
from fedaccord.protocol.keys import Signature
from fedaccord.protocol.limits import Count
from fedaccord.protocol.messages import (
    FORMAT,
    Amount,
    BasisName,
    ClockAnswer,
    ConsentAnswer,
    Content,
    Digest,
    LateAnswer,
    Line,
    Motion,
    OfferAnswer,
    Out,
    Phase,
    Placed,
    PresenceAnswer,
    RankAnswer,
    ReportAnswer,
    Samples,
    Stage,
    Total,
    TrainingAnswer,
    Turn,
    VerdictName,
)
from fedaccord.protocol.terms import AgreementKind


class TypedFact(Content):
    """An entry. All its fields but `slot` and `client` are the body of what is written."""

    kind: ClassVar[str]
    slot: int

    @property
    def whom(self) -> str | None:
        """The client that it is about; None: it concerns everyone."""
        return getattr(self, "client", None)

    @property
    def body(self) -> dict[str, Any]:
        """The body as JSON."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"slot", "client"})

    @property
    def fact(self) -> Fact:
        """What is written to the ledger."""
        return Fact(self.kind, self.slot, self.whom, self.body)


class ClientFact(TypedFact):
    """Something that happened to one client."""

    client: str


class Signed(Content):
    """That an author signed what is written beside it."""

    statement: Digest
    """Of the statement and its signature together; the author's next one names it."""
    signature: Signature


class Said(ClientFact):
    """Something that a client said, signed by it if the terms have its key."""

    signed: Signed | None = None

    @property
    def said(self) -> dict[str, Any]:
        """The client's own words; what else stands in the entry is the server's."""
        words = {key: getattr(self, key) for key in SAID[self.kind]}
        return {
            key: value.model_dump(mode="json") if isinstance(value, BaseModel) else value
            for key, value in words.items()
        }


SAID = {
    "report": ("ratio", "samples", "discount_factor", "fees", "commitment"),
    "presence": ("commitment",),
    "rank": ("contribution",),
    "stay": ("stays",),
    "answer": ("accepts",),
    "contribution": ("samples", "update"),
    "consent": ("agrees",),
}
"""What a client says itself, in each kind of entry."""


class Terms(TypedFact):
    """The terms, from this slot on."""

    kind = "terms"
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    terms: rules.Terms

    @property
    def body(self) -> dict[str, Any]:
        """All rules, also those that are as by default."""
        return {"format": self.format, "terms": self.terms.model_dump(mode="json")}


class Model(TypedFact):
    """The model to begin with."""

    kind = "model"
    model: Digest


class Slot(TypedFact):
    """A slot begins."""

    kind = "slot"
    phase: Phase


class Report(Said, ReportAnswer):
    """What a client reported."""

    kind = "report"
    late: list[Digest] | None = None
    """Its earlier answers that the server did not take, which follow."""


class Presence(Said, PresenceAnswer):
    """A client is there; what it has is in the terms."""

    kind = "presence"
    late: list[Digest] | None = None
    """As in a report."""


class Late(ClientFact):
    """An answer that a client signed in an earlier slot, and that the server did not take then.

    Whether it came in time cannot be decided. But it cannot be said that there was none.
    """

    kind = "late"
    answers: LateAnswer
    signed: Signed


class Rank(Said, Placed, RankAnswer):
    """A client's place, and the equilibrium contribution that follows from it."""

    kind = "rank"


def late_in(fact: Said) -> list[str] | None:
    """Earlier answers that a client sent along with this."""
    # asked of the kind first: isinstance is slow where a pydantic class does not match
    if fact.kind in ("report", "presence") and isinstance(fact, Report | Presence):
        return fact.late
    return None


class Stay(Said, ClockAnswer):
    """Whether a client goes on to the next share of a clock."""

    kind = "stay"
    turn: Count


class Clock(TypedFact):
    """The share that a clock has come to, in its steps, and whether it ends there."""

    kind = "clock"
    turn: Count
    step: Turn
    over: bool


class Agreement(TypedFact):
    """An attempt at an agreement between those who are willing."""

    kind = "agreement"
    turn: Count
    agreement: AgreementKind
    exists: bool
    reason: Line | None
    total: Total | None
    equilibrium_total: Amount | None = None
    """None: nobody knows it without reports."""
    salt: Digest | None = None
    """A secret of the server's and the members', if the terms have keys.

    Observers see the digest of this entry, and may not read the total in it. With no salt they
    could try totals until the digest fits.
    """
    punishment: PunishmentName
    punishment_slots: Count | None


class Offer(ClientFact):
    """What the agreement asks of a client."""

    kind = "offer"
    turn: Count
    contribution: Samples


class Answer(Said, OfferAnswer):
    """A client's answer to its offer."""

    kind = "answer"
    turn: Count


class Basis(TypedFact):
    """What is played in this slot, and why."""

    kind = "basis"
    basis: BasisName
    reason: str | None
    contributions: dict[str, Samples]


class Contribution(Said, TrainingAnswer):
    """What a client trained on in a round, and the digest and the norm of its update."""

    kind = "contribution"
    turn: Count
    norm: Amount
    update: Digest | None


class Scored(NamedTuple):
    """How good a model is on test examples."""

    loss: float
    accuracy: float
    """The task's measure, whatever it is."""
    measure: str = "accuracy"
    """What it is called."""


class Round(TypedFact):
    """The end of a round."""

    kind = "round"
    turn: Count
    averaged: bool
    total: Total
    model: Digest
    loss: float | None = None
    """Of the new model on the server's test examples, if it has any; so are the next two."""
    accuracy: float | None = None
    """Or what else the task is measured by."""
    measure: Line | None = None
    """The name of that: accuracy, or concordance for survival times."""

    @model_validator(mode="after")
    def _all_of_a_score(self) -> "Round":
        known = [one is not None for one in (self.loss, self.accuracy, self.measure)]
        if any(known) and not all(known):
            raise ValueError("has only a part of a loss, an accuracy and the name of its measure")
        return self

    @property
    def score(self) -> Scored | None:
        """What the server measured, if it has test examples: its own word, which nobody checks."""
        if self.loss is None or self.accuracy is None or self.measure is None:
            return None
        return Scored(self.loss, self.accuracy, self.measure)


class Handed(TypedFact):
    """Which clients of a tier received the model that it ends with."""

    kind = "handed"
    turn: Count
    clients: list[str]
    receipts: dict[str, Signed] | None = None
    """What each of them signed, with the digest of the model that it received."""


class Absence(ClientFact):
    """A client did not answer, or its reply was refused."""

    kind = "absence"
    stage: Stage
    turn: Turn


class Fault(TypedFact):
    """A reply was refused: of a client, or of a node that belongs to no client."""

    kind = "fault"
    client: str | None
    stage: Stage
    turn: Turn
    reason: str
    node: Annotated[int, Field(ge=0, lt=2**64)] | None = None
    samples: Samples | None = None
    """Of an update that is too long, as is the next."""
    norm: Amount | None = None


class Verdict(ClientFact):
    """What a client contributed against what it was to contribute."""

    kind = "verdict"
    verdict: VerdictName
    agreed: Samples | None
    contributed: Samples | None
    rounds_absent: Turn


class Settlement(TypedFact):
    """The end of a slot, and the phase of the next one and who is suspended in it."""

    kind = "settlement"
    void: bool
    basis: BasisName | None
    total: Total
    phase: Phase
    slots_left: Turn | None
    suspended: Out


class Told(TypedFact):
    """Which clients received the settlement."""

    kind = "told"
    clients: list[str]
    receipts: dict[str, Signed] | None = None
    """What each of them signed, with the digest of the model that it received."""


class Proposal(TypedFact, Motion):
    """Something that takes the clients' consent was proposed."""

    kind = "proposal"
    turn: Count
    reason: Line


class Consent(Said, ConsentAnswer):
    """A client's answer to a proposal."""

    kind = "consent"
    turn: Count


class Decision(TypedFact, Motion):
    """What came of a proposal."""

    kind = "decision"
    turn: Count
    accepted: bool


class Audit(ClientFact):
    """An auditor's verdict on the training of a client in a slot that was drawn."""

    kind = "audit"
    verdict: AuditVerdict
    signature: Signature


class Attested(ClientFact):
    """Evidence from elsewhere, which a client attached to its contribution in a slot."""

    kind = "attestation"
    attested: Count
    """The slot."""
    attestation: Attestation
    signature: Signature
    """Of the client."""


class Seal(TypedFact):
    """The server's signature on its ledger up to the entry before this."""

    kind = "seal"
    signature: Signature


FORMS: dict[str, type[TypedFact]] = {
    form.kind: form
    for form in (
        *(Terms, Model, Slot, Report, Presence, Rank, Stay, Clock, Absence, Fault, Late, Seal),
        *(Agreement, Offer, Answer, Basis),
        *(Contribution, Round, Handed, Verdict, Settlement, Told, Proposal, Consent, Decision),
        *(Audit, Attested),
    )
}
"""The form of each kind of entry."""
KINDS = tuple(FORMS)


_OF_CLIENTS = {kind for kind, form in FORMS.items() if issubclass(form, ClientFact)}


def read_fact(fact: Fact) -> TypedFact:
    """The record in an entry of a server's ledger."""
    kind, client = fact.kind, fact.client
    form = FORMS.get(kind)
    if form is None:
        raise WrongForm("is of an unknown kind")
    if kind in _OF_CLIENTS and client is None:
        raise WrongForm("is about nobody")
    if kind in _OF_CLIENTS or kind == "fault":  # a fault may be of a node that belongs to nobody
        return read_as(form, fact, {"slot": fact.slot, "client": client})
    if client is not None:
        raise WrongForm("is about a client, and should concern everyone")
    if kind == "terms":
        check_format(fact)
    return read_as(form, fact, {"slot": fact.slot})
