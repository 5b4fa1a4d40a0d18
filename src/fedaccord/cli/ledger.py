"""`fedaccord ledger`: what happened, whether it is what was written, and a way back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.console import output
from fedaccord.cli.options import FormatOption, from_one
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.flower.ledger.chain import Checkpoint, Entry

ledger = typer.Typer(
    help="Look at a ledger, verify it, export it, go back to an older model.",
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
    _check_installed()
    from fedaccord.flower.protocol.state import KINDS

    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"--kind: must be one of {', '.join(KINDS)}, got {kind!r}")
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
    certificate from the clients' reports, every rank, verdict and phase must follow from what was
    reported and contributed, and the model beside it must be the one that it speaks of. Against a
    client's copy, the two must agree, and the server's past must be the one that the client was
    shown.

    The exit code is 0 when all is well, and 1 when something is not.
    """
    _check_installed()
    from fedaccord.flower.ledger.lines import load_with_models
    from fedaccord.flower.ledger.store import shown

    entries, models = load_with_models(place)
    what = _what_it_is(place, entries)
    problems = _problems(place, what, entries, models)
    for copy in against or []:
        problems += [f"{shown(copy)}: {problem}" for problem in _disagreement(entries, copy)]
    slots = max((entry.slot for entry in entries if type(entry.slot) is int), default=0)
    head = str(entries[-1].digest) if entries else None
    if output_format == "json":
        import json

        record = {
            "entries": len(entries),
            "head": head,
            "slots": slots,
            "holds": not problems,
            "problems": problems,
        }
        typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
    else:
        last = "" if head is None else f", the last with the digest {head[:16]}..."
        typer.echo(f"{shown(place)} is {what}: {len(entries)} entries, {slots} slots{last}.")
        for line in [f"Wrong: {problem}." for problem in problems] or _praise(place, what, against):
            typer.echo(line)
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
    check_writable(file, inputs=[Path(place)])
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
    """Entries to look at, all of them readable."""
    _check_installed()
    from fedaccord.flower.ledger.chain import unreadable
    from fedaccord.flower.ledger.lines import load_entries
    from fedaccord.flower.ledger.store import shown

    entries = load_entries(place)
    for entry in entries:
        if (why := unreadable(entry)) is not None:
            raise InvalidInput(f"entry {entry.number} cannot be read: {why}", shown(place))
    return entries


def _check_installed() -> None:
    from fedaccord.flower import check_installed

    check_installed("sqlalchemy", "alembic")


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


# --- Verifying -----------------------------------------------------------------------------

_SERVERS, _COPY = "the server's ledger", "a client's copy"
_PART, _NOTHING = "a part of a ledger", "an empty ledger"


def _what_it_is(place: str, entries: "list[Entry]") -> str:
    from fedaccord.flower.ledger.chain import is_part

    if not entries:
        return _NOTHING
    if _is_file_of_lines(place) and is_part(entries):
        return _PART
    # in a copy all is about one client, in the server's ledger some is about everyone
    return _SERVERS if any(entry.client is None for entry in entries) else _COPY


def _is_file_of_lines(place: str) -> bool:
    from fedaccord.flower.ledger.lines import SUFFIX

    return place.endswith(SUFFIX)


def _problems(
    place: str, what: str, entries: "list[Entry]", models: "list[Checkpoint]"
) -> list[str]:
    """What is wrong with a ledger by itself."""
    from fedaccord.flower.ledger.chain import broken_links
    from fedaccord.flower.protocol.audit import EMPTY, audit, wrong_model

    if what == _NOTHING:
        return [EMPTY]
    if what == _PART:
        missing = entries[-1].number - len(entries)
        return [
            f"{missing} entries are missing, as in a part that export --client writes; "
            "only a whole ledger can be verified"
        ]
    if what == _COPY:
        return broken_links(entries)
    problems = audit(entries)
    if problems or _is_file_of_lines(place):
        return problems
    return wrong_model(entries, models)


def _disagreement(entries: "list[Entry]", copy: str) -> list[str]:
    """What is wrong with a client's copy, or where it and the ledger disagree."""
    from fedaccord.flower.ledger.chain import broken_links
    from fedaccord.flower.ledger.lines import load_entries
    from fedaccord.flower.protocol.audit import contradictions

    theirs = load_entries(copy)
    if problems := broken_links(theirs):
        return problems
    if not entries or broken_links(entries):
        return ["cannot be compared with what is no whole ledger"]
    return contradictions(entries, theirs)


def _praise(place: str, what: str, against: list[str] | None) -> list[str]:
    from fedaccord.flower.ledger.store import shown

    lines = ["Nothing in it was changed: the chain of digests is whole."]
    if what == _SERVERS:
        lines.append("Every agreement is proved, every rank, verdict and phase follows.")
        if not _is_file_of_lines(place):
            lines.append("The model beside it is the one that it speaks of.")
    return lines + [f"{shown(copy)} agrees with it." for copy in against or []]


# --- Going back to an older model ----------------------------------------------------------


@ledger.command()
def rollback(
    place: LedgerArgument,
    *,
    to_slot: Annotated[
        int | None,
        typer.Option("--to-slot", help="The slot whose model to go back to; 0: the first model."),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why, in one line that is recorded.")
    ] = None,
) -> None:
    """Propose to go back to the model that an earlier slot ended with.

    The proposal is recorded in LEDGER, and the next run asks the clients. As many must agree as
    `rollback_consent` in the terms says. For the server's machine, while no slot is under way.
    """
    if to_slot is None or reason is None:
        raise InvalidInput("a rollback needs both --to-slot and --reason")
    _check_installed()
    from fedaccord.flower.ledger.store import open_ledger, read_ledger, shown
    from fedaccord.flower.protocol.coordinator import Coordinator

    read_ledger(place).close()  # a proposal makes no new ledger
    with open_ledger(place) as opened:
        coordinator = Coordinator(None, opened)
        coordinator.propose_rollback(to_slot, reason)
        terms, pending = coordinator.state.rules, coordinator.state.proposal
    which = f"the model of slot {to_slot}" if to_slot else "the first model"
    if pending is None:
        typer.echo(f"{shown(place)}: back to {which}; the terms ask for nobody's consent.")
        return
    typer.echo(
        f"{shown(place)}: proposed to go back to {which}. The next run asks all clients, and "
        f"{terms.consents} of {len(terms.clients)} must agree: a client that does puts "
        f"consents_to_slot = {to_slot} into its client.toml first."
    )
