"""The rows of a spreadsheet: CSV in the encodings and with the separators in use, or a workbook.

Which kind it is follows from the content, not from the file's name.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

from fedaccord.checks import escaped, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.cells import Row, Sheet
from fedaccord.files.workbook import is_workbook, read_workbook

SEPARATORS = "\t;,|"
SEARCHED = 10
"""Rows among which the headings are looked for; those above them are titles."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_FOREIGN = re.compile(r'[^\s,;"]*[^\x00-\x7f][^\s,;"]*')
"""A word with a letter that is not ASCII."""
_FIRST_ROW = 100_000
"""Characters in which the headings are looked for."""
_OTHER_KINDS = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"RIFF": "a picture or a sound",
    b"{\\rtf": "a text of a word processor",
    b"\x1f\x8b": "a compressed file",
    b"7z\xbc\xaf": "a compressed file",
    b"Rar!": "a compressed file",
}
"""What files that are no table begin with."""
_HTML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|table|\?xml)\b", re.IGNORECASE)
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"|\[\s*\{)')


def read_sheet(data: bytes | str, is_heading: Callable[[str], bool]) -> Sheet:
    """The rows in the content of a CSV, XLSX, XLS or ODS file.

    The cells of CSV are separated by the character that makes most headings of a row.
    """
    if isinstance(data, bytes):
        if is_workbook(data):
            return read_workbook(data)
        check_kind(data)
    notes: list[str] = []
    text = data.removeprefix("\ufeff") if isinstance(data, str) else decode(data, notes)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidInput(Problem("", "is not text; save the file as UTF-8", f"line {line}"))
    return Sheet(_csv_rows(text, is_heading), _line, notes)


def check_kind(data: bytes) -> None:
    """Refuse a file that is no table, and known by its first bytes."""
    for beginning, kind in _OTHER_KINDS.items():
        if data.startswith(beginning):
            raise InvalidInput(f"is {kind}; save it as XLSX or as CSV")
    if _HTML.match(data):  # some programs export it as .xls or .csv
        raise InvalidInput("is a web page; save it as XLSX or as CSV")
    if _JSON.match(data):
        raise InvalidInput("is JSON; save the table as XLSX or as CSV")


def _line(row: int, _column: int | None) -> str:
    """CSV has lines; the column of a problem is named by its heading."""
    return f"line {row}"


def decode(data: bytes, notes: list[str]) -> str:
    """The text of UTF-8, of UTF-16 with a byte order mark, or else of Windows-1252, with a note.

    >>> decode("Zürich".encode("cp1252"), notes := []), notes
    ('Zürich', ["line 1: is not UTF-8; read as Windows-1252, with 'Zürich'"])
    """
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        if data.startswith((*_UTF16, codecs.BOM_UTF8)):
            kind = "UTF-16" if data.startswith(_UTF16) else "UTF-8"
            wrong = f"is not {kind} text, though its first bytes say so"
            raise InvalidInput(Problem("", wrong, f"line {line}")) from None
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        wrong = "is neither UTF-8 nor Windows-1252 text; save the file as UTF-8"
        raise InvalidInput(Problem("", wrong, f"line {line}")) from None
    [word] = _FOREIGN.findall(text.split("\n", line)[line - 1])[:1]
    notes.append(f"line {line}: is not UTF-8; read as Windows-1252, with {shown(word)}")
    return text


def _csv_rows(text: str, is_heading: Callable[[str], bool]) -> Iterator[Row]:
    separator, skip = _separator(text, is_heading)
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        strict=True,
        quoting=_quoting(text, separator),
    )
    try:
        for row in reader:
            blank = not any(map(str.strip, row)) or (separator == "|" and _is_rule(row))
            if reader.line_num > skip and not blank:
                yield reader.line_num, row
    except csv.Error as error:
        place = f"line {reader.line_num}"
        raise InvalidInput(Problem("", f"is not CSV: {escaped(str(error))}", place)) from None


def _is_rule(row: list[str]) -> bool:
    """Whether it is the row of dashes below the headings of a table in Markdown."""
    dashes = "".join(row)
    return "---" in dashes and not dashes.strip(" \t:-")


def _quoting(text: str, separator: str) -> Literal[0, 3]:
    """Whether quotes surround cells: in what spreadsheets copy, they may be part of a name."""
    if separator == "\t" and '"' in text:
        try:
            for _ in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
                pass
        except csv.Error:
            return csv.QUOTE_NONE
    return csv.QUOTE_MINIMAL


def _separator(text: str, is_heading: Callable[[str], bool]) -> tuple[str, int]:
    """The character between cells, and how many lines say so, as Excel's `sep=;` does."""
    first = text[:6].rstrip("\r\n")
    if first[:4].lower() == "sep=" and first[4:] and first[4] in SEPARATORS:
        return first[4], 1

    def headings(separator: str) -> int:
        start = io.StringIO(text[:_FIRST_ROW], newline="")
        reader = csv.reader(start, delimiter=separator, strict=True)
        most = 0
        try:
            for row in islice((row for row in reader if any(map(str.strip, row))), SEARCHED):
                most = max(most, sum(map(is_heading, row)))
        except csv.Error:  # also where the beginning of a long text was cut off
            return most
        return most

    lines = text[:_FIRST_ROW].splitlines()[:SEARCHED]
    return max(SEPARATORS, key=lambda each: (headings(each), "".join(lines).count(each))), 0
