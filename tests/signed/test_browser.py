"""The page checks itself in a browser: headless Chromium, with no network."""

import hashlib
import html
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fedaccord.signed.drafting import draft_agreement
from fedaccord.signed.signatures import merge_signatures, sign_agreement
from fedaccord.signing.canonical import canonical
from fedaccord.signing.keys import is_signed, key_from_seed
from tests.signed.damages import (
    change_the_text,
    larger_s,
    of_another_consortium,
    other_form_of_unicode,
    sign_as_nobody,
    swap_signatures,
)
from tests.signed.examples import (
    KEYS,
    KINDS,
    consortium,
    draft,
    otherwise_signed,
    posted_terms,
    signed,
)
from tests.signed.rfc8032 import VECTORS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


def shown(page: Path) -> str:
    """The page's document after its scripts have run."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            *("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            f"--user-data-dir={page.parent / 'profile'}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    return done.stdout


def check_of(content: bytes, folder: Path) -> tuple[str, str]:
    """What the page says of itself: its colours, and its text."""
    page = folder / "agreement.html"
    page.write_bytes(content)
    found = re.search(
        r'<section id="check" class="verdict (\w+)">(.*?)</section>', shown(page), re.DOTALL
    )
    assert found is not None
    look, said = found.groups()
    return look, html.unescape(re.sub(r"<[^>]+>", " ", said))


@pytest.mark.parametrize("kind", KINDS)
def test_a_complete_file_is_verified(kind: str, tmp_path: Path) -> None:
    look, said = check_of(signed(kind).content, tmp_path)

    assert look == "holds"
    assert "Verified: signed by every member and by the server." in said
    assert signed(kind).digest in said


@pytest.mark.parametrize(
    "names",
    [
        ('Q"uote', "Ap'os", "E&amp;F &nbsp; &lt;"),
        ("--> ]]>", "{{ name }} {% raw %}", "`${x}` \\u003c \\"),
        ("constructor", "__proto__", "toString"),
        ("مستشفى", "日本 病院", "e\u0301\ufb01 \N{GRINNING FACE}"),
    ],
)
def test_odd_names(names: tuple[str, ...], tmp_path: Path) -> None:
    described = consortium(names=names)
    file = draft_agreement(posted_terms(described), described, made_on="today", made_with="a test")
    for key in KEYS[1:]:
        file = sign_agreement(file, key)
    look, said = check_of(file.content, tmp_path)

    assert look == "doubtful"
    assert f"Signed by 3 of 4. Not signed by {described.names[0]}." in said
    assert f"{described.names[2]}: signed" in said


def test_what_was_merged_is_verified(tmp_path: Path) -> None:
    ours = otherwise_signed(draft(), 0)
    merged = merge_signatures(ours, [sign_agreement(draft(), key) for key in KEYS])
    assert merged.signatures != signed().signatures
    assert check_of(merged.content, tmp_path)[0] == "holds"


def test_a_file_that_some_signed(tmp_path: Path) -> None:
    file = sign_agreement(draft(), KEYS[1])
    look, said = check_of(file.content, tmp_path)

    assert look == "doubtful"
    assert "Signed by 1 of 4. Not signed by" in said
    assert "Zürich: signed" in said
    assert "the server: not signed" in said


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (change_the_text, "the text of the page was changed"),
        (swap_signatures, "is not its own"),
        (larger_s, "the signature of St. Mary's & Sons is not its own"),
        (sign_as_nobody, "a signature of Mallory, who is not in the terms"),
        (of_another_consortium, "changed"),
        (other_form_of_unicode, "changed"),
    ],
)
def test_a_damaged_file_is_refused(damage: Any, reason: str, tmp_path: Path) -> None:
    look, said = check_of(damage(signed().content, Random(1)), tmp_path)

    assert look == "fails"
    assert "NOT verified" in said
    assert reason in said


def test_changed_numbers_are_refused(tmp_path: Path) -> None:
    content = signed().content.replace(b'"valuation":35.0', b'"valuation":36.0')
    look, said = check_of(content, tmp_path)

    assert look == "fails"
    assert "the agreement was changed" in said


def test_a_changed_program_says_nothing(tmp_path: Path) -> None:
    content = signed().content.replace(b"function show(", b"function shew(")
    look, said = check_of(content, tmp_path)

    assert look == "fails"
    assert "Not checked" in said


# --- The functions of the program, by themselves -------------------------------------------


def computed(expression: str, value: Any, folder: Path) -> Any:
    """The value of an expression in JavaScript, with `given` in it."""
    program = (resources.files("fedaccord.signed") / "page_files" / "verify.js").read_text("utf-8")
    given = json.dumps(value).replace("<", "\\u003c")
    page = folder / "program.html"
    page.write_text(
        f"""<!DOCTYPE html><meta charset="utf-8"><section id="check"></section>
        <script>{program}</script>
        <pre id="result"></pre>
        <script>
        const given = {given};
        document.getElementById("result").textContent = JSON.stringify({expression});
        </script>""",
        "utf-8",
    )
    found = re.search(r'<pre id="result">(.*?)</pre>', shown(page), re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found[1]))


def test_digests_are_those_of_hashlib(tmp_path: Path) -> None:
    random = Random(1)
    messages = [random.randbytes(size).hex() for size in (*range(300), 1_000, 10_000)]
    both = "given.map((m) => [SHA256, SHA512].map((kind) => hex(sha2(fromHex(m), kind))))"

    found = computed(both, messages, tmp_path)

    expected = [bytes.fromhex(message) for message in messages]
    assert found == [
        [hashlib.sha256(one).hexdigest(), hashlib.sha512(one).hexdigest()] for one in expected
    ]


CHECKED = (
    "given.map(([key, signature, message]) => isSigned(...[key, signature, message].map(fromHex)))"
)


def test_the_vectors_of_rfc_8032(tmp_path: Path) -> None:
    for secret, public, message, signature in VECTORS:
        key = key_from_seed(bytes.fromhex(secret))
        assert key.public == f"ed25519:{public}"
        assert key.sign(bytes.fromhex(message)) == signature
    cases = [(public, signature, message) for _, public, message, signature in VECTORS]

    assert computed(CHECKED, cases, tmp_path) == [True] * len(VECTORS)


def test_signatures_are_judged_as_in_python(tmp_path: Path) -> None:
    """Valid ones, flipped bits, other messages and keys, S too large, points of small order."""
    random = Random(2)
    order = 2**252 + 27742317777372353535851937790883648493
    cases = []
    for number in range(60):
        key, message = key_from_seed(random.randbytes(32)), random.randbytes(number)
        signature, public = bytes.fromhex(key.sign(message)), bytes.fromhex(key.public[8:])
        large = int.from_bytes(signature[32:], "little") + order
        at = random.randrange(512)
        flipped = (int.from_bytes(signature, "big") ^ 1 << at).to_bytes(64, "big")
        cases += [
            (public, signature, message),
            (public, flipped, message),
            (public, signature, message + b"."),
            (random.randbytes(32), signature, message),
            (public, signature[:32] + large.to_bytes(32, "little"), message),
        ]
    texts = [tuple(part.hex() for part in case) for case in cases]

    found = computed(CHECKED, texts, tmp_path)

    expected = [is_signed(f"ed25519:{key.hex()}", sign.hex(), text) for key, sign, text in cases]
    assert found == expected
    assert sum(expected) == 60


def test_keys_of_small_order_sign_nothing(tmp_path: Path) -> None:
    """For the neutral point as a key, R = S B would verify any message."""
    neutral = (1).to_bytes(32, "little").hex()
    cases = [(neutral, neutral + "00" * 32, message.hex()) for message in (b"", b"a")]

    assert computed(CHECKED, cases, tmp_path) == [False, False]


def test_canonical_json_is_that_of_python(tmp_path: Path) -> None:
    value = {
        "\N{GRINNING FACE}": 1,
        "\ufb01": [None, True, {"b": '\x00\x1f\x7f\u2028"\\/\n\r\t\b\f', "a": ""}],
        "é": -5,
    }
    assert computed("canonical(given)", value, tmp_path) == canonical(value)
