"""New certificates in place of those that run out."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedaccord.atomic import WholeFile, fingerprint, write_together
from fedaccord.deployment.admission import load_app_terms, to_sign_text
from fedaccord.deployment.app_directory import INVITATION, TO_SIGN, app_terms
from fedaccord.deployment.cards import Card
from fedaccord.deployment.certificates import certificate_files, make_client_certificate
from fedaccord.deployment.invitation import load_invitation
from fedaccord.deployment.member_directory import CARD, card_text, make_card
from fedaccord.flower.client_file import load_client_file
from fedaccord.protocol.terms import load_terms


def renew_certificates(app: Path, hosts: Sequence[str], days: int = 365) -> None:
    """New certificates for the server; members recognise them by what the file to sign has then."""
    seen = {path: fingerprint(path) for path in (app / INVITATION, app_terms(app))}
    terms = load_app_terms(app)
    files = certificate_files(app / "keys", hosts, days)
    known = load_invitation(app / INVITATION)
    authority = b"".join(files[-1].parts).decode("ascii")
    fresh = replace(known, server=known.server.model_copy(update={"authority": authority}))
    files.append(WholeFile(app / INVITATION, [fresh.text.encode()]))
    if terms.keys is not None:
        files.append(WholeFile(app / TO_SIGN, [to_sign_text(app, terms, fresh).encode()]))
    write_together(files, seen)


def renew_member(member: Path, days: int = 365) -> Card:
    """A new certificate for a member, and the card with it; all other keys stay."""
    file = load_client_file(member / "client.toml")
    places = member / file.certificate_key, member / (file.certificate or "tls.pem"), member / CARD
    seen = {path: fingerprint(path) for path in places}
    consortium = load_terms(member / file.terms).name
    with tempfile.TemporaryDirectory(prefix=".", dir=member) as folder:
        make_client_certificate(Path(folder), file.name, days)
        fresh = {name: Path(folder, name).read_bytes() for name in ("tls.key", "tls.pem")}
    card = make_card(member, consortium, file.name, fresh["tls.pem"].decode("ascii"))
    contents = fresh["tls.key"], fresh["tls.pem"], card_text(card).encode()
    write_together(
        [
            WholeFile(path, [content], private=path == places[0])
            for path, content in zip(places, contents, strict=True)
        ],
        seen,
    )
    return card
