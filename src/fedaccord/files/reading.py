"""Reading text, TOML and JSON files, and collecting what is wrong with them.

Python's TOML reader takes time quadratic in the dotted parts of a key, and recurses with the
nesting. None of our files needs keys of many parts or very long words, so a file that has them is
refused before it is parsed.
"""

import csv
import json
import re
import tomllib
import warnings
from collections.abc import Iterable, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from fedaccord.checks import in_brief, shown
from fedaccord.errors import FileNote, InvalidInput, Problem
from fedaccord.files.numerals import toml_float, unambiguous

MEGABYTE = 1_000_000


def tell(notes: Iterable[str], source: str | Path) -> None:
    """Warn of the notes on a file."""
    for note in notes:
        warnings.warn(f"{source}: {_printable(note)}", FileNote, stacklevel=3)


class Mistakes:
    """The problems found so far in `source`, reported together in the order of the clients."""

    def __init__(self, source: str) -> None:
        """Start with none."""
        self.source = source
        self._found: list[tuple[int, Problem]] = []
        self._places: set[str] = set()

    def add(self, problem: Problem, client: int = -1, name: str | None = None) -> None:
        """Note a problem of the client at this position (-1: of what all clients share).

        Its `name` is added to the message if there is one.
        """
        message = f"{problem.message} ({in_brief(name)})" if name else problem.message
        place = _printable(in_brief(problem.where))
        self._found.append((client, Problem(problem.field, _printable(message), place)))
        self._places.add(problem.where)

    def __contains__(self, place: str) -> bool:
        """Whether there is a problem at this place already, so that no other need be reported."""
        return place in self._places

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._found)

    def error(self) -> InvalidInput:
        """All of them as one error to raise."""
        in_order = sorted(self._found, key=lambda found: found[0])
        return InvalidInput([problem for _, problem in in_order], self.source)


def _printable(text: str) -> str:
    """The text with control characters escaped: a file must not control the terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of a file of at most `limit` bytes."""
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
    return data


def read_text(path: Path, limit: int) -> str:
    """The text of a UTF-8 file (with or without a byte order mark) of at most `limit` bytes."""
    data = read_bytes(path, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(Problem("", "is not UTF-8 text", f"line {line}"), str(path)) from None


def _too_large(size: int, limit: int) -> str:
    return (
        f"is too large: {size / MEGABYTE:,.1f} MB, at most {limit / MEGABYTE:,.0f} MB can be read"
    )


TOML_LIMIT = 10 * MEGABYTE
TABLE_LIMIT = 64 * MEGABYTE
"""For spreadsheets and JSON."""
_TABLES = (".csv", ".tsv", ".xlsx", ".xls", ".ods")
"""How the names of tables of clients end."""
_MOST_PARTS = 20
"""Parts of a dotted key; ours have up to 3."""
_LONGEST_WORD = 100
"""Characters of a number, or of a key that is not in quotes."""

# Each alternative matches a quoted text to its end, or as far as it is valid, in linear time.
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


def is_table(path: str | Path) -> bool:
    """Whether it is a table of clients, by the end of its name."""
    return Path(path).suffix.lower() in _TABLES


def load_toml(path: str | Path) -> dict[str, Any]:
    """The contents of a TOML file."""
    file = Path(path)
    if is_table(file) and file.is_file():
        raise InvalidInput(
            "is a table of clients; give a consortium file (TOML) that has rounds, discount_factor "
            f'and clients = "{in_brief(file.name)}"',
            str(path),
        )
    return parse_toml(read_text(file, TOML_LIMIT), str(path))


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The contents of a TOML text; `source` is what it is called in messages.

    >>> parse_toml("rounds = 50", "consortium.toml")
    {'rounds': 50}
    """
    bare = _TEXT_OR_COMMENT.sub("_", text)
    if (word := _LONG_WORD.search(bare)) is not None:
        raise InvalidInput(
            f"the key or number {shown(word[0])} is longer than {_LONGEST_WORD} characters", source
        )
    if _MANY_PARTS.search(bare) is not None:
        raise InvalidInput(f"a key has more than {_MOST_PARTS} parts separated by dots", source)
    try:
        return tomllib.loads(text, parse_float=toml_float)
    except RecursionError:
        raise InvalidInput("is nested too deeply", source) from None
    except ValueError as error:  # not valid, or a number with too many digits
        hint = _hint(text, str(error))
        raise InvalidInput(f"is not TOML: {hint}{_brief(str(error))}", source) from None


_AT_LINE = re.compile(r"\(at line (\d+)")
_LIKE_A_SPREADSHEET = re.compile(r"=[ \t]*([0-9]+)(?:,([0-9]+))?[ \t]*(%?)[ \t]*(?:#.*)?")


def _hint(text: str, error: str) -> str:
    """What to write instead, if the wrong line has a number as spreadsheets have them."""
    at = _AT_LINE.search(error)
    line = text.split("\n")[int(at[1]) - 1] if at else ""
    number = _LIKE_A_SPREADSHEET.search(line[:1000])
    if number is None or not (number[2] or number[3]):
        return ""
    whole, decimals, percent = number.groups()
    value = float(f"{whole}.{decimals or 0}") / (100 if percent else 1)
    return f"a number has a decimal point and no sign, as in {value:.15g}: "


def _brief(message: str) -> str:
    """A parser's message, shortened: it may quote a long word, and ends with the line number."""
    return message if len(message) <= 200 else f"{message[:100]} ... {message[-60:]}"


def load_json(path: Path) -> Any:
    """The value in a JSON file, in which no key may appear twice in an object."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"the key {shown(key)} appears twice")
            found[key] = value
        return found

    try:
        return json.loads(read_text(path, TABLE_LIMIT), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not usable JSON: {error}") from None


# --- CSV cells, also those that are written ---------------------------------------------------

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")

Cell = TypeVar("Cell")


def guarded(cell: Cell) -> Cell | str:
    """A cell as it is written to CSV, so that nothing can take it for something else.

    An apostrophe keeps spreadsheets from running text as a formula; text that already begins with
    apostrophes before a formula gets one more. A number never looks like one with a thousands
    separator.
    """
    if isinstance(cell, float) and isfinite(cell):
        return unambiguous(repr(float(cell)))
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""A table as CSV, its cells `guarded`.

    >>> csv_text(["name", "contribution"], [("=SUM(A1)", 2.5)])
    "name,contribution\n'=SUM(A1),2.5\n"
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(guarded, row) for row in rows)
    return text.getvalue()


def unguarded(cell: str) -> str:
    """The cell before it was `guarded`."""
    return cell[1:] if _GUARDED.match(cell) else cell
