"""The coordinator's part of admitting members: their cards, the final terms, their signatures.

The directory `members` has what each member sent. As soon as every client of the terms has a card,
the keys go into the terms, and the file to sign is written. Terms that were changed by hand go into
the invitation and the file to sign with whatever is admitted next.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedaccord.atomic import WholeFile, rewrite, write_together
from fedaccord.deployment.app_directory import INVITATION, MEMBERS, TO_SIGN, app_terms
from fedaccord.deployment.cards import (
    Card,
    TermsSignature,
    load_sent,
    load_signatures,
    signatures_text,
)
from fedaccord.deployment.certificates import read_client_certificate
from fedaccord.deployment.invitation import Invitation, load_invitation, without_keys
from fedaccord.deployment.new_directory import folder_names
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.fab import app_digest
from fedaccord.protocol.keys import Keys, change_of_key
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.signing.keys import load_key

REPLACES = "say that it replaces the old one"
"""What is asked of whoever admits a card with another key than the member's card before."""


@dataclass(frozen=True)
class Members:
    """What the members have sent so far, by name, in the order of the terms."""

    cards: dict[str, Card]
    signatures: dict[str, TermsSignature]
    missing: tuple[str, ...]
    """Who has sent no card."""
    unsigned: tuple[str, ...]
    """Who has not signed the terms and the app as they are now."""
    rotated: tuple[str, ...] = ()
    """Whose key in the terms is newer than its card, which has the key that signed it."""


def members_of(app: Path) -> Members:
    """What is in the directory of an app; what is no longer about its terms counts for nothing."""
    terms = load_app_terms(app)
    cards: dict[str, Card] = {}
    signatures: dict[str, TermsSignature] = {}
    for name, place in _places(app, terms).items():
        card, signature = _stored(place.card), _stored(place.signature)
        if isinstance(card, Card):
            cards[name] = card
            key = card.signing_key if terms.keys is None else terms.keys.clients[name]
            if isinstance(signature, TermsSignature) and signature.is_by(key):
                signatures[name] = signature
    current = {n: s for n, s in signatures.items() if s.terms == terms.digest}
    if current:
        digest = app_digest(app)
        current = {n: s for n, s in current.items() if s.app == digest}
    return Members(
        cards,
        current,
        missing=tuple(name for name in terms.clients if name not in cards),
        unsigned=tuple(name for name in terms.clients if name not in current),
        rotated=tuple(name for name, card in cards.items() if _is_rotated(terms, card)),
    )


def admit(app: Path, sent: Iterable[Path], *, replaces: bool = False) -> Members:
    """Take cards and signatures that members sent: all of them, or none if one is wrong.

    A card with another signing key than before is taken only if it `replaces` the old one, or if
    the old one has signed it and the terms say so. Terms that were changed by hand are taken as
    they are, with nothing sent as well.
    """
    terms = load_app_terms(app)
    places, before = _places(app, terms), members_of(app).cards
    taken = [(path, load_sent(path)) for path in sent]
    problems = [
        f"{path}: {wrong}"
        for path, one in taken
        if (wrong := _wrong_in(one, terms, before, replaces=replaces)) is not None
    ]
    if problems:
        raise InvalidInput(problems)
    cards = {one.client: one for _, one in taken if isinstance(one, Card)}
    known = before | cards
    complete = all(name in known for name in terms.clients) and (bool(cards) or not taken)
    keys = _keys(app, terms, known, replaced=cards if replaces else ()) if complete else None
    _store(
        [
            *((places[name].card, card.model_dump_json(indent=1)) for name, card in cards.items()),
            *((places[name].node, card.node_key + "\n") for name, card in cards.items()),
        ]
    )
    if keys is not None:
        _complete(app, terms.model_copy(update={"keys": keys}), known if cards else {})
    refresh_invitation(app)
    signatures = [(path, one) for path, one in taken if isinstance(one, TermsSignature)]
    _take_signatures(app, signatures)
    return members_of(app)


def load_app_terms(app: Path) -> Terms:
    """The terms of an app."""
    if not app_terms(app).is_file():
        raise InvalidInput(f"{app}: is not a directory that `fedaccord flower new` wrote")
    return load_terms(app_terms(app))


def refresh_to_sign(app: Path) -> None:
    """Write the file to sign again, for an app or terms that were changed by hand."""
    terms = load_app_terms(app)
    _store([(app / TO_SIGN, to_sign_text(app, terms, load_invitation(app / INVITATION)))])


def to_sign_text(app: Path, terms: Terms, invitation: Invitation) -> str:
    """The file to sign for the app as it is."""
    return replace(replace_app(invitation, app_digest(app)), terms=terms).text


def refresh_invitation(app: Path) -> None:
    """Write the invitation again, if the terms were changed by hand."""
    known, terms = load_invitation(app / INVITATION), without_keys(load_app_terms(app))
    if known.terms != terms:
        _store([(app / INVITATION, replace(known, terms=terms).text)])


def replace_app(invitation: Invitation, digest: str, version: int | None = None) -> Invitation:
    """The same for an app with this digest, and for a version that a room counts."""
    update = {"app": digest, "version": version}
    return replace(invitation, server=invitation.server.model_copy(update=update))


SIGNATURES = "signatures.json"
"""Everybody's signatures, which the coordinator passes on so that members see who signed."""


@dataclass(frozen=True)
class Signed:
    """Who signed the terms that a member has, as far as it can see."""

    own: TermsSignature | None
    outdated: bool
    """Whether it signed other terms before."""
    others: frozenset[str]
    """Who else signed the same terms and the same app."""


def load_signed(member: Path, terms: Terms) -> Signed:
    """The signatures in a member's directory that are on these terms."""
    path = member / "signature.json"
    own = load_sent(path) if path.is_file() else None
    if not isinstance(own, TermsSignature) or own.terms != terms.digest or terms.keys is None:
        return Signed(None, own is not None, frozenset())
    if not own.is_by(terms.keys.clients.get(own.client, "")):
        return Signed(None, True, frozenset())
    same = _same(own, terms.keys, load_signatures(member / SIGNATURES))
    return Signed(own, False, frozenset(same) - {own.client})


def fitting_signatures(
    member: Path, terms: Terms, given: Iterable[TermsSignature]
) -> dict[str, TermsSignature]:
    """Those signatures, by name, that are on the terms and the app that a member signed."""
    own = load_signed(member, terms).own
    if own is None or terms.keys is None:
        return {}
    found = _same(own, terms.keys, given)
    return {name: found[name] for name in terms.clients if name in found}


def _same(
    own: TermsSignature, keys: Keys, given: Iterable[TermsSignature]
) -> dict[str, TermsSignature]:
    """Who signed the same, with whose key the terms have for it."""
    return {
        one.client: one
        for one in given
        if one.is_on_the_same(own)
        and one.client in keys.clients
        and one.is_by(keys.clients[one.client])
    }


# --- One member's files --------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    card: Path
    node: Path
    signature: Path


def _places(app: Path, terms: Terms) -> dict[str, _Place]:
    folder = app / MEMBERS
    return {
        name: _Place(
            folder / f"{plain}.json", folder / f"{plain}.pub", folder / f"{plain}.signature.json"
        )
        for name, plain in folder_names(terms.clients).items()
    }


def _stored(path: Path) -> Card | TermsSignature | None:
    return load_sent(path) if path.is_file() else None


def _wrong_in(
    sent: Card | TermsSignature, terms: Terms, before: dict[str, Card], *, replaces: bool
) -> str | None:
    """Why something that was sent is not taken."""
    if sent.consortium != terms.name:
        return f"is for the consortium {sent.consortium!r}, not for {terms.name!r}"
    if sent.client not in terms.clients:
        return f"there is no client {sent.client!r} in the terms"
    if isinstance(sent, TermsSignature):
        return None
    try:
        read_client_certificate(sent.certificate.encode("ascii"))
    except InvalidInput as error:
        return f"its certificate {error.problems[0]}"
    known = before.get(sent.client)
    if (
        known is not None
        and known.signing_key != sent.signing_key
        and not (replaces or _is_rotated(terms, known, sent.signing_key))
    ):
        return (
            f"{sent.client} has another signing key already; call it, and if the new one is really "
            f"its own, {REPLACES}"
        )
    if known not in (None, sent) and _is_rotated(terms, sent):
        return (
            f"is signed with a key that {sent.client} has replaced in the terms; `fedaccord member "
            "renew` makes a card with the new one"
        )
    others = {card.signing_key: name for name, card in before.items() if name != sent.client}
    if (owner := others.get(sent.signing_key)) is not None:
        return f"has the key of {owner}"
    return None


def _store(files: Sequence[tuple[Path, str]]) -> None:
    try:
        write_together([WholeFile(path, [text.encode()]) for path, text in files])
    except OSError as error:
        place = files[0][0].parent
        raise FedaccordError(f"{place}: cannot be written: {error.strerror or error}") from None


def _is_rotated(terms: Terms, card: Card, new: str | None = None) -> bool:
    """Whether the terms have another key for a member, signed by the key of its card."""
    if terms.keys is None:
        return False
    name, old = card.client, {card.client: card.signing_key}
    now = terms.keys.clients[name]
    before = terms.keys.model_copy(update={"clients": old})
    return new in (None, now) and change_of_key(terms.name, name, before, terms.keys) == "rotated"


def _keys(app: Path, terms: Terms, cards: dict[str, Card], replaced: Container[str]) -> Keys:
    """Everybody's keys for the terms.

    They are those of the cards. But a key that is in the terms by hand, and that the card's key has
    signed, stays; and what else somebody wrote there by hand is not undone without a word.
    """
    server = load_key(app / "keys" / "signing.key").public
    clients = {name: cards[name].signing_key for name in terms.clients}
    if terms.keys is None:
        return Keys(server=server, clients=clients)
    problems = []
    for name, written in terms.keys.clients.items():
        if _is_rotated(terms, cards[name]):
            clients[name] = written
        elif clients[name] != written and name not in replaced:
            problems.append(
                f"{app_terms(app)}: keys.clients: {name} has another key there than on its card, "
                "and the card's key has not signed that one; put the card's key back, or send a "
                f"card with the new key and {REPLACES}"
            )
    if problems:
        raise InvalidInput(problems)
    keys = Keys(server=server, clients=clients)
    rotations = {
        name: signature
        for name, signature in terms.keys.rotations.items()
        if change_of_key(terms.name, name, terms.keys, _with_rotation(keys, name, signature))
        != "revoked"
    }
    return keys.model_copy(update={"rotations": rotations})


def _with_rotation(keys: Keys, name: str, signature: str) -> Keys:
    return keys.model_copy(update={"rotations": {name: signature}})


def _complete(app: Path, terms: Terms, cards: dict[str, Card]) -> None:
    """Write the terms with everybody's keys, and what nodes and the proxy need to know."""
    certificates = "".join(cards[name].certificate for name in terms.clients if cards)
    _store(
        [
            (app_terms(app), terms_text(terms)),
            *([(app / "keys" / "members.pem", certificates)] if cards else []),
        ]
    )
    refresh_to_sign(app)


def _take_signatures(app: Path, sent: Sequence[tuple[Path, TermsSignature]]) -> None:
    """Keep signatures that are on the terms and the app as they are now."""
    if not sent:
        return
    terms, digest = load_app_terms(app), app_digest(app)
    problems = [
        f"{path}: {wrong}"
        for path, one in sent
        if (wrong := _wrong_signature(one, terms, digest)) is not None
    ]
    if problems:
        raise InvalidInput(problems)
    places = _places(app, terms)
    _store([(places[one.client].signature, one.model_dump_json(indent=1)) for _, one in sent])
    try:  # others' signatures may be taken at the same time
        rewrite(
            app / SIGNATURES, lambda: signatures_text(members_of(app).signatures.values()).encode()
        )
    except OSError as error:
        raise FedaccordError(f"{app}: cannot be written: {error.strerror or error}") from None


def _wrong_signature(sent: TermsSignature, terms: Terms, app: str) -> str | None:
    if terms.keys is None:
        return "is a signature, but the terms have no keys before every member's card is here"
    if not sent.is_by(terms.keys.clients[sent.client]):
        return f"is not signed with the key of {sent.client}"
    if sent.terms != terms.digest:
        return f"{sent.client} signed other terms than those of {TO_SIGN}; send it that file"
    if sent.app != app:
        return f"{sent.client} signed another app than that of {TO_SIGN}; send it that file"
    return None
