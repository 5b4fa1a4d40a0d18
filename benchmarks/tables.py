"""Results that are kept: a CSV file, and tables on a page of the documentation.

A table on a page stands between `<!-- table: name -->` and `<!-- end of table -->`.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from fedaccord.atomic import write_whole

Result = TypeVar("Result")


def write_csv(file: Path, results: Sequence[Any]) -> None:
    """One line for each result, a dataclass."""
    text = StringIO()
    writer = csv.DictWriter(text, list(asdict(results[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(one) for one in results)
    write_whole(file, text.getvalue().encode())


def read_csv(file: Path, kind: type[Result]) -> list[Result]:
    """The results that `write_csv` wrote."""
    hints = get_type_hints(kind)
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [kind(**{name: hints[name](text) for name, text in row.items()}) for row in rows]


def markdown(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def on_page(text: str, name: str) -> str:
    """The table of this name on a page."""
    place = rf"<!-- table: {re.escape(name)} -->\n\n(.*?)\n\n<!-- end of table -->"
    found = re.search(place, text, re.DOTALL)
    if found is None:
        raise ValueError(f"there is no place for the table {name!r}")
    return found[1]


def put_on_page(page: Path, tables: dict[str, str]) -> None:
    """Replace tables of a page."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = text.replace(on_page(text, name), table)
    write_whole(page, text.encode())
