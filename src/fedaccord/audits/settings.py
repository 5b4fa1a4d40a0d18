"""What the terms say about audits: the table `[audits]`."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fedaccord.checks import composed
from fedaccord.signing.keys import PUBLIC, is_weak

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
_MOST = 1_000_000

Name = Annotated[str, AfterValidator(composed), Field(min_length=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
PublicKey = Annotated[str, Field(pattern=PUBLIC)]
Level = Literal[1, 2]
"""1: records are opened. 2: the drawn round is also trained again."""


class AuditTerms(BaseModel):
    """Who is audited, how, by whom, and by when.

    >>> auditors = {"Notary": "ed25519:" + "ab" * 32}
    >>> AuditTerms(probability=0.1, auditors=auditors).probability_of("St Mary")
    0.1
    """

    model_config = _STRICT
    probability: Probability | None = None
    """With which each client is audited in a slot."""
    probabilities: dict[Name, Probability] | None = None
    """Or for each client its own; who is not named is not audited."""
    per_slot: Annotated[int, Field(ge=1, le=_MOST)] | None = None
    """Or how many clients are audited in each slot."""
    level: Level = 2
    samples: int = Field(default=1, ge=1, le=_MOST)
    """How many records are opened."""
    steps: bool = False
    """Whether members keep a digest after each step of a round. Then a replay names the step in
    which a member's training went another way."""
    near: float = Field(default=0.0, ge=0, lt=1)
    """Two records are copies of each other if the root mean square of their differences, in
    standard deviations of each input, is at most this. 0: if they are equal."""
    copies: Probability = 0.0
    """The part of a member's records that may be copies of others."""
    auditors: dict[Name, PublicKey] = Field(min_length=1)
    """Who may sign verdicts, each with its public key."""
    due: int = Field(default=1, ge=1, le=_MOST)
    """How many more slots may be settled before a verdict comes too late. Members keep what they
    need for an audit as long."""
    attestations: dict[Name, dict[str, str]] = Field(default_factory=dict)
    """Kinds of evidence from elsewhere that may be attached to a contribution, each with the
    settings that its verifier needs, a notary's public key for example."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [self.probability, self.probabilities, self.per_slot]
        if given.count(None) != 2:
            raise ValueError("needs one of probability, probabilities and per_slot")
        if len(set(self.auditors.values())) < len(self.auditors):
            raise ValueError("two auditors have the same key: an appeal needs someone else")
        if any(map(is_weak, self.auditors.values())):
            raise ValueError("an auditor has a key for which anybody could sign")
        return self

    @property
    def named(self) -> set[str]:
        """The clients that have a probability of their own."""
        return set(self.probabilities or ())

    def probability_of(self, client: str) -> float:
        """With which probability a client is audited; 0 if only others are named."""
        if self.probabilities is not None:
            return self.probabilities.get(client, 0.0)
        return self.probability or 0.0
