"""New certificates in place of those that run out."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedaccord.atomic import WholeFile, write_together, write_whole
from fedaccord.deployment.admission import load_app_terms, refresh_to_sign
from fedaccord.deployment.app_directory import INVITATION
from fedaccord.deployment.cards import Card
from fedaccord.deployment.certificates import make_certificates, make_client_certificate
from fedaccord.deployment.invitation import load_invitation
from fedaccord.deployment.member_directory import write_card
from fedaccord.flower.client_file import load_client_file
from fedaccord.protocol.terms import load_terms


def renew_certificates(app: Path, hosts: Sequence[str], days: int = 365) -> None:
    """New certificates for the server; members recognise them by what the file to sign has then."""
    terms = load_app_terms(app)
    make_certificates(app / "keys", hosts, days)
    known = load_invitation(app / INVITATION)
    authority = (app / "keys" / "ca.pem").read_text("ascii")
    fresh = replace(known, server=known.server.model_copy(update={"authority": authority}))
    write_whole(app / INVITATION, fresh.text.encode())
    if terms.keys is not None:
        refresh_to_sign(app)


def renew_member(member: Path, days: int = 365) -> Card:
    """A new certificate for a member, and the card with it; all other keys stay."""
    file = load_client_file(member / "client.toml")
    consortium = load_terms(member / file.terms).name
    with tempfile.TemporaryDirectory(prefix=".", dir=member) as folder:
        make_client_certificate(Path(folder), file.name, days)
        fresh = {name: Path(folder, name).read_bytes() for name in ("tls.key", "tls.pem")}
    write_together(
        [
            WholeFile(member / file.certificate_key, [fresh["tls.key"]], private=True),
            WholeFile(member / (file.certificate or "tls.pem"), [fresh["tls.pem"]]),
        ]
    )
    return write_card(member, consortium, file.name)
