"""What the server asks and what clients answer, as records: every field has a form and a range.

Either side may be wrong, or lie. So both are read into these records, and what does not fit is
refused. They travel in the envelopes of `envelopes`.
"""

from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    model_validator,
)

from fedaccord.agreement.punishment import PunishmentName
from fedaccord.audits.commitment import Commitment
from fedaccord.audits.verdict import SignedVerdict
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.protocol.limits import MOST, MOST_CLIENTS, MOST_SAMPLES, Count
from fedaccord.protocol.standing import Standing
from fedaccord.protocol.terms import AgreementKind

FORMAT = 3
"""The version of everything below, of the facts in a ledger and of the notes in a copy."""

Stage = Literal["report", "rank", "clock", "offer", "train", "tier", "settle", "consent"]
Phase = Literal["cooperating", "punishing"]
BasisName = Literal["agreement", "equilibrium"]
VerdictName = Literal["kept", "deviation", "absence", "refused", "suspended"]

LAST_SLOT = 10**6
"""One slot per hour for a century."""
MOST_ENTRIES = 2**53
"""In a ledger."""
LONGEST_REASON = 500
"""Characters."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("cannot be shown")
    return text


Amount = Annotated[float, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""Of a model, unless another thing is named."""
Samples = Annotated[int, Field(ge=0, le=MOST_SAMPLES)]
Total = Annotated[int, Field(ge=0, le=MOST_SAMPLES * MOST_CLIENTS)]
ManySamples = Annotated[float, Field(ge=0, le=MOST_SAMPLES * MOST_CLIENTS)]
Turn = Annotated[int, Field(ge=0, le=MOST)]
"""Which question of its stage in the slot, from 1: the attempt at an agreement, the round of
training, the proposal. It is 0 for what is asked only once."""
SlotNumber = Annotated[int, Field(ge=0, le=LAST_SLOT)]
ShownHead = Annotated[
    tuple[Annotated[int, Field(ge=0, le=MOST_ENTRIES)], Digest], Field(strict=False)
]
"""The head of the server's ledger when it asked: the number and the digest of its last entry."""
Line = Annotated[str, Field(min_length=1, max_length=LONGEST_REASON), AfterValidator(_printable)]
"""Something for people to read."""


class Refusal(FedaccordError):
    """Why a client refuses a message from the server."""


class Content(BaseModel):
    """A record. A field with a default is left out of its JSON if it has that value."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    optional: ClassVar[tuple[str, ...]] = ()
    """Its fields with a default."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Its fields that are floats."""
    plain: ClassVar[bool] = False
    """Whether its JSON is simply its fields: all are required, and none is a record or a list."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        fields = cls.model_fields.items()
        cls.optional = tuple(name for name, field in fields if not field.is_required())
        cls.numbers = tuple(name for name, field in fields if _is_number(field.annotation))
        closed = cls.model_config.get("extra") == "forbid" and not cls.optional
        cls.plain = closed and all(_is_plain(field.annotation) for _, field in fields)

    @property
    def body(self) -> dict[str, Any]:
        """The record as JSON."""
        if self.plain:  # a question of each round to each client is
            return dict(self.__dict__)
        return self.model_dump(mode="json", exclude_defaults=True)


def _is_number(annotation: Any) -> bool:
    return annotation is float or any(map(_is_number, get_args(annotation)))


def _is_plain(annotation: Any) -> bool:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_plain(parts[0])
    if origin in (Union, UnionType):
        return all(map(_is_plain, parts))
    return origin is Literal or annotation in (str, int, float, bool, NoneType)


Part = TypeVar("Part", bound=Content)


def part(form: type[Part], whole: Content) -> Part:
    """The part of a record that is a record itself."""
    return form(**{name: getattr(whole, name) for name in form.model_fields})


# --- What a client is told -----------------------------------------------------------------


class Suspended(Content):
    """Why a client is suspended, and for how long still: from the slot after its slip on."""

    slipped_in: SlotNumber
    """The slot in which it deviated."""
    slots_left: Count | None
    """How many slots it is still out; None: for ever."""


Out: TypeAlias = dict[str, Suspended]
"""Who is suspended, in the order of the terms."""


class Motion(Content):
    """What is proposed: to go back to the model of a slot, or that a suspended client returns."""

    to_slot: SlotNumber | None = None
    model: Digest | None = None
    """Of that slot."""
    returns: str | None = None
    """The client whose suspension would end."""
    slipped_in: SlotNumber | None = None
    """The slot in which that client deviated."""

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        back = (self.to_slot is not None, self.model is not None)
        early = (self.returns is not None, self.slipped_in is not None)
        if back[0] != back[1] or early[0] != early[1] or back[0] == early[0]:
            raise ValueError("proposes nothing, or several things")
        return self

    @property
    def in_words(self) -> str:
        """What would be done."""
        if self.returns is not None:
            return f"let {self.returns} return, which slipped in slot {self.slipped_in}"
        which = f"the model of slot {self.to_slot}" if self.to_slot else "the first model"
        return f"go back to {which}"


class Placed(Content):
    """A client's place among all; see `standing`."""

    rank: Count
    clients: Count
    above: Total | None
    tied: Total | None

    @property
    def standing(self) -> Standing:
        """The same, to calculate with."""
        return Standing(self.rank, self.clients, self.above, self.tied)


class AskedReport(Content):
    """(1) Report ratio and samples; or only that the client is there, if the terms say so."""

    stage: ClassVar[Stage] = "report"
    phase: Phase
    suspended: Out
    """Who takes no part in this slot."""
    returned: list[str]
    """Whose suspension was ended early, after the last slot."""
    verdicts: list[SignedVerdict] | None = None
    """Auditors' verdicts that are still open, from which suspensions may follow, or their end."""


class AskedRank(Placed):
    """(2) Compute the client's own equilibrium contribution."""

    stage: ClassVar[Stage] = "rank"


class AskedClock(Content):
    """(2) Go on to the next share of everyone's samples, or stop at the one before it."""

    stage: ClassVar[Stage] = "clock"
    step: Count
    """The next share, in steps of the clock."""
    total: ManySamples
    """What everyone together would train on at the share before it."""
    inside: Total
    """The samples of the clients that have not stopped: the next step adds a part of them."""


class Offered(Content):
    """What is offered to a client, and the rules in the terms that it must follow."""

    contribution: Samples
    agreement: AgreementKind
    total: Total
    """What the client's model is trained on."""
    punishment: PunishmentName
    punishment_slots: Count | None
    tolerance: Annotated[float, Field(ge=0, lt=1)]
    rounds: Count


class AskedOffer(Placed, Offered):
    """(3) Accept an offer that was computed from reports, or refuse it."""

    stage: ClassVar[Stage] = "offer"
    equilibrium_total: ManySamples
    salt: Digest | None = None
    """As in the ledger: without it nobody can test guesses of that total by what is signed."""


class AskedPosted(Offered):
    """(3) Accept an amount that follows from the terms, or from a clock; or refuse it."""

    stage: ClassVar[Stage] = "offer"


class AskedTraining(Content):
    """(4) Train on the contribution that was accepted."""

    stage: ClassVar[Stage] = "train"
    basis: Literal["agreement"]
    contribution: Samples
    model: Digest


class AskedEquilibrium(Placed):
    """(4) Train on the client's own equilibrium contribution."""

    stage: ClassVar[Stage] = "train"
    basis: Literal["equilibrium"]
    contribution: Samples
    model: Digest


class AskedTier(Content):
    """(4) Take the model of the clients that stopped a serial clock first; the others go on."""

    stage: ClassVar[Stage] = "tier"
    model: Digest


class AskedSettlement(Content):
    """(5) Take note of the verdicts and of the next phase."""

    stage: ClassVar[Stage] = "settle"
    verdict: VerdictName
    agreed: Samples | None
    contributed: Samples | None
    rounds_absent: Turn
    deviated: list[str]
    absent: list[str]
    phase: Phase
    slots_left: Turn | None
    suspended: Out
    """Who takes no part in the next slot."""
    model: Digest | None


class AskedConsent(Motion):
    """Agree to what is proposed, or not."""

    stage: ClassVar[Stage] = "consent"
    reason: Line
    terms: Digest
    """Of the terms by which it is decided."""


Asked: TypeAlias = (
    AskedReport
    | AskedRank
    | AskedClock
    | AskedOffer
    | AskedPosted
    | AskedTraining
    | AskedEquilibrium
    | AskedTier
    | AskedSettlement
    | AskedConsent
)


# --- What a client answers -----------------------------------------------------------------


class PresenceAnswer(Content):
    """(1) That it is there, if nobody reports anything."""

    commitment: Commitment | None = None
    """To its records and its code, if the terms say that training is audited."""


class ReportAnswer(PresenceAnswer):
    """(1) The client's ratio rho/E, its samples, and its discount factor if it reveals it."""

    ratio: float
    samples: Samples
    discount_factor: float | None = None
    fees: float | None = None
    """(C + p)/E: what it saves while it is suspended, in its own samples, if it saves that."""


class RankAnswer(Content):
    """(2) Its equilibrium contribution."""

    contribution: Amount


class ClockAnswer(Content):
    """(2) Whether it goes on to the next share."""

    stays: bool


class OfferAnswer(Content):
    """(3) Whether it accepts."""

    accepts: bool


class TrainingAnswer(Content):
    """(4) How many samples it trained on; the parameters go along."""

    samples: Samples


class LateAnswer(Content):
    """(1) An earlier answer of the client's that the server did not take, as it was signed."""

    terms: Digest
    slot: SlotNumber
    stage: Stage
    turn: Turn
    ledger: ShownHead
    previous: Digest
    said: dict[str, Any]


MOST_LATE = 20
"""How many such answers a client sends along: the latest."""


class Receipt(Content):
    """(4, 5) That it took note, or the model."""


class ConsentAnswer(Content):
    """Whether it agrees."""

    agrees: bool


def check_reason(reason: str) -> str:
    """Check the reason for a proposal: one line that people can read."""
    if not reason.strip() or not reason.isprintable() or len(reason) > LONGEST_REASON:
        raise InvalidInput(f"the reason must be one line of 1 to {LONGEST_REASON} characters")
    return reason
