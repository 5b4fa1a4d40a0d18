"""Every figure: its table, its plot at both widths, and byte-identical files."""

from dataclasses import replace
from types import MappingProxyType
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import fedaccord as fa
from fedaccord.experiments import figures
from fedaccord.experiments.figure_data import Column
from fedaccord.experiments.figures import distributions
from fedaccord.experiments.pictures import INCHES, Width, save
from fedaccord.experiments.presets import figure_titles, find_preset, own_titles
from tests.experiments.presets_for_tests import few

NAMES = [*figure_titles(), *own_titles()]


def legend_is_clear_of_the_data(figure: Figure) -> bool:
    figure.draw_without_rendering()
    [legend] = figure.legends
    outside = legend.get_window_extent()
    inside = figure.bbox.padded(1.0)
    labels = [text for axes in figure.axes for text in (axes.yaxis.label, axes.title)]
    parts = [*figure.axes, *(text for text in labels if text.get_text())]
    apart = not any(outside.overlaps(part.get_window_extent()) for part in parts)
    return apart and outside.x1 <= inside.x1 and outside.y1 <= inside.y1


@pytest.mark.parametrize("name", NAMES)
def test_a_table_has_one_row_per_value_and_what_is_compared(name: str) -> None:
    preset = few(name)
    table = figures.run(preset)
    assert table.parameter == preset.parameter
    assert table.swept.tolist() == list(preset.values)
    shown = ("individual", "uniform" if name in figure_titles() else "suspension")
    for kind in ("everything", "transfers") if name == "patience-clients" else shown:
        assert any(kind in column for column in table.columns)
    for column, values in table.columns.items():
        assert len(values) == len(preset.values)
        assert column == "case" or np.isfinite(values).all()


@pytest.mark.parametrize(
    "width", ["one-column", pytest.param("two-columns", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", NAMES)
def test_a_plot_has_labels_and_a_legend_that_hides_nothing(name: str, width: Width) -> None:
    preset = few(name, 40)
    figure = figures.draw(figures.run(preset), preset, width)
    assert figure.get_figwidth() == INCHES[width]
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
    assert legend_is_clear_of_the_data(figure)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig6", "fig8", "fig17", "suspension-patience"])
def test_files_are_byte_identical_when_repeated(name: str) -> None:
    preset = few(name)
    first, second = (
        save(figures.draw(figures.run(preset), preset, "one-column"), name) for _ in range(2)
    )
    assert first == second
    assert ElementTree.fromstring(first["svg"]).tag.endswith("svg")
    assert b"<dc:date>" not in first["svg"]
    assert first["png"].startswith(b"\x89PNG")


def lines_of(axes: Axes) -> dict[str, Line2D]:
    return {str(line.get_label()): line for line in axes.get_lines()}


def data(line: Line2D) -> Column:
    return np.asarray(line.get_xydata())


@pytest.mark.parametrize(
    ("name", "column", "unit"),
    [("fig4", "ratio", 1.0), ("fig5", "removed", 1.0), ("fig13", "removed", 1e-8)],
)
def test_points_and_lines_match_the_table(name: str, column: str, unit: float) -> None:
    preset = few(name, 60)
    table = figures.run(preset)
    lines = lines_of(figures.draw(table, preset, "one-column").axes[0])
    individual = lines.pop("individual")
    # up to rounding: an E of 1e-8 is at 1 on the axis
    x = table.swept / unit
    np.testing.assert_allclose(
        data(individual), np.column_stack([x, table[f"individual_{column}"]]), rtol=1e-12
    )
    points = np.vstack([data(line) for line in lines.values()])
    np.testing.assert_allclose(
        points[points[:, 0].argsort()],
        np.column_stack([x, table[f"uniform_{column}"]]),
        rtol=1e-12,
    )
    assert all(line.get_zorder() < individual.get_zorder() for line in lines.values())
    for words, case in (("critical client", "I"), ("no critical client", "II")):
        there = table["case"] == case
        if there.any():
            np.testing.assert_allclose(data(lines[f"uniform, {words}"])[:, 0], x[there], rtol=1e-12)


def test_a_zoom_shows_the_points_in_its_range() -> None:
    preset = find_preset("fig6")
    table = figures.run(preset)
    axes = figures.draw(table, preset, "one-column").axes[1]
    shown = np.vstack([data(line) for line in axes.get_lines()])
    there = (table.swept >= 9_000) & (table.swept <= 11_000)
    assert sorted(shown[:, 0]) == table.swept[there].tolist()
    assert sorted(shown[:, 1]) == sorted(table["uniform_ratio"][there])
    assert axes.get_ylabel() == "Data ratio (uniform)"


@pytest.mark.parametrize(
    ("name", "what", "unit"), [("fig7", "contributors", 1.0), ("fig8", "total", 1000.0)]
)
def test_each_mechanism_has_a_line_with_its_column(name: str, what: str, unit: float) -> None:
    preset = few(name)
    table = figures.run(preset)
    [axes] = figures.draw(table, preset, "one-column").axes
    lines = lines_of(axes)
    for words, mechanism in {
        "individual": "individual",
        "uniform (the paper's)": "uniform",
        "detection": "detection",
        "contract design": "contract",
    }.items():
        np.testing.assert_array_equal(
            data(lines[words]), np.column_stack([table.swept, table[f"{mechanism}_{what}"] / unit])
        )
    assert ("thousand" in axes.get_ylabel()) == (unit == 1000.0)


@pytest.mark.slow
def test_suspension_brings_at_least_as_much_as_reversion_everywhere() -> None:
    for name in ("suspension-clients", "suspension-samples", "suspension-patience"):
        table = figures.run(few(name, 30))
        by_patience = name == "suspension-patience"
        data, who = ("total", "contributors") if by_patience else ("ratio", "removed")
        assert (table[f"suspension_{data}"] >= table[f"individual_{data}"] * (1 - 1e-9)).all()
        assert (table[f"suspension_{who}"] >= table[f"individual_{who}"]).all()
    at = table.where(table.swept >= 0.0768)  # all data, with one slot of suspension
    assert at["suspension_total"] == pytest.approx(1_000_000)
    below = figures.run(replace(find_preset("suspension-patience"), values=(0.05, 0.0768)))
    totals = below["suspension_total"]
    assert totals[0] == pytest.approx(996_674, abs=1)
    assert totals[1] < 1_000_000


def test_truthful_mechanisms_beside_agreements() -> None:
    preset = replace(find_preset("truthful-clients"), values=(100.0, 200.0))
    assert find_preset("truthful-clients").values[-2:] == (195.0, 200.0)
    table = figures.run(preset)
    assert table["suspension_equal"].tolist() == [100.0, 100.0]
    assert table["clock_equal"] == pytest.approx([80.1738, 40.0869], abs=1e-4)
    np.testing.assert_allclose(table["serial_clock_equal"], table["fair_exchange_equal"])
    assert (table["serial_clock_unequal"] > table["fair_exchange_unequal"]).all()
    assert figures.claims(preset) == []


def test_the_patience_that_baselines_need() -> None:
    table = figures.run(replace(find_preset("patience-clients"), values=(5.0, 100.0, 200.0)))
    assert table["everything_equal"] == pytest.approx([0.0, 0.076829, 0.149709], abs=1e-6)
    assert table["uniform_equal"] == pytest.approx([1.0, 0.510638, 0.503704], abs=1e-6)
    assert (table["clock_equal"] <= table["everything_equal"]).all()
    assert (table["clock_unequal"] <= 0.415).all()
    for side, holds in ((1e-4, True), (-1e-4, False)):
        patience = table["transfers_equal"][1] + side
        same = fa.paper_consortium(discount_factor=patience)
        assert fa.compare(same, "transfers")["transfers"].self_enforcing == holds


def test_figure_17_has_a_panel_for_each_distribution() -> None:
    preset = few("fig17")
    table = distributions.run(preset)
    figure = distributions.draw(table, preset, "one-column")
    for axes, (name, low) in zip(figure.axes, distributions.DISTRIBUTIONS.items(), strict=True):
        assert axes.get_title().startswith(f"{low} % low")
        lines = lines_of(axes)
        for words, column in {
            "uniform (the paper's)": "uniform",
            "uniform, first willing client": "feasible",
            "individual": "individual",
        }.items():
            np.testing.assert_array_equal(data(lines[words])[:, 1], table[f"{name}_{column}"])
        [band] = axes.collections
        heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
        assert heights.min() == table[f"{name}_uniform_low"].min()
        assert heights.max() == table[f"{name}_uniform_high"].max()
    assert len({axes.get_ylim() for axes in figure.axes}) == 1


@pytest.mark.parametrize("name", ["fig4", "fig5", "fig6", "fig13", "fig14"])
def test_markers_in_the_legend_can_be_told_apart(name: str) -> None:
    """With any number of points; a letter in the legend is about 4 points high."""
    preset = find_preset(name)
    figure = figures.draw(figures.run(preset), preset, "one-column")
    [legend] = figure.legends
    sizes = [line.get_markersize() for line in legend.get_lines() if line.get_marker() != "None"]
    assert sizes == pytest.approx([4.0] * len(sizes))


def test_cases_differ_in_marker_as_well_as_in_colour() -> None:
    preset = find_preset("fig4")
    figure = figures.draw(figures.run(preset), preset, "one-column")
    [legend] = figure.legends
    lines = [line for line in legend.get_lines() if line.get_marker() != "None"]
    assert len(lines) == 3
    assert len({line.get_marker() for line in lines}) == 3
    assert len({line.get_color() for line in lines}) == 3


@pytest.mark.parametrize("low", [80, 50, 20])
def test_valuations_are_drawn_as_the_paper_says(low: int) -> None:
    drawn = distributions.draw_valuations(low, draws=200, seed=1)
    assert drawn.shape == (200, 100)
    assert ((drawn > 0) & (drawn <= 50)).sum(axis=1).tolist() == [low] * 200
    assert ((drawn > 50) & (drawn <= 100)).sum(axis=1).tolist() == [100 - low] * 200
    # a mean of 20,000 uniform numbers is off by more than 0.5 once in 10^6
    assert drawn.mean() == pytest.approx(25 * low / 100 + 75 * (1 - low / 100), abs=0.5)


def test_a_seed_decides_the_band_of_figure_17() -> None:
    preset = few("fig17", 4)
    tables = [distributions.run(replace(preset, seed=seed)).as_csv() for seed in (1, 1, 2)]
    assert tables[0] == tables[1] != tables[2]
    table = distributions.run(preset)
    for name in distributions.DISTRIBUTIONS:
        low, middle, high = (table[f"{name}_uniform{end}"] for end in ("_low", "", "_high"))
        assert ((low <= middle) & (middle <= high)).all()
        assert (table[f"{name}_individual"] <= table[f"{name}_free_riders"]).all()


@pytest.mark.slow
def test_figure_17_has_the_papers_uniform_agreement() -> None:
    """And the agreement from the first willing client, if the paper's would not keep to a level."""
    preset = few("fig17", 4)
    preset = replace(preset, options=MappingProxyType({"draws": 1}))
    differ = 0
    for seed in range(6):
        table = distributions.run(replace(preset, seed=seed))
        for k, rounds in enumerate(preset.values):
            for name, low in distributions.DISTRIBUTIONS.items():
                [valuation] = distributions.draw_valuations(low, draws=1, seed=seed)
                alone = fa.solve_equilibrium(
                    fa.Consortium(
                        valuation=valuation,
                        cost_per_sample=0.985e-8,
                        samples=10_000.0,
                        rounds=int(rounds),
                        discount_factor=0.8,
                    )
                )
                papers = fa.solve_agreement(alone, "uniform")
                other = fa.solve_agreement(alone, "uniform", first_converted="feasible")
                assert table[f"{name}_uniform"][k] == papers.free_riders_removed
                assert table[f"{name}_feasible"][k] == other.free_riders_removed
                assert table[f"{name}_without"][k] == (0.0 if papers.exists else 100.0)
                differ += papers.free_riders_removed != other.free_riders_removed
    assert differ
