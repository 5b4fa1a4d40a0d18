"""Numbers of clients that are ranges, in `[[clients]]` tables and in the classes that they name.

A client that leaves a number out, or says that it is unknown, has the range that its class gives:

    [classes.regional]
    valuation = [200_000, 900_000]

    [[clients]]
    name = "Lakeside Clinic"
    class = "regional"
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import Any

import numpy as np

from fedaccord.checks import is_number, shown, unknown
from fedaccord.errors import UNKNOWN_KEY, InvalidInput, Problem
from fedaccord.files.headings import perhaps_a_rate, wrong_currency, wrong_unit
from fedaccord.files.ranges import Range, as_range, units_of
from fedaccord.files.reading import Mistakes
from fedaccord.game.ranges import RANGED
from fedaccord.game.rules import broken_rules
from fedaccord.numbers import FloatArray, as_text

RATIO = "ratio"
FIELDS = (*RANGED, RATIO)
"""What may be a range in a file; a range of the ratio stands for one of the valuation."""
UNKNOWN = "unknown"
_PLACEHOLDER = 1.0
"""Stands for a number that was found wrong, so that it is reported once."""


class RangedRows:
    """The tables of clients with a plain number in place of every range, and the ranges."""

    def __init__(
        self, tables: list[Any], classes: Any, mistakes: Mistakes, counted: str = ""
    ) -> None:
        """Read the ranges; what is wrong with them is noted.

        All amounts must be in the currency `counted`; or in that of the first, if it is not known.
        """
        self._mistakes, self._shown_by = mistakes, ""
        self.currency = counted
        """Of the amounts; empty if nothing names one."""
        named = (row.get("name") if isinstance(row, dict) else None for row in tables)
        self._names = [name if isinstance(name, str) else None for name in named]
        self._classes = _checked(classes, mistakes)
        self.ranges: dict[str, dict[int, Range]] = {}
        self.rows = [self._plain(n, row) for n, row in enumerate(tables)]

    def _plain(self, n: int, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        own = self._with_class(n, row)
        for field in FIELDS:
            if field in own and isinstance(own[field], str | list | dict):
                own[field] = self._likely(n, field, own[field])
        return self._without_ratio(n, own)

    def _with_class(self, n: int, row: dict[str, Any]) -> dict[str, Any]:
        """The client's table with what it leaves open taken from its class."""
        own = {key: value for key, value in row.items() if value != UNKNOWN and key != "class"}
        name = row.get("class")
        if name is not None and (not isinstance(name, str) or name not in self._classes):
            what = "there are no [classes]"
            if self._classes:
                what = unknown(str(name), self._classes)
            self._add(n, "class", f"unknown class {shown(name)}; {what}")
        given = self._classes.get(name, {}) if isinstance(name, str) else {}
        for field in FIELDS:
            if row.get(field) == UNKNOWN and field not in given:
                self._add(n, field, "is unknown, and its class gives no range of it")
                own[field] = _placeholder(field)
        return {key: value for key, value in given.items() if key not in own} | own

    def _likely(self, n: int, field: str, given: Any) -> float:
        """The likely number of a range, which is noted."""
        found = read_number_or_range(field, given)
        wrong = found if isinstance(found, str) else self._wrong_currency(n, field, given)
        if isinstance(found, str) or wrong:
            self._add(n, field, str(wrong))
            return _placeholder(field)
        self.ranges.setdefault(field, {})[n] = found
        return float(floor(found.likely)) if field == "samples" else found.likely

    def _wrong_currency(self, n: int, field: str, given: Any) -> str | None:
        """What is wrong with the currency of a range; it counts for those that follow."""
        for unit in units_of(given):
            if unit != "%" and not self.currency:
                self.currency, self._shown_by = unit, f"clients[{n}].{field}"
            if wrong := wrong_currency(unit, self.currency, self._shown_by):
                return wrong
        return None

    def _without_ratio(self, n: int, row: dict[str, Any]) -> dict[str, Any]:
        """The table with a valuation in place of the ratio."""
        if RATIO not in row:
            return row
        price: Any = row.get("cost_per_sample")
        if "valuation" in row:
            self._add(n, RATIO, "is valuation / cost_per_sample; give one or the other")
        if not is_number(price) or n in self.ranges.get("cost_per_sample", {}):
            self._add(n, RATIO, "needs a cost_per_sample that is a number")
            price = _PLACEHOLDER
        found = self.ranges.pop(RATIO, {}).get(n)
        if found is not None:
            scaled = Range(*(each * price for each in found))
            self.ranges.setdefault("valuation", {})[n] = scaled
        rest = {key: value for key, value in row.items() if key != RATIO}
        return rest | {"valuation": row[RATIO] * price if is_number(row[RATIO]) else row[RATIO]}

    def _add(self, n: int, field: str, message: str) -> None:
        self._mistakes.add(Problem(field, message, f"clients[{n}].{field}"), n, self._names[n])


def read_number_or_range(field: str, given: Any) -> Range | str:
    """The range that is given for a field, or what is wrong with it."""
    try:
        found, units = as_range(given), units_of(given)
    except InvalidInput as error:
        return error.problems[0].message
    for unit in units:
        if wrong := wrong_unit(field, unit):
            return f"{wrong}, got {shown(given)}"
    if field == "discount_factor" and "%" in units and (rate := perhaps_a_rate(given, found)):
        return rate
    if isinstance(given, str) and found.exact:
        meant = f"; did you mean {as_text(found.low)}?" if "%" in given else ""
        return f"must be a number, got {shown(given)}{meant}"
    ends = np.array([found.low, found.high])
    rule = "valuation" if field == RATIO else field
    return next((message for _, message in broken_rules(rule, ends)), found)


def _checked(classes: Any, mistakes: Mistakes) -> dict[str, dict[str, Any]]:
    """The classes, each a table of ranges by field."""
    if classes is None:
        return {}
    if not isinstance(classes, dict):
        mistakes.add(Problem("classes", f"must be a table, got {shown(classes)}"))
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name, given in classes.items():
        place = f"classes.{name}"
        if not isinstance(given, dict):
            mistakes.add(Problem("classes", f"must be a table, got {shown(given)}", place))
            continue
        for key in given.keys() - set(FIELDS):
            wrong = f"{UNKNOWN_KEY}; {unknown(key, FIELDS)}"
            mistakes.add(Problem("classes", wrong, f"{place}.{key}"))
        found[name] = {key: value for key, value in given.items() if key in FIELDS}
    return found


def _placeholder(field: str) -> float:
    """The placeholder that no rule of a field refuses."""
    return 0.0 if field == "discount_factor" else _PLACEHOLDER


def pairs_of(
    ranges: Mapping[str, Mapping[int, Range]], numbers: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """The lowest and highest of every field in which some client has a range."""
    pairs: dict[str, FloatArray] = {}
    for field, found in ranges.items():
        pairs[field] = np.stack([numbers[field]] * 2)
        for n, one in found.items():
            pairs[field][:, n] = one.low, one.high
    return pairs
