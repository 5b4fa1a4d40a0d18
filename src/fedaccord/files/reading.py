"""Text, TOML and JSON files as Python values, or one sentence about why they cannot be read.

Python's TOML reader takes time quadratic in the dotted parts of a key, and recurses with the
nesting. None of our files has keys of many parts or very long words, so a file that has is refused
unread.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from fedaccord.checks import shown
from fedaccord.errors import InvalidInput

MEGABYTE = 1_000_000


def read_text(path: Path, limit: int) -> str:
    """The text of a UTF-8 file (with or without a byte order mark) of at most `limit` bytes."""
    try:
        if path.is_dir():
            raise InvalidInput("is a directory, not a file", str(path))
        if path.stat().st_size > limit:
            raise InvalidInput(_too_large(path.stat().st_size, limit), str(path))
        with path.open("rb") as file:
            data = file.read(limit + 1)  # a pipe has no size, so read no more than allowed
    except FileNotFoundError:
        raise InvalidInput("there is no such file", str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot be read: {why}", str(path)) from None
    if len(data) > limit:
        raise InvalidInput(_too_large(len(data), limit), str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"line {line}: is not UTF-8 text", str(path)) from None


def _too_large(size: int, limit: int) -> str:
    return (
        f"is too large: {size / MEGABYTE:,.1f} MB, at most {limit / MEGABYTE:,.0f} MB can be read"
    )


TOML_LIMIT = 10 * MEGABYTE
TABLE_LIMIT = 64 * MEGABYTE
"""For CSV and JSON."""
_MOST_PARTS = 20
"""Of a dotted key; the files have 3."""
_LONGEST_WORD = 100
"""Characters of a number, or of a key that is not in quotes."""

# Each alternative takes a quote to its end, or to where the file is broken: the search is linear.
_TEXT_OR_COMMENT = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\\?\Z)'
    r"|'''(?:[^']++|'(?!''))*+(?:'''|\Z)"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
_LONG_WORD = re.compile(rf"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{{{_LONGEST_WORD + 1}}}")
_MANY_PARTS = re.compile(rf"(?:\.[^.=,\[\]{{}}\n]*+){{{_MOST_PARTS}}}")


def load_toml(path: str | Path) -> dict[str, Any]:
    """What is in a TOML file."""
    return parse_toml(read_text(Path(path), TOML_LIMIT), str(path))


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """What is in the text of a TOML file called `source`.

    >>> parse_toml("rounds = 50", "consortium.toml")
    {'rounds': 50}
    """
    bare = _TEXT_OR_COMMENT.sub("_", text)
    if (word := _LONG_WORD.search(bare)) is not None:
        raise InvalidInput(
            f"the key or number {shown(word[0])} is longer than {_LONGEST_WORD} characters", source
        )
    if _MANY_PARTS.search(bare) is not None:
        raise InvalidInput(f"a key has more than {_MOST_PARTS} parts with dots between", source)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidInput("is nested too deeply", source) from None
    except ValueError as error:  # broken, or a number too long
        raise InvalidInput(f"is not TOML: {_brief(str(error))}", source) from None


def _brief(message: str) -> str:
    """A message that may quote a long word from the file; where it stands comes last."""
    return message if len(message) <= 200 else f"{message[:100]} ... {message[-60:]}"


def load_json(path: Path) -> Any:
    """The value in a JSON file, in which no key may be given twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"{shown(key)} is there twice")
            found[key] = value
        return found

    try:
        return json.loads(read_text(path, TABLE_LIMIT), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not usable JSON: {error}") from None
