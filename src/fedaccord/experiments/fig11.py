"""Figure 11: how many free riders the agreements remove, by the rounds in a slot G."""

import numpy as np

from fedaccord.experiments.claims import Claim, judge, number
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.removed import draw, run
from fedaccord.experiments.shapes import (
    converts_most,
    critical_client_gives_less,
    more_free_riders,
    more_removed,
    removed_share,
)
from fedaccord.experiments.standard import Finding, fact, points, steps_up
from fedaccord.experiments.sweep import solve_sweep, sweep
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]

_FINER = 16


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = sweep(preset)
    most = removed_share(table).max()
    return [
        more_free_riders(table, "G"),
        more_removed(table, "G"),
        _stepwise(table),
        critical_client_gives_less(
            table,
            "While there is a critical client, its contribution decreases with G.",
        ),
        _one_more_when_it_gives_nothing(preset),
        number("Free riders are reduced by", 98.4, most, decimals=1, unit=" %"),
        converts_most(table, "G", large=1),
    ]


def _stepwise(table: Table) -> Claim:
    def check(table: Table) -> Finding:
        steps = np.unique(table["free_riders"]).size
        return fact(steps < len(table), f"{steps} steps over {len(table)} values of G")

    text = "The curve is stepwise: an interval of G for each number of free riders."
    return judge(text, table, check)


def _one_more_when_it_gives_nothing(preset: Preset) -> Claim:
    """Between two whole G several clients may stop, so there are values between them here."""
    values = np.arange(preset.values[0], preset.values[-1], 1.0 / _FINER)
    table = solve_sweep(preset.setting, "rounds", values.tolist())

    def check(table: Table) -> Finding:
        ends = steps_up(table["free_riders"]) & (table["case"][:-1] == "I")
        more = np.diff(table["free_riders"])[ends]
        return points(
            more == 1,
            f"by one at {int((more == 1).sum())} of {more.size} ends of a stretch, in steps of "
            f"1/{_FINER} of a round",
            f"by up to {more.max(initial=0):.0f}",
        )

    text = "When the critical client's contribution reaches 0, free riders increase by one."
    return judge(text, table, check)
