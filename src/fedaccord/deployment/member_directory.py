"""A member's directory: its private numbers, its keys, its data, and what it signs.

Everything in it is made at the member. Only `card.json` and `signature.json` leave it.
"""

import getpass
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from fedaccord.atomic import WholeFile, fingerprint, write_together
from fedaccord.data.dataset import Inputs, Labels
from fedaccord.data.own import check_names
from fedaccord.deployment.cards import Card, TermsSignature, sign_card, sign_terms
from fedaccord.deployment.certificates import make_client_certificate, make_node_key
from fedaccord.deployment.data_format import describe_data, example_data, save_examples
from fedaccord.deployment.invitation import Invitation
from fedaccord.deployment.new_directory import check_free, put, write_files
from fedaccord.deployment.services import member_unit
from fedaccord.deployment.templates import filled
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.client_file import ClientFile, load_client_file
from fedaccord.protocol.keys import rotation
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.protocol.terms_text import terms_text, toml_value
from fedaccord.signing.keys import is_signed, load_key, new_key, write_key

CARD, SIGNATURE = "card.json", "signature.json"
KNOWN_KEYS = "known-keys.json"
"""The parties' keys in all terms that this member signed, by name: of each the latest."""
SERVER = "the server"
Examples = tuple[Inputs, Labels]


@dataclass(frozen=True)
class MemberData:
    """Examples to begin with, for a rehearsal."""

    own: Examples
    test: Examples


def write_member(
    directory: Path,
    invitation: Invitation,
    private: Private,
    data: MemberData | None = None,
    *,
    days: int = 365,
) -> Card:
    """Write the directory, whole or not at all, with new keys; returns the card to send."""
    terms = invitation.terms
    if private.name not in terms.clients:
        names = ", ".join(terms.clients)
        raise InvalidInput(f"there is no client {private.name!r} in the invitation; it has {names}")
    check_free(directory)
    check_names([private.name])
    if "/" in private.name or "\\" in private.name:
        raise InvalidInput(f"{private.name}: cannot be the name of a file")
    parent = directory.resolve().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=parent) as folder:
            made = Path(folder) / "member"
            made.mkdir(mode=0o700)  # its data, its copy and its models will be there as well
            _write_files(made, directory, invitation, private)
            _write_data(made, private, terms, data)
            card = _make_keys(made, terms.name, private.name, days)
            put(made, directory)
    except OSError as error:
        raise FedaccordError(f"{directory}: cannot be written: {error.strerror or error}") from None
    return card


def _write_files(made: Path, home: Path, invitation: Invitation, private: Private) -> None:
    terms, server = invitation.terms, invitation.server
    words = {"name": private.name, "consortium": terms.name, "address": server.address}
    path = made / "client.toml"
    path.touch(mode=0o600)
    write_files(
        {
            path: client_text(private, terms, server.address),
            made / "terms.toml": terms_text(terms),
            made / "ca.pem": server.authority,
            made / "README.md": filled(
                "member-README.md", **words, data=describe_data(private, terms)
            ),
            made / "fedaccord-member.service": member_unit(
                home.resolve(),
                Path(sys.executable).parent,
                getpass.getuser(),
                ["fedaccord", "member", "start", "."],
            ),
        }
    )


def _write_data(made: Path, private: Private, terms: Terms, data: MemberData | None) -> None:
    (made / "data").mkdir()
    (made / "example").mkdir()
    example = example_data(terms)
    _save(made / "example", private.name, MemberData(example, example), terms)
    if data is not None:
        _save(made / "data", private.name, data, terms)


def _save(folder: Path, name: str, data: MemberData, terms: Terms) -> None:
    for stem, examples in ((name, data.own), ("test", data.test)):
        save_examples(folder / f"{stem}.npz", *examples, terms)


def _make_keys(made: Path, consortium: str, name: str, days: int) -> Card:
    write_key(made / "signing.key", new_key())
    make_node_key(made / "node.key")
    make_client_certificate(made, name, days)
    card = make_card(made, consortium, name, (made / "tls.pem").read_text("ascii"))
    write_files({made / CARD: card_text(card)})
    return card


def make_card(member: Path, consortium: str, name: str, certificate: str) -> Card:
    """The card with this certificate and the public halves of the keys in a member's directory."""
    return sign_card(
        consortium,
        name,
        load_key(member / "signing.key"),
        node_key=(member / "node.pub").read_text("ascii").strip(),
        certificate=certificate,
    )


def card_text(card: Card) -> str:
    """A card as a file has it."""
    return card.model_dump_json(indent=1) + "\n"


def rests_on(member: Path) -> dict[Path, str]:
    """The fingerprints of what a member reads before it signs, and of what signing replaces."""
    path = member / "client.toml"
    seen = {path: fingerprint(path)}
    file = load_client_file(path)
    others = (KNOWN_KEYS, file.terms, file.authority, SIGNATURE)
    return seen | {member / name: fingerprint(member / name) for name in others}


def sign_member(
    member: Path, offered: Invitation, seen: Mapping[Path, str] | None = None
) -> TermsSignature:
    """Sign the terms and the app of a file to sign, and take part under these from now on.

    `seen` are the fingerprints (`rests_on`) of what the directory had when it was decided to sign.
    If it has something else by now, nothing is signed.
    """
    seen = rests_on(member) if seen is None else seen
    path = member / "client.toml"
    file, terms = load_client_file(path), offered.terms
    key = load_key(member / file.key)
    if (wrong := wrong_to_sign(file, key.public, offered)) is not None:
        raise InvalidInput(wrong)
    app = offered.server.app or ""
    version = offered.server.version
    signature = sign_terms(terms.name, file.name, terms.digest, app, key, version=version)
    text = tomlkit.parse(path.read_text("utf-8"))
    text["app"], text["server"] = app, offered.server.address
    known = known_keys(member, load_terms(member / file.terms)) | keys_in(terms)
    write_together(
        [
            WholeFile(member / KNOWN_KEYS, [f"{json.dumps(known, indent=1)}\n".encode()]),
            WholeFile(member / file.terms, [terms_text(terms).encode()]),
            WholeFile(member / file.authority, [offered.server.authority.encode()]),
            WholeFile(path, [tomlkit.dumps(text).encode()], private=True),
            WholeFile(member / SIGNATURE, [f"{signature.model_dump_json(indent=1)}\n".encode()]),
        ],
        seen,
    )
    return signature


def keys_in(terms: Terms) -> dict[str, str]:
    """Everybody's key in terms, the server's too."""
    return {} if terms.keys is None else {SERVER: terms.keys.server} | terms.keys.clients


def known_keys(member: Path, terms: Terms) -> dict[str, str]:
    """Whose key this member knows from what it signed; `terms` are the ones that it has.

    Somebody who left the terms and comes back is still known by the key from before.
    """
    path = member / KNOWN_KEYS
    try:
        known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except (OSError, ValueError):
        known = None
    if not isinstance(known, dict) or not all(isinstance(key, str) for key in known.values()):
        raise InvalidInput("is not a list of keys as `fedaccord member sign` writes it", str(path))
    return known | keys_in(terms)


def changed_keys(member: Path, terms: Terms, offered: Terms) -> dict[str, str]:
    """Whose key is another one than this member knows, and did not sign for the new one itself."""
    known, keys = known_keys(member, terms), offered.keys
    rotated = {} if keys is None else keys.rotations
    return {
        name: key
        for name, key in keys_in(offered).items()
        if (old := known.get(name, key)) != key
        and not is_signed(old, rotated.get(name, ""), rotation(offered.name, name, key).content)
    }


def wrong_to_sign(file: ClientFile, public: str, offered: Invitation) -> str | None:
    """Why this member cannot sign what it was sent."""
    terms = offered.terms
    if terms.keys is None or offered.server.app is None:
        return "is an invitation, not yet the file to sign: the coordinator needs all cards first"
    if file.name not in terms.clients:
        return f"there is no client {file.name!r} in the terms"
    if terms.keys.clients[file.name] != public:
        return (
            f"the terms have another key for {file.name} than the one in this directory: do not "
            "sign, and ask the coordinator whose key that is"
        )
    return None


_TELLS = """\
# Whether the server also learns the discount factor, and can take it into account in its offer.
tell_discount_factor = """


def client_text(private: Private, terms: Terms, address: str) -> str:
    """A member's own file."""
    if terms.reports == "none":
        learns, tells = "The server learns none of these\n# numbers; it asks for answers only.", ""
    else:
        learns = "The server learns only the ratio\n# valuation / cost_per_sample, and samples."
        tells = _TELLS + ("true" if private.tells_discount_factor else "false") + "\n"
    return f"""\
# Private: this file stays with {private.name}. {learns}
name = {toml_value(private.name)}
valuation = {private.valuation!r}
cost_per_sample = {private.cost_per_sample!r}
samples = {private.samples}
communication_cost = {private.communication_cost!r}
discount_factor = {private.discount_factor!r}
{tells}
# Paths are relative to this file. The terms are the ones that this client signed: it takes part
# under no others. The data is a directory with {private.name}.npz (or .csv) and
# test.npz. The ledger is this client's own copy. The model of each slot is stored under "model".
# With its key this client signs what it says: whoever has the key can speak for it.
terms = "terms.toml"
key = "signing.key"
data = "data"
ledger = "ledger.db"
model = "model.npz"
# To go on with each slot's model here, on this client's own examples, for so many epochs; the
# result is stored as personal.npz, and sent nowhere:
# fine_tune = 3

# How this client's node reaches the server, and shows who it is.
server = {toml_value(address)}
authority = "ca.pem"
node_key = "node.key"
certificate = "tls.pem"
certificate_key = "tls.key"
# `fedaccord member sign` adds the digest of the app that was signed; the node runs no other.

# To rehearse a slip to 0 samples in slot 2:
# [slips]
# 2 = 0
"""
