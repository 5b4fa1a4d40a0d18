"""Asks the room, as the member: everything that leaves this machine for it leaves from here.

The room may be down, slow, wrong or hostile. So an answer has a largest size and a longest time,
redirects are not followed, and everything is read into records. Only the public halves of keys,
signatures and comments are ever sent.
"""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from fedaccord.console.member.links import is_here
from fedaccord.console.room import wire
from fedaccord.deployment.cards import Card, TermsSignature
from fedaccord.errors import FedaccordError
from fedaccord.signing.keys import Key, is_signed

SECONDS = 20.0
"""In which an answer must be complete."""
LARGEST = 16 * 1024 * 1024
"""Bytes of an answer."""
_MOST_PROBLEMS, _LONGEST_PROBLEM = 5, 300
"""Of what a room says when it refuses something."""

Answer = TypeVar("Answer", bound=BaseModel)


class RoomTrouble(FedaccordError):
    """Why the room did not do what it was asked, in a sentence."""

    def __init__(self, message: str, status: int | None = None) -> None:
        """`status` is that of its answer, if it gave one."""
        super().__init__(message)
        self.status = status


class KeyRefused(RoomTrouble):
    """The room does not let the member in with its key, although it had taken its card."""

    def __init__(self, client: str) -> None:
        """`client` is the member."""
        super().__init__(
            f"the room does not accept your key: it now has another card under the name {client}, "
            "or you are no longer in its terms. If you did not ask for new keys, somebody else may "
            "speak in your name there: call the coordinator and the other members, and read out "
            "your fingerprint",
            401,
        )


class RoomClient:
    """One room, as one member or somebody who was invited to be one."""

    def __init__(self, address: str, authority: Path | None = None) -> None:
        """`authority` is a certificate to trust besides those that everybody trusts."""
        self.address = address
        self._authority = authority
        self._token: str | None = None

    # --- Before there is a key that the room knows -------------------------------------------

    def shown(self) -> wire.RoomShown:
        """Which room this is."""
        told = self._ask("GET", "/api/room", wire.RoomShown)
        if told.address.rstrip("/") != self.address:
            raise RoomTrouble(
                f"the room at {self.address} says that it is at {told.address}: ask the "
                "coordinator for a link with the right address"
            )
        return told

    def invitation(self, code: str) -> wire.InvitationTold:
        """Who is invited with this code, and to what; the code is not used up."""
        sent = wire.CodeSent(code=code)
        return self._ask("POST", "/api/invitation", wire.InvitationTold, sent)

    def send_card(self, code: str, card: Card) -> wire.CardTaken:
        """Send a card, which uses the code up."""
        sent = wire.CardSent(code=code, card=card)
        return self._ask("POST", "/api/cards", wire.CardTaken, sent)

    # --- As the member -----------------------------------------------------------------------

    def as_member(self, room: str, client: str, key: Key) -> "MemberRoom":
        """The room for a member that it knows by this key."""
        return MemberRoom(self, room, client, key)

    def log_in(self, room: str, client: str, key: Key) -> None:
        """Sign a challenge, which names the address that we know and no other."""
        asked = wire.ChallengeAsked(client=client)
        challenge = self._ask("POST", "/api/challenge", wire.ChallengeTold, asked).challenge
        content = wire.login_content(
            address=self.address, room=room, client=client, challenge=challenge
        )
        sent = wire.LoginSent(client=client, challenge=challenge, signature=key.sign(content))
        try:
            self._token = self._ask("POST", "/api/login", wire.SessionTold, sent).token
        except RoomTrouble as trouble:
            if trouble.status == 401:
                raise KeyRefused(client) from None
            raise

    @property
    def is_logged_in(self) -> bool:
        """Whether there is a token, which may have expired."""
        return self._token is not None

    def forget(self) -> None:
        """Log in again before the next question."""
        self._token = None

    # --- One question ------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, form: type[Answer], sent: BaseModel | None = None
    ) -> Answer:
        """A question as whoever is logged in."""
        return self._ask(method, path, form, sent, token=self._token)

    def _ask(
        self,
        method: str,
        path: str,
        form: type[Answer],
        sent: BaseModel | None = None,
        token: str | None = None,
    ) -> Answer:
        headers = {"Accept": "application/json"}
        content = None
        if sent is not None:
            content = sent.model_dump_json().encode()
            headers["Content-Type"] = "application/json"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            status, answer = asyncio.run(self._exchange(method, path, content, headers))
        except TimeoutError:
            raise RoomTrouble(f"the room at {self.address} did not answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise RoomTrouble(self._unreachable(error)) from None
        if status >= 300:
            raise RoomTrouble(_refusal(status, answer), status)
        try:
            return form.model_validate_json(answer)
        except ValidationError:
            raise RoomTrouble(
                f"what is at {self.address} gave an answer that no room gives"
            ) from None

    async def _exchange(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        here = is_here(httpx.URL(self.address).host)
        async with (
            asyncio.timeout(SECONDS),
            httpx.AsyncClient(
                verify=self._trusted(),
                follow_redirects=False,
                timeout=SECONDS,
                trust_env=not here,  # a proxy is for what is elsewhere
            ) as client,
            client.stream(
                method, self.address + path, content=content, headers=headers
            ) as response,
        ):
            found = bytearray()
            async for part in response.aiter_bytes():
                found += part
                if len(found) > LARGEST:
                    raise RoomTrouble(f"the room at {self.address} sent more than it should")
            return response.status_code, bytes(found)

    def _trusted(self) -> ssl.SSLContext | bool:
        if not self.address.startswith("https:"):
            return True
        return trusting(self._authority)

    def _unreachable(self, error: Exception) -> str:
        reason = str(error).lower()
        if "certificate" in reason or "ssl" in reason:
            return (
                f"the room at {self.address} did not prove with a certificate that this machine "
                "trusts that it is the one at that address"
            )
        return f"the room at {self.address} cannot be reached at the moment"


def trusting(authority: Path | None) -> ssl.SSLContext:
    """What this machine trusts, and besides that one certificate, if it is one."""
    trusted = httpx.create_ssl_context()
    if authority is not None:
        try:
            trusted.load_verify_locations(cafile=authority)
        except (OSError, ssl.SSLError):
            raise RoomTrouble(f"{authority}: is not a certificate (PEM)") from None
    return trusted


def _refusal(status: int, answer: bytes) -> str:
    """What a room said when it refused, or what its status means."""
    if 300 <= status < 400:
        return "the room wants to send us elsewhere, which is not followed"
    try:
        said = wire.Problems.model_validate_json(answer).problems
    except ValidationError:
        said = []
    texts = [one[:_LONGEST_PROBLEM] for one in said[:_MOST_PROBLEMS] if one.strip()]
    if texts:
        return "the room says: " + "; ".join(texts)
    return f"the room refused it (status {status})"


class MemberRoom:
    """The room as a member sees it; logs in when that is needed."""

    def __init__(self, client: RoomClient, room: str, name: str, key: Key) -> None:
        """`room` is the consortium's name, which a login names."""
        self._client, self._room, self._name, self._key = client, room, name, key

    def to_sign(self) -> wire.ToSign:
        """The file to sign, if it is there."""
        return self._ask("GET", "/api/to-sign", wire.ToSign)

    def send_signature(self, signature: TermsSignature) -> wire.SignaturesTold:
        """Send what was signed here."""
        return self._ask("POST", "/api/signatures", wire.SignaturesTold, signature)

    def signatures(self) -> tuple[TermsSignature, ...]:
        """Everybody's signatures on what is put forward."""
        given = self._ask("GET", "/api/signatures", wire.SignaturesGiven)
        return tuple(given.signatures)

    def terms(self) -> wire.TermsTold:
        """All versions, and what was said about them."""
        return self._ask("GET", "/api/terms", wire.TermsTold)

    def comment(self, version: int, text: str) -> wire.CommentTold:
        """Say something about a version."""
        sent = wire.CommentSent(version=version, text=text)
        return self._ask("POST", "/api/comments", wire.CommentTold, sent)

    def ledger(self, first: int) -> wire.LedgerLines:
        """Entries of the server's ledger, from this one on."""
        return self._ask("GET", f"/api/ledger?first={first}", wire.LedgerLines)

    def agreement(self) -> wire.AgreementTold:
        """The agreement file, if there is one."""
        return self._ask("GET", "/api/agreement", wire.AgreementTold)

    def sign_agreement(self, digest: str, signature: str) -> wire.AgreementTold:
        """Send the signature on an agreement file."""
        sent = wire.AgreementSignatureSent(agreement=digest, signature=signature)
        return self._ask("POST", "/api/agreement/signatures", wire.AgreementTold, sent)

    def new_keys(self) -> wire.NewKeys:
        """Keys that replace earlier ones, and who has confirmed them."""
        return self._ask("GET", "/api/new-keys", wire.NewKeys)

    def confirm_key(self, client: str, key: str) -> wire.NewKeys:
        """Give this member's word that a new key is another member's own."""
        content = wire.confirmation_content(room=self._room, client=client, key=key)
        signature = self._key.sign(content)
        sent = wire.ConfirmationSent(client=client, key=key, signature=signature)
        return self._ask("POST", "/api/new-keys", wire.NewKeys, sent)

    def has_confirmed(self, new: wire.NewKey) -> bool:
        """Whether this member gave its word; its own signature proves it, whoever tells it."""
        content = wire.confirmation_content(room=self._room, client=new.client, key=new.key)
        signature = new.confirmations.get(self._name, "")
        return is_signed(self._key.public, signature, content)

    def ticket(self) -> str:
        """What opens the room in a browser, once."""
        return self._ask("POST", "/api/tickets", wire.TicketTold).ticket

    def is_known(self) -> bool:
        """Whether the room knows this member by its key, and lets it in."""
        try:
            self._client.log_in(self._room, self._name, self._key)
        except RoomTrouble as trouble:
            if trouble.status is None:
                raise
            return False
        return True

    def _ask(
        self, method: str, path: str, form: type[Answer], sent: BaseModel | None = None
    ) -> Answer:
        def once() -> Answer:
            if not self._client.is_logged_in:
                self._client.log_in(self._room, self._name, self._key)
            return self._client.ask(method, path, form, sent)

        return self._again_if_expired(once)

    def _again_if_expired(self, once: Callable[[], Answer]) -> Answer:
        had_token = self._client.is_logged_in
        try:
            return once()
        except RoomTrouble as trouble:
            if trouble.status != 401 or not had_token:
                raise
        self._client.forget()
        return once()
