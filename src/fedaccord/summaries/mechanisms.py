"""What is said about mechanisms side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedaccord.numbers import write
from fedaccord.summaries.agreement import Noun, so_many
from fedaccord.summaries.training import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedaccord.mechanisms.compare import Entry, MechanismComparison
    from fedaccord.training.comparison import Estimate


@dataclass(frozen=True)
class MechanismRow:
    """What a table says about one mechanism, every number formatted."""

    name: str
    contributors: str
    partial_contributors: str
    free_riders: str
    total: str
    total_cost: str
    paid: str
    worst_saving: str
    self_enforcing: str
    private_information: str
    """Whether it works although only a client knows its valuation and cost."""
    accuracy: str
    explanation: str
    """What enforces it, who is worst off, and what private information does to it."""
    notes: tuple[str, ...]


def comparison_summary(comparison: "MechanismComparison", noun: Noun = "client") -> str:
    """What clients do alone, and what brings the most data among what holds by itself."""
    equilibrium = comparison.equilibrium
    alone = write([equilibrium.total])[0]
    start = (
        f"Left to themselves, {so_many(equilibrium.free_riders, comparison.consortium.size, noun)} "
        f"contribute nothing, and {alone} samples are trained on in a slot."
    )
    holding = [entry for entry in comparison.entries if entry.self_enforcing]
    if not holding:
        return f"{start} None of these mechanisms would hold by itself."
    most = max(holding, key=lambda entry: entry.outcome.total)
    if most.outcome.total <= equilibrium.total:
        return f"{start} No mechanism here that holds by itself does better."
    return (
        f"{start} Of the mechanisms that hold by themselves, {most.name} brings the most data: "
        f"{write([most.outcome.total])[0]} samples."
    )


_SHORT = 1e-6
"""If all amounts are smaller than this, they are written with an exponent."""


def mechanism_rows(
    comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]"
) -> list[MechanismRow]:
    """The rows of a table, one per mechanism."""
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
    """Numbers of which many are 0, written as 0; very small ones with an exponent."""
    if 0 < max(map(abs, values)) < _SHORT:
        return [f"{value:.3g}" for value in values]
    return ["0" if value == 0 else text for value, text in zip(values, write(values), strict=True)]


def _mechanism_row(entry: "Entry", accuracy: "Estimate | None", *written: str) -> MechanismRow:
    outcome = entry.outcome
    total, cost, paid, saving = written
    survives = outcome.survives_private_information
    worst = f" Worst off is {entry.worst_client}." if entry.worst_client else ""
    return MechanismRow(
        name=entry.name,
        contributors=f"{outcome.contributors:,}",
        partial_contributors=f"{outcome.partial_contributors:,}",
        free_riders=f"{outcome.free_riders:,}",
        total=total,
        total_cost=cost,
        paid=paid,
        worst_saving=saving,
        self_enforcing="yes" if entry.self_enforcing else "no",
        private_information={True: "yes", False: "no", None: "not said"}[survives],
        accuracy="" if accuracy is None else percent(accuracy),
        explanation=(
            f"Enforced by {outcome.enforced_by}.{worst} "
            f"Private information: {outcome.private_information}."
        ),
        notes=tuple(outcome.notes),
    )


def mechanism_note(noun: Noun = "client") -> str:
    """What the columns of the table of mechanisms mean."""
    return (
        f"Samples and cost are those of all {noun}s in a slot, before payments; – means infinite, "
        f"since nobody trains. The worst saving is that of the {noun} that saves least against the "
        "equilibrium, payments included. A mechanism holds by itself if, by the certificate, "
        f"no {noun} gains by slipping when a slip is answered by the equilibrium for ever: "
        f"payments do not count. Private info: whether it works although only the {noun} itself "
        "knows its valuation and cost."
    )


ACCURACY_NOTE = (
    "Test accuracy after one slot: the mean over the seeds, with a 95 % interval if there are "
    "several."
)
MECHANISMS_CAPTION = (
    "Who contributes, how much, and what it saves.",
    "Saved: by all members together, in a slot, against the equilibrium, before payments, in the "
    "unit of the valuations.",
)
"""A heading and an explanation for the picture of the mechanisms."""
