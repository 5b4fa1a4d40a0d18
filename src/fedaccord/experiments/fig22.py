"""Figure 22: contributors under each mechanism, by the cost per sample E."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, plain, statement
from fedaccord.experiments.comparison import (
    almost_all,
    compare,
    contributors_only,
    detection_falls,
    most_contributors,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.table import Table


def run(preset: Preset) -> Table:
    """Clients that train on anything, under each mechanism."""
    return contributors_only(compare(preset))


def draw(table: Table, _: Preset, width: pictures.Width) -> Figure:
    """One line a mechanism."""
    return pictures.plot_mechanisms(table, "contributors", pictures.CONTRIBUTORS, width)


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    served = table["contract_contributors"]
    last = table.swept[served > 0].max()
    return [
        most_contributors(table),
        almost_all(table, "E"),
        detection_falls(table, "contributors"),
        statement(
            "Under contract design a small number contributes, and nobody when E is large.",
            (served[table.swept <= last] > 0).all() and served[-1] == 0,
            f"{served[0]:.0f} up to E = {plain(last)}, then 0",
        ),
    ]
