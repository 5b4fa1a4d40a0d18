"""From an invitation to the last signature: what is taken, and what is refused."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from fedaccord.atomic import Changed
from fedaccord.deployment.admission import admit, load_app_terms, load_signed, members_of
from fedaccord.deployment.app_directory import write_app
from fedaccord.deployment.cards import (
    Card,
    TermsSignature,
    load_sent,
    load_signatures,
    sign_card,
    sign_terms,
    signatures_text,
)
from fedaccord.deployment.certificates import (
    make_certificates,
    make_client_certificate,
    make_node_key,
)
from fedaccord.deployment.invitation import load_invitation
from fedaccord.deployment.member_directory import (
    changed_keys,
    make_card,
    rests_on,
    sign_member,
    write_member,
)
from fedaccord.deployment.renewal import renew_certificates, renew_member
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.fab import app_digest
from fedaccord.protocol.keys import Keys, change_of_key, sign_rotation
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.signing.keys import Key, load_key, new_key, write_key
from tests.flower.consortia import privates_of, terms_of

NAMES = ("a", "Łódź 2", "c")


class Room:
    """A server and its members, each in its directory."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.app = folder, folder / "app"
        self.members = {name: folder / f"member-{n}" for n, name in enumerate(NAMES)}
        write_app(self.app, terms_of(NAMES), ["server.example"])
        invitation = load_invitation(self.app / "invitation.toml")
        for private in privates_of(NAMES):
            write_member(self.members[private.name], invitation, private)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def cards(room: Room) -> list[Path]:
    return [member / "card.json" for member in room.members.values()]


def signed(room: Room) -> Room:
    admit(room.app, cards(room))
    for member in room.members.values():
        sign_member(member, load_invitation(room.app / "to-sign.toml"))
    admit(room.app, [member / "signature.json" for member in room.members.values()])
    return room


def test_from_invitation_to_signature(room: Room) -> None:
    first, *others = cards(room)
    known = admit(room.app, [first])
    assert known.missing == ("Łódź 2", "c")
    assert not (room.app / "to-sign.toml").exists()
    assert load_app_terms(room.app).keys is None
    known = admit(room.app, others)
    assert (known.missing, known.unsigned) == ((), NAMES)
    offered = load_invitation(room.app / "to-sign.toml")
    assert offered.terms == load_app_terms(room.app)
    assert offered.server.app == app_digest(room.app)
    assert offered.terms.keys is not None
    assert offered.terms.keys.clients == {
        name: load_key(member / "signing.key").public for name, member in room.members.items()
    }
    for member in room.members.values():
        sign_member(member, offered)
        assert load_terms(member / "terms.toml") == offered.terms
        assert load_client_file(member / "client.toml").app == offered.server.app
        assert stat.S_IMODE((member / "client.toml").stat().st_mode) == 0o600
    known = admit(room.app, [member / "signature.json" for member in room.members.values()])
    assert known.unsigned == ()
    assert (room.app / "keys" / "members.pem").read_text().count("BEGIN CERTIFICATE") == 3


def test_nothing_private_leaves_a_member(room: Room) -> None:
    """Neither what is sent nor the server's directory has a private key or a private number."""
    signed(room)
    at_server = b"".join(
        path.read_bytes()
        for path in room.app.rglob("*")
        if path.is_file() and path.suffix != ".key"
    )
    for name, member in room.members.items():
        sent = (member / "card.json").read_bytes() + (member / "signature.json").read_bytes()
        for key in ("signing.key", "node.key", "tls.key"):
            private = (member / key).read_bytes()
            assert stat.S_IMODE((member / key).stat().st_mode) == 0o600
            assert private not in at_server + sent
        private_numbers = load_client_file(member / "client.toml")
        for number in (private_numbers.valuation, private_numbers.cost_per_sample):
            assert repr(number).encode() not in at_server + sent, name


def test_signatures_are_void_once_terms_or_app_change(room: Room) -> None:
    signed(room)
    assert members_of(room.app).unsigned == ()
    client = room.app / "fedaccord_app" / "client_app.py"
    kept = client.read_text()
    client.write_text(kept + "# changed\n")
    assert members_of(room.app).unsigned == NAMES
    client.write_text(kept)
    assert members_of(room.app).unsigned == ()
    terms = room.app / "fedaccord_app" / "terms.toml"
    terms.write_text(terms.read_text().replace("tolerance = 0.0", "tolerance = 0.5"))
    assert members_of(room.app).unsigned == NAMES
    member = room.members["a"]
    with pytest.raises(InvalidInput, match=r"a signed other terms than those of to-sign\.toml"):
        admit(room.app, [member / "signature.json"])


def test_members_see_who_signed(room: Room) -> None:
    signed(room)
    member = room.members["a"]
    terms = load_terms(member / "terms.toml")
    assert load_signed(member, terms).others == set()
    given = (room.app / "signatures.json").read_text()
    (member / "signatures.json").write_text(given)
    assert load_signed(member, terms).others == {"Łódź 2", "c"}
    changed = json.loads(given)
    for one in changed:
        one["signature"] = changed[0]["signature"]  # the server cannot sign for others
    (member / "signatures.json").write_text(json.dumps(changed))
    assert load_signed(member, terms).others == set()


def test_a_renewed_certificate_needs_nothing_else(room: Room) -> None:
    signed(room)
    member = room.members["c"]
    before = (member / "tls.pem").read_text()
    renew_member(member)
    assert (member / "tls.pem").read_text() != before
    known = admit(room.app, [member / "card.json"])
    assert (known.missing, known.unsigned) == ((), ())
    listed = (room.app / "keys" / "members.pem").read_text()
    assert (member / "tls.pem").read_text() in listed
    assert before not in listed


def test_new_certificates_of_the_server_reach_members(room: Room) -> None:
    signed(room)
    renew_certificates(room.app, ["other.example"])
    offered = load_invitation(room.app / "to-sign.toml")
    assert offered.server.authority == (room.app / "keys" / "ca.pem").read_text()
    member = room.members["a"]
    sign_member(member, offered)
    assert (member / "ca.pem").read_text() == offered.server.authority
    assert members_of(room.app).unsigned == ()  # the terms and the app are the same


# --- What others do meanwhile --------------------------------------------------------------------


def tree(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("name", ["client.toml", "terms.toml", "known-keys.json", "signature.json"])
def test_what_was_written_since_a_member_decided_to_sign_stays(room: Room, name: str) -> None:
    signed(room)
    member = room.members["a"]
    seen = rests_on(member)
    with (member / name).open("ab") as file:
        file.write(b"\n")
    before = tree(member)
    offered = load_invitation(room.app / "to-sign.toml")
    with pytest.raises(Changed, match=rf"{name}: was changed by another program meanwhile"):
        sign_member(member, offered, seen)
    assert tree(member) == before
    sign_member(member, offered)


def test_two_renewals_at_once_leave_one_certificate_with_its_key(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    member, make, once = room.members["a"], make_card, [True]

    def late(*given: Any) -> Card:
        if once:
            once.clear()
            renew_member(member)
        return make(*given)

    monkeypatch.setattr("fedaccord.deployment.renewal.make_card", late)
    with pytest.raises(Changed):
        renew_member(member)
    key = load_pem_private_key((member / "tls.key").read_bytes(), password=None)
    certificate = (member / "tls.pem").read_bytes()
    assert x509.load_pem_x509_certificate(certificate).public_key() == key.public_key()
    card = load_sent(member / "card.json")
    assert isinstance(card, Card)
    assert card.certificate.encode() == certificate


@pytest.mark.parametrize("whose", ["member's", "server's"])
def test_an_interrupted_renewal_changes_nothing(
    room: Room, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Whichever of its files is flushed to the disk last."""
    signed(room)
    folder = room.members["a"] if whose == "member's" else room.app
    before, flush = tree(folder), os.fsync
    for last in range(1, 100):
        left = iter(range(1, last))

        def interrupted(descriptor: int, left: Iterator[int] = left) -> None:
            flush(descriptor)
            if next(left, None) is None:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", interrupted)
            try:
                if whose == "member's":
                    renew_member(folder)
                else:
                    renew_certificates(folder, ["other.example"])
            except KeyboardInterrupt:
                assert tree(folder) == before
            else:
                assert last > 4
                assert tree(folder) != before
                return


def test_a_directory_that_somebody_else_filled_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room(tmp_path)
    directory, make, once = tmp_path / "empty", make_node_key, [True]
    directory.mkdir()
    invitation = load_invitation(room.app / "invitation.toml")
    first, second, _ = privates_of(NAMES)

    def late(path: Path) -> Path:
        if once:
            once.clear()
            write_member(directory, invitation, first)
        return make(path)

    monkeypatch.setattr("fedaccord.deployment.member_directory.make_node_key", late)
    with pytest.raises(FedaccordError, match="exists already, and is not empty"):
        write_member(directory, invitation, second)
    assert load_client_file(directory / "client.toml").name == first.name
    card = load_sent(directory / "card.json")
    assert isinstance(card, Card)
    assert card.signing_key == load_key(directory / "signing.key").public


def test_signatures_that_are_taken_at_the_same_time(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit(room.app, cards(room))
    for member in room.members.values():
        sign_member(member, load_invitation(room.app / "to-sign.toml"))
    text, once = signatures_text, [True]

    def late(given: Any) -> str:
        known = tuple(given)
        if once:
            once.clear()
            admit(room.app, [room.members["c"] / "signature.json"])
        return text(known)

    monkeypatch.setattr("fedaccord.deployment.admission.signatures_text", late)
    admit(room.app, [room.members["a"] / "signature.json"])
    kept = load_signatures(room.app / "signatures.json")
    assert {one.client for one in kept} == {"a", "c"}


# --- What is refused -----------------------------------------------------------------------


def changed(card: Card, **fields: str) -> dict[str, Any]:
    return card.model_dump() | fields


def forged(room: Room, **fields: str) -> dict[str, Any]:
    """A card for somebody, signed with a key of the forger's own."""
    card, key = load_sent(room.members["a"] / "card.json"), new_key()
    assert isinstance(card, Card)
    given = {"node_key": card.node_key, "certificate": card.certificate} | fields
    consortium = given.pop("consortium", card.consortium)
    client = given.pop("client", card.client)
    return sign_card(consortium, client, key, **given).model_dump()


def authority(room: Room) -> str:
    make_certificates(room.folder / "others", ["x.example"])
    return (room.folder / "others" / "ca.pem").read_text()


CARDS: dict[str, tuple[Callable[[Room, Card], dict[str, Any]], str]] = {
    "changed": (lambda _, card: changed(card, client="c"), "not signed by its own key"),
    "other consortium": (lambda r, _: forged(r, consortium="x"), "is for the consortium 'x'"),
    "nobody": (lambda r, _: forged(r, client="x"), "there is no client 'x' in the terms"),
    "another key": (lambda r, _: forged(r), "has another signing key already"),
    "an authority": (lambda r, _: forged(r, client="c", certificate=authority(r)), "certificate"),
    "unknown field": (lambda _, card: changed(card, more="x"), "more: unknown key"),
    "weak key": (
        lambda _, card: changed(card, signing_key="ed25519:" + "0" * 64),
        "a key for which anybody could sign",
    ),
}


@pytest.mark.parametrize("kind", CARDS)
def test_cards_that_are_refused(kind: str, room: Room) -> None:
    admit(room.app, cards(room)[:1])
    card = load_sent(cards(room)[0])
    assert isinstance(card, Card)
    make, message = CARDS[kind]
    path = room.folder / "sent.json"
    path.write_text(json.dumps(make(room, card)))
    before = {p: p.read_bytes() for p in room.app.rglob("*") if p.is_file()}
    with pytest.raises(InvalidInput, match=message):
        admit(room.app, [*cards(room)[1:], path])  # none of them is taken
    assert {p: p.read_bytes() for p in room.app.rglob("*") if p.is_file()} == before


def test_a_new_key_replaces_the_old_one_only_if_that_is_said(room: Room) -> None:
    signed(room)
    path = room.folder / "sent.json"
    path.write_text(json.dumps(forged(room)))
    with pytest.raises(InvalidInput, match="its own, say that it replaces the old one"):
        admit(room.app, [path])
    known = admit(room.app, [path], replaces=True)
    assert known.unsigned == NAMES  # the terms have a new key, so everyone signs again


# --- Keys that their owners replace, and terms that are changed by hand --------------------


def rotate(room: Room, name: str, *, key: Key | None = None) -> Key:
    """Put a new key of a member into the terms, signed with the old one, as documented."""
    terms, new = load_app_terms(room.app), new_key() if key is None else key
    assert terms.keys is not None
    old = load_key(room.members[name] / "signing.key")
    update = {
        "clients": terms.keys.clients | {name: new.public},
        "rotations": {name: sign_rotation(terms.name, name, old, new.public)},
    }
    write_terms(room, terms.model_copy(update={"keys": terms.keys.model_copy(update=update)}))
    return new


def write_terms(room: Room, terms: Terms) -> None:
    (room.app / "fedaccord_app" / "terms.toml").write_text(terms_text(terms))


def keys_of(room: Room) -> Keys:
    keys = load_app_terms(room.app).keys
    assert keys is not None
    assert load_invitation(room.app / "to-sign.toml").terms.keys == keys
    assert load_invitation(room.app / "invitation.toml").terms.keys is None
    return keys


@pytest.mark.parametrize("sent", ["the old cards", "somebody's new certificate", "nothing"])
def test_a_rotated_key_stays_whatever_is_admitted(sent: str, room: Room) -> None:
    signed(room)
    new = rotate(room, "c")
    before = load_app_terms(room.app)
    if sent == "somebody's new certificate":
        renew_member(room.members["a"])
    files = {"the old cards": cards(room), "nothing": []}.get(sent, cards(room)[:1])
    known = admit(room.app, files)
    assert known.rotated == ("c",)
    assert load_app_terms(room.app) == before
    assert keys_of(room).clients["c"] == new.public
    assert change_of_key(before.name, "c", old_keys(room), keys_of(room)) == "rotated"
    kept = (room.members["c"] / "card.json").read_bytes()
    renew_member(room.members["c"])  # whoever still has the old key can make such a card
    with pytest.raises(InvalidInput, match="is signed with a key that c has replaced"):
        admit(room.app, [room.members["c"] / "card.json"])
    (room.members["c"] / "card.json").write_bytes(kept)
    write_key(room.members["c"] / "new.key", new)
    (room.members["c"] / "new.key").replace(room.members["c"] / "signing.key")
    offered = load_invitation(room.app / "to-sign.toml")
    for member in room.members.values():
        assert changed_keys(member, load_terms(member / "terms.toml"), offered.terms) == {}
        sign_member(member, offered)
    known = admit(room.app, [member / "signature.json" for member in room.members.values()])
    assert known.unsigned == ()
    renew_member(room.members["c"])  # its card has the new key now, which the old one has signed
    known = admit(room.app, [room.members["c"] / "card.json"])
    assert (known.rotated, known.unsigned) == ((), ())
    assert keys_of(room) == before.keys


def old_keys(room: Room) -> Keys:
    """The keys in the terms that a member signed before."""
    keys = load_terms(room.members["a"] / "terms.toml").keys
    assert keys is not None
    return keys


def test_a_rotation_ends_with_the_key_that_it_is_for(room: Room) -> None:
    signed(room)
    rotate(room, "c")
    admit(room.app, [])
    assert keys_of(room).rotations.keys() == {"c"}
    path = room.folder / "sent.json"
    path.write_text(json.dumps(forged(room, client="c")))
    admit(room.app, [path], replaces=True)
    assert keys_of(room).rotations == {}
    assert keys_of(room).clients["c"] == json.loads(path.read_text())["signing_key"]


def test_a_rotation_without_the_key_counts_with_the_card_that_has_it(room: Room) -> None:
    """Only the lines of [keys.rotations] were put into the terms."""
    signed(room)
    before, member = load_app_terms(room.app), room.members["c"]
    new = rotate(room, "c")
    after = load_app_terms(room.app)
    assert before.keys is not None
    assert after.keys is not None
    update = {"rotations": after.keys.rotations}
    write_terms(room, before.model_copy(update={"keys": before.keys.model_copy(update=update)}))
    write_key(member / "new.key", new)
    (member / "new.key").replace(member / "signing.key")
    renew_member(member)
    admit(room.app, [member / "card.json"], replaces=True)
    assert keys_of(room) == after.keys


def test_a_key_in_the_terms_that_nobody_vouches_for_is_not_undone_silently(room: Room) -> None:
    signed(room)
    terms = load_app_terms(room.app)
    assert terms.keys is not None
    clients = terms.keys.clients | {"c": new_key().public}
    write_terms(
        room,
        terms.model_copy(update={"keys": terms.keys.model_copy(update={"clients": clients})}),
    )
    before = {p: p.read_bytes() for p in room.app.rglob("*") if p.is_file()}
    with pytest.raises(InvalidInput, match="c has another key there than on its card") as error:
        admit(room.app, cards(room))
    assert "with the new key and say that it replaces the old one" in str(error.value)
    with pytest.raises(InvalidInput, match="c has another key there than on its card"):
        admit(room.app, [])
    assert {p: p.read_bytes() for p in room.app.rglob("*") if p.is_file()} == before
    write_terms(room, terms)
    assert admit(room.app, cards(room)).rotated == ()


def test_terms_that_were_changed_are_in_the_invitation(room: Room) -> None:
    """Before anybody has sent a card, and after everybody has signed."""
    for tolerance in (0.25, 0.5):
        terms = load_app_terms(room.app).model_copy(update={"tolerance": tolerance})
        write_terms(room, terms)
        admit(room.app, [])
        assert load_invitation(room.app / "invitation.toml").terms.tolerance == tolerance
        assert load_app_terms(room.app) == terms
        signed(room)
        assert load_invitation(room.app / "to-sign.toml").terms.tolerance == tolerance
    assert keys_of(room).clients.keys() == set(NAMES)


def test_nobody_has_the_key_of_another(room: Room) -> None:
    admit(room.app, cards(room)[:1])
    first = load_sent(cards(room)[0])
    assert isinstance(first, Card)
    stolen = sign_card(
        first.consortium,
        "c",
        load_key(room.members["a"] / "signing.key"),
        node_key=first.node_key,
        certificate=first.certificate,
    )
    path = room.folder / "sent.json"
    path.write_text(stolen.model_dump_json())
    with pytest.raises(InvalidInput, match="has the key of a"):
        admit(room.app, [path])


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]", b"x" * 70_000, b'"fedaccord'])
def test_files_that_are_neither(content: bytes, room: Room) -> None:
    path = room.folder / "sent.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput):
        admit(room.app, [path])
    with pytest.raises(InvalidInput, match="cannot be read"):
        admit(room.app, [room.folder / "none.json"])


def test_a_signature_is_the_members_own(room: Room) -> None:
    signed(room)
    terms = load_app_terms(room.app)
    other = sign_terms(terms.name, "a", terms.digest, app_digest(room.app), new_key())
    path = room.folder / "sent.json"
    path.write_text(other.model_dump_json())
    with pytest.raises(InvalidInput, match="is not signed with the key of a"):
        admit(room.app, [path])
    before = room.members["a"] / "signature.json"
    given = load_sent(before)
    assert isinstance(given, TermsSignature)
    path.write_text(given.model_copy(update={"client": "c"}).model_dump_json())
    with pytest.raises(InvalidInput, match="is not signed with the key of c"):
        admit(room.app, [path])


def test_a_member_signs_nothing_with_another_key_in_it(room: Room) -> None:
    admit(room.app, cards(room))
    offered = load_invitation(room.app / "to-sign.toml")
    keys = offered.terms.keys
    assert keys is not None
    others = keys.model_copy(update={"clients": keys.clients | {"a": new_key().public}})
    terms = offered.terms.model_copy(update={"keys": others})
    member = room.members["a"]
    before = {p: p.read_bytes() for p in member.rglob("*") if p.is_file()}
    with pytest.raises(InvalidInput, match="the terms have another key for a"):
        sign_member(member, type(offered)(terms, offered.server))
    with pytest.raises(InvalidInput, match="is an invitation, not yet the file to sign"):
        sign_member(member, load_invitation(room.app / "invitation.toml"))
    assert {p: p.read_bytes() for p in member.rglob("*") if p.is_file()} == before


def test_a_member_is_whole_or_not_there(tmp_path: Path) -> None:
    write_app(tmp_path / "app", terms_of(("a", "b")))
    invitation = load_invitation(tmp_path / "app" / "invitation.toml")
    own, other = privates_of(("a", "x"))
    with pytest.raises(InvalidInput, match="there is no client 'x' in the invitation"):
        write_member(tmp_path / "own", invitation, other)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.txt").write_text("mine")
    with pytest.raises(FedaccordError, match="exists already, and is not empty"):
        write_member(tmp_path / "own", invitation, own)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["app", "own"]
    make_client_certificate(tmp_path / "own", "a")  # one can be made by hand as well
