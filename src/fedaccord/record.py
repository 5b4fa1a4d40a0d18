"""How results show themselves: a short repr, an HTML table, a dict for JSON, a data frame.

A record states its facts (single values) and its tables (columns of equal length, most often with
one row per client). The rest follows from these two, here:

>>> from fedaccord.game.paper import paper_consortium
>>> paper_consortium(clients=3)
Consortium(name="the paper's setting, 3 clients", clients=3, rounds=50, samples=30000)
>>> paper_consortium(clients=3).to_dict()["samples"]
30000
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import fields
from functools import cache, cached_property, partial
from html import escape
from itertools import islice
from math import isfinite
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from fedaccord.checks import in_brief, unknown
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.numbers import write

if TYPE_CHECKING:
    import pandas as pd

Columns: TypeAlias = Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]
"""The columns of a table by name, each with one value per row."""
Tables: TypeAlias = dict[str, Callable[[], Columns]]
"""Functions that return tables, by name: a table is computed only when it is needed."""

SHOWN_ROWS = 20
"""Rows of a table that HTML shows; it says how many more there are."""
_LONGEST_VALUE = 60
"""Characters of a value in a repr or in a cell of HTML."""


class Value:
    """A frozen dataclass that is equal to another by value: arrays, NaN and nested values included.

    Values that are computed once, when they are first asked for, are neither compared nor copied
    nor pickled. Subclasses are declared with `eq=False`.

    >>> from fedaccord.game.law import Law
    >>> Law.paper(50) == Law.paper(50), Law.paper(50) == Law.paper(60)
    (True, False)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Whether it is of the same class, and all that it was made of is equal."""
        if other is self:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return _same(self._made_of(), other._made_of())

    def __hash__(self) -> int:
        """Of the class, the single values and the sizes of the others, which is quick to find."""
        return hash((type(self), *map(_hashed, self._made_of().values())))

    def __getstate__(self) -> Any:
        """What a pickle keeps, and which of the arrays nobody can write to."""
        made_of = self._made_of()
        sealed = [name for name, value in made_of.items() if _is_sealed(value)]
        return made_of, sealed

    def __setstate__(self, state: Any) -> None:
        """Make it anew."""
        made_of, sealed = state
        for name in sealed:
            made_of[name].flags.writeable = False
        for name, value in made_of.items():
            object.__setattr__(self, name, value)

    def _made_of(self) -> dict[str, Any]:
        """Everything but what was computed since."""
        if not hasattr(self, "__dict__"):  # it has slots
            names = [each.name for each in fields(self)]  # type: ignore[arg-type]
            return {name: getattr(self, name) for name in names}
        cls: type = type(self)
        cached = _cached_in(cls)
        return {name: value for name, value in vars(self).items() if name not in cached}


@cache
def _cached_in(cls: type) -> frozenset[str]:
    """The names of what instances of a class compute once."""
    return frozenset(
        name
        for each in cls.__mro__
        for name, value in vars(each).items()
        if isinstance(value, cached_property)
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; NaN is equal to NaN, and arrays are compared by value."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, partial) and isinstance(other, partial):
        return _same((one.func, one.args, one.keywords), (other.func, other.args, other.keywords))
    if isinstance(one, MethodType) and isinstance(other, MethodType):
        return one.__func__ is other.__func__ and _same(one.__self__, other.__self__)
    if _is_array(one) or _is_array(other):
        if type(one) is not type(other) or one.shape != other.shape:
            return False
        return bool(((one == other) | (_is_nan(one) & _is_nan(other))).all())
    return bool(one == other or (_is_nan(one) and _is_nan(other)))


def _is_nan(value: Any) -> Any:
    """Where a value is NaN: no other one differs from itself."""
    return value != value  # noqa: PLR0124


def _is_sealed(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not value.flags.writeable


def _is_array(value: Any) -> bool:
    """Whether it is an array of NumPy's, or a tensor."""
    described = hasattr(value, "shape") and hasattr(value, "dtype")
    return described and not isinstance(value, np.generic)


def _hashed(value: Any) -> int:
    """The same for equal values: that of a single value, or a size."""
    if _is_array(value):
        return hash(tuple(value.shape))
    if isinstance(value, Sized) and not isinstance(value, str | Value):
        return len(value)
    if isinstance(value, partial | MethodType):
        return 0  # theirs would differ though they are the same
    if isinstance(value, float | np.floating) and _is_nan(value):
        return 0
    try:
        return hash(value)
    except TypeError:
        return 0


class Record(Value):
    """A result that a terminal, a notebook, JSON and pandas can show."""

    __slots__ = ()
    _headline: ClassVar[tuple[str, ...]] = ()
    """Those of the facts that fit on one line; all of them if empty."""

    def _facts(self) -> dict[str, Any]:
        """Single values by name, in the order in which JSON has them."""
        raise NotImplementedError

    def _tables(self) -> Tables:
        """The tables; the first is the one that HTML shows."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the commands print them in JSON; NaN and infinity are None."""
        tables = {name: rows_of(columns()) for name, columns in self._tables().items()}
        return {name: jsonable(value) for name, value in self._facts().items()} | tables

    def to_frame(self, table: str | None = None) -> "pd.DataFrame":
        """A table as a pandas DataFrame; the first one unless named.

        A record without tables becomes one row. Numbers are as they are: infinity stays infinite.
        """
        tables = self._tables()
        if table is not None and table not in tables:
            raise InvalidInput(f"table: there is no {table!r}: {unknown(table, tables)}")
        try:
            import pandas as pd
        except ImportError:
            raise FedaccordError(
                "to_frame needs pandas, which is not installed: pip install 'fedaccord[notebook]'"
            ) from None
        if not tables:
            return pd.DataFrame([self._facts()])
        columns = tables[table or next(iter(tables))]()
        return pd.DataFrame(dict(columns))

    def __repr__(self) -> str:
        """The class and its main facts, on one line."""
        facts = ", ".join(f"{name}={_brief(value)}" for name, value in self._main_facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        """The main facts and the first rows of the first table; what Jupyter shows."""
        facts = "; ".join(
            f"{escape(_words(name))}: {escape(_cells([value])[0])}"
            for name, value in self._main_facts().items()
        )
        heading = f"<p><strong>{type(self).__name__}</strong><br>{facts}</p>"
        tables = self._tables()
        if not tables:
            return heading
        name, columns = next(iter(tables.items()))
        return heading + _html_table(name, columns())

    def _main_facts(self) -> dict[str, Any]:
        """What a repr and the heading of HTML show."""
        facts = self._facts()
        return {name: facts[name] for name in self._headline or facts}


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    """The rows of a table, each a dict of plain values."""
    names = list(columns)
    values = [jsonable(column) for column in columns.values()]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """The columns of rows that all have the same keys."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def jsonable(value: Any) -> Any:
    """A value as strict JSON can have it: no arrays, no tuples, None for NaN and infinity.

    >>> jsonable({"slack": np.array([0.5, -np.inf]), "clients": (np.int64(2), "a")})
    {'slack': [0.5, None], 'clients': [2, 'a']}
    """
    if type(value) in _PLAIN:  # the usual case first: there may be millions of values
        return value
    if isinstance(value, np.ndarray):
        quick = value.dtype.kind != "f" or np.isfinite(value).all()
        return value.tolist() if quick else jsonable(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str):
        return str(value)  # a member of an enumeration becomes a plain string
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: jsonable(inner) for name, inner in value.items()}
    return list(map(jsonable, value)) if isinstance(value, list | tuple) else value


_MILLION, _LARGEST_WHOLE = 1e6, 1e15
"""Between these a float in a repr is written out, without decimals."""
_PLAIN = (str, int, bool, type(None))


def _brief(value: Any) -> str:
    """A value in a repr."""
    if isinstance(value, float | np.floating):
        large = _MILLION <= abs(float(value)) < _LARGEST_WHOLE
        return f"{value:.0f}" if large else f"{value:.6g}"
    return in_brief(repr(str(value) if isinstance(value, str) else value), _LONGEST_VALUE)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _html_table(name: str, columns: Columns) -> str:
    """The first rows of a table; a line below says how many there are in all."""
    length = max((len(column) for column in columns.values()), default=0)
    first = [list(islice(column, SHOWN_ROWS)) for column in columns.values()]
    sides = ["right" if _all_numbers(values) else "left" for values in first]
    head = "".join(
        f'<th style="text-align: {side}">{escape(_words(column))}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_html_cell(cell, side) for cell, side in zip(row, sides, strict=True))}</tr>"
        for row in zip(*map(_cells, first), strict=True)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    if length <= SHOWN_ROWS:
        return table
    rest = f"The first {SHOWN_ROWS} of {length:,} {_words(name)}; to_frame() has them all."
    return f"{table}<p>{escape(rest)}</p>"


def _html_cell(text: str, side: str) -> str:
    return f'<td style="text-align: {side}">{escape(text)}</td>'


def _cells(values: Sequence[Any]) -> list[str]:
    """The values of one column as text; numbers have the same number of decimals."""
    if _all_numbers(values):
        return write([float(value) for value in values])
    return [_cell(value) for value in values]


def _all_numbers(values: Sequence[Any]) -> bool:
    numbers = [isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in values]
    return bool(values) and all(numbers)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.number):
        return write([float(value)])[0]
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value)) or "–"
    return in_brief(str(value), _LONGEST_VALUE)
