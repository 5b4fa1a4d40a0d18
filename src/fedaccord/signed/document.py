"""What an agreement file says, besides the terms: numbers, ranges, profile, certificate.

It is JSON in canonical form. Its digest is what every party signs; the digests of the terms and of
the page are in it, so nothing in the file is outside of what is signed, save the signatures.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from fedaccord.protocol.limits import MOST_CLIENTS

FORMAT = "fedaccord agreement 1"
"""The format of the file, which every verifier must know."""

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pair = Annotated[list[list[float]], Field(min_length=2, max_length=2)]
"""The lowest of each client, and the highest."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable")
    return text


Text = Annotated[str, Field(max_length=2_000), AfterValidator(_printable)]
"""What people read, on one line."""


class ClientNumbers(BaseModel):
    """What the proof assumes of a client."""

    model_config = _STRICT
    name: Text
    valuation: float
    cost_per_sample: float
    samples: float
    discount_factor: float
    communication_cost: float


class Numbers(BaseModel):
    """What the proof assumes of all clients."""

    model_config = _STRICT
    shared: bool
    """Whether these are the clients' own numbers, in money. If not they are the lowest ones that
    the terms post, with costs counted in samples of each client."""
    currency: Text
    """What costs are counted in; empty if it was not said."""
    slot: Text
    """How long a slot is; empty if it was not said."""
    clients: tuple[ClientNumbers, ...] = Field(strict=False, min_length=1, max_length=MOST_CLIENTS)


class RangesOfNumbers(BaseModel):
    """The lowest and highest that numbers may be, in the order of the clients."""

    model_config = _STRICT
    valuation: Pair
    cost_per_sample: Pair
    samples: Pair
    discount_factor: Pair
    observed: list[float] | None
    """What each client trained on when there was no agreement, if that was seen."""


class Amount(BaseModel):
    """What a client does, and what it saves by that."""

    model_config = _STRICT
    name: Text
    contribution: int = Field(ge=0)
    """What it trains on in each slot."""
    without: float | None
    """What it would train on without an agreement; null if its own numbers are not shared."""
    saving: float | None
    """What it saves in each slot compared with no agreement; null if its own numbers are not
    shared, or the cost there is infinite."""


class Profile(BaseModel):
    """What is agreed."""

    model_config = _STRICT
    total: int = Field(ge=0)
    total_without: float | None
    """Null if the numbers are not shared."""
    clients: tuple[Amount, ...] = Field(strict=False)


class Proof(BaseModel):
    """Why one client keeps to the agreement."""

    model_config = _STRICT
    name: Text
    gain: float
    """What its best slip would save it, once."""
    saving: float | None
    """What the agreement saves it in each slot of the punishment; null: infinitely much."""
    threshold: float
    """The smallest discount factor with which it keeps to the agreement."""
    slack: float
    """Its discount factor minus the threshold."""


class CertificateSaid(BaseModel):
    """What the certificate said when the file was made."""

    model_config = _STRICT
    holds: Literal[True]
    """Nobody is asked to sign an agreement that does not hold."""
    over_ranges: bool
    """Whether it was proved for all combinations of numbers within the ranges."""
    smallest_discount_factor: float
    worst_client: Text
    assumptions: tuple[Text, ...] = Field(strict=False)
    """What is assumed and not proved, in sentences."""
    clients: tuple[Proof, ...] = Field(strict=False)


class Page(BaseModel):
    """The digests of what a reader sees."""

    model_config = _STRICT
    main: Digest
    """Of the text of the page."""
    shell: Digest
    """Of everything around it: style, and the program that checks the page."""


class Document(BaseModel):
    """An agreement, as it is signed."""

    model_config = _STRICT
    format: Literal["fedaccord agreement 1"]
    made_on: Text
    made_with: Text
    terms: Digest
    numbers: Numbers
    ranges: RangesOfNumbers | None
    profile: Profile
    certificate: CertificateSaid
    page: Page


Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class Signatures(BaseModel):
    """Who signed which agreement."""

    model_config = _STRICT
    agreement: Digest
    clients: dict[str, Signature]
    server: Signature | None
