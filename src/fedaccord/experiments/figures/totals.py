"""Figures 8, 10, 19, 21, 23: training data under each mechanism, by one parameter."""

import numpy as np
from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, judge, number, one_or_range
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.figures.mechanisms import (
    all_then_a_part,
    beside_others,
    beside_others_otherwise,
    contract_unchanged,
    data_compared,
    detection_falls,
    flat_then_down,
    more_patience_needed,
    of_each_mechanism,
)
from fedaccord.experiments.figures.shapes import before_and_after, rising, slope
from fedaccord.experiments.presets import Preset, paper_setting
from fedaccord.experiments.standard import (
    CONTRIBUTORS_READ_AS,
    SLOWER,
    Finding,
    by_reading,
    constant,
    fact,
    points,
    steps_down,
)


def run(preset: Preset) -> FigureData:
    """All samples trained on in a slot, under each mechanism."""
    return of_each_mechanism(beside_others(preset), "total")


def draw(table: FigureData, _: Preset, width: pictures.Width) -> Figure:
    """One line for each mechanism."""
    return pictures.plot_mechanisms(table, "total", pictures.DATA, width)


def claims(preset: Preset) -> list[Claim]:
    """What the paper says about the figure that sweeps this parameter."""
    return _CLAIMS[preset.parameter](preset)


def _most_data(preset: Preset) -> Claim:
    """The claim of every one of these figures."""
    text = "The agreement has a larger amount of training data than the other two."
    table, others = beside_others(preset), beside_others_otherwise(preset)
    return judge(text, table, data_compared, others=others)


def _by_rounds(preset: Preset) -> list[Claim]:
    """Figure 8 (section 5.2)."""
    table = beside_others(preset)
    return [
        _most_data(preset),
        *flat_then_down(table, "G", "gradually decreases"),
        detection_falls(table, "total"),
        contract_unchanged(preset, "total"),
    ]


def _by_patience(preset: Preset) -> list[Claim]:
    """Figure 10 (section 5.2)."""
    table = beside_others(preset)
    full = table.swept[table["uniform_level"] >= preset.setting.samples]
    return [
        _most_data(preset),
        rising(
            "The amount of training data first increases with the discount factor.",
            table,
            "uniform_total",
        ),
        number("It is constant from a discount factor of", 0.87, full[0], decimals=2),
        judge("Under detection the amount of data remains unchanged.", table, _detection),
        contract_unchanged(preset, "total"),
        judge(
            "Under detection, contributors participate with all their data.",
            table,
            _detected_contribute_all,
        ),
        judge(
            "Under contract design, contributors participate with all their data.",
            table,
            _served_contribute_all,
            others=beside_others_otherwise(preset),
        ),
    ]


def _detection(table: FigureData) -> Finding:
    return constant(table["total"], one_or_range(table["total"]), "it changes")


def _detected_contribute_all(table: FigureData) -> Finding:
    """The critical client is a contributor, or it is not."""
    samples = paper_setting().samples
    partial = table["total"] - (table["contributors"] - 1) * samples
    without = table["case"] != "I"
    findings = (
        points(
            without | (partial == samples),
            f"all but one, which contributes {partial.max():,.0f} of {samples:,.0f}",
            "the critical client of the equilibrium contributes in part, and is not a free rider "
            "to detect",
        ),
        fact(True, "all, by definition"),
    )
    return by_reading(dict(zip(CONTRIBUTORS_READ_AS, findings, strict=True)))


def _served_contribute_all(table: FigureData) -> Finding:
    samples = paper_setting().samples
    served = table["contract_contributors"]
    bought = table["contract_total"] / np.maximum(served, 1)
    ours = f"{one_or_range(bought)} of {samples:,.0f} samples each"
    return points((bought == samples) | (served == 0), ours)


def _by_clients(preset: Preset) -> list[Claim]:
    """Figure 19 (appendix H)."""
    return [_most_data(preset)]


def _by_samples(preset: Preset) -> list[Claim]:
    """Figure 21 (appendix H)."""
    table = beside_others(preset)
    return [
        _most_data(preset),
        all_then_a_part(table, "D"),
        more_patience_needed(table, "D"),
        judge(
            "Under the agreement the training data first increases linearly with D, then slowly.",
            table,
            _linearly_then_slowly,
        ),
        judge("Under detection the training data increases slowly with D.", table, _slowly),
        judge(
            "Under contract design the training data increases linearly with D.",
            table,
            _linearly,
            others=beside_others_otherwise(preset),
        ),
    ]


def _linearly_then_slowly(table: FigureData) -> Finding:
    early, late = before_and_after(table)
    before, after = slope(early, "uniform_total"), slope(late, "uniform_total")
    return fact(
        before > SLOWER * after > 0.0,
        f"by {before:.0f} samples per sample of D up to {early.swept[-1]:,.0f}, by {after:.0f} "
        "after",
    )


def _slowly(table: FigureData) -> Finding:
    """Compared with the agreement while that is linear."""
    linear, overall = slope(before_and_after(table)[0], "uniform_total"), slope(table, "total")
    return fact(
        not steps_down(table["total"]).any() and linear > SLOWER * overall,
        f"by {overall:.0f} samples per sample of D, under the agreement by {linear:.0f} at first",
    )


def _linearly(table: FigureData) -> Finding:
    per_sample = table["contract_total"] / table.swept
    return constant(per_sample, f"by {one_or_range(per_sample)} samples per sample of D")


def _by_cost(preset: Preset) -> list[Claim]:
    """Figure 23 (appendix H)."""
    table = beside_others(preset)
    return [
        _most_data(preset),
        *flat_then_down(table, "E", "decreases"),
        detection_falls(table, "total"),
        judge(
            "Under contract design the training data follows the number of contributors.",
            table,
            _follows,
            others=beside_others_otherwise(preset),
        ),
    ]


def _follows(table: FigureData) -> Finding:
    samples = paper_setting().samples
    follows = table["contract_total"] == table["contract_contributors"] * samples
    ours = (
        f"{samples:,.0f} samples per contributor at {int(follows.sum()):,} of {len(table):,} values"
    )
    return points(follows, ours)


_CLAIMS = {
    "clients": _by_clients,
    "samples": _by_samples,
    "rounds": _by_rounds,
    "cost_per_sample": _by_cost,
    "discount_factor": _by_patience,
}
