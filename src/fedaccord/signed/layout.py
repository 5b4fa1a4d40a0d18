"""The bytes of an agreement file: a fixed shell around the page's text and three pieces of JSON.

None of the pieces contains a `<`, except for the text, in which nothing but tags does. So each
part is where its opening mark is, up to its closing mark, for any reader.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from fedaccord.errors import InvalidInput

MARKS = (
    ("<main>", "</main>"),
    ('<script type="application/json" id="terms">', "</script>"),
    ('<script type="application/json" id="agreement">', "</script>"),
    ('<script type="application/json" id="signatures">', "</script>"),
)
"""What each part is between, in the order of the file."""


class Parts(NamedTuple):
    """The parts of a file."""

    main: str
    """The text of the page, without its tag."""
    terms: str
    agreement: str
    signatures: str


def split(content: bytes) -> tuple[str, Parts]:
    """The shell of a file, with its parts taken out, and the parts.

    >>> shell, parts = split(join(shell_text(), Parts("<p>Hello</p>", "{}", "{}", "{}")))
    >>> parts.main, shell == shell_text()
    ('<p>Hello</p>', True)
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("is not an agreement file: it is not UTF-8 text") from None
    shell, parts, rest = "", [], text
    for opening, closing in MARKS:
        before, opened, rest = rest.partition(opening)
        part, closed, rest = rest.partition(closing)
        if text.count(opening) != 1 or not opened or not closed:
            raise InvalidInput(f"is not an agreement file: it needs one {opening}")
        shell += before + opening + closing
        parts.append(part)
    if any("<" in part for part in parts[1:]):
        raise InvalidInput("is not an agreement file: there is a tag within its JSON")
    return shell + rest, Parts(*parts)


def join(shell: str, parts: Sequence[str]) -> bytes:
    """The content of a file with these parts."""
    for part, (opening, closing) in zip(parts, MARKS, strict=True):
        shell = shell.replace(opening + closing, opening + part + closing, 1)
    return shell.encode("utf-8")


@cache
def shell_text() -> str:
    """The shell of the files that are made now, with the style and the program in it."""
    folder = resources.files("fedaccord.signed") / "page_files"
    shell = (folder / "shell.html").read_text("utf-8")
    for name in ("style.css", "verify.js"):
        own = (folder / name).read_text("utf-8").rstrip("\n")
        shell = shell.replace(f"/* {name} */", own)
    return shell


def digest_of_text(text: str) -> str:
    """The SHA-256 digest of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def digest_of_main(main: str) -> str:
    """The digest of the page's text, with its tag."""
    opening, closing = MARKS[0]
    return digest_of_text(opening + main + closing)
