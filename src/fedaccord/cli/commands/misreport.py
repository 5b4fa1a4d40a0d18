"""`fedaccord misreport`: who gains by lying, and what is left when everyone does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.console import counting, output, say_where_from
from fedaccord.cli.options import (
    AllOption,
    FileArgument,
    FormatOption,
    PaperOptions,
    choose_consortium,
    from_one,
    from_zero,
    with_option_groups,
)
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.game.consortium import Consortium
    from fedaccord.mechanisms.misreport.misreport import Misreport, Misreports

_FEW = 8
"""Up to this many clients it is also computed what is left when everyone lies."""
_SHOWN = 10
"""Clients in a table, unless all are asked for."""


@with_option_groups
def misreport(
    file: FileArgument = None,
    *,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="Only this one: equilibrium, free-equilibrium, uniform, individual, suspension, "
            "posted, clock, serial-clock or fair-exchange. Repeatable (default: all).",
        ),
    ] = None,
    reports: Annotated[
        int | None,
        typer.Option(
            "--reports", callback=from_one, help="Reports to try for each client; default 200."
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--client", metavar="NAME", help="Only this client lies. Repeatable (default: each)."
        ),
    ] = None,
    everyone: Annotated[
        bool | None,
        typer.Option(
            "--everyone/--no-everyone",
            help="Also find what is left when everyone lies; default: for up to 8 clients.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", callback=from_zero, help="Everyone: seed of the random order; default 0."
        ),
    ] = None,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", metavar="FILE.png", help="Plot who gains how much (png, svg, pdf)."
        ),
    ] = None,
    every: AllOption = False,
) -> None:
    """Find out who gains by lying.

    FILE describes the consortium, in TOML; without it the paper's setting is used. An agreement is
    computed from what clients report about themselves. For each mechanism this finds the false
    report of ratio, data size or discount factor that saves each client most while the others tell
    the truth, and what is left when everyone lies.
    """
    if picture is not None and picture.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"--picture: must end in .png, .svg or .pdf, got {picture}")
    check_writable(picture, inputs=[file])
    consortium = choose_consortium(file, setting)
    all_lie = consortium.size <= _FEW if everyone is None else everyone
    options = {"clients": client, "everyone": all_lie, "seed": seed or 0}
    found = _find(consortium, mechanism, options | ({"reports": reports} if reports else {}))
    if picture is not None:
        _draw(picture, found)
    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        typer.echo(to_json(found.to_dict(), consortium.size * len(found.entries)))
    else:
        from fedaccord.cli.tables import print_consortium

        print_consortium(output(), consortium)
        _print(output(), found, single=mechanism is not None, all_lie=all_lie, every=every)


def _find(
    consortium: "Consortium", names: list[str] | None, options: dict[str, Any]
) -> "Misreports":
    """The record, with a progress bar: one step for each mechanism."""
    from fedaccord.mechanisms.misreport.best import NAMES, best_misreport, find_name
    from fedaccord.mechanisms.misreport.misreport import Misreports

    wanted = [find_name(name) for name in dict.fromkeys(names or NAMES)]
    entries = []
    with counting("Looking for lies", len(wanted)) as step:
        for done, name in enumerate(wanted):
            step(done, f"Looking for lies: {name}")
            entries.append(best_misreport(consortium, name, **options))
    return Misreports(consortium, tuple(entries))


def _draw(picture: Path, found: "Misreports") -> None:
    from io import BytesIO

    from fedaccord.plots import plot_misreport

    drawn = BytesIO()
    plot_misreport(found).savefig(drawn, format=picture.suffix[1:], dpi=150)
    write_file(picture, drawn.getvalue())


def _print(
    console: "Console", found: "Misreports", *, single: bool, all_lie: bool, every: bool
) -> None:
    """A table of mechanisms, one of clients for each that was asked for, and what they mean."""
    from fedaccord.cli.tables import plain_table, print_wide
    from fedaccord.summaries import misreport as said

    overview = plain_table("Mechanism", list(said.OVERVIEW_HEADINGS))
    for entry in found.entries:
        overview.add_row(entry.name, *said.overview_cells(entry))
    print_wide(console, overview)
    console.print(said.OVERVIEW_NOTE, style="dim")
    for entry in found.entries:
        if entry.gaining and (single or entry.name == "individual"):
            _print_clients(console, entry, every)
    console.print()
    for entry in found.entries:
        for sentence in said.misreport_sentences(entry, found.consortium.currency):
            console.print(sentence)
    console.print()
    console.print(said.advice(found))
    if not all_lie:
        console.print("What is left when everyone lies: add --everyone.")


def _print_clients(console: "Console", entry: "Misreport", every: bool) -> None:
    """The best report of each client, the largest gains first."""
    from fedaccord.cli.tables import plain_table, print_wide
    from fedaccord.summaries import misreport as said

    rows = said.client_cells(entry)
    table = plain_table(f"Lies under {entry.name}", list(said.CLIENT_HEADINGS))
    for name, cells in rows if every else rows[:_SHOWN]:
        table.add_row(name, *cells)
    print_wide(console, table)
    if len(rows) > _SHOWN and not every:
        console.print(f"{len(rows) - _SHOWN:,} more clients; --all shows them.", style="dim")
    console.print(said.CLIENTS_NOTE, style="dim")
