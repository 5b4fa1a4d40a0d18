"""Figure 7: contributors under each mechanism, by the rounds in a slot G."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.comparison import (
    a_fifth_by_contract,
    almost_all,
    compare,
    contract_unchanged,
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
    """What section 5.2 says about the figure."""
    table = compare(preset)
    return [
        most_contributors(table),
        almost_all(table, "G"),
        detection_falls(table, "contributors"),
        a_fifth_by_contract(table),
        contract_unchanged(table, "contributors"),
    ]
