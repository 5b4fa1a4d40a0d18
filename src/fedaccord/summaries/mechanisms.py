"""What is said about mechanisms side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fedaccord.game.money import amounts
from fedaccord.numbers import write
from fedaccord.summaries.agreement import so_many
from fedaccord.summaries.training import written_score
from fedaccord.summaries.words import Noun, in_unit, listed, with_noun

if TYPE_CHECKING:
    from fedaccord.mechanisms.comparison import ComparedMechanism, MechanismComparison
    from fedaccord.mechanisms.mechanism import Outcome
    from fedaccord.trials.trial import Trial


@dataclass(frozen=True)
class MechanismRow:
    """What a table says about one mechanism, every number formatted."""

    name: str
    contributors: str
    """And, after a plus sign, the partial contributors, if there are any."""
    free_riders: str
    total: str
    total_cost: str
    paid: str
    worst_saving: str
    self_enforcing: str
    """Under what it holds by itself, or "no"."""
    truthful: str
    largest_gain_by_lying: str
    """In per cent of what training costs the liar; a dash if it is not known."""
    budget_balanced: str
    worse_than_alone: str
    """How many clients are worse off than alone."""
    worse_than_equilibrium: str
    models: str
    accuracy: str
    explanation: str
    """What enforces it, what it needs, who is worst off, and whether truth pays."""
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
    comparison: "MechanismComparison", trial: "Trial | None" = None, noun: Noun = "client"
) -> list[MechanismRow]:
    """The rows of a table, one per mechanism; with a trial, they have the accuracy in it."""
    entries, currency = comparison.entries, comparison.consortium.currency
    columns = (
        write([entry.outcome.total for entry in entries]),
        amounts([entry.total_cost for entry in entries], currency, digits=6),
        _write_some([entry.outcome.paid for entry in entries], currency),
        _write_some([entry.worst_saving for entry in entries], currency),
    )
    rows = zip(entries, *columns, strict=True)
    measured = (
        {score.profile: written_score(score.accuracy, trial.measure) for score in trial.scores}
        if trial is not None
        else {}
    )
    found = [_mechanism_row(entry, measured.get(entry.name, ""), *row) for entry, *row in rows]
    names = comparison.consortium.names
    return [
        replace(
            row,
            explanation=with_noun(row.explanation, noun, names),
            notes=tuple(with_noun(note, noun, names) for note in row.notes),
        )
        for row in found
    ]


def _write_some(values: Sequence[float], currency: str) -> list[str]:
    """Numbers of which many are 0, written as 0; very small ones with an exponent."""
    if 0 < max(map(abs, values)) < _SHORT:
        return [f"{value:.3g}" for value in values]
    written = zip(values, amounts(values, currency), strict=True)
    return ["0" if value == 0 else text for value, text in written]


def _mechanism_row(entry: "ComparedMechanism", accuracy: str, *written: str) -> MechanismRow:
    outcome = entry.outcome
    total, cost, paid, saving = written
    partial = f" + {outcome.partial_contributors:,}" if outcome.partial_contributors else ""
    worst = f" Worst off is {entry.worst_client}." if entry.worst_client else ""
    return MechanismRow(
        name=entry.name,
        contributors=f"{outcome.contributors:,}{partial}",
        free_riders=f"{outcome.free_riders:,}",
        total=total,
        total_cost=cost,
        paid=paid,
        worst_saving=saving,
        self_enforcing=_held_by(entry),
        truthful={True: "yes", False: "no", None: "not said"}[outcome.truthful],
        largest_gain_by_lying=_percentage(entry.largest_gain_by_lying),
        budget_balanced="yes" if outcome.budget_balanced else "no",
        worse_than_alone=f"{outcome.worse_than_alone:,}",
        worse_than_equilibrium=f"{outcome.worse_than_equilibrium:,}",
        models=f"{outcome.models:,}",
        accuracy=accuracy,
        explanation=(
            f"{_enforced(entry)} Needs {_needs(entry)}.{worst} Truthful: {_truth(outcome)}."
        ),
        notes=tuple(outcome.notes),
    )


def _percentage(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _enforced(entry: "ComparedMechanism") -> str:
    """What enforces it, or who would not keep to it although a punishment should."""
    outcome = entry.outcome
    if entry.self_enforcing or outcome.punishment is None:
        return f"Enforced by {outcome.enforced_by}."
    keeps = zip(outcome.consortium.names, entry.verdict.keeps.tolist(), strict=True)
    slipping = listed([name for name, keeps_to_it in keeps if not keeps_to_it])
    means = outcome.enforced_by[0].upper() + outcome.enforced_by[1:]
    return f"{means} is not enough: {slipping} would not keep to it."


def _held_by(entry: "ComparedMechanism") -> str:
    """Under what it holds by itself: one slot is enough, or a punishment has to follow a slip."""
    if not entry.self_enforcing:
        return "no"
    if entry.verdict.in_one_slot:
        return "one slot"
    return "reversion" if entry.outcome.punishment is None else entry.outcome.punishment.kind


def _needs(entry: "ComparedMechanism") -> str:
    """What it takes besides seeing what each client trains on."""
    outcome = entry.outcome
    needs = {
        "patience": entry.needs_patience,
        "money among clients": outcome.paid > 0 and outcome.budget_balanced,
        "money from outside": not outcome.budget_balanced,
        f"verified {outcome.verified}": outcome.verified not in ("nothing", "not said"),
        f"{outcome.models:,} models": outcome.models > 1,
    }
    return ", ".join(name for name, needed in needs.items() if needed) or "nothing"


def _truth(outcome: "Outcome") -> str:
    if outcome.truthful is None:
        return outcome.truthful_reason
    return f"{'yes' if outcome.truthful else 'no'}, {outcome.truthful_reason}"


MERIT_HEADINGS = (
    "Self-\nenforcing",
    "Truthful",
    "Largest\ngain by\nlying",
    "Budget\nbalanced",
    "Worse off\nthan alone",
    "Worse off\nthan at\nequilibrium",
    "Models",
)
"""What the columns of the second table are called."""


def amount_headings(comparison: "MechanismComparison", noun: Noun = "client") -> tuple[str, ...]:
    """What the columns of the first table are called."""
    unit = in_unit(comparison.consortium)
    return (
        "Contributors\n(+ partial)",
        "Free\nriders",
        "Samples\nper slot",
        f"Total\ncost{unit}",
        f"Paid to\n{noun}s{unit}",
        f"Smallest\nsaving{unit}",
    )


def amounts_of(row: MechanismRow) -> tuple[str, ...]:
    """What happens under a mechanism: the cells of the first table."""
    amounts = (row.contributors, row.free_riders, row.total, row.total_cost)
    return (*amounts, row.paid, row.worst_saving)


def merits_of(row: MechanismRow) -> tuple[str, ...]:
    """What a mechanism is compared by: the cells of the second table."""
    merits = (row.self_enforcing, row.truthful, row.largest_gain_by_lying, row.budget_balanced)
    return (*merits, row.worse_than_alone, row.worse_than_equilibrium, row.models)


def amounts_note(noun: Noun = "client") -> str:
    """What the columns of the first table mean."""
    return (
        f"Contributors: a + b means a contributors and b partial contributors. Total cost: of all "
        f"{noun}s per slot, before payments; – means infinite, since nobody trains. Smallest "
        f"saving: what the worst-off {noun} saves per slot compared with the equilibrium, payments "
        "included."
    )


def merits_note(noun: Noun = "client") -> str:
    """What the columns of the second table mean."""
    return (
        f"Self-enforcing: by search, no {noun} gains by doing anything else in one slot, or, if "
        "every slip is answered by the punishment that stands here, in the repeated game; "
        f"payments count if {noun}s make them and a punishment enforces them. Truthful: no "
        f"{noun} gains by misreporting its valuation or its cost. Largest gain by lying: what the "
        f"best false report saves one {noun}, in per cent of what training costs it; – means not "
        f"known. Budget balanced: all payments come from {noun}s. Worse off: how many {noun}s pay "
        "more, payments included, than alone and than at the equilibrium. Models: how many "
        "different ones are handed out."
    )


MEANINGS = {
    "equilibrium": "Nothing is agreed: each trains on what is best for itself.",
    "uniform": "The paper's agreement: all who train only because of it (the converted) train on "
    "the same amount; after a slip everyone goes back to acting selfishly, for ever.",
    "individual": "An amount for each; after a slip everyone goes back to acting selfishly.",
    "suspension": "An amount for each; whoever slips gets no model for a while.",
    "posted": "Amounts that follow from ranges which everyone knows; nobody is asked for numbers.",
    "everything": "All train on all they have; whoever does not gets no model for a while.",
    "clock": "The share of its data that each trains on rises until the first one says stop.",
    "serial clock": "As with the clock, but whoever says stop gets the model as it is by then, and "
    "the others go on.",
    "fair exchange": "As with the serial clock, but all train on the same number of samples, not "
    "on the same share.",
    "transfers": "The amounts of least total cost, with payments among the members; after a slip "
    "everyone goes back to acting selfishly.",
    "social optimum": "The amounts of least total cost, with payments so that all save the same.",
    "contract": "A server buys training, with money from outside.",
    "detection": "A server finds every free rider and drops it.",
}
"""What each of the built-in mechanisms does, in a sentence."""
ACCURACY_NOTE = (
    "After one slot, on everyone's test: the mean over the seeds, with a 95 % interval about them "
    "if there are several. If there are several models, it is that of the best."
)


def mechanisms_caption(comparison: "MechanismComparison") -> tuple[str, str]:
    """A heading and an explanation for the picture of the mechanisms."""
    unit = comparison.consortium.currency or "the unit of the valuations"
    return (
        "Who contributes, how much, and what it saves.",
        "Saved: by all members together, in a slot, against the equilibrium, before payments, in "
        f"{unit}.",
    )
