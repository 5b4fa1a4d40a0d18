"""Every figure: its table, its picture at both widths, and files that repeat to the byte."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedaccord.experiments import fig17
from fedaccord.experiments.figures import find_figure
from fedaccord.experiments.pictures import INCHES, Width, save
from fedaccord.experiments.presets import figure_titles, find_preset
from tests.experiments.presets_for_tests import few

NAMES = list(figure_titles())


def legend_is_clear_of_the_data(figure: Figure) -> bool:
    figure.draw_without_rendering()
    [legend] = figure.legends
    outside = legend.get_window_extent()
    inside = figure.bbox.padded(1.0)
    apart = not any(outside.overlaps(axes.get_window_extent()) for axes in figure.axes)
    return apart and outside.x1 <= inside.x1 and outside.y1 <= inside.y1


@pytest.mark.parametrize("name", NAMES)
def test_a_table_has_a_row_a_value_and_both_agreements(name: str) -> None:
    preset = few(name)
    table = find_figure(name).run(preset)
    assert table.parameter == preset.parameter
    assert table.swept.tolist() == list(preset.values)
    for kind in ("uniform", "individual"):
        assert any(kind in column for column in table.columns)
    for column, values in table.columns.items():
        assert len(values) == len(preset.values)
        assert column == "case" or np.isfinite(values).all()


@pytest.mark.parametrize("width", ["one-column", "two-columns"])
@pytest.mark.parametrize("name", NAMES)
def test_a_picture_has_labels_and_a_legend_that_hides_nothing(name: str, width: Width) -> None:
    preset = few(name, 40)
    figure = find_figure(name).draw(find_figure(name).run(preset), preset, width)
    assert figure.get_figwidth() == INCHES[width]
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
    assert legend_is_clear_of_the_data(figure)


@pytest.mark.parametrize("name", ["fig6", "fig8", "fig17"])
def test_files_repeat_to_the_byte(name: str) -> None:
    preset, module = few(name), find_figure(name)
    first, second = (
        save(module.draw(module.run(preset), preset, "one-column"), name) for _ in range(2)
    )
    assert first == second
    assert ElementTree.fromstring(first["svg"]).tag.endswith("svg")
    assert b"<dc:date>" not in first["svg"]
    assert first["png"].startswith(b"\x89PNG")


def test_cases_differ_in_marker_as_well_as_in_colour() -> None:
    preset = find_preset("fig4")
    figure = find_figure("fig4").draw(find_figure("fig4").run(preset), preset, "one-column")
    [legend] = figure.legends
    lines = [line for line in legend.get_lines() if line.get_marker() != "None"]
    assert len(lines) == 3
    assert len({line.get_marker() for line in lines}) == 3
    assert len({line.get_color() for line in lines}) == 3


@pytest.mark.parametrize("low", [80, 50, 20])
def test_valuations_are_drawn_as_the_paper_says(low: int) -> None:
    drawn = fig17.draw_valuations(low, draws=200, seed=1)
    assert drawn.shape == (200, 100)
    assert ((drawn > 0) & (drawn <= 50)).sum(axis=1).tolist() == [low] * 200
    assert ((drawn > 50) & (drawn <= 100)).sum(axis=1).tolist() == [100 - low] * 200
    # a mean of 20,000 uniform numbers is within 0.5 of the middle but once in 10^6
    assert drawn.mean() == pytest.approx(25 * low / 100 + 75 * (1 - low / 100), abs=0.5)


def test_a_seed_decides_the_band_of_figure_17() -> None:
    preset = few("fig17", 4)
    tables = [fig17.run(replace(preset, seed=seed)).as_csv() for seed in (1, 1, 2)]
    assert tables[0] == tables[1] != tables[2]
    table = fig17.run(preset)
    for name in fig17.DISTRIBUTIONS:
        low, middle, high = (table[f"{name}_uniform{end}"] for end in ("_low", "", "_high"))
        assert ((low <= middle) & (middle <= high)).all()
        assert (table[f"{name}_individual"] <= table[f"{name}_free_riders"]).all()
