"""Figure 22: contributors under each mechanism, by the cost per sample E."""

from fedaccord.experiments.claims import Claim, judge, plain
from fedaccord.experiments.comparison import (
    almost_all,
    compare,
    compare_otherwise,
    detection_falls,
    most_contributors,
)
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.standard import Finding, fact
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    return [
        most_contributors(preset),
        almost_all(table, "E"),
        detection_falls(table, "contributors"),
        judge(
            "Under contract design a small number contributes, and nobody when E is large.",
            table,
            _then_nobody,
            others=compare_otherwise(preset),
        ),
    ]


def _then_nobody(table: Table) -> Finding:
    served = table["contract_contributors"]
    last = table.swept[served > 0].max(initial=0.0)
    return fact(
        last > 0 and (served[table.swept <= last] > 0).all() and served[-1] == 0,
        f"{served[0]:.0f} up to E = {plain(last)}" + (", then 0" if served[-1] == 0 else ""),
    )
