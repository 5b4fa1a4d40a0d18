"""The server's directory `app`, brought into line with the room's database.

The database is what counts. Files follow it: after every change, and whenever the room starts, so
that a room that was killed between the two goes on as if nothing had happened.
"""

import datetime
import logging
import threading
from pathlib import Path

import fedaccord
from fedaccord.atomic import WholeFile, write_together
from fedaccord.console.room.records import Snapshot, ToSignRow
from fedaccord.console.room.store import Store
from fedaccord.console.web.rules import posts_amounts
from fedaccord.deployment.admission import SIGNATURES, replace_app
from fedaccord.deployment.app_directory import INVITATION, MEMBERS, TO_SIGN, app_terms
from fedaccord.deployment.cards import signatures_text
from fedaccord.deployment.invitation import Invitation, host_of, load_invitation, without_keys
from fedaccord.deployment.new_directory import folder_names
from fedaccord.deployment.processes import listens
from fedaccord.deployment.server import register_members, reload_proxy, superlink_address
from fedaccord.errors import FedaccordError
from fedaccord.flower.fab import app_digest
from fedaccord.protocol.keys import Keys
from fedaccord.protocol.terms import CLOCKS, FROM_REPORTS, Terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.signed.drafting import draft_agreement
from fedaccord.signed.signatures import sign_agreement
from fedaccord.signing.keys import load_key

_LOG = logging.getLogger(__name__)
_CHANGED = "the app on the server is another one"


class Alignment:
    """Writes the files of one room; one thread at a time."""

    def __init__(self, app: Path, store: Store) -> None:
        """`app` is the server's directory, `store` what counts."""
        self._app, self._store = app, store
        self._lock = threading.Lock()
        self.trouble = ""
        """Why the files could not be written the last time; empty if they were."""

    @property
    def server_key(self) -> str:
        """The server's public key, which no member may have."""
        return load_key(self._app / "keys" / "signing.key").public

    def align(self) -> None:
        """Write what is missing or different. What was asked for is done, even if this fails."""
        try:
            with self._lock:
                self._align()
            self.trouble = ""
        except (FedaccordError, OSError) as error:
            self.trouble = str(error)
            _LOG.warning("the files in %s could not be brought into line: %s", self._app, error)

    def _align(self) -> None:
        now = self._store.snapshot()
        if now.current is None:
            return
        terms = self._terms(now)
        fresh = self._write(self._files(now, terms))
        if terms.keys is not None:
            self._offer(now, terms)
        if self._app / "keys" / "members.pem" in fresh:
            self._tell_server()

    def _terms(self, now: Snapshot) -> Terms:
        """The terms that are put forward, with everybody's keys as soon as they are there."""
        assert now.current is not None
        terms = now.current.terms
        if now.without_card:
            return terms
        clients = {name: now.cards[name].card.signing_key for name in now.clients}
        return terms.model_copy(update={"keys": Keys(server=self.server_key, clients=clients)})

    def _files(self, now: Snapshot, terms: Terms) -> dict[Path, str]:
        """What the files should say, but for the file to sign, which depends on them."""
        app, plain = self._app, folder_names(now.clients)
        invitation = load_invitation(app / INVITATION)
        files = {
            app_terms(app): terms_text(terms),
            app / INVITATION: Invitation(without_keys(terms), invitation.server).text,
        }
        for name in now.clients:
            if name in now.cards:
                card = now.cards[name].card
                files[app / MEMBERS / f"{plain[name]}.json"] = card.model_dump_json(indent=1)
                files[app / MEMBERS / f"{plain[name]}.pub"] = f"{card.node_key}\n"
        assert now.current is not None
        signed = now.signatures.get(now.current.number, {})
        for name in now.signed_terms:
            path = app / MEMBERS / f"{plain[name]}.signature.json"
            files[path] = signed[name].model_dump_json(indent=1)
        files[app / SIGNATURES] = signatures_text(signed[name] for name in now.signed_terms)
        if terms.keys is not None:
            files[app / "keys" / "members.pem"] = "".join(
                now.cards[name].card.certificate for name in now.clients
            )
        return files

    def _write(self, files: dict[Path, str]) -> set[Path]:
        """Write the files that say something else, together; returns which."""
        wanted = {path: text for path, text in files.items() if _content(path) != text.encode()}
        write_together([WholeFile(path, [text.encode()]) for path, text in wanted.items()])
        return set(wanted)

    def _offer(self, now: Snapshot, terms: Terms) -> None:
        """Keep the file to sign; if it is another one than before, that is a new version."""
        assert now.current is not None
        digest = app_digest(self._app)
        invitation = Invitation(terms, load_invitation(self._app / INVITATION).server)
        number = now.current.number
        text = replace_app(invitation, digest, number).text
        row = ToSignRow(number, text, terms.digest, digest)
        if now.to_sign is not None and now.to_sign != row:
            self._store.propose_again(now.current.number, _CHANGED)
            self._align_again()
            return
        if posts_amounts(terms) and self._store.agreement() is None:
            self._draft(now.current.number, terms)  # first, since both are signed in one step
        if now.to_sign is None:
            self._store.put_to_sign(row)
        self._write({self._app / TO_SIGN: text})

    def _align_again(self) -> None:
        now = self._store.snapshot()
        if now.to_sign is None:  # of the version that was put forward just now
            self._align()

    def _draft(self, version: int, terms: Terms) -> None:
        """Make the agreement file, with the server's signature."""
        made = draft_agreement(
            terms,
            None,
            made_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
            made_with=f"fedaccord {fedaccord.__version__}",
        )
        signed = sign_agreement(made, load_key(self._app / "keys" / "signing.key"))
        self._store.put_agreement(version, signed.digest, signed.content.decode())

    def _tell_server(self) -> None:
        """Let a running server know of new members."""
        if reload_proxy(self._app) and listens(*host_of(superlink_address(self._app))):
            register_members(self._app)


def no_agreement_file(terms: Terms) -> str:
    """Why there is no agreement file for these terms; empty if there is one."""
    if posts_amounts(terms):
        return ""
    how = (
        "a clock finds the amounts in each slot"
        if terms.agreement in CLOCKS
        else "the amounts are computed in each slot, from what members report then"
        if terms.agreement in FROM_REPORTS
        else "everyone trains on all of its samples"
    )
    return f"By these terms {how}, so there is no file of amounts to sign; the terms are signed."


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
