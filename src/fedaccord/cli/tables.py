"""What `--format text` prints: the sentences of `summaries`, and tables."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from fedaccord.agreement.agreement import USUAL_MARGIN
from fedaccord.agreement.worth import worth as worth_of
from fedaccord.game.money import amounts
from fedaccord.numbers import write
from fedaccord.summaries.agreement import (
    assumption_sentences,
    consequences,
    consortium_sentence,
    verdict,
)
from fedaccord.summaries.alternatives import sentences_of
from fedaccord.summaries.audits import audit_sentences
from fedaccord.summaries.changing import turnover_sentences
from fedaccord.summaries.clients import CLIENT_NOTE, choose_clients, client_rows
from fedaccord.summaries.match import COST_NOTE, deviator_rows
from fedaccord.summaries.own_tests import (
    OwnTable,
    own_gains,
    own_gains_note,
    own_levels,
    own_levels_note,
    own_sentences,
)
from fedaccord.summaries.prediction import gain_sentences, predicted_heading, predicted_level
from fedaccord.summaries.ranges import range_sentences
from fedaccord.summaries.training import (
    alone_sentences,
    setting_sentence,
    training_notes,
    written_score,
)
from fedaccord.summaries.words import Hints, hinted, in_unit
from fedaccord.summaries.worth import (
    knife_edge,
    law_sentences,
    questions,
    worth_sentences,
)
from fedaccord.training.estimates import Estimate

if TYPE_CHECKING:
    from rich.table import Table

    from fedaccord.agreement.agreement import Agreement
    from fedaccord.agreement.certificate import Certificate
    from fedaccord.agreement.worth import Worth
    from fedaccord.game.consortium import Consortium
    from fedaccord.game.equilibrium import Equilibrium
    from fedaccord.game.money import amounts
    from fedaccord.game.social_optimum import SocialOptimum
    from fedaccord.numbers import BoolArray
    from fedaccord.repeated.match import Match
    from fedaccord.summaries.alternatives import Alternatives
    from fedaccord.summaries.match import Account
    from fedaccord.training.comparison import Comparison
    from fedaccord.training.course import TrainingRun
    from fedaccord.trials.trial import Trial


LISTED = 20
"""Clients in a table unless --all is given."""
_OPTIONS: Hints = {
    "indifferent": f"--margin {USUAL_MARGIN:g}",
    "worse off": "--nobody-worse rules that out.",
    "cheaper": "--objective least-total-cost",
}
"""The options of `solve` that change what these sentences say."""
_ANY_WIDTH = 10_000
"""Characters; wider than any table."""


def print_consortium(console: Console, consortium: "Consortium") -> None:
    """The consortium's name and size."""
    console.print(consortium.name, style="bold")
    for sentence in [consortium_sentence(consortium), *turnover_sentences(consortium)]:
        console.print(sentence)


def print_solution(
    console: Console,
    certificate: "Certificate",
    optimum: "SocialOptimum",
    exists_from: float | None,
    *,
    alternatives: "Alternatives",
    every: bool,
) -> None:
    """What `solve` found, and what else there would be."""
    said = sentences_of(certificate, optimum, exists_from, alternatives, _OPTIONS)
    _print_lines(console, said["close_call"])
    print_comparison(console, [certificate])
    _print_lines(console, [*said["agreement"], *said["alternatives"]])
    print_clients(console, certificate, every)
    for part in ("audits", "ranges", "law"):
        if said[part]:
            console.print()
        _print_lines(console, said[part])
    print_assumptions(console, certificate)
    _print_questions(console, said["questions"])


def _print_lines(console: Console, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        console.print(sentence)


def print_audits(console: Console, certificate: "Certificate") -> None:
    """How slips are seen, and how few audits would do."""
    said = audit_sentences(certificate)
    if said:
        console.print()
    for sentence in said:
        console.print(sentence)


def print_ranges(
    console: Console, certificate: "Certificate", as_stated: "Agreement | None" = None
) -> None:
    """Whether the agreement holds throughout the ranges of the numbers, if there are any."""
    said = range_sentences(certificate, as_stated)
    if said:
        console.print()
    for sentence in said:
        console.print(sentence)


def print_close_call(console: Console, certificate: "Certificate") -> None:
    """Whether somebody is exactly indifferent, before anything else."""
    edge = knife_edge(certificate)
    if edge:
        given = certificate.agreement.kind == "given"
        console.print(edge if given else hinted(edge, _OPTIONS["indifferent"]))


def print_law(
    console: Console,
    certificate: "Certificate",
    worth: "Worth",
    for_the_fit: "Agreement | None" = None,
) -> None:
    """What the agreement rests on: how the loss falls with data, and how well that is known."""
    console.print()
    for sentence in law_sentences(certificate, worth, for_the_fit):
        console.print(sentence)


def _print_questions(console: Console, asked: Iterable[str]) -> None:
    """Numbers to look at again."""
    for question in asked:
        console.print(f"Question: {question}")


def print_assumptions(console: Console, certificate: "Certificate") -> None:
    """What the proof has to assume."""
    assumed = assumption_sentences(certificate)
    if assumed:
        console.print("\nAssumed, not proved:")
    for sentence in assumed:
        console.print(f"- {sentence}")


def print_certificate(console: Console, certificate: "Certificate", every: bool) -> None:
    """What `certify` found."""
    worth = worth_of(certificate)
    print_close_call(console, certificate)
    print_comparison(console, [certificate])
    console.print(verdict(certificate))
    for sentence in [*worth_sentences(worth), *consequences(certificate)]:
        console.print(sentence)
    slipping = ~certificate.keeps & ~certificate.gives_more
    _print_deviations(console, certificate, slipping, every, punished=True)
    _print_deviations(console, certificate, certificate.gives_more, every, punished=False)
    print_clients(console, certificate, every)
    print_audits(console, certificate)
    print_ranges(console, certificate)
    print_law(console, certificate, worth)
    print_assumptions(console, certificate)
    _print_questions(console, questions(certificate.agreement.consortium))


def print_comparison(
    console: Console,
    certificates: Iterable["Certificate"],
    headings: list[str] | None = None,
) -> None:
    """The equilibrium beside agreements on the same consortium, in totals."""
    agreements = [certificate.agreement for certificate in certificates]
    equilibrium, size = agreements[0].equilibrium, agreements[0].consortium.size
    sides: list[Equilibrium | Agreement] = [equilibrium, *agreements]
    headings = headings or [_heading(agreement.kind) for agreement in agreements]
    table = plain_table("", ["Equilibrium", *headings])
    table.add_row("Samples trained on in a slot", *write([side.total for side in sides]))
    if equilibrium.total > 0:
        table.add_row("  times the equilibrium's", "", *(f"{a.ratio:,.2f}" for a in agreements))
    table.add_row("Free riders", *(f"{side.free_riders:,} of {size:,}" for side in sides))
    costs = np.array([side.cost.sum() for side in sides])
    unit, currency = in_unit(equilibrium.consortium), equilibrium.consortium.currency
    table.add_row(f"Cost of a slot to all together{unit}", *amounts(costs, currency, digits=6))
    table.add_row("  saved", "", *amounts(costs[0] - costs[1:], currency))
    console.print(table)


def print_clients(console: Console, certificate: "Certificate", every: bool) -> None:
    """The clients: what they do without, what they are asked, how patient they must be."""
    size = certificate.agreement.consortium.size
    chosen = choose_clients(certificate, size if every else LISTED)
    samples = ["Samples\nit has", "Samples\nwithout", "Samples\nagreed"]
    currency = certificate.agreement.consortium.currency
    saved = f"{currency} saved\nper slot" if currency else "Saving\nper slot"
    others = [saved, "Patience\nrequired", "Patience\nit has"]
    table = plain_table("Client", [*samples, *others], words="Role")
    for row in client_rows(certificate, chosen):
        amounts = (row.samples, row.selfish, row.agreed, row.saving)
        table.add_row(row.name, *amounts, row.threshold, row.discount_factor, row.role)
    print_wide(console, table)
    console.print(CLIENT_NOTE, style="dim")
    if len(chosen) < size:
        console.print(
            f"{len(chosen):,} of {size:,} clients, by ascending ratio of valuation to cost per "
            "sample; --all lists every one."
        )


def print_account(console: Console, account: "Account", every: bool) -> None:
    """What happened in `play`."""
    match = account.match
    before = [account.terms, account.watch, account.strategies]
    happened = [*account.slips, *account.slips_that_were_none]
    console.print("\n".join(filter(None, before)))
    console.print()
    console.print(account.phases)
    for line in happened:
        console.print(f"  {line}", soft_wrap=True)
    if account.nobody_slipped:
        hint = "" if happened else " (To let a client slip: --deviate NAME@SLOT)"
        console.print(account.nobody_slipped + hint)
    for line in account.chance:
        console.print(line)
    if match.slipped.any():
        _print_deviators(console, match, every)


def _print_deviators(console: Console, match: "Match", every: bool) -> None:
    """What the clients that slipped paid, and would have paid without their slips."""
    rows = deviator_rows(match)
    chosen = rows if every else rows[:LISTED]
    table = plain_table(
        "Client\nthat slipped",
        [
            "Slots with\na slip",
            "Total cost,\nfor ever",
            "Total cost\nwithout slips",
            "Lost by\nslipping",
        ],
    )
    for row in chosen:
        table.add_row(row.name, row.slots, row.paid, row.paid_if_kept, row.lost)
    console.print(table)
    console.print(COST_NOTE, style="dim")
    if len(chosen) < len(rows):
        console.print(f"... and {len(rows) - len(chosen):,} more; --all lists every one.")


def _print_deviations(
    console: Console, certificate: "Certificate", who: "BoolArray", every: bool, *, punished: bool
) -> None:
    """The clients that would slip, or contribute more: to what, and what they gain by it."""
    if not who.any():
        return
    them = np.flatnonzero(who)
    worst_first = them[np.argsort(certificate.slack[them], kind="stable")].tolist()
    chosen = worst_first if every else worst_first[:LISTED]
    losses = ["Loss per\nslot after", "Patience\nrequired", "Patience\nit has"] if punished else []
    gains = "Gain,\nonce" if punished else "Gain\nper slot"
    who_they_are = "Would slip" if punished else "Would contribute more"
    table = plain_table(who_they_are, ["Samples\nagreed", "Would\ntrain on", gains, *losses])
    for row in client_rows(certificate, chosen):
        lost = (row.lost, row.threshold, row.discount_factor) if punished else ()
        table.add_row(row.name, row.agreed, row.deviation, row.gain, *lost)
    console.print(table)
    if len(chosen) < len(worst_first):
        console.print(f"... and {len(worst_first) - len(chosen):,} more; --all lists every one.")


def _heading(kind: str) -> str:
    return "Profile" if kind == "given" else f"{kind.capitalize()} agreement"


def plain_table(name: str, numbers: list[str], words: str | None = None) -> Table:
    """A table of names, right-aligned numbers, and words at the end."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold", min_width=8)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    if words:
        table.add_column(words, min_width=11)  # a role wraps after a word in a narrow terminal
    return table


def print_wide(console: Console, *tables: Table) -> None:
    """Print tables of many columns: closer together, and without the edges.

    A table that does not fit the terminal at all runs over its edge; Rich would drop the names.
    """
    console.print()
    for table in tables:
        table.collapse_padding, table.show_edge = True, False
        least = _widths(console, table).minimum
        if least > console.width:
            table.width = least
        console.print(table, crop=False)
        console.print()


def fits(console: Console, table: Table) -> bool:
    """Whether the terminal is wide enough for a table of `print_wide`, with nothing wrapped."""
    table.collapse_padding, table.show_edge = True, False
    return _widths(console, table).maximum <= console.width


def _widths(console: Console, table: Table) -> Measurement:
    """The least width that a table needs, and the width at which nothing in it is wrapped."""
    return Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), table)


def print_training(console: Console, comparison: "Trial") -> None:
    """The scores of the profiles, and what they mean."""
    measure = comparison.measure
    console.print(setting_sentence(comparison))
    predicted = {one.profile: [predicted_level(one)] for one in comparison.predictions}
    heading = [predicted_heading(one) for one in comparison.predictions[:1]]
    table = plain_table(
        "Profile",
        ["Examples\nper slot", "Test loss", f"Test {measure}", *heading, f"Gain in\n{measure}"],
    )
    totals = write([round(score.total) for score in comparison.scores])
    for score, total in zip(comparison.scores, totals, strict=True):
        first = score is comparison.scores[0]
        gain = "" if first else written_score(score.accuracy_gain, measure, signed=True)
        said = [written_score(score.accuracy, measure)]
        said += predicted.get(score.profile, [""] * len(heading))
        table.add_row(score.profile, total, _loss(score.loss), *said, gain)
    console.print(table)
    for sentence in gain_sentences(comparison):
        console.print(sentence)
    for note in training_notes(comparison):
        console.print(f"Note: {note}.")
    for sentence in alone_sentences(comparison):
        console.print(f"{sentence}.")
    print_own_tests(console, comparison)
    if len(comparison.runs[0].slots) > 1:
        _print_slots(console, comparison)


def print_own_tests(console: Console, comparison: "Trial") -> None:
    """How each client did on its own test, if there are any."""
    for sentence in own_sentences(comparison):
        console.print(sentence)
    _print_own(console, own_levels(comparison), own_levels_note(comparison))
    _print_own(console, own_gains(comparison), own_gains_note(comparison))


def _print_own(console: Console, found: OwnTable, note: str) -> None:
    """A table of clients; in a narrow terminal, some of the columns below the others."""
    if not found.rows:
        return
    for parts in range(1, len(found.headings) + 1):
        places = np.array_split(np.arange(len(found.headings)), parts)
        tables = [_own_columns(found, slice(part[0], part[-1] + 1)) for part in places]
        if all(fits(console, table) for table in tables):
            break
    print_wide(console, *tables)
    console.print(note, style="dim")
    if len(found.rows) > LISTED:
        console.print(f"{LISTED} of {len(found.rows):,} clients; --format json lists them all.")


def _own_columns(found: OwnTable, part: slice) -> Table:
    headings = [heading.replace(", ", ",\n") for heading in found.headings[part]]
    table = plain_table("Client\n(own test)", headings)
    for name, cells in found.rows[:LISTED]:
        table.add_row(name, *cells[part])
    return table


def _print_slots(console: Console, comparison: "Comparison") -> None:
    """Test accuracy after each slot, and how many examples were trained on in it."""
    profiles = [score.profile for score in comparison.scores]
    slots = len(comparison.runs[0].slots)
    table = plain_table("After slot", profiles)
    chosen = np.unique(np.linspace(0, slots - 1, min(slots, LISTED)).round().astype(int))
    for k in chosen.tolist():
        cells = (_slot(comparison.of(name), k, comparison.measure) for name in profiles)
        table.add_row(str(k + 1), *cells)
    console.print(table)
    if len(chosen) < slots:
        console.print(
            f"{len(chosen)} of {slots:,} slots; --csv and --format json list all of them."
        )


def _slot(runs: "list[TrainingRun]", k: int, measure: str) -> str:
    """Mean accuracy after a slot, and the number of examples trained on."""
    records = [run.slots[k] for run in runs]
    accuracy = Estimate(float(np.mean([record.final.accuracy for record in records])), np.nan)
    phase = ", punishing" if records[0].phase == "punishing" else ""
    return f"{written_score(accuracy, measure)} ({records[0].total:,}{phase})"


def _loss(estimate: Estimate) -> str:
    width = f" ± {estimate.half_width:.4f}" if np.isfinite(estimate.half_width) else ""
    return f"{estimate.mean:.4f}{width}"
