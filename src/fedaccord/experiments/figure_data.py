"""What a figure is drawn from: named columns of equal length, the swept parameter first."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.files.reading import guarded, unguarded

Column = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class FigureData:
    """Columns by name.

    >>> table = FigureData({"clients": np.array([2.0, 3.0]), "case": np.array(["all", "I"])})
    >>> print(table.as_csv(), end="")
    clients,case
    2,all
    3,I
    """

    columns: Mapping[str, Column]

    def __getitem__(self, name: str) -> Column:
        """One column."""
        return self.columns[name]

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.swept)

    @property
    def parameter(self) -> str:
        """The name of the swept parameter."""
        return next(iter(self.columns))

    @property
    def swept(self) -> Column:
        """Its values."""
        return self.columns[self.parameter]

    def choose(self, *names: str) -> "FigureData":
        """The swept parameter and these columns."""
        return FigureData({name: self.columns[name] for name in (self.parameter, *names)})

    def where(self, rows: npt.NDArray[np.bool_]) -> "FigureData":
        """Some of the rows."""
        return FigureData({name: values[rows] for name, values in self.columns.items()})

    def as_csv(self) -> str:
        """As CSV; a number is written so that reading it back gives the same number."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        columns = [map(_cell, values.tolist()) for values in self.columns.values()]
        writer.writerows(zip(*columns, strict=True))
        return text.getvalue()


def read_figure_data(text: str) -> FigureData:
    """Read what `as_csv` wrote."""
    head, *rows = csv.reader(io.StringIO(text))
    return FigureData({name: _column(values) for name, *values in zip(head, *rows, strict=True)})


def _column(values: list[str]) -> Column:
    try:
        return np.array([float(value) for value in values])
    except ValueError:
        return np.array([unguarded(value) for value in values])


def _cell(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else guarded(value)
