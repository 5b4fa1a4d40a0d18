"""Ways to damage an agreement file, or to leave it as it is."""

import json
import unicodedata
from collections.abc import Callable
from random import Random
from typing import Any

from fedaccord.signed.layout import digest_of_text, join, split
from fedaccord.signed.signatures import sign_agreement
from fedaccord.signing.canonical import canonical
from tests.signed.examples import KEYS, KINDS, NAMES, OTHER_KEYS, draft, signed

Damage = Callable[[bytes, Random], bytes]


def flip_a_bit(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]


def flip_a_bit_of_json(content: bytes, random: Random) -> bytes:
    start = content.index(b'<script type="application/json" id="terms">')
    at = random.randrange(start, content.index(b'"use strict"'))
    return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]


def replace_a_byte(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content))
    return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]


def truncate(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content))]


def leave_out(content: bytes, random: Random) -> bytes:
    start = random.randrange(len(content))
    return content[:start] + content[start + random.randrange(1, 60) :]


def insert_space(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content))
    return content[:at] + random.choice([b" ", b"\n", b"\t", b"\r\n", b"\0"]) + content[at:]


def append(content: bytes, random: Random) -> bytes:
    return content + random.choice([b"\n", b" ", b"<!-- -->", b"<main></main>", b"\xef\xbb\xbf"])


def byte_order_mark(content: bytes, random: Random) -> bytes:
    return b"\xef\xbb\xbf" + content


def change_the_text(content: bytes, random: Random) -> bytes:
    shell, parts = split(content)
    old = random.choice(["samples", "Proved", "no member", "agreed", "</p>", "Member"])
    changed = parts.main.replace(old, random.choice(["", "x", old + " ", old.upper()]), 1)
    return join(shell, parts._replace(main=changed))


def change_the_style(content: bytes, random: Random) -> bytes:
    return content.replace(b"color: var(--bad)", b"color: var(--good)", random.choice([1, -1]))


def change_the_program(content: bytes, random: Random) -> bytes:
    return content.replace(b'? "signed" : "wrong"', b'? "signed" : "signed"')


def parts_as_json(content: bytes) -> tuple[str, str, list[dict[str, Any]]]:
    shell, parts = split(content)
    return shell, parts.main, [json.loads(part) for part in parts[1:]]


def written(shell: str, main: str, parts: list[dict[str, Any]]) -> bytes:
    return join(shell, [main, *map(canonical, parts)])


def swap_signatures(content: bytes, random: Random) -> bytes:
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    one, other = random.sample(NAMES, 2)
    clients = signatures["clients"]
    if one not in clients or other not in clients:
        return content
    clients[one], clients[other] = clients[other], clients[one]
    return written(shell, main, [terms, agreement, signatures])


def remove_a_signature(content: bytes, random: Random) -> bytes:
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    signatures["clients"].pop(random.choice(NAMES), None)
    return written(shell, main, [terms, agreement, signatures])


def remove_the_servers(content: bytes, random: Random) -> bytes:
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    signatures["server"] = None
    return written(shell, main, [terms, agreement, signatures])


def odd_signature(content: bytes, random: Random) -> bytes:
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    given = signatures["clients"].get(NAMES[0], "ab" * 64)
    odd = [
        given.upper(),
        given[:-2],
        given + "00",
        given + "\n",
        "",
        7,
        None,
        given[64:] + given[:64],
    ]
    signatures["clients"][NAMES[0]] = random.choice(odd)
    return written(shell, main, [terms, agreement, signatures])


def larger_s(content: bytes, random: Random) -> bytes:
    """The same S, plus the order of the group: valid by the equation, but not in RFC 8032."""
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    given = signatures["clients"].get(NAMES[0])
    if given is None:
        return content
    order = 2**252 + 27742317777372353535851937790883648493
    larger = int.from_bytes(bytes.fromhex(given[64:]), "little") + order
    signatures["clients"][NAMES[0]] = given[:64] + larger.to_bytes(32, "little").hex()
    return written(shell, main, [terms, agreement, signatures])


def sign_as_nobody(content: bytes, random: Random) -> bytes:
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    signatures["clients"]["Mallory"] = "ab" * 64
    return written(shell, main, [terms, agreement, signatures])


def add_a_field(content: bytes, random: Random) -> bytes:
    """With digests made anew, so that only signatures and the form tell."""
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    tables = [agreement, agreement["profile"], agreement["page"], agreement["numbers"]]
    rows = [agreement[name]["clients"][0] for name in ("profile", "certificate", "numbers")]
    random.choice([*tables, *rows, signatures])["more"] = random.choice([1, None, "x", []])
    signatures["agreement"] = digest_of_text(canonical(agreement))
    return written(shell, main, [terms, agreement, signatures])


def remove_a_field(content: bytes, random: Random) -> bytes:
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    table = random.choice([agreement, agreement["profile"], agreement["certificate"]["clients"][1]])
    del table[random.choice(list(table))]
    signatures["agreement"] = digest_of_text(canonical(agreement))
    return written(shell, main, [terms, agreement, signatures])


def remove_a_member(content: bytes, random: Random) -> bytes:
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    gone = random.choice(NAMES)
    if random.random() < 0.5:
        terms["clients"].remove(gone)
        terms["keys"]["clients"].pop(gone)
        agreement["terms"] = digest_of_text(canonical(terms))
    for table in ("profile", "certificate", "numbers"):
        rows = agreement[table]["clients"]
        agreement[table]["clients"] = [row for row in rows if row["name"] != gone]
    signatures["agreement"] = digest_of_text(canonical(agreement))
    return written(shell, main, [terms, agreement, signatures])


def change_keys(content: bytes, random: Random) -> bytes:
    """Swapped, repeated, of another consortium, weak, or not a key at all."""
    shell, main, (terms, agreement, signatures) = parts_as_json(content)
    keys = terms["keys"]["clients"]
    weak = "ed25519:" + (1).to_bytes(32, "little").hex()
    too_large = "ed25519:" + (2**255 - 19 + 5).to_bytes(32, "little").hex()
    odd = [
        weak,
        too_large,
        OTHER_KEYS[0].public,
        KEYS[3].public,
        KEYS[1].public,
        "",
        "ed25519:zz",
        3,
    ]
    if random.random() < 0.3:
        keys[NAMES[0]], keys[NAMES[1]] = keys[NAMES[1]], keys[NAMES[0]]
    else:
        keys[NAMES[0]] = random.choice(odd)
    if random.random() < 0.5:
        agreement["terms"] = digest_of_text(canonical(terms))
        signatures["agreement"] = digest_of_text(canonical(agreement))
    return written(shell, main, [terms, agreement, signatures])


def of_another_consortium(content: bytes, random: Random) -> bytes:
    shell, main, mine = parts_as_json(content)
    _, text, theirs = parts_as_json(signed("posted", other=True).content)
    chosen = [random.choice(pair) for pair in zip(mine, theirs, strict=True)]
    return written(shell, random.choice([main, text]), chosen)


def other_form_of_unicode(content: bytes, random: Random) -> bytes:
    shell, parts = split(content)
    which = random.choice(["main", "terms", "agreement", "signatures"])
    changed = unicodedata.normalize("NFD", getattr(parts, which))
    return join(shell, parts._replace(**{which: changed}))


def not_canonical(content: bytes, random: Random) -> bytes:
    """The same JSON in another form: spaces, other escapes, another order, a key twice."""
    shell, parts = split(content)
    which = random.choice(["terms", "agreement", "signatures"])
    value = json.loads(getattr(parts, which))
    first = next(iter(value))
    forms = [
        json.dumps(value, sort_keys=True),
        json.dumps(value, sort_keys=True, separators=(",", ":")),
        json.dumps(dict(reversed(value.items())), separators=(",", ":"), ensure_ascii=False),
        "{" + json.dumps(first) + ":1," + canonical(value)[1:],
        canonical(value) + "\n",
        canonical(value).replace(":0.8", ":8e-1"),
        canonical(value).replace("0.05", "0.050"),
    ]
    return join(shell, parts._replace(**{which: random.choice(forms)}))


def odd_json(content: bytes, random: Random) -> bytes:
    shell, parts = split(content)
    which = random.choice(["terms", "agreement", "signatures"])
    odd = ["", "null", "[]", "{}", "1e999", '{"a":NaN}', "[" * 5000, '"\\ud800"', '{"a":"\\ud800"}']
    return join(shell, parts._replace(**{which: random.choice(odd)}))


def leave_it(content: bytes, random: Random) -> bytes:
    return content


def any_kind(random: Random) -> str:
    """Most often the kind whose terms are read quickly: posted amounts are proved each time."""
    return random.choices(KINDS, [1, 1, 1, 12])[0]


def sign_anew(content: bytes, random: Random) -> bytes:
    """By some of the parties, or by all: a valid file."""
    file = draft(any_kind(random))
    for key in random.sample(KEYS, random.randrange(len(KEYS) + 1)):
        file = sign_agreement(file, key)
    return file.content


DAMAGES: tuple[Damage, ...] = (
    flip_a_bit,
    flip_a_bit,
    flip_a_bit_of_json,
    replace_a_byte,
    truncate,
    leave_out,
    insert_space,
    append,
    byte_order_mark,
    change_the_text,
    change_the_style,
    change_the_program,
    swap_signatures,
    remove_a_signature,
    remove_the_servers,
    odd_signature,
    larger_s,
    sign_as_nobody,
    add_a_field,
    remove_a_field,
    remove_a_member,
    change_keys,
    of_another_consortium,
    other_form_of_unicode,
    not_canonical,
    odd_json,
    leave_it,
    sign_anew,
    sign_anew,
)


MAY_BE_VALID = (
    "remove_a_signature",
    "remove_the_servers",
    "sign_anew",
    "of_another_consortium",  # if nothing is left of this one
    "change_keys",  # before anybody has signed
)
"""Damages after which a file may be what its parties signed, or would sign."""


def damaged(number: int) -> tuple[str, bytes, bytes]:
    """The name of a damage, a valid file, and the same file damaged."""
    random = Random(number)
    kind = any_kind(random)
    content = (signed(kind) if random.random() < 0.8 else draft(kind)).content
    damage = DAMAGES[number % len(DAMAGES)]
    return damage.__name__, content, damage(content, random)
