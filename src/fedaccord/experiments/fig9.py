"""Figure 9: contributors under each mechanism, by the discount factor."""

from fedaccord.experiments.claims import Claim, judge, one_or_range
from fedaccord.experiments.comparison import compare, contract_unchanged, most_contributors
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.shapes import by_count
from fedaccord.experiments.standard import Finding, constant
from fedaccord.experiments.sweep import least_patience
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.2 says about the figure."""
    table = compare(preset)
    return [
        judge(
            "Under the agreement the number of contributors does not change with the discount "
            "factor.",
            table,
            by_count(_unchanged),
        ),
        judge("Under detection the number of contributors does not change.", table, _detection),
        contract_unchanged(preset, "contributors"),
        most_contributors(preset),
    ]


def _unchanged(table: Table, count: str) -> Finding:
    values = table[f"{count}_contributors"]
    why = f"below {least_patience():.4f} there is no uniform agreement (figure 15)"
    return constant(values, one_or_range(values), why)


def _detection(table: Table) -> Finding:
    values = table["detection_contributors"]
    return constant(values, one_or_range(values), "it changes")
