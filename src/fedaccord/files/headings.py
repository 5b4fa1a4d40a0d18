"""The headings of a table of clients: which column is which, however people call it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice

from fedaccord.checks import closest, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.cells import Sheet, as_written
from fedaccord.files.numerals import currency, may_be
from fedaccord.files.ranges import Range, spelled
from fedaccord.numbers import count

OTHER_WORDS = {
    "name": (
        *("client", "client name", "member", "member name", "hospital", "clinic", "site"),
        *("organisation", "organization", "institution", "partner"),
        *("mitglied", "krankenhaus", "klinik", "standort", "nom", "membre", "hôpital", "clinique"),
        *("nombre", "miembro", "hospital name", "nome", "membro", "ospedale", "naam", "ziekenhuis"),
    ),
    "valuation": ("value", "rho", "ρ", "wert", "bewertung", "valeur", "valor", "valore", "waarde"),
    "cost_per_sample": (
        *("sample cost", "cost per case", "cost per example", "cost per record", "cost per image"),
        *("kosten pro fall", "kosten pro beispiel", "kosten pro datensatz", "kosten pro bild"),
        *("coût par cas", "coût par exemple", "coût par image", "costo por caso", "coste por caso"),
        *("costo per caso", "kosten per geval"),
        *("kosten pro probe", "kosten pro stichprobe", "coût par échantillon", "coste por muestra"),
        *("costo por muestra", "costo per campione", "kosten per monster"),
    ),
    "samples": (
        *("number of samples", "no of samples", "sample count", "cases", "number of cases"),
        *("examples", "number of examples", "records", "number of records"),
        *("images", "number of images", "patients", "number of patients"),
        *("fälle", "anzahl fälle", "beispiele", "datensätze", "bilder", "patienten"),
        *("cas", "nombre de cas", "exemples", "casos", "número de casos", "casi", "gevallen"),
        *("proben", "anzahl proben", "stichproben", "échantillon", "échantillons"),
        *("nombre d'échantillons", "nombre d’échantillons", "nombre d'exemples"),
        *("muestras", "número de muestras", "ejemplos", "pacientes", "campioni"),
        *("numero di campioni", "numero di casi", "esempi", "pazienti", "monsters"),
        *("aantal monsters", "aantal gevallen", "patiënten"),
    ),
    "communication_cost": ("communication", "cost of communication"),
    "discount_factor": (
        *("delta", "δ", "diskontfaktor", "diskontierungsfaktor", "abzinsungsfaktor"),
        *("facteur d'actualisation", "facteur d’actualisation", "factor de descuento"),
        *("fattore di sconto", "disconteringsfactor"),
    ),
    "cycles_per_sample": ("cpu cycles per sample",),
    "hertz": ("hz", "cycles per second"),
    "contribution": ("contributions", "samples agreed", "agreed samples"),
}
"""What else people call a column, without regard to case, spaces, hyphens and underscores."""

MONEY = ("valuation", "cost_per_sample", "communication_cost")
"""Columns whose numbers may have a currency."""
SHARES = ("discount_factor",)
"""Columns whose numbers may be percentages."""

_LISTED = 5
"""Columns that are not used and named in the note that says so."""
_SIMILAR = 0.8
"""How similar to a column's name a heading must be to be taken for a typing error."""
_NOT_A_FACTOR = ("discount rate", "interest rate", "interest")
_PERHAPS_A_FACTOR = "discount"
_LEAST_PERCENTAGE = 0.5
"""The least discount factor that is taken as it is when it is written in per cent."""
_WRITE_FACTOR = "write the factor that is meant, without %"
_BRACKETS = re.compile(r"(.*?)[(\[]([^()\[\]]*)[)\]]\s*")
_IN_UNIT = re.compile(r"(.*?\S)(?:\s+in)?\s+(\S+)", re.IGNORECASE)
_BESIDE_A_UNIT = {"in", "per", "slot", "sample", "client"}


@dataclass(frozen=True)
class Heading:
    """What a heading says."""

    field: str
    """The field that it means; empty if none."""
    unit: str = ""
    """The currency or % in it, as in "cost per sample (EUR)"."""
    unknown_unit: str = ""
    """What stands in its brackets, if that is no unit that we know."""


def read_heading(text: str, fields: Sequence[str]) -> Heading:
    """Which of the fields a heading means, and in which unit.

    >>> fields = ["name", "samples", "cost_per_sample"]
    >>> read_heading("Cost-per-Sample (EUR)", fields), read_heading("Hospital", fields).field
    (Heading(field='cost_per_sample', unit='EUR', unknown_unit=''), 'name')
    >>> read_heading("samples (thousands)", fields).unknown_unit
    'thousands'
    """
    known = _spellings(tuple(fields))
    if (field := known.get(_words(text))) is not None:
        return Heading(field)
    if brackets := _BRACKETS.fullmatch(text):
        field, inner = known.get(_words(brackets[1]), ""), brackets[2].strip()
        if not field or known.get(_words(inner)) == field:
            return Heading(field)
        unit = _unit(inner)
        return Heading(field, unit or "", "" if unit is not None else inner)
    last = _IN_UNIT.fullmatch(text.strip())
    unit = _unit(last[2]) if last else None
    return Heading(known.get(_words(last[1]), ""), unit) if last and unit else Heading("")


@lru_cache(maxsize=16)
def _spellings(fields: tuple[str, ...]) -> dict[str, str]:
    """The fields by everything that they are called."""
    return {word: each for each in fields for word in (_words(each), *OTHER_WORDS.get(each, ()))}


def _words(text: str) -> str:
    """A heading in one spelling."""
    spelled = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\s_\-./:*()\[\]]+", " ", spelled).split())


def _unit(text: str) -> str | None:
    """The unit that a text like "EUR per slot" names, empty if it names none, None if unknown."""
    words = [word for word in re.split(r"[\s/]+", text) if word.casefold() not in _BESIDE_A_UNIT]
    if len(words) != 1:
        return None if words else ""
    return "%" if words[0] in ("%", "percent") else currency(words[0])


def wrong_unit(field: str, unit: str) -> str | None:
    """What is wrong with a unit in this column."""
    if unit == "%" and field not in SHARES:
        return "must be a number, not a percentage"
    if unit not in ("", "%") and field not in MONEY:
        return f"must be a number, not an amount of money in {unit}"
    return None


def wrong_currency(unit: str, counted: str, shown_by: str = "") -> str | None:
    """What is wrong with an amount in this unit among others, which are in the currency `counted`.

    That is the consortium's, or what a part of the same table shows.

    >>> wrong_currency("USD", "EUR"), wrong_currency("EUR", "€"), wrong_currency("%", "EUR")
    ('is in USD, and this consortium counts in EUR', None, None)
    """
    if unit in ("", "%") or not counted or may_be(unit, counted):
        return None
    if not shown_by:
        return f"is in {unit}, and this consortium counts in {counted}"
    return f"is in {unit}, and {shown_by} in {counted}; give all amounts in one currency"


def perhaps_a_rate(text: str, found: float | Range) -> str | None:
    """What is wrong with a discount factor in per cent that was probably meant otherwise.

    Nobody is so impatient that a factor is below 50 %: 3 % will be an interest rate.

    >>> print(perhaps_a_rate("0.97 %", 0.0097))
    '0.97 %' is either 0.0097 or 0.97; write the factor that is meant, without %
    """
    ends = found if isinstance(found, Range) else Range(found, found, found)
    if ends.low < 0 or ends.high >= _LEAST_PERCENTAGE:
        return None
    rate = "an interest rate, whose factor is 1 / (1 + rate)"
    other = spelled(Range(*(100 * end for end in ends))) if 0 < ends.high < 0.01 else rate
    return f"{shown(text)} is either {spelled(ends)} or {other}; {_WRITE_FACTOR}"


def heading_problems(
    texts: Sequence[str],
    headings: Sequence[Heading],
    required: Sequence[str],
    known: Sequence[str],
    counted: str = "",
) -> Iterator[tuple[int | None, Problem]]:
    """What is wrong with the headings of a table, each with its column if it is about one."""
    fields = [heading.field for heading in headings]
    shown_by = ""
    for k, (text, heading) in enumerate(zip(texts, headings, strict=True)):
        field = heading.field
        if field and field in fields[:k]:
            first = texts[fields.index(field)]
            same = f"there are two columns {text!r}"
            both = f"the columns {shown(first)} and {shown(text)} both mean {field}; keep one"
            yield k, Problem(field, same if first == text else both)
        elif field and heading.unknown_unit:
            yield (
                k,
                Problem(
                    field,
                    f"column {shown(text)} has an unknown unit, {shown(heading.unknown_unit)}; "
                    f"write its numbers in full under the heading {field!r}",
                ),
            )
        elif field and (
            wrong := wrong_unit(field, heading.unit)
            or wrong_currency(heading.unit, counted, shown_by)
        ):
            yield k, Problem(field, f"column {shown(text)} {wrong}")
        elif field and heading.unit not in ("", "%") and not counted:
            counted, shown_by = heading.unit, f"column {shown(text)}"
        elif not field and (meant := _meant(text, [each for each in known if each not in fields])):
            yield k, Problem(text, f"unknown column {shown(text)}; {meant}")
    for field in required:
        if field not in fields:
            yield None, Problem(field, f"column {field!r} is missing")


def _meant(text: str, absent: Sequence[str]) -> str | None:
    """What to say of a heading that resembles a column that is not there."""
    words = _words(text)
    bare = " ".join(word for word in words.split() if word not in ("in", "%", "percent"))
    if bare in _NOT_A_FACTOR and "discount_factor" in absent:
        return "give the discount factor instead, which is 1 / (1 + rate)"
    if bare == _PERHAPS_A_FACTOR and "discount_factor" in absent:
        return "call it 'discount_factor' if it is one; that of a rate is 1 / (1 + rate)"
    spellings = {_words(field): field for field in absent}
    close = closest(words, spellings, _SIMILAR)
    return f"did you mean {spellings[close]!r}?" if close is not None else None


@dataclass(frozen=True)
class Layout:
    """Which column is which."""

    columns: dict[str, int]
    """By field."""
    units: dict[str, str]
    """Units in the headings, by field."""
    extra: dict[str, int]
    """Columns that mean nothing to us, by heading."""
    width: int
    """How many columns there are, with or without a heading."""
    least: int
    """How many there are up to the last heading."""
    place: str
    """The row of the headings."""


def below_titles(sheet: Sheet, known: Sequence[str], searched: int) -> Sheet:
    """The sheet from its headings on: they need not be in the first row that is not blank.

    They are in the row with most of them, if it has at least two and more than the first row.
    """
    first = list(islice(sheet.rows, searched))
    found = [
        sum(bool(read_heading(as_written(cell), known).field) for cell in cells)
        for _, cells in first
    ]
    best = max(found, default=0)
    start = found.index(best) if best >= 2 else 0
    if start:
        above, at = sheet.place(first[0][0], None), sheet.place(first[start][0], None)
        until = "" if start == 1 else f" to {sheet.place(first[start - 1][0], None)}"
        sheet.notes.append(f"{above}{until}: not used; the headings are in {at}")
    return replace(sheet, rows=chain(first[start:], sheet.rows))


def read_layout(
    sheet: Sheet, required: Sequence[str], known: Sequence[str], counted: str = ""
) -> Layout:
    """The columns by the headings in the first row; whatever is wrong with these is raised.

    `counted` is the currency that the amounts must be in, if that is known.
    """
    number, cells = next(sheet.rows, (0, []))
    texts = [as_written(cell).strip() for cell in cells]
    if not any(texts):
        raise InvalidInput("is empty; its first line must name the columns")
    headings = [read_heading(text, known) for text in texts]
    if not any(heading.field for heading in headings):
        wrong = f"names no known column; the first line must have headings: {', '.join(required)}"
        raise InvalidInput(Problem("", wrong, sheet.place(number, None)))
    if wrongs := list(heading_problems(texts, headings, required, known, counted)):
        raise InvalidInput(
            Problem(problem.field, problem.message, sheet.place(number, column))
            for column, problem in wrongs
        )
    columns = {heading.field: k for k, heading in enumerate(headings) if heading.field}
    units = {heading.field: heading.unit for heading in headings if heading.field}
    extra = {
        text if text and text not in texts[:k] else f"{text or 'column'} {k + 1}": k
        for k, (text, heading) in enumerate(zip(texts, headings, strict=True))
        if not heading.field
    }
    least = max(k for k, text in enumerate(texts, start=1) if text)
    return Layout(columns, units, extra, len(texts), least, sheet.place(number, None))


def not_used(extra: Sequence[str]) -> str:
    """The note on columns that mean nothing to us."""
    listed = ", ".join(map(shown, extra[:_LISTED]))
    more = f" and {len(extra) - _LISTED} more" if len(extra) > _LISTED else ""
    return f"not used: {count(len(extra), 'column')}, {listed}{more}"
