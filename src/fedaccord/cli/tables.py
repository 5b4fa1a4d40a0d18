"""What `--format text` prints: a summary first, then clients."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from fedaccord.game.social_optimum import price_of_anarchy
from fedaccord.numbers import count, patience, write
from fedaccord.summaries.agreement import choose_clients, client_rows, verdict
from fedaccord.summaries.match import deviator_rows
from fedaccord.summaries.mechanisms import comparison_summary, mechanism_rows
from fedaccord.summaries.training import (
    gain_sentence,
    percent,
    setting_sentence,
    training_notes,
)

if TYPE_CHECKING:
    from fedaccord.agreement.agreement import Agreement
    from fedaccord.agreement.certificate import Certificate
    from fedaccord.game.consortium import Consortium
    from fedaccord.game.equilibrium import Equilibrium
    from fedaccord.game.social_optimum import SocialOptimum
    from fedaccord.mechanisms.compare import MechanismComparison
    from fedaccord.numbers import BoolArray
    from fedaccord.repeated.match import Match
    from fedaccord.summaries.match import Account
    from fedaccord.training.comparison import Comparison, Estimate
    from fedaccord.training.course import TrainingRun
    from fedaccord.trials.trial import Trial


LISTED = 20
"""Clients in a table unless all are asked for."""


def print_consortium(console: Console, consortium: "Consortium") -> None:
    """Who it is."""
    samples = write([float(consortium.samples.sum())])[0]
    console.print(consortium.name, style="bold")
    console.print(
        f"{count(consortium.size, 'client')} with {samples} samples together, "
        f"{count(consortium.rounds, 'round')} in a slot"
    )


def print_solution(
    console: Console,
    certificate: "Certificate",
    optimum: "SocialOptimum",
    exists_from: float | None,
    every: bool,
) -> None:
    """What `solve` found."""
    agreement = certificate.agreement
    kind = "an individual" if agreement.kind == "individual" else "a uniform"
    print_comparison(console, [certificate])
    if agreement.exists:
        console.print(verdict(certificate))
    else:
        console.print(f"{agreement.none_exists}: {agreement.reason}.")
    if agreement.exists and agreement.level is not None:
        level, largest = write([agreement.level, agreement.largest_level or 0.0])
        console.print(
            f"{agreement.first_converted} is the first client converted; converted clients give "
            f"{level} samples each (it would gain up to {largest}), or all they have."
        )
    if exists_from is not None and exists_from > agreement.margin:
        whole = ", if not in whole samples," if agreement.whole_samples else ""
        console.print(
            f"If all clients had one discount factor, {kind} agreement"
            f"{agreement.scope}{whole} would exist above {patience(exists_from)}."
        )
    price = price_of_anarchy(agreement.equilibrium, optimum)
    console.print(
        f"Cheapest for all together would be {write([optimum.total])[0]} samples (the social "
        f"optimum); the equilibrium costs {price:,.4f} times as much (the price of anarchy)."
    )
    print_clients(console, certificate, every)


def print_certificate(console: Console, certificate: "Certificate", every: bool) -> None:
    """What `certify` found."""
    print_comparison(console, [certificate])
    console.print(verdict(certificate))
    slipping = ~certificate.keeps & ~certificate.gives_more
    _print_deviations(console, certificate, slipping, every, punished=True)
    _print_deviations(console, certificate, certificate.gives_more, every, punished=False)
    print_clients(console, certificate, every)


def print_comparison(console: Console, certificates: Iterable["Certificate"]) -> None:
    """The equilibrium beside agreements on the same consortium, in totals."""
    agreements = [certificate.agreement for certificate in certificates]
    equilibrium, size = agreements[0].equilibrium, agreements[0].consortium.size
    sides: list[Equilibrium | Agreement] = [equilibrium, *agreements]
    table = plain_table(
        "", ["Equilibrium", *(_heading(agreement.kind) for agreement in agreements)]
    )
    table.add_row("Samples trained on in a slot", *write([side.total for side in sides]))
    table.add_row("  times the equilibrium's", "", *(f"{a.ratio:,.2f}" for a in agreements))
    table.add_row("Free riders", *(f"{side.free_riders:,} of {size:,}" for side in sides))
    costs = np.array([side.cost.sum() for side in sides])
    table.add_row("Cost of a slot to all together", *write(costs, digits=6))
    table.add_row("  saved", "", *write(costs[0] - costs[1:]))
    console.print(table)


def print_clients(console: Console, certificate: "Certificate", every: bool) -> None:
    """The clients: what they do alone, what they are asked, what it takes."""
    size = certificate.agreement.consortium.size
    chosen = choose_clients(certificate, size if every else LISTED)
    numbers = ["Has", "Alone", "Agreed", "Saves", "Needs", "Patience"]
    table = plain_table("Client", numbers, words="Role")
    for row in client_rows(certificate, chosen):
        amounts = (row.samples, row.alone, row.agreed, row.saving)
        table.add_row(row.name, *amounts, row.threshold, row.discount_factor, row.role)
    console.print(table)
    console.print(
        "Has, Alone, Agreed: samples. Saves: in a slot, against the equilibrium. Needs: the "
        "least discount factor at which it keeps to the agreement. Patience: the one it has.",
        style="dim",
    )
    if len(chosen) < size:
        console.print(
            f"{len(chosen):,} of {size:,} clients, by ascending ratio of valuation to cost per "
            "sample; --all lists every one."
        )


def print_account(console: Console, account: "Account", every: bool) -> None:
    """What `play` saw."""
    match = account.match
    before = [account.terms, account.watch, account.strategies]
    happened = [*account.slips, *account.slips_that_were_none]
    console.print("\n".join(filter(None, before)))
    console.print()
    if match.agreement.exists:
        console.print(account.phases)
    for line in happened:
        console.print(f"  {line}", soft_wrap=True)
    if not match.slipped.any():
        console.print("Nobody slipped." + ("" if happened else " (--deviate NAME@SLOT: somebody.)"))
    for line in account.chance:
        console.print(line)
    if match.slipped.any():
        _print_deviators(console, match, every)


def _print_deviators(console: Console, match: "Match", every: bool) -> None:
    """What those who slipped paid, against keeping to the agreement."""
    rows = deviator_rows(match)
    chosen = rows if every else rows[:LISTED]
    table = plain_table("Slipped", ["Slots", "Pays for ever", "Without its slips", "Lost by them"])
    for row in chosen:
        table.add_row(row.name, row.slots, row.paid, row.paid_if_kept, row.lost)
    console.print(table)
    console.print(
        "Saved, lost: against the same match without the client's slips, discounted to the slot "
        "of the slip. The table: all slots for ever, discounted to the first.",
        style="dim",
    )
    if len(chosen) < len(rows):
        console.print(f"... and {len(rows) - len(chosen):,} more; --all lists every one.")


def _print_deviations(
    console: Console, certificate: "Certificate", who: "BoolArray", every: bool, *, punished: bool
) -> None:
    """Those who would slip, or those who would give more: to what, and what it is worth."""
    if not who.any():
        return
    them = np.flatnonzero(who)
    worst_first = them[np.argsort(certificate.slack[them], kind="stable")].tolist()
    chosen = worst_first if every else worst_first[:LISTED]
    losses = ["Loses a slot", "Needs", "Patience"] if punished else []
    gains = "Gains once" if punished else "Gains a slot"
    table = plain_table(
        "Would slip" if punished else "Would give more", ["Agreed", "Would give", gains, *losses]
    )
    for row in client_rows(certificate, chosen):
        lost = (row.saving, row.threshold, row.discount_factor) if punished else ()
        table.add_row(row.name, row.agreed, row.deviation, row.gain, *lost)
    console.print(table)
    if len(chosen) < len(worst_first):
        console.print(f"... and {len(worst_first) - len(chosen):,} more; --all lists every one.")


def _heading(kind: str) -> str:
    return "Profile" if kind == "given" else f"{kind.capitalize()} agreement"


def plain_table(name: str, numbers: list[str], words: str | None = None) -> Table:
    """A table of names, numbers to the right, and words at the end."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold", min_width=8)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    if words:
        table.add_column(words, no_wrap=True)
    return table


def print_training(console: Console, comparison: "Trial") -> None:
    """The scores, what they mean, and how they came about."""
    console.print(setting_sentence(comparison))
    table = plain_table("Profile", ["Trained on", "Test loss", "Test accuracy", "Gain"])
    totals = write([round(score.total) for score in comparison.scores])
    for score, total in zip(comparison.scores, totals, strict=True):
        first = score is comparison.scores[0]
        gain = "" if first else percent(score.accuracy_gain, signed=True)
        table.add_row(score.profile, total, _loss(score.loss), percent(score.accuracy), gain)
    console.print(table)
    for score in comparison.scores[1:]:
        console.print(gain_sentence(comparison, score))
    for note in training_notes(comparison):
        console.print(f"  {note}", soft_wrap=True)
    if len(comparison.runs[0].slots) > 1:
        _print_slots(console, comparison)


def _print_slots(console: Console, comparison: "Comparison") -> None:
    """Test accuracy after each slot, and what was trained on in it."""
    profiles = [score.profile for score in comparison.scores]
    slots = len(comparison.runs[0].slots)
    table = plain_table("After slot", profiles)
    chosen = np.unique(np.linspace(0, slots - 1, min(slots, LISTED)).round().astype(int))
    for k in chosen.tolist():
        table.add_row(str(k + 1), *(_slot(comparison.of(name), k) for name in profiles))
    console.print(table)
    if len(chosen) < slots:
        console.print(f"{len(chosen)} of {slots:,} slots; --csv and --format json have them all.")


def _slot(runs: "list[TrainingRun]", k: int) -> str:
    """Mean accuracy after a slot, and on how many examples it was trained."""
    records = [run.slots[k] for run in runs]
    accuracy = np.mean([record.final.accuracy for record in records])
    phase = ", punishing" if records[0].phase == "punishing" else ""
    return f"{100 * accuracy:.2f} % ({records[0].total:,}{phase})"


def _loss(estimate: "Estimate") -> str:
    width = f" ± {estimate.half_width:.4f}" if np.isfinite(estimate.half_width) else ""
    return f"{estimate.mean:.4f}{width}"


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
