"""What is said about mechanisms side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedaccord.numbers import write
from fedaccord.summaries.agreement import so_many
from fedaccord.summaries.training import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedaccord.mechanisms.comparison import ComparedMechanism, MechanismComparison
    from fedaccord.training.comparison import Estimate


@dataclass(frozen=True)
class MechanismRow:
    """What is said about one mechanism, every number written out."""

    name: str
    contributors: str
    partial_contributors: str
    free_riders: str
    total: str
    total_cost: str
    paid: str
    worst_client: str
    worst_saving: str
    self_enforcing: str
    enforced_by: str
    private_information: str
    """Whether it survives that."""
    because: str
    accuracy: str


def comparison_summary(comparison: "MechanismComparison") -> str:
    """What clients do alone, and the most that holds by itself."""
    equilibrium = comparison.equilibrium
    alone = write([equilibrium.total])[0]
    start = (
        f"Left to themselves, {so_many(equilibrium.free_riders, comparison.consortium.size)} "
        f"contribute nothing, and {alone} samples are trained on in a slot."
    )
    holding = [entry for entry in comparison.entries if entry.self_enforcing]
    if not holding:
        return f"{start} None of these mechanisms would hold by itself."
    most = max(holding, key=lambda entry: entry.outcome.total)
    if most.outcome.total <= equilibrium.total:
        return f"{start} Nothing here that holds by itself does better."
    return (
        f"{start} Of what holds by itself, {most.name} brings most: "
        f"{write([most.outcome.total])[0]} samples."
    )


_SHORT = 1e-6
"""Amounts that are all less are written with an exponent."""


def mechanism_rows(
    comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]"
) -> list[MechanismRow]:
    """What to say about each mechanism."""
    entries = comparison.entries
    columns = (
        write([entry.outcome.total for entry in entries]),
        write([entry.total_cost for entry in entries], digits=6),
        _write_some([entry.outcome.paid for entry in entries]),
        _write_some([entry.worst_saving for entry in entries]),
    )
    rows = zip(entries, *columns, strict=True)
    return [_mechanism_row(entry, accuracy.get(entry.name), *row) for entry, *row in rows]


def _write_some(values: Sequence[float]) -> list[str]:
    """Numbers of which many are nothing, and nothing plainly so; tiny ones without their zeros."""
    if 0 < max(map(abs, values)) < _SHORT:
        return [f"{value:.3g}" for value in values]
    return ["0" if value == 0 else text for value, text in zip(values, write(values), strict=True)]


def _mechanism_row(
    entry: "ComparedMechanism", accuracy: "Estimate | None", *written: str
) -> MechanismRow:
    outcome = entry.outcome
    total, cost, paid, saving = written
    survives = outcome.survives_private_information
    return MechanismRow(
        name=entry.name,
        contributors=f"{outcome.contributors:,}",
        partial_contributors=f"{outcome.partial_contributors:,}",
        free_riders=f"{outcome.free_riders:,}",
        total=total,
        total_cost=cost,
        paid=paid,
        worst_client=entry.worst_client or "everyone alike",
        worst_saving=saving,
        self_enforcing="yes" if entry.self_enforcing else "no",
        enforced_by=outcome.enforced_by,
        private_information={True: "yes", False: "no", None: "not said"}[survives],
        because=outcome.private_information,
        accuracy="" if accuracy is None else percent(accuracy),
    )
