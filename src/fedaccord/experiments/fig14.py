"""Figure 14: how much more data the agreements bring, by the cost per sample E."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, number, statement
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.shapes import (
    falls_in_case_ii,
    generally_increases,
    more_data,
    near,
    quick_then_slow,
    steps_down,
)
from fedaccord.experiments.sweep import ratios_only, sweep
from fedaccord.experiments.table import Table


def run(preset: Preset) -> Table:
    """The data ratio under either agreement."""
    return ratios_only(sweep(preset))


def draw(table: Table, preset: Preset, width: pictures.Width) -> Figure:
    """Points by case, as in the paper, and the individual agreement."""
    return pictures.plot_cases(table, "ratio", pictures.RATIO, width, preset.zoom)


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure and its subfigure."""
    table = sweep(preset)
    assert preset.zoom is not None
    closer = near(table, preset.zoom)
    down = int(steps_down(closer["uniform_ratio"]).sum())
    coarse = more_data(table)[4::5]
    return [
        generally_increases(
            "With a critical client the data ratio generally increases with E.",
            table.where(table["case"] == "I"),
        ),
        quick_then_slow(table, "E"),
        number(
            "Training data is increased by up to (on 200 values of E)",
            81.6,
            coarse.max(),
            decimals=1,
            unit=" %",
        ),
        falls_in_case_ii(table, "E"),
        statement(
            "Subfigure: the curve is a zigzag.",
            0 < down < len(closer) - 1,
            f"of {len(closer) - 1} steps {down} lead down",
        ),
    ]
