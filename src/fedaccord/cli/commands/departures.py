"""`fedaccord departures`: what happens if any one client leaves."""

from typing import TYPE_CHECKING, Any

import typer

from fedaccord.cli.console import output, say_where_from, working
from fedaccord.cli.monitoring_options import MonitoringOptions
from fedaccord.cli.options import (
    AllOption,
    AnyPunishmentOptions,
    FileArgument,
    FormatOption,
    MarginOption,
    NobodyWorseOption,
    ObjectiveOption,
    PaperOptions,
    choose_consortium,
    margin_or_usual,
    with_option_groups,
)

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.agreement.departures import Departures

_MATRIX = 8
"""Up to this many clients, a table says what each departure costs each of the others."""


@with_option_groups
def departures(
    file: FileArgument = None,
    *,
    objective: ObjectiveOption = None,
    margin: MarginOption = None,
    punishment: AnyPunishmentOptions,
    monitoring: MonitoringOptions,
    nobody_worse: NobodyWorseOption = False,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    every: AllOption = False,
) -> None:
    """See what happens if any one client leaves: what the others lose, and what still holds.

    FILE describes the consortium, in TOML; without it the paper's setting is used. For each client
    it says whether the others' agreed amounts would still hold without it, what they would agree on
    instead, and what its departure costs each of them.
    """
    consortium = choose_consortium(file, setting)

    import fedaccord as fa

    aim: Any = objective and objective.replace("-", " ")
    with working("Solving"):
        found = fa.departures(
            consortium,
            objective=aim,
            margin=margin_or_usual(margin, file),
            punishment=punishment.chosen(file),
            nobody_worse=nobody_worse,
            monitoring=monitoring.chosen(consortium.names),
        )

    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        record = {"consortium": consortium.to_dict(), **found.to_dict()}
        typer.echo(to_json(record, consortium.size))
    else:
        from fedaccord.cli.tables import print_consortium

        print_consortium(output(), consortium)
        _print(output(), found, every)


def _print(console: "Console", found: "Departures", every: bool) -> None:
    """The departures, what they mean, and what each costs each of the others."""
    from fedaccord.cli.tables import LISTED, plain_table, print_wide
    from fedaccord.game.money import amounts
    from fedaccord.numbers import write
    from fedaccord.summaries.departures import by_loss, departure_sentences
    from fedaccord.summaries.words import in_unit

    for sentence in departure_sentences(found):
        console.print(sentence)
    unit, names = in_unit(found.consortium), found.consortium.names
    order = by_loss(found)
    chosen = order if every else order[:LISTED]
    headings = ["Samples it\ntrains on", "Others keep:\nsamples", "Others agree\nagain: samples"]
    costs = [f"Costs the others\nper slot{unit}", f"Costs itself\nper slot{unit}"]
    table = plain_table("If this one leaves", [*headings, *costs], words="Do amounts\nstill hold?")
    columns = [
        write(found.agreement.profile),
        write(found.total_kept),
        write(found.total_new),
        amounts(found.cost_to_others, found.consortium.currency),
        amounts(found.saving, found.consortium.currency),
        ["yes" if holds else "no" for holds in found.holds_kept.tolist()],
    ]
    for n in chosen:
        table.add_row(names[n], *(column[n] for column in columns))
    print_wide(console, table)
    if len(chosen) < len(order):
        console.print(f"{len(chosen):,} of {len(order):,} clients; --all lists every one.")
    if found.consortium.size <= _MATRIX:
        _print_matrix(console, found, order)


def _print_matrix(console: "Console", found: "Departures", order: list[int]) -> None:
    """What each departure costs each of the others, after a new agreement."""
    from fedaccord.cli.tables import plain_table, print_wide
    from fedaccord.game.money import amounts
    from fedaccord.summaries.words import in_unit

    names, size = found.consortium.names, found.consortium.size
    lost = amounts((found.saving - found.saving_new).ravel(), found.consortium.currency, digits=3)
    unit = in_unit(found.consortium)
    headings = [names[m].replace(" ", "\n") for m in order]
    table = plain_table(f"Cost to each, per\nslot{unit}, if this\none leaves", headings)
    for n in order:
        table.add_row(names[n], *(lost[n * size + m] for m in order))
    print_wide(console, table)
