"""What the room and members' local pages say to each other: JSON, in these forms.

Secrets (codes, tokens, tickets) are in bodies and headers only, never in an address.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from fedaccord.deployment.cards import Card, Digest, TermsSignature
from fedaccord.protocol.keys import PublicKey, Signature
from fedaccord.signing.canonical import canonical

State = Literal["new", "inviting", "signing", "signed"]
"""Of a room: not created yet; cards are missing; signatures are missing; everyone has signed."""


def login_content(*, address: str, room: str, client: str, challenge: str) -> bytes:
    """What a member signs to log in: it names the room and its address, so it fits no other."""
    said = {"address": address, "challenge": challenge, "client": client, "room": room}
    return b"fedaccord room login\n" + canonical(said).encode()


def confirmation_content(*, room: str, client: str, key: str) -> bytes:
    """What a member signs to confirm that a new key is another member's own."""
    return b"fedaccord new key\n" + canonical({"client": client, "key": key, "room": room}).encode()


def _storable(text: str) -> str:
    """PostgreSQL has no NUL in texts, and no database has half a surrogate pair."""
    if "\x00" in text:
        raise ValueError("must not contain the character NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be text that can be written as UTF-8") from None
    return text


Text = Annotated[str, AfterValidator(_storable)]
Secret = Annotated[Text, Field(min_length=1, max_length=200)]
Name = Annotated[Text, Field(min_length=1, max_length=500)]
CommentText = Annotated[Text, Field(min_length=1, max_length=5_000, pattern=r"\S")]
"""Not only blanks."""
TermsText = Annotated[Text, Field(min_length=1, max_length=2_000_000)]


class Asked(BaseModel):
    """What is sent to the room; anything that is not known is refused, and `true` is no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Told(BaseModel):
    """What the room answers."""

    model_config = ConfigDict(frozen=True)


class Problems(Told):
    """Why something was refused."""

    problems: list[str]


class RoomShown(Told):
    """Which room this is."""

    name: str
    """Empty as long as the room is not created."""
    address: str
    """Where it is reached, without a slash at the end; logging in signs it."""
    members: list[str]
    """Only for those who are logged in."""
    state: State


class CodeSent(Asked):
    """The code of an invitation: what is after # in its link."""

    code: Secret


class InvitationTold(Told):
    """Who is invited, and to what."""

    client: str
    invitation: str
    """TOML, as `Invitation.text` has it."""


class CardSent(Asked):
    """A member's card, with the code of its invitation, which is used up."""

    code: Secret
    card: Card


class CardTaken(Told):
    """What the member and the coordinator compare on the telephone."""

    fingerprint: str


class ConfirmationSent(Asked):
    """That a member has asked another one for the fingerprint of its new key, and it is this."""

    client: Name
    """Whose key it is."""
    key: PublicKey
    signature: Signature
    """Of whoever confirms it."""


class NewKey(Told):
    """A key with which a member replaced an earlier one."""

    client: str
    key: str
    at: str
    """When it came, in UTC."""
    counts: bool
    """Whether everyone who was asked has confirmed it."""
    confirmations: dict[str, str]
    """Signatures of other members, by their names."""
    confirmed_by: list[str]
    """Which of those who were asked have confirmed it."""
    missing: list[str]
    """Who has to confirm it before it counts."""


class NewKeys(Told):
    """All of them, of the members in the terms: of each the latest last."""

    keys: list[NewKey]


class ChallengeAsked(Asked):
    """Who wants to log in."""

    client: Name


class ChallengeTold(Told):
    """What is to be signed within two minutes, once."""

    challenge: str


class LoginSent(Asked):
    """A signed challenge."""

    client: Name
    challenge: Secret
    signature: Signature


class SessionTold(Told):
    """The token for `Authorization: Bearer TOKEN`."""

    token: str
    expires: str


class TicketTold(Told):
    """What opens the room in a browser, once and within a minute: ADDRESS/enter#TICKET."""

    ticket: str


class ToSign(Told):
    """The file to sign."""

    version: int | None
    """Of the terms; None as long as the room is not created."""
    text: str | None
    """TOML, as `to-sign.toml` has it; None as long as cards are missing."""
    why: str
    """Why there is no text; empty if there is."""
    signed: list[str]
    """Who has signed this version, and its agreement file if it has one."""
    missing: list[str]
    """Who has not."""


class SignaturesTold(Told):
    """Who has signed the version that is put forward, and who has not.

    A version that posts amounts is signed when its agreement file is signed as well.
    """

    version: int
    signed: list[str]
    missing: list[str]


class SignaturesGiven(Told):
    """The signatures themselves, so that each member can see for itself who signed what it signed.

    They are no secret: whoever has them can verify them, and do nothing else.
    """

    version: int | None
    """Of the terms; None as long as the room is not created."""
    signatures: list[TermsSignature]
    """On this version, in the order of the terms."""


class CommentSent(Asked):
    """What somebody says about a version of the terms."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]
    text: CommentText


class CommentTold(Told):
    """A comment."""

    number: int
    version: int
    role: Literal["member", "coordinator"]
    client: str | None
    """Whose it is; None: the coordinator's."""
    text: str
    at: str


class VersionTold(Told):
    """A version of the terms, without keys."""

    number: int
    text: str
    digest: str
    proposed_by: str
    note: str
    at: str
    signed: list[str]
    """Who signed this version."""
    changes: list[str]
    """What is different from the version before, in words."""


class TermsTold(Told):
    """All versions of the terms, the one that is put forward last, and what was said about them."""

    versions: list[VersionTold]
    comments: list[CommentTold]


class LedgerLines(Told):
    """Entries of the ledger, as `ledger export` writes them."""

    lines: list[str]
    next: int
    """The number to ask for next."""
    more: bool
    """Whether there are more entries already."""


class AgreementTold(Told):
    """The agreement file, if the terms say how much each member trains on."""

    version: int | None
    digest: str | None
    """Of the agreement, which members sign."""
    file: str | None
    """The page, with the signatures that are there."""
    why: str
    """Why there is no file; empty if there is."""
    signed: list[str]
    missing: list[str]


class AgreementSignatureSent(Asked):
    """A member's signature on the agreement file: `AgreementFile.statement_of` is signed."""

    agreement: Digest
    signature: Signature
