"""Figure 6: how much more data the agreements bring, by the samples of each client D."""

from fedaccord.experiments.claims import Claim, judge
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.ratios import draw, run
from fedaccord.experiments.shapes import (
    critical_client_gives_less,
    falls_in_case_ii,
    generally_increases,
    increases_data,
    less_in_case_ii,
    level_in_case_i,
    most_more_data,
    near,
    quick_then_slow,
    within_a_stretch,
)
from fedaccord.experiments.standard import Finding, points, steps_down, steps_up
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.1 says about the figure and its subfigure."""
    table = sweep(preset)
    assert preset.zoom is not None
    closer = near(table, preset.zoom)
    return [
        generally_increases("The data ratio generally increases with D.", table),
        quick_then_slow(table, "D"),
        most_more_data(preset, 81.2),
        _total_unchanged(closer),
        critical_client_gives_less(
            closer, "Subfigure: the critical client's contribution decreases with D."
        ),
        level_in_case_i(
            closer,
            "Subfigure: with a critical client the converted clients' level increases with D.",
            "the level depends on the equilibrium's total, which is then the critical client's "
            "satiation point and has no D in it; what the critical client gives less, the "
            "contributors give more",
        ),
        falls_in_case_ii(table, "D"),
        less_in_case_ii(table, "D"),
        increases_data(table, "D", large=10_000),
    ]


def _total_unchanged(table: Table) -> Claim:
    def check(table: Table) -> Finding:
        total = table["uniform_total"]
        changes = (steps_up(total) | steps_down(total))[within_a_stretch(table, "I")]
        ours = f"it changes at {int(changes.sum())} of {changes.size} steps within a stretch"
        return points(~changes, ours)

    text = "Subfigure: at the beginning of a tooth (with a critical client) the total is unchanged."
    return judge(text, table, check)
