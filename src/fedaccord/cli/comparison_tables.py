"""What `compare --format text` prints: one table, and what to know about each mechanism."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from fedaccord.cli.tables import plain_table
from fedaccord.report import comparison_summary, mechanism_rows

if TYPE_CHECKING:
    from fedaccord.baselines.comparison import MechanismComparison
    from fedaccord.training.comparison import Estimate


def print_mechanisms(
    console: Console, comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]"
) -> None:
    """What `compare` found."""
    numbers = ["Give", "Part", "Free", "Samples", "Cost", "Paid", "Worst", "Holds", "Private"]
    table = plain_table("Mechanism", numbers)
    rows = mechanism_rows(comparison, accuracy)
    for row in rows:
        table.add_row(
            row.name,
            *(row.contributors, row.partial_contributors, row.free_riders),
            *(row.total, row.total_cost, row.paid, row.worst_saving),
            *(row.self_enforcing, row.private_information),
        )
    console.print(table)
    console.print(
        "Give, Part, Free: contributors, partial contributors, free riders. Samples, Cost: of all "
        "clients in a slot, before payments. Paid: to clients. Worst: what the worst-off client "
        "saves in a slot against the equilibrium, payments included. Holds: whether it is "
        "self-enforcing, by the certificate. Private: whether it survives that only a client "
        "knows its valuation and cost.",
        style="dim",
    )
    if accuracy:
        measured = plain_table("Mechanism", ["Test accuracy"])
        for row in rows:
            measured.add_row(row.name, row.accuracy)
        console.print(measured)
        console.print(
            "Test accuracy after one slot: the mean over seeds, and its 95 % interval if there are "
            "several.",
            style="dim",
        )
    console.print()
    console.print(comparison_summary(comparison))
    for entry, row in zip(comparison.entries, rows, strict=True):
        worst = f"; worst off is {row.worst_client}" if entry.worst_client else ""
        kept = f"kept up by {row.enforced_by}{worst}"
        console.print(f"  {row.name}: {kept}. Private information: {row.because}.", soft_wrap=True)
        for note in entry.outcome.notes:
            console.print(f"    {note}", soft_wrap=True)
