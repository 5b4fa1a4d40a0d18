"""What the server asks, as a client reads it: every field of a known form and within a range.

A server may be wrong, or lie. What does not have this form is refused, and nothing of it is stored.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import Head
from fedaccord.protocol.messages import LONGEST_REASON
from fedaccord.protocol.standing import Standing
from fedaccord.protocol.state import Phase
from fedaccord.protocol.terms import MOST, MOST_CLIENTS, MOST_SAMPLES, Terms

LAST_SLOT = 10**6
"""A slot an hour for a century."""
MOST_ENTRIES = 2**53
"""Of a ledger."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Samples = Annotated[int, Field(ge=0, le=MOST_SAMPLES)]
Total = Annotated[int, Field(ge=0, le=MOST_SAMPLES * MOST_CLIENTS)]
Place = Annotated[int, Field(ge=1, le=MOST)]


class Refusal(FedaccordError):
    """A message of the server's that a client does not go along with."""


class _Question(BaseModel):
    """What every question has."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    about: ClassVar[tuple[str, ...]] = ("stage", "slot", "turn", "token", "ledger")
    slot: int = Field(ge=1, le=LAST_SLOT)
    turn: int = Field(ge=0, le=MOST)
    token: str = Field(pattern=r"^[0-9a-f]{32}$")
    ledger: tuple[Annotated[int, Field(ge=0, le=MOST_ENTRIES)], Digest] = Field(strict=False)

    @property
    def head(self) -> Head:
        """The server's ledger when it asked."""
        return Head(*self.ledger)

    @property
    def content(self) -> dict[str, Any]:
        """What the client is told, beside which question it is."""
        return {k: v for k, v in self.model_dump(mode="json").items() if k not in self.about}


class AskedReport(_Question):
    """(1) Report ratio and samples."""

    stage: Literal["report"]
    phase: Phase


class _Placed(_Question):
    rank: Place
    clients: Place
    above: Total | None
    tied: Total | None

    @property
    def standing(self) -> Standing:
        """The client's place among all."""
        return Standing(self.rank, self.clients, self.above, self.tied)


class AskedRank(_Placed):
    """(2) Work out one's equilibrium contribution."""

    stage: Literal["rank"]


class AskedOffer(_Placed):
    """(3) Accept an offer, or not."""

    stage: Literal["offer"]
    contribution: Samples
    kind: Literal["individual", "uniform"]
    total: Total
    equilibrium_total: float = Field(ge=0, le=MOST_SAMPLES * MOST_CLIENTS)
    punishment_slots: Place | None
    tolerance: float = Field(ge=0, lt=1)
    rounds: Place


class AskedTraining(_Question):
    """(4) Train on what was accepted."""

    stage: Literal["train"]
    basis: Literal["agreement"]
    contribution: Samples
    model: Digest


class AskedEquilibrium(_Placed):
    """(4) Train on what suits one at the equilibrium."""

    stage: Literal["train"]
    basis: Literal["equilibrium"]
    contribution: Samples
    model: Digest


class AskedSettlement(_Question):
    """(5) Take note of the verdicts and the phase to come."""

    stage: Literal["settle"]
    verdict: Literal["kept", "deviation", "absence", "refused"]
    agreed: Samples | None
    contributed: Samples | None
    rounds_absent: int = Field(ge=0, le=MOST)
    deviated: list[str]
    absent: list[str]
    phase: Phase
    slots_left: int | None = Field(ge=0, le=MOST)
    model: Digest | None

    @field_validator("deviated", "absent")
    @classmethod
    def _of_the_terms(cls, names: list[str], info: ValidationInfo) -> list[str]:
        known = set((info.context or {}).get("clients", ()))
        if len(set(names)) < len(names) or not set(names) <= known:
            raise ValueError("names clients that are not in the terms")
        return names


class AskedConsent(_Question):
    """Agree to go back to an older model, or not."""

    stage: Literal["consent"]
    to_slot: int = Field(ge=0, le=LAST_SLOT)
    digest: Digest
    reason: str = Field(min_length=1, max_length=LONGEST_REASON)

    @field_validator("reason")
    @classmethod
    def _printable(cls, reason: str) -> str:
        if not reason.isprintable():
            raise ValueError("cannot be shown")
        return reason


Asked = (
    AskedReport
    | AskedRank
    | AskedOffer
    | AskedTraining
    | AskedEquilibrium
    | AskedSettlement
    | AskedConsent
)
_FORMS: dict[str, type[Asked]] = {
    "report": AskedReport,
    "rank": AskedRank,
    "offer": AskedOffer,
    "settle": AskedSettlement,
    "consent": AskedConsent,
}
_BASES: dict[str, type[Asked]] = {"agreement": AskedTraining, "equilibrium": AskedEquilibrium}


def read_question(asked: Mapping[str, Any], terms: Terms) -> Asked:
    """The question in a body; a refusal says which field is wrong, and nothing of what is in it."""
    stage, basis = asked.get("stage"), asked.get("basis")
    if stage == "train":
        form = _BASES.get(basis) if isinstance(basis, str) else None
        if form is None:
            raise Refusal("there is an agreement to play, or the equilibrium, and nothing else")
    else:
        form = _FORMS.get(stage) if isinstance(stage, str) else None
        if form is None:
            raise Refusal("this is no question of the protocol")
    try:
        return form.model_validate(dict(asked), context={"clients": terms.clients})
    except ValidationError as error:
        field = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))[:40]
        raise Refusal(f"the question's {field!r} is missing, or not what it should be") from None
