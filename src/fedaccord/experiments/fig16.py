"""Figure 16: how much more data the agreements bring, by the discount factor."""

from fedaccord.experiments.claims import Claim, judge, number, one_or_range
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.ratios import draw, run
from fedaccord.experiments.shapes import rising
from fedaccord.experiments.standard import Finding, constant
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = sweep(preset)
    ratio = table["uniform_ratio"]
    full = table.swept[table["uniform_level"] >= preset.setting.samples]
    return [
        rising(
            "The data ratio first increases with the discount factor.",
            table,
            "uniform_ratio",
            digits=2,
        ),
        number("Converted clients give all from a discount factor of", 0.87, full[0], decimals=2),
        judge("From 0.87 on the data ratio is constant.", table, _constant),
        number(
            "The data ratio is then",
            1.96,
            ratio[-1],
            decimals=2,
            why=_of_the_critical_client(table, preset.setting.samples),
        ),
    ]


def _constant(table: Table) -> Finding:
    then = table["uniform_ratio"][table.swept >= 0.87]
    return constant(then, one_or_range(then), "it changes")


def _of_the_critical_client(table: Table, samples: float) -> str:
    alone, agreed = float(table["total"][-1]), float(table["uniform_total"][-1])
    given = alone - (float(table["contributors"][-1]) - 1) * samples
    whole = agreed - given + samples
    return (
        f"Theorem 3 leaves the critical client at {given:,.0f} samples, so it is "
        f"{agreed:,.0f}/{alone:,.0f}; with all of its data it would be {whole:,.0f}/{alone:,.0f} "
        f"= {whole / alone:.2f}"
    )
