"""A TOML file as Python's values, or one sentence about why not, soon, whatever is in it.

Python's reader takes time with the square of a key's dotted parts, and recurses with the nesting.
No file of ours has keys of many parts or very long words, so what has is refused unread.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from fedaccord.errors import InvalidInput
from fedaccord.game.mistakes import shown
from fedaccord.game.text_file import MEGABYTE, read_text

TOML_LIMIT = 10 * MEGABYTE
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
