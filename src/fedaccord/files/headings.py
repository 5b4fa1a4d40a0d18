"""The headings of a table of clients: which column is which, however people call it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, product

from fedaccord.checks import closest, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.cells import Sheet, as_written
from fedaccord.files.numerals import currency, may_be
from fedaccord.files.ranges import Range, spelled
from fedaccord.numbers import count

_THINGS = {
    "en": (
        *(("sample", "samples"), ("case", "cases"), ("example", "examples"), ("record", "records")),
        *(("image", "images"), ("patient", "patients"), ("exam", "exams"), ("scan", "scans")),
        *(("examination", "examinations"), ("study", "studies")),
    ),
    "de": (
        *(("fall", "fälle"), ("probe", "proben"), ("stichprobe", "stichproben")),
        *(("beispiel", "beispiele"), ("datensatz", "datensätze"), ("bild", "bilder")),
        *(("patient", "patienten"), ("untersuchung", "untersuchungen"), ("aufnahme", "aufnahmen")),
        ("befund", "befunde"),
    ),
    "fr": (
        *(("cas", "cas"), ("échantillon", "échantillons"), ("exemple", "exemples")),
        *(
            ("image", "images"),
            ("patient", "patients"),
            ("examen", "examens"),
            ("dossier", "dossiers"),
        ),
        ("enregistrement", "enregistrements"),
    ),
    "it": (
        *(("caso", "casi"), ("campione", "campioni"), ("esempio", "esempi")),
        *(("immagine", "immagini"), ("paziente", "pazienti"), ("esame", "esami")),
    ),
    "es": (
        *(("caso", "casos"), ("muestra", "muestras"), ("ejemplo", "ejemplos")),
        *(("imagen", "imágenes"), ("paciente", "pacientes"), ("examen", "exámenes")),
        *(("estudio", "estudios"), ("registro", "registros")),
    ),
    "nl": (
        *(("geval", "gevallen"), ("monster", "monsters"), ("voorbeeld", "voorbeelden")),
        *(("patiënt", "patiënten"), ("onderzoek", "onderzoeken")),
    ),
}
"""What a sample is called, one and many, by language."""
_NUMBER_OF = {
    "en": ("{}", "number of {}", "no of {}", "count of {}"),
    "de": ("{}", "anzahl {}", "anzahl der {}", "zahl der {}"),
    "fr": ("{}", "nombre de {}", "nombre d'{}", "nb de {}", "nb d'{}"),
    "it": ("{}", "numero di {}", "n di {}"),
    "es": ("{}", "número de {}", "n.º de {}", "nº de {}"),
    "nl": ("{}", "aantal {}"),
}
_COST_OF_ONE = {
    "en": ("cost per {}", "cost of a {}", "{} cost", "costs per {}", "price per {}"),
    "de": ("kosten pro {}", "kosten je {}", "kosten per {}", "preis pro {}", "preis je {}"),
    "fr": ("coût par {}", "coûts par {}", "prix par {}", "coût unitaire par {}"),
    "it": ("costo per {}", "costi per {}", "prezzo per {}"),
    "es": ("costo por {}", "coste por {}", "costos por {}", "costes por {}", "precio por {}"),
    "nl": ("kosten per {}", "prijs per {}"),
}
_OTHER_WORDS = {
    "name": (
        *("client", "client name", "member", "member name", "hospital", "hospital name", "clinic"),
        *("site", "centre", "center", "organisation", "organization", "institution", "partner"),
        *("mitglied", "krankenhaus", "klinik", "standort", "zentrum", "einrichtung", "haus"),
        *("nom", "membre", "hôpital", "clinique", "centre hospitalier", "établissement", "site"),
        *("nome", "membro", "ospedale", "clinica", "centro", "istituto", "struttura", "sede"),
        *("nombre", "miembro", "clínica", "institución", "establecimiento"),
        *("naam", "ziekenhuis", "instelling", "organisatie"),
    ),
    "valuation": (
        *("value", "rho", "ρ", "wert", "bewertung", "valeur", "valor", "valore", "waarde"),
        *("valoración", "valutazione", "évaluation", "waardering"),
    ),
    "samples": (
        "sample count",
        "fallzahl",
        "fallzahlen",
        "patientenzahl",
        "échantillon",
        "effectif",
    ),
    "communication_cost": (
        *("communication", "cost of communication", "kommunikationskosten"),
        *("coût de communication", "costo di comunicazione", "coste de comunicación"),
        "costo de comunicación",
    ),
    "discount_factor": (
        *("delta", "δ", "diskontfaktor", "diskontierungsfaktor", "abzinsungsfaktor"),
        *("facteur d'actualisation", "factor de descuento", "fattore di sconto"),
        "disconteringsfactor",
    ),
    "quality": ("qualität", "qualité", "qualità", "calidad", "kwaliteit"),
    "cycles_per_sample": ("cpu cycles per sample",),
    "hertz": ("hz", "cycles per second"),
    "contribution": ("contributions", "samples agreed", "agreed samples"),
}
OTHER_WORDS: dict[str, tuple[str, ...]] = {
    **_OTHER_WORDS,
    "samples": (
        *_OTHER_WORDS["samples"],
        *(
            form.format(many)
            for language, forms in _NUMBER_OF.items()
            for form, (_, many) in product(forms, _THINGS[language])
        ),
    ),
    "cost_per_sample": tuple(
        form.format(one)
        for language, forms in _COST_OF_ONE.items()
        for form, (one, _) in product(forms, _THINGS[language])
    ),
}
"""What else people call a column, without regard to case, accents, spaces and hyphens."""

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
    return {
        word: each for each in fields for word in map(_words, (each, *OTHER_WORDS.get(each, ())))
    }


def _words(text: str) -> str:
    """A heading in one spelling, in small letters without accents."""
    spelled = unicodedata.normalize("NFKD", text).casefold().translate(_APOSTROPHES)
    spelled = "".join(c for c in spelled if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\s_\-./:*()\[\]]+", " ", spelled).split())


_APOSTROPHES = str.maketrans("\u2019\u02bc", "''")


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


class UnknownColumns(InvalidInput):
    """A table lacks columns, and has others that mean nothing to us."""

    def __init__(
        self,
        problems: Iterable[Problem],
        missing: Sequence[str],
        texts: Sequence[str],
        examples: str,
    ) -> None:
        """All that is wrong with the headings."""
        super().__init__(problems)
        self.missing = missing
        """The fields that have no column."""
        self.texts = texts
        """The headings that mean nothing."""
        self.examples = examples
        """What stands below the first of them."""


def heading_problems(
    texts: Sequence[str],
    headings: Sequence[Heading],
    known: Sequence[str],
    counted: str = "",
) -> Iterator[tuple[int | None, Problem]]:
    """What is wrong with the headings of a table, each with its column."""
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


def _columns_missing(missing: Mapping[str, str], unknown: Sequence[str]) -> Iterator[Problem]:
    """What to say of columns that are missing, beside some that mean nothing to us."""
    if not unknown:
        for field, hint in missing.items():
            yield Problem(field, f"column {field!r} is missing{hint}")
        return
    meant = ", ".join(map(repr, missing))
    listed = ", ".join(map(shown, unknown[:_LISTED])) + (", ..." if unknown[_LISTED:] else "")
    if len(unknown) > 1:
        wrong = f"I don't know the columns {listed}; are they among {meant}? Then call them that"
    else:
        one = "" if len(missing) == 1 else "one of "
        wrong = f"I don't know the column {listed}; is it {one}{meant}? Then call it that"
    yield Problem(next(iter(missing)), wrong)


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
    sheet: Sheet,
    required: Sequence[str],
    known: Sequence[str],
    counted: str = "",
    *,
    one_of: Sequence[str] = (),
    chosen: Mapping[str, str] | None = None,
) -> Layout:
    """The columns by the headings in the first row; whatever is wrong with these is raised.

    `counted` is the currency that the amounts must be in, if that is known. The table needs
    `one_of` some columns. A heading that is `chosen` means this field, or nothing.
    """
    number, cells = next(sheet.rows, (0, []))
    texts = [as_written(cell).strip() for cell in cells]
    if not any(texts):
        raise InvalidInput("is empty; its first line must name the columns")
    chosen = chosen or {}
    headings = [read_heading(_as_chosen(text, chosen), known) for text in texts]
    if not any(heading.field for heading in headings):
        wrong = f"names no known column; the first line must have headings: {', '.join(required)}"
        raise InvalidInput(Problem("", wrong, sheet.place(number, None)))
    wrongs = list(heading_problems(texts, headings, known, counted))
    found = {heading.field for heading in headings}
    missing = {field: "" for field in required if field not in found}
    if one_of and not found.intersection(one_of):
        first, *others = one_of
        missing[first] = f" (or {', '.join(others[:-1])} and {others[-1]})"
    said = {problem.field for _, problem in wrongs}
    unknown = [
        k
        for k, (text, heading) in enumerate(zip(texts, headings, strict=True))
        if text and not heading.field and text not in chosen and text not in said
    ]
    if missing:
        lacking = _columns_missing(missing, [texts[k] for k in unknown])
        wrongs += [(None, problem) for problem in lacking]
    if wrongs:
        problems = [
            Problem(problem.field, problem.message, sheet.place(number, column))
            for column, problem in wrongs
        ]
        if not missing or not unknown:
            raise InvalidInput(problems)
        below = [row[unknown[0]] for _, row in islice(sheet.rows, 3) if unknown[0] < len(row)]
        examples = ", ".join(filter(None, map(as_written, below)))
        raise UnknownColumns(problems, [*missing], [texts[k] for k in unknown], examples)
    columns = {heading.field: k for k, heading in enumerate(headings) if heading.field}
    units = {heading.field: heading.unit for heading in headings if heading.field}
    extra = {
        text if text and text not in texts[:k] else f"{text or 'column'} {k + 1}": k
        for k, (text, heading) in enumerate(zip(texts, headings, strict=True))
        if not heading.field
    }
    least = max(k for k, text in enumerate(texts, start=1) if text)
    return Layout(columns, units, extra, len(texts), least)


def _as_chosen(text: str, chosen: Mapping[str, str]) -> str:
    """The heading of the field that was chosen for one, with its unit."""
    if not chosen.get(text):
        return text
    brackets = _BRACKETS.fullmatch(text)
    return f"{chosen[text]} ({brackets[2]})" if brackets else chosen[text]


def not_used(extra: Sequence[str]) -> str:
    """The note on columns that mean nothing to us."""
    listed = ", ".join(map(shown, extra[:_LISTED]))
    more = f" and {len(extra) - _LISTED} more" if len(extra) > _LISTED else ""
    return f"not used: {count(len(extra), 'column')}, {listed}{more}"
