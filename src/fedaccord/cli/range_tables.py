"""What `ranges` prints for people."""

import numpy as np
from rich.console import Console

from fedaccord.agreement.range_costs import RangeCosts
from fedaccord.cli.tables import plain_table, print_consortium
from fedaccord.game.money import amounts
from fedaccord.numbers import write
from fedaccord.summaries.ranges import known_in_words, range_cost_sentences
from fedaccord.summaries.words import in_unit

_LISTED = 20
"""Clients in the table; of more, those whose numbers would bring the most data."""


def print_range_costs(console: Console, costs: RangeCosts) -> None:
    """The agreements by width, and client by client."""
    print_consortium(console, costs.consortium)
    here = costs.here
    console.print(
        f"Agreements that hold for every combination of numbers within the ranges; punishment: "
        f"{here.punishment}; objective: {here.objective}."
    )
    unit = in_unit(costs.consortium)
    table = plain_table("Ratios known to", ["Samples agreed", f"Saved by all{unit}"])
    saved = amounts(
        [float(a.saving.sum()) if a.exists else np.nan for a in costs.by_width],
        costs.consortium.currency,
    )
    rows = zip(costs.labels, write(costs.total), saved, strict=True)
    for label, total, amount in rows:
        table.add_row(known_in_words(label), "none" if total == "–" else total, amount)
    console.print(table)
    _print_clients(console, costs, unit)
    for sentence in range_cost_sentences(costs):
        console.print(sentence)


def _print_clients(console: Console, costs: RangeCosts, unit: str) -> None:
    """What would be gained if one client's numbers were known."""
    low, high = 100.0 * costs.consortium.ratio_range / costs.consortium.ratio
    ranked = np.argsort(-np.nan_to_num(costs.total_if_known), kind="stable")
    chosen = np.sort(ranked[:_LISTED])
    headings = ["Its ratio, % of stated", "Samples if known", f"Saved if known{unit}"]
    table = plain_table("Client", headings)
    totals, savings = (
        write(costs.total_if_known[chosen]),
        amounts(costs.saving_if_known[chosen], costs.consortium.currency),
    )
    for n, total, saving in zip(chosen.tolist(), totals, savings, strict=True):
        ratio = f"{low[n]:.3g} to {high[n]:.3g}" if low[n] < high[n] else "known"
        agreed = "none" if total == "–" else total
        table.add_row(costs.consortium.names[n], ratio, agreed, saving if total != "–" else "–")
    console.print(table)
    if chosen.size < len(costs.consortium):
        console.print(f"{chosen.size} of {len(costs.consortium):,} clients are listed.")
