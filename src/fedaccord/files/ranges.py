"""What is known of a number: lowest, likely and highest; and how people write that.

>>> read_range("5-8")
Range(low=5.0, likely=6.5, high=8.0)
>>> read_range("about 600, give or take 30 %")
Range(low=420.0, likely=600.0, high=780.0)
>>> as_range({"about": 600, "within": "30 %"}) == read_range("600 ± 30 %")
True

Each number in a text is read as one in a spreadsheet: "0,004" and "1.250,50" have one reading. What
has two, like "12,000" and "12.000", is refused with both of them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import isfinite
from typing import Any, NamedTuple

from fedaccord.checks import is_number, shown
from fedaccord.errors import InvalidInput
from fedaccord.files.numerals import Numeral, currency, plain, read_numeral, unambiguous
from fedaccord.numbers import as_text

ABOUT = 0.2
""""About 600" without anything more is 600, give or take this share of it."""


class Range(NamedTuple):
    """What is known of a number."""

    low: float
    likely: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether lowest and highest are the same."""
        return self.low == self.high

    def to_dict(self) -> dict[str, float]:
        """The three numbers by name."""
        return self._asdict()


def spread(formula: Callable[[Mapping[str, float]], float], known: Mapping[str, Range]) -> Range:
    """The range of a formula whose numbers have ranges.

    The formula must rise or fall in each of its numbers, whatever the others are. It is then
    lowest and highest where each number is at one of its ends, so only those are tried.

    >>> known = {"price": Range(2, 3, 4), "speed": Range(1, 2, 2)}
    >>> spread(lambda at: at["price"] / at["speed"], known)
    Range(low=1.0, likely=1.5, high=4.0)
    """
    ends = [sorted({each.low, each.high}) for each in known.values()]
    values = [formula(dict(zip(known, corner, strict=True))) for corner in product(*ends)]
    likely = formula({name: each.likely for name, each in known.items()})
    return Range(min(*values, likely), likely, max(*values, likely))


# --- Reading -------------------------------------------------------------------------------


def as_range(given: Any) -> Range:
    """A range from a number, text, a pair [low, high], or a table.

    The table has low, high and perhaps likely; or about and within, a share or a factor.
    """
    if isinstance(given, str):
        return read_range(given)
    if is_number(given):
        return _ordered(float(given), float(given), float(given))
    if isinstance(given, Mapping) and {"low", "high"} <= given.keys() <= {"low", "likely", "high"}:
        low, high = _number_in(given["low"]), _number_in(given["high"])
        return _ordered(low, _number_in(given.get("likely", (low + high) / 2)), high)
    if isinstance(given, Mapping) and given.keys() == {"about", "within"}:
        about, (below, above) = _number_in(given["about"]), read_within(given["within"])
        return _ordered(about * below, about, about * above)
    if isinstance(given, Sequence) and len(given) in (2, 3):
        low, *middle, high = map(_number_in, given)
        return _ordered(low, middle[0] if middle else (low + high) / 2, high)
    raise InvalidInput(f"must be a number or a range like 5-8, got {shown(given)}")


_FACTOR = re.compile(r"(?:x ?(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?) ?x)")


def read_within(given: Any) -> tuple[float, float]:
    """By which factors a number may be lower and higher: "30 %" or 0.3, or "x2" (half to double).

    >>> read_within("30 %"), read_within(0.1), read_within("x2")
    ((0.7, 1.3), (0.9, 1.1), (0.5, 2.0))
    """
    share: Any = given
    if isinstance(given, str):
        words = given.strip().lower()
        if factor := _FACTOR.fullmatch(words):
            times = float(factor[1] or factor[2])
            if 1.0 <= times < _MOST_TIMES:
                return 1.0 / times, times
        percent = read_numeral(words)
        if percent is not None and percent.unit == "%" and not percent.is_ambiguous:
            share = percent.point
    if is_number(share) and 0.0 <= share < 1.0:
        return 1.0 - float(share), 1.0 + float(share)
    raise InvalidInput(
        "must be a percentage below 100 like 30 %, or a factor like x2 for half to double, "
        f"got {shown(given)}",
        field="within",
    )


def _number_in(value: Any) -> float:
    if not is_number(value):
        raise InvalidInput(f"must have numbers as its ends, got {shown(value)}")
    return float(value)


_MOST_TIMES = 1e6
"""A number that may be off by more than this factor is not known at all."""
_TIMES = {"k": 1e3, "thousand": 1e3, "million": 1e6}
_SCALE = re.compile(rf" ?({'|'.join(_TIMES)})$")
_NUMERAL = re.compile(
    r"(?:(?<![.,\d])[.,])?[0-9]+(?:[.,' _][0-9]+)*(?:e[+-]?[0-9]+)?", re.IGNORECASE
)
_NUMBER = rf"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?: ?(?:{'|'.join(_TIMES)}))?"
"""As Python writes it."""
_AMOUNT = rf"(?P<{{0}}>{_NUMBER})(?P<{{0}}_percent> ?%)?"
_LIKELY, _LOW, _HIGH, _GAP = map(_AMOUNT.format, ("likely", "low", "high", "gap"))
_DASH = r" ?(?:-|–|—|to) ?"
_BETWEEN = rf"(?:between |from )?{_LOW}{_DASH.replace('to', 'to|and')}{_HIGH}"
_FORMS = [
    re.compile(pattern)
    for pattern in (
        rf"(?P<about>about |around |roughly |~ ?|ca\.? )?{_LIKELY}",
        rf"(?:about |around )?{_LIKELY},? ?(?:give or take|±|\+/?-|plus or minus) ?{_GAP}",
        _BETWEEN,
        rf"(?:about |around )?{_LIKELY} ?\(?,? ?{_BETWEEN}\)?",
    )
]
_WORD = re.compile(r"[€$£¥₹]|[^\W\d_]+\.?")
_CODE = re.compile(r"[A-Z]{3}")
_LONGEST = 100
"""Characters of an answer; the patterns would take long to refuse a very long one."""


def read_range(text: str, mark: str | None = None) -> Range:
    """The range that a text means.

    It may be a number ("12 000", "5 %", "1.5 million", "€ 80"), "5-8" or "between 5 and 8" (likely
    is the middle), "about 600" (give or take 20 %), "600, give or take 30 %" or "600 ± 50", or
    "600 (400-900)". Numbers like "12,000" are read with the decimal mark `mark`, if there is one.
    """
    return _read(text, mark)[0]


def units_of(given: Any) -> tuple[str, ...]:
    """The currencies in what was given for a range, and % unless only its width is a percentage.

    >>> units_of("2 to 3 €"), units_of("5-8 %"), units_of("600 ± 30 %"), units_of(600)
    (('EUR',), ('%',), (), ())
    """
    return _read(given, ".")[1] if isinstance(given, str) else ()


def numerals_in(text: str) -> dict[str, Numeral | None]:
    """The numbers among the words of a text, as they are written; None for what is not one."""
    return {found: read_numeral(found) for found in _NUMERAL.findall(plain(text))}


def spelled(value: float | Range) -> str:
    """A number or a range as it can be written without a doubt.

    >>> spelled(1.234), spelled(Range(4000, 6500, 9000)), spelled(Range(5, 5, 5))
    ('1.2340', '4000 to 9000', '5')
    """
    if isinstance(value, Range):
        if value.exact:
            return spelled(value.likely)
        return f"{spelled(value.low)} to {spelled(value.high)}"
    return unambiguous(as_text(value))


def _read(text: str, mark: str | None) -> tuple[Range, tuple[str, ...]]:
    """The range that a text means, and the units in it."""
    words = ""
    currencies: tuple[str, ...] = ()
    if len(text) <= _LONGEST:
        words, currencies = _without_currencies(plain(text))
        words = " ".join(_in_python(words, mark).lower().split())
    found = next((match for form in _FORMS if (match := form.fullmatch(words))), None)
    if found is None:
        raise InvalidInput(
            "must be a number or a range like 5-8 or 600 give or take 30 %, got " + shown(text)
        )
    parts = found.groupdict()
    if parts.get("high"):
        parts["low_percent"] = parts["low_percent"] or parts["high_percent"]  # "5-8 %"
        if not _SCALE.search(parts["low"]) and (scale := _SCALE.search(parts["high"])):
            parts["low"] += scale[0]  # "40-90k"
    shares = any(parts.get(f"{name}_percent") for name in ("low", "likely", "high"))
    return _range(parts), (*currencies, "%") if shares else currencies


def _without_currencies(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without the signs and codes of currencies, and which these are."""
    found: list[str] = []

    def left(word: re.Match[str]) -> str:
        unit = currency(word[0]) or (word[0] if _CODE.fullmatch(word[0]) else None)
        if unit is None:
            return word[0]
        found.append(unit)
        return " "

    return _WORD.sub(left, text), tuple(found)


def _in_python(text: str, mark: str | None) -> str:
    """The text with each number as Python writes it."""
    numerals = numerals_in(text)

    def number(found: re.Match[str]) -> str:
        numeral = numerals[found[0]]
        if numeral is None:
            raise InvalidInput(f"must have numbers like 12000 or 1.5, got {shown(found[0])}")
        if numeral.is_ambiguous and mark is None:
            readings = sorted((numeral.point, numeral.comma), key=abs)
            raise InvalidInput(
                f"{shown(found[0])} is either {' or '.join(map(spelled, readings))}; "
                "write the one that is meant"
            )
        if not isfinite(numeral.point):
            raise InvalidInput("must be finite")
        return repr(numeral.under(mark or ".")).removesuffix(".0")

    return _NUMERAL.sub(number, text)


def _range(parts: dict[str, Any]) -> Range:
    """The range with these numbers."""
    if "gap" in parts:
        return _around(parts)
    ends = [_part(parts, name) for name in ("low", "likely", "high") if parts.get(name)]
    if len(ends) == 1:
        gap = ABOUT * ends[0] if parts["about"] else 0.0
        return _give_or_take(ends[0], gap)
    if len(ends) == 2:
        low, middle, high = _ordered(ends[0], sum(ends) / 2, ends[1])
        return Range(low, min(max(low, _tidy(middle)), high), high)
    return _ordered(*ends)


def _around(parts: dict[str, Any]) -> Range:
    """A number, give or take a share of it or an amount."""
    likely, gap = _part(parts, "likely"), _part(parts, "gap")
    if parts["gap_percent"] and parts["likely_percent"]:
        raise InvalidInput(
            f"could mean points or a share of {100 * likely:g} %; write both ends, as in 3-7 %"
        )
    if parts["gap_percent"]:
        gap *= likely
    return _give_or_take(likely, gap)


def _give_or_take(likely: float, gap: float) -> Range:
    low, _, high = _ordered(likely - gap, likely, likely + gap)
    if low == high:
        return Range(likely, likely, likely)
    return Range(min(_tidy(low), likely), likely, max(_tidy(high), likely))


def _tidy(value: float) -> float:
    """A number that was computed from others without the noise in its last digits."""
    return float(as_text(value))


def _part(parts: dict[str, Any], name: str) -> float:
    """One number of a text."""
    scale = _SCALE.search(parts[name])
    value = float(_SCALE.sub("", parts[name]))
    value *= _TIMES[scale[1]] if scale else 1.0
    return value / 100 if parts[f"{name}_percent"] else value


def _ordered(low: float, likely: float, high: float) -> Range:
    if not all(map(isfinite, (low, likely, high))):
        raise InvalidInput("must be finite")
    if not low <= high:
        raise InvalidInput(f"must go from low to high, got {as_text(low)} to {as_text(high)}")
    if not low <= likely <= high:
        ends = f"{as_text(low)} to {as_text(high)}"
        raise InvalidInput(f"must have its likely number from {ends}, got {as_text(likely)}")
    return Range(low, likely, high)
