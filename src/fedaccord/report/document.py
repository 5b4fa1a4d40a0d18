"""A document in sections, written once: as Markdown for a documentation site, or as one HTML page.

>>> document = Document("Two clinics", "What they found.", (
...     Section("Data", ("There is some.", Table(("Clinic", "Records"), (("North", "12"),)))),))
>>> print(as_markdown(document))
# Two clinics
<BLANKLINE>
What they found.
<BLANKLINE>
## Data
<BLANKLINE>
There is some.
<BLANKLINE>
| Clinic | Records |
|---|---|
| North | 12 |
<BLANKLINE>
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

from fedaccord.report.pages import as_svg, fill

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 110
"""Of a line of Markdown."""


@dataclass(frozen=True)
class Table:
    """Cells as text, under a heading for each column."""

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Slider:
    """A table of which a browser shows one row at a time, chosen by the first column.

    On paper, and without JavaScript, it is the whole table.
    """

    label: str
    table: Table
    start: int
    """The row that is shown first."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its caption: a sentence in bold, and the rest."""

    name: str
    """Of its file."""
    caption: tuple[str, str]
    figure: Figure


@dataclass(frozen=True)
class Points:
    """Sentences in a list."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Commands:
    """What to type."""

    lines: tuple[str, ...]


Part: TypeAlias = str | Table | Slider | Picture | Points | Commands


@dataclass(frozen=True, eq=False)
class Section:
    """Paragraphs, tables and pictures under a heading."""

    heading: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Document:
    """A title, what matters most, and the sections."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    about: str = ""
    """Above the title: what kind of document it is."""

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, in their order."""
        parts = (part for section in self.sections for part in section.parts)
        return [part for part in parts if isinstance(part, Picture)]


def as_page(document: Document) -> str:
    """The document as one HTML page."""
    return fill(
        "document.html.j2",
        title=document.title,
        consortium=SimpleNamespace(name=document.about or document.title),
        document=document,
        kind=lambda part: type(part).__name__,
        as_svg=as_svg,
    )


def as_markdown(document: Document, images: str = "") -> str:
    """The document as Markdown; its pictures are expected as PNG files in the folder `images`."""
    blocks = [f"# {document.title}", _wrapped(document.lead)]
    for section in document.sections:
        blocks.append(f"## {section.heading}")
        for part in section.parts:
            blocks += _blocks(part, images)
    return "\n\n".join(blocks) + "\n"


def _blocks(part: Part, images: str) -> Iterator[str]:
    if isinstance(part, str):
        yield _wrapped(part)
    elif isinstance(part, Picture):
        first, rest = part.caption
        yield f"![{first}]({images}{part.name}.png)"
        yield _wrapped(f"*{first}* {rest}".strip())
    elif isinstance(part, Points):
        yield "\n".join(_wrapped(line, "- ", "  ") for line in part.lines)
    elif isinstance(part, Commands):
        lines = "\n".join(f"$ {line}" for line in part.lines)
        yield f"<!-- skip: next -->\n\n```console\n{lines}\n```"
    else:
        table = part.table if isinstance(part, Slider) else part
        if isinstance(part, Slider):
            yield _wrapped(f"{part.label}:")
        yield _markdown_table(table)
        if table.note:
            yield _wrapped(table.note)


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _markdown_table(table: Table) -> str:
    rows = [table.heading, ("---",) * len(table.heading), *table.rows]
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    lines[1] = lines[1].replace(" ", "")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """A cell in one line, in which no bar ends it."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
