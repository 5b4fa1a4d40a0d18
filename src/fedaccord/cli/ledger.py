"""`fedaccord ledger`: what happened, whether it is what was written, and a copy to send."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.console import output
from fedaccord.cli.options import FormatOption, from_one
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.flower.ledger.chain import Entry

ledger = typer.Typer(
    help="Look at a ledger, verify it, export it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

LedgerArgument = Annotated[str, typer.Argument(metavar="LEDGER", hidden=True)]
ClientOption = Annotated[
    str | None, typer.Option("--client", help="Only what concerns this client, or everyone.")
]


@ledger.command()
def show(
    place: LedgerArgument,
    *,
    slot: Annotated[int | None, typer.Option("--slot", help="Only this slot.")] = None,
    client: ClientOption = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only entries of this kind, as in verdict.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", callback=from_one, help="Only so many, the latest.")
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Show the entries of a ledger.

    LEDGER is a file, or the URL of a PostgreSQL database; a client's copy will do as well.
    """
    entries = [
        entry
        for entry in _about(client, _load(place))
        if slot in (None, entry.slot) and kind in (None, entry.kind)
    ]
    entries = entries[-last:] if last else entries
    if output_format == "json":
        import json

        typer.echo(json.dumps([_record(entry) for entry in entries], indent=2, ensure_ascii=False))
    elif not entries:
        typer.echo("No entries.")
    else:
        _print_entries(entries)


@ledger.command()
def verify(
    place: LedgerArgument,
    *,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="COPY", help="A client's copy. Repeatable."),
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Verify that a ledger is what was written, and that it says what follows from it.

    The chain of digests must be whole. In a server's ledger every agreement must be proved by the
    certificate from the clients' reports, and every verdict and phase must follow from what was
    contributed. Against a client's copy, the two must agree, and the server's past must be the one
    that the client was shown.

    The exit code is 0 when all is well, and 1 when something is not.
    """
    entries = _load(place)

    from fedaccord.flower.ledger.chain import broken_links
    from fedaccord.flower.protocol.audit import audit, contradictions

    servers = bool(entries) and entries[0].kind == "terms"
    problems = audit(entries) if servers else broken_links(entries)
    for copy in against or []:
        theirs = _load(copy)
        found = broken_links(theirs) or contradictions(entries, theirs)
        problems += [f"{copy}: {problem}" for problem in found]
    if output_format == "json":
        import json

        record = {
            "entries": len(entries),
            "head": entries[-1].digest if entries else None,
            "slots": max((entry.slot for entry in entries), default=0),
            "holds": not problems,
            "problems": problems,
        }
        typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
    else:
        _print_verdict(place, entries, servers, against or [], problems)
    if problems:
        raise typer.Exit(1)


@ledger.command()
def export(
    place: LedgerArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", hidden=True)],
    *,
    client: ClientOption = None,
) -> None:
    """Export a ledger to FILE.jsonl, one entry a line.

    A whole one can be verified as it is. With --client it has only what concerns that client.
    """
    if file.suffix != ".jsonl":
        raise InvalidInput(f"{file}: the file must be called *.jsonl")
    check_writable(file)
    entries = _about(client, _load(place))

    from fedaccord.flower.ledger.lines import to_lines

    write_file(file, "".join(f"{line}\n" for line in to_lines(entries)))
    typer.echo(f"Wrote {len(entries)} entries to {file}.")


def _about(client: str | None, entries: "list[Entry]") -> "list[Entry]":
    """What concerns a client, or everyone; all of it if no client is named."""
    if client is None:
        return entries
    known = sorted({entry.client for entry in entries if entry.client is not None})
    if client not in known:
        raise InvalidInput(f"--client: there is nothing about {client!r}, only {', '.join(known)}")
    return [entry for entry in entries if entry.client in (None, client)]


def _load(place: str) -> "list[Entry]":
    from fedaccord.flower import check_installed

    check_installed("sqlalchemy", "alembic")
    from fedaccord.flower.ledger.lines import load_entries

    return load_entries(place)


def _record(entry: "Entry") -> dict[str, Any]:
    record: dict[str, Any] = entry._asdict()
    del record["text"]
    return record | {"body": entry.body}


def _print_entries(entries: "list[Entry]") -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("number", justify="right")
    table.add_column("slot", justify="right")
    table.add_column("kind")
    table.add_column("client")
    table.add_column("content", overflow="fold")
    for entry in entries:
        content = ", ".join(f"{key} {_short(value)}" for key, value in entry.body.items())
        client = entry.client or ""
        table.add_row(str(entry.number), str(entry.slot), entry.kind, client, content)
    output().print(table)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={_short(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return " ".join(_short(inner) for inner in value) or "nobody"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    text = str(value)
    return text[:12] + "..." if len(text) == 64 and text.isalnum() else text


def _print_verdict(
    place: str, entries: "list[Entry]", servers: bool, against: list[str], problems: list[str]
) -> None:
    what = "the server's ledger" if servers else "a client's copy"
    slots = max((entry.slot for entry in entries), default=0)
    head = f", the last with the digest {entries[-1].digest[:16]}..." if entries else ""
    typer.echo(f"{place} is {what}: {len(entries)} entries, {slots} slots{head}.")
    if not problems:
        typer.echo("Nothing in it was changed: the chain of digests is whole.")
        if servers:
            typer.echo("Every agreement is proved, every verdict and phase follows.")
        for copy in against:
            typer.echo(f"{copy} agrees with it.")
    for problem in problems:
        typer.echo(f"Wrong: {problem}.")
