"""Tables keep their numbers through CSV."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.experiments.figure_data import FigureData, read_figure_data

numbers = st.lists(st.floats(allow_nan=False), min_size=1, max_size=20)


@given(numbers)
def test_numbers_survive_a_csv_round_trip(values: list[float]) -> None:
    table = FigureData({"clients": np.array(values), "total": -np.array(values)})
    back = read_figure_data(table.as_csv())
    assert list(back.columns) == ["clients", "total"]
    assert back["clients"].tolist() == values
    assert back["total"].tolist() == [-value for value in values]


def test_text_survives_a_csv_round_trip() -> None:
    table = FigureData({"clients": np.array([2, 3]), "case": np.array(["all", "II"])})
    assert table.as_csv() == "clients,case\n2,all\n3,II\n"
    assert read_figure_data(table.as_csv())["case"].tolist() == ["all", "II"]


def test_selecting_columns_keeps_the_swept_parameter_first() -> None:
    table = FigureData({"rounds": np.arange(3.0), "a": np.arange(3.0), "b": np.arange(3.0) ** 2})
    chosen = table.choose("b").where(np.array([True, False, True]))
    assert list(chosen.columns) == ["rounds", "b"]
    assert (chosen.parameter, chosen.swept.tolist(), len(chosen)) == ("rounds", [0.0, 2.0], 2)
    with pytest.raises(KeyError):
        table.choose("c")
