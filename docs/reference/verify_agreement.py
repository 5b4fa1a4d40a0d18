"""Verifies an agreement file. Written against docs/reference/agreement-file.md alone.

    python verify_agreement.py agreement.html

It needs Python 3.11 or newer and the package `cryptography`, and shares no code with fedaccord. It
checks the form of the file, every digest and every signature, that totals add up, and that no slip
pays by the numbers in the certificate. It does not compute these numbers again, nor the text of the
page from them; `fedaccord agreement verify` does.

The exit code is 0 if the file is verified and everybody has signed, and 1 if not.
"""

import hashlib
import json
import re
import sys
import unicodedata
from dataclasses import dataclass, field
from math import isclose, isfinite
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SHELL = "ee82dfb1680a0518f74c658e8866fb114b876ba217b194906f42c960a136a598"
MARKS = [
    ("<main>", "</main>"),
    ('<script type="application/json" id="terms">', "</script>"),
    ('<script type="application/json" id="agreement">', "</script>"),
    ('<script type="application/json" id="signatures">', "</script>"),
]
P = 2**255 - 19
SMALL_ORDER = {
    0,
    1,
    P - 1,
    2707385501144840649318225287225658788936804267575313519463743609750303402022,
    55188659117513257062467267217118295137698188065244968500265048394206261417927,
}
CLOSE = 1e-9

TEXT, NUMBER, WHOLE, YES_NO = "text", "number", "whole number", "yes or no"
OPTIONAL = "number or null"
AGREEMENT = {
    "certificate": {
        "assumptions": [TEXT],
        "clients": [
            {"gain": NUMBER, "name": TEXT, "saving": OPTIONAL, "slack": NUMBER, "threshold": NUMBER}
        ],
        "holds": YES_NO,
        "over_ranges": YES_NO,
        "smallest_discount_factor": NUMBER,
        "worst_client": TEXT,
    },
    "format": TEXT,
    "made_on": TEXT,
    "made_with": TEXT,
    "numbers": {
        "clients": [
            {
                "communication_cost": NUMBER,
                "cost_per_sample": NUMBER,
                "discount_factor": NUMBER,
                "name": TEXT,
                "samples": NUMBER,
                "valuation": NUMBER,
            }
        ],
        "currency": TEXT,
        "shared": YES_NO,
        "slot": TEXT,
    },
    "page": {"main": TEXT, "shell": TEXT},
    "profile": {
        "clients": [{"contribution": WHOLE, "name": TEXT, "saving": OPTIONAL, "without": OPTIONAL}],
        "total": WHOLE,
        "total_without": OPTIONAL,
    },
    "ranges": "ranges",
    "terms": TEXT,
}
RANGES = {
    "cost_per_sample": [[NUMBER]],
    "discount_factor": [[NUMBER]],
    "observed": "numbers or null",
    "samples": [[NUMBER]],
    "valuation": [[NUMBER]],
}


class Refused(Exception):
    """Why a file is not what its parties signed."""


@dataclass
class Result:
    """What was found."""

    refused: str | None = None
    signed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """In one word."""
        if self.refused is not None:
            return "refused"
        return "incomplete" if self.missing else "complete"


def verify(content: bytes) -> Result:
    """Verify the content of a file."""
    result = Result()
    try:
        check(content, result)
    except Refused as reason:
        result.refused = str(reason)
    return result


def require(condition: bool, otherwise: str) -> None:
    """Refuse the file unless a condition is met."""
    if not condition:
        raise Refused(otherwise)


def sha256(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


# --- The parts of the file -----------------------------------------------------------------


def check(content: bytes, result: Result) -> None:
    """Check everything, and fill in who signed."""
    shell, (main, terms_text, agreement_text, signatures_text) = parts_of(content)
    terms = read_json(terms_text, "terms")
    agreement = read_json(agreement_text, "agreement")
    signatures = read_json(signatures_text, "signatures")
    check_terms(terms)
    has_form(agreement, AGREEMENT, "agreement")
    check_agreement(agreement, terms)
    require(sha256(shell) == agreement["page"]["shell"] == SHELL, "the shell was changed")
    require(sha256(f"<main>{main}</main>") == agreement["page"]["main"], "the text was changed")
    require(sha256(terms_text) == agreement["terms"], "the terms were changed")
    check_signatures(signatures, terms, agreement, sha256(agreement_text), result)
    check_sums(agreement, terms)


def parts_of(content: bytes) -> tuple[str, list[str]]:
    """The shell, and the four parts."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("it is not UTF-8") from None
    shell, parts, place = "", [], 0
    for opening, closing in MARKS:
        require(text.count(opening) == 1, f"it needs one {opening}")
        start = text.index(opening) + len(opening)
        require(start > place, "its parts are not in order")
        end = text.find(closing, start)
        require(end >= 0, f"there is no {closing} after {opening}")
        shell += text[place:start]
        parts.append(text[start:end])
        place = end
    require(all("<" not in part for part in parts[1:]), "there is a tag within its JSON")
    return shell + text[place:], parts


def read_json(text: str, what: str) -> dict:
    """An object in canonical form."""
    try:
        value = json.loads(text)
        again = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        again.encode("utf-8")
    except (ValueError, RecursionError):
        raise Refused(f"{what}: is not JSON") from None
    require(again == text and isinstance(value, dict), f"{what}: is not canonical")
    return value


def has_form(value: object, form: object, place: str) -> None:
    """Check fields and types."""
    if form == "ranges":
        if value is not None:
            has_form(value, RANGES, place)
    elif form == "numbers or null":
        if value is not None:
            has_form(value, [NUMBER], place)
    elif isinstance(form, dict):
        require(isinstance(value, dict) and value.keys() == form.keys(), f"{place}: wrong fields")
        for name, inner in form.items():
            has_form(value[name], inner, f"{place}.{name}")
    elif isinstance(form, list):
        require(isinstance(value, list), f"{place}: must be a list")
        for inner in value:
            has_form(inner, form[0], place)
    else:
        require(is_a(value, form), f"{place}: must be {form}")


def is_a(value: object, kind: object) -> bool:
    """Whether a single value is of a kind."""
    if kind == TEXT:
        return isinstance(value, str) and value.isprintable() and len(value) <= 2000
    if kind == YES_NO:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == WHOLE:
        return isinstance(value, int) and value >= 0
    if value is None:
        return kind == OPTIONAL
    return isinstance(value, int) or (isinstance(value, float) and isfinite(value))


def check_terms(terms: dict) -> None:
    """Check the name, the clients and the keys in the terms; the other rules are not looked at."""
    names, keys = terms.get("clients"), terms.get("keys")
    require(isinstance(terms.get("name"), str) and terms["name"] != "", "terms: need a name")
    require(isinstance(names, list) and len(names) > 0, "terms: need clients")
    for name in names:
        require(isinstance(name, str) and name.isprintable() and name.strip() != "", "a bad name")
        require(unicodedata.normalize("NFC", name) == name, "a name is not in Unicode form C")
    require(len(set(names)) == len(names), "two clients have one name")
    require(isinstance(keys, dict), "terms: need keys")
    require(set(keys) - {"rotations"} == {"clients", "server"}, "keys: wrong fields")
    require(isinstance(keys["clients"], dict), "keys: wrong fields")
    require(keys["clients"].keys() == set(names), "a key for each client, and for nobody else")
    every = [keys["server"], *keys["clients"].values()]
    for key in every:
        right = isinstance(key, str) and re.fullmatch(r"ed25519:[0-9a-f]{64}", key)
        require(bool(right), "a key is not written as it should")
        y = int.from_bytes(bytes.fromhex(key[8:]), "little") % 2**255
        require(y < P and y not in SMALL_ORDER, "a key proves nothing")
    require(len(set(every)) == len(every), "two parties have one key")


def check_agreement(agreement: dict, terms: dict) -> None:
    """Check what the agreement says about itself and about whom."""
    require(agreement["format"] == "fedaccord agreement 1", "the format is unknown")
    require(agreement["certificate"]["holds"], "it does not hold")
    for table in ("numbers", "profile", "certificate"):
        names = [row["name"] for row in agreement[table]["clients"]]
        require(names == terms["clients"], f"{table}: other clients than in the terms")


# --- Who signed ----------------------------------------------------------------------------


def check_signatures(
    signatures: dict, terms: dict, agreement: dict, digest: str, result: Result
) -> None:
    """Check every signature."""
    require(signatures.keys() == {"agreement", "clients", "server"}, "signatures: wrong fields")
    require(signatures["agreement"] == digest, "the agreement was changed")
    clients = signatures["clients"]
    require(isinstance(clients, dict), "signatures: wrong fields")
    require(clients.keys() <= set(terms["clients"]), "somebody signed who is not in the terms")
    require(None not in clients.values(), "signatures: wrong fields")
    parties = [
        *(("client", name, terms["keys"]["clients"][name]) for name in terms["clients"]),
        ("server", None, terms["keys"]["server"]),
    ]
    for role, name, key in parties:
        signature = signatures["server"] if name is None else clients.get(name)
        shown = name or "the server"
        if signature is None:
            result.missing.append(shown)
            continue
        content = statement(role, name, terms, agreement["terms"], digest)
        require(is_signed(key, signature, content), f"the signature of {shown} is not its own")
        result.signed.append(shown)


def statement(role: str, client: str | None, terms: dict, rules: str, digest: str) -> bytes:
    """What a party signs."""
    fields = {
        "body": {"agreement": digest},
        "client": client,
        "consortium": terms["name"],
        "head": [0, "0" * 64],
        "previous": "0" * 64,
        "role": role,
        "slot": 0,
        "stage": "terms",
        "terms": rules,
        "turn": 0,
    }
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return b"fedaccord statement 1\n" + text.encode("utf-8")


def is_signed(key: str, signature: object, content: bytes) -> bool:
    """Whether the owner of a key signed this."""
    if not isinstance(signature, str) or not re.fullmatch(r"[0-9a-f]{128}", signature):
        return False
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key[8:]))
        public.verify(bytes.fromhex(signature), content)
    except (InvalidSignature, ValueError):
        return False
    return True


# --- Whether the numbers in it fit together ------------------------------------------------


def check_sums(agreement: dict, terms: dict) -> None:
    """Check the total, and that by the certificate's numbers no slip pays."""
    profile = agreement["profile"]
    total = sum(row["contribution"] for row in profile["clients"])
    require(profile["total"] == total, "the total is not the sum of the contributions")
    slots = terms.get("punishment_slots")
    rows = zip(agreement["certificate"]["clients"], agreement["numbers"]["clients"], strict=True)
    for proof, numbers in rows:
        delta = numbers["discount_factor"]
        slack = delta - proof["threshold"]
        require(isclose(proof["slack"], slack, abs_tol=CLOSE), "a slack is wrong")
        if proof["saving"] is None or proof["gain"] <= 0:
            continue
        weight = delta / (1 - delta) if slots is None else delta * (1 - delta**slots) / (1 - delta)
        lost = weight * proof["saving"]
        require(proof["gain"] <= lost + CLOSE * (abs(lost) + proof["gain"]), "a slip would pay")


def main() -> int:
    """Verify the file that the command line names."""
    if len(sys.argv) != 2:
        print("usage: verify_agreement.py FILE.html", file=sys.stderr)
        return 2
    result = verify(Path(sys.argv[1]).read_bytes())
    for name in result.signed:
        print(f"signed: {name}")
    for name in result.missing:
        print(f"not signed: {name}")
    print(f"refused: {result.refused}" if result.refused else result.verdict)
    return 0 if result.verdict == "complete" else 1


if __name__ == "__main__":
    sys.exit(main())
