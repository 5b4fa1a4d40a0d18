"""`fedaccord ledger`: show, verify, compare and export ledgers, and propose what takes consent."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.checks import check_installed, escaped, normalised
from fedaccord.cli.console import json_for_people, working
from fedaccord.cli.ledger_results import watched_reading, write_proofs
from fedaccord.cli.options import FormatOption, from_one
from fedaccord.cli.outputs import all_or_none, check_writable, write_file
from fedaccord.cli.server_keys import KeyOption, server_key
from fedaccord.errors import LISTED_PROBLEMS, InvalidInput

if TYPE_CHECKING:
    from fedaccord.ledger.chain import Entry
    from fedaccord.ledger.lines import Reading
    from fedaccord.protocol.coordinator import Coordinator


ledger = typer.Typer(
    help="Show a ledger, verify it, compare copies, export it, go back to an older model, "
    "end a suspension.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

LedgerArgument = Annotated[str, typer.Argument(metavar="LEDGER", hidden=True)]
ClientOption = Annotated[
    str | None,
    typer.Option(
        "--client",
        callback=lambda name: name and normalised(name),
        help="Only what concerns this client, or everyone.",
    ),
]


@ledger.command()
def show(
    place: LedgerArgument,
    *,
    slot: Annotated[int | None, typer.Option("--slot", help="Only this slot.")] = None,
    client: ClientOption = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only entries of this kind, such as verdict.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", callback=from_one, help="Only this many, the latest.")
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Show the entries of a ledger.

    LEDGER is a file, or the URL of a PostgreSQL database; it may also be a client's copy.
    Times are in UTC, by the writer's clock; the end of a round says how long it took.
    Characters that cannot be printed are escaped.
    """
    from collections import deque

    from fedaccord.cli.ledger_tables import Timed, Widths, print_json, print_table, timed
    from fedaccord.protocol.facts import KINDS
    from fedaccord.protocol.terms import CAN_BE_GAMED

    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"--kind: must be one of {', '.join(KINDS)}, got {kind!r}")
    with _reading(place) as found:

        def chosen() -> Iterable[Timed]:
            wanted = (
                one
                for one in timed(found.entries())
                if (client is None or one.entry.client in (None, client))
                and slot in (None, one.entry.slot)
                and kind in (None, one.entry.kind)
            )
            return wanted if last is None else deque(wanted, maxlen=last)

        _check_readable(place, client, found)
        if output_format == "json":
            print_json(chosen())
            return
        room, count, reported = Widths(), 0, False
        for count, one in enumerate(chosen(), start=1):  # noqa: B007  it is used after the loop
            room.make_room(one.entry)
            reported = reported or _from_reports(one.entry)
        if count == 0:
            typer.echo("No entries.")
        else:
            print_table(chosen(), room)
        if reported:
            typer.echo(f"Note: {CAN_BE_GAMED}.", err=True)


ProofsOption = Annotated[
    Path | None,
    typer.Option(
        "--proofs",
        metavar="FILE.json",
        help="Write the pairs of signed statements that convict somebody.",
    ),
]


@ledger.command()
def verify(
    place: LedgerArgument,
    *,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="COPY", help="A client's copy. Repeatable."),
    ] = None,
    every_signature: Annotated[
        bool,
        typer.Option(
            "--every-signature",
            help="Check each signature, not only the latest of everyone, which vouches for those "
            "before it.",
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="Verify only what came after FILE was written, and write it anew; the first time, "
            "verify everything.",
        ),
    ] = None,
    proofs: ProofsOption = None,
    output_format: FormatOption = "text",
) -> None:
    """Verify that a ledger was not changed, and that its conclusions follow from its entries.

    The chain of digests must be intact. In a server's ledger, the certificate must prove every
    agreement from the clients' reports, or every offer must follow from the terms and from what
    was said to a clock; every rank, verdict and phase must follow from what was reported and
    contributed, and the model stored with it must be the one that it names. With
    --against, the ledger and the client's copy must agree, and the server's past must be the one
    that the client was shown. If the terms have keys, everyone must have signed what the ledger
    says that they said; what rests on the server's word alone is counted.

    The exit code is 0 if everything is in order, and 1 if not.
    """
    from fedaccord.protocol import verification
    from fedaccord.protocol.trusted import load_trusted, trusted_text
    from fedaccord.summaries.ledgers import (
        about,
        record_of,
        what_holds,
        what_is_undecided,
        what_is_wrong,
    )

    if checkpoint is not None:
        check_writable(checkpoint, inputs=[Path(place)])
    if proofs is not None:
        check_writable(proofs, inputs=[Path(place)])
    with ExitStack() as stack:
        found = stack.enter_context(_reading(place))
        copies = {_shown(copy): stack.enter_context(_reading(copy)) for copy in against or []}
        watched = stack.enter_context(watched_reading(found, passes=2 if copies else 1))
        since = load_trusted(checkpoint) if checkpoint is not None and checkpoint.exists() else None
        result = verification.verify(watched, copies, every_signature=every_signature, since=since)
    with all_or_none():
        write_proofs(proofs, result.proofs)
        if checkpoint is not None and result.trusted is not None:
            write_file(checkpoint, trusted_text(result.trusted), private=True)
    if output_format == "json":
        typer.echo(json_for_people(record_of(result)))
    else:
        typer.echo(escaped(f"{_shown(place)} is {about(result)}"))
        lines = [f"{copy} agrees with it." for copy in copies]
        if since is not None:
            lines.append(f"Entries up to {since.head.number:,} were verified before.")
        if checkpoint is not None and result.trusted is None:
            lines.append(f"{checkpoint} is as it was: the ledger ends in the middle of a slot.")
        in_order = [*what_holds(result, models=found.models is not None), *lines]
        for line in [*(what_is_wrong(result) or in_order), *what_is_undecided(result)]:
            typer.echo(escaped(line))
        if result.signatures.wrong and not every_signature:
            typer.echo("Only the latest signatures were checked; --every-signature checks all.")
    if result.problems:
        raise typer.Exit(1)


@ledger.command()
def compare(
    copies: Annotated[list[str], typer.Argument(metavar="COPY...", hidden=True)],
    *,
    proofs: ProofsOption = None,
    output_format: FormatOption = "text",
) -> None:
    """Compare clients' copies with one another: were they told the same story?

    No server is needed. The copies reveal a server that shows two clients different ledgers, or
    tells them different things about what concerns everyone, such as an agreement's total, who
    deviated, the next phase or the model. If the server signed both, the two statements prove it
    to anyone.

    The exit code is 0 if they agree, and 1 if they do not or one of them was changed.
    """
    from fedaccord.protocol import verification
    from fedaccord.protocol.comparison import UNSEEN

    if len(copies) < 2:
        raise InvalidInput("there is nothing to compare: name two copies or more")
    if len(set(copies)) < len(copies):
        raise InvalidInput("the same copy is named twice")
    if proofs is not None:
        check_writable(proofs, inputs=[Path(copy) for copy in copies])
    with working("Comparing"), ExitStack() as stack:
        found = {_shown(place): stack.enter_context(_reading(place)) for place in copies}
        result = verification.compare(found)
    problems, comparison = result.problems, result.comparison
    write_proofs(proofs, comparison.proofs)
    if output_format == "json":
        record = {
            "copies": [{"copy": name, "client": result.clients.get(name)} for name in found],
            "questions": comparison.questions,
            "shown": comparison.shown,
            "holds": not problems,
            "problems": problems,
            "proofs": [proof.to_dict() for proof in comparison.proofs],
            "unseen": UNSEEN,
        }
        typer.echo(json_for_people(record))
    else:
        typer.echo(
            f"Compared: {comparison.questions} questions that two or more of them were asked, and "
            f"{comparison.shown} entries of the server's ledger that they were shown."
        )
        for problem in problems[:LISTED_PROBLEMS]:
            typer.echo(escaped(f"Wrong: {problem}."))
        if len(problems) > LISTED_PROBLEMS:
            typer.echo(f"And {len(problems) - LISTED_PROBLEMS:,} more.")
        if proved := sum(proof.holds for proof in comparison.proofs):
            typer.echo(f"Two statements that the server signed prove it in {proved} cases.")
        if not problems:
            nothing = comparison.questions == 0 and comparison.shown == 0
            typer.echo(
                "They have nothing in common, so nothing could be compared."
                if nothing
                else "They tell the same story."
            )
        typer.echo(f"This does not find {UNSEEN}.")
    if problems:
        raise typer.Exit(1)


@ledger.command()
def export(
    place: LedgerArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", hidden=True)],
    *,
    client: ClientOption = None,
) -> None:
    """Export a ledger to FILE.jsonl, one entry per line.

    A complete export can be verified like the ledger. With --client it has only what concerns that
    client, or everyone.
    """
    if file.suffix != ".jsonl":
        raise InvalidInput(f"{file}: the file must be called *.jsonl")
    check_writable(file, inputs=[Path(place)])
    from fedaccord.ledger.lines import to_line

    count = 0

    def lines(found: "Reading") -> Iterator[bytes]:
        nonlocal count
        for entry in _about(client, found.entries()):
            count += 1
            yield f"{to_line(entry)}\n".encode()

    with working("Exporting"), _reading(place) as found:
        _check_readable(place, client, found)
        write_file(file, lines(found), private=True)
    typer.echo(f"Wrote {count} entries to {file}.")


def _from_reports(entry: "Entry") -> bool:
    """Whether it is about an agreement that was computed from reports."""
    from fedaccord.protocol.terms import FROM_REPORTS

    shown = entry.kind in ("agreement", "offer")
    return shown and entry.body.get("agreement") in FROM_REPORTS


@contextmanager
def _reading(place: str) -> "Iterator[Reading]":
    """A ledger to read."""
    check_installed("a ledger", "sqlalchemy", "alembic")
    from fedaccord.ledger.lines import read

    with read(place) as found:
        yield found


def _about(client: str | None, entries: "Iterable[Entry]") -> "Iterator[Entry]":
    """What concerns a client, or everyone; all of it if no client is named."""
    return (entry for entry in entries if client is None or entry.client in (None, client))


def _check_readable(place: str, client: str | None, found: "Reading") -> None:
    """Before anything is shown, check that every entry can be read and that the client is there."""
    from fedaccord.ledger.lines import clients_in

    known = clients_in(found.entries(), _shown(place))
    if client is not None and client not in known:
        names = ", ".join(sorted(known))
        raise InvalidInput(f"--client: there is nothing about {client!r}, only {names}")


def _shown(place: str) -> str:
    from fedaccord.ledger.store import shown

    return shown(place)


# --- What takes the clients' consent -------------------------------------------------------

ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="Why, in one line that is recorded.")
]


@ledger.command()
def rollback(
    place: LedgerArgument,
    *,
    to_slot: Annotated[
        int | None,
        typer.Option("--to-slot", help="The slot whose model to go back to; 0: the first model."),
    ] = None,
    reason: ReasonOption = None,
    key: KeyOption = None,
) -> None:
    """Propose to go back to the model that an earlier slot ended with.

    The proposal is recorded in LEDGER, and the next run asks the clients. As many must agree as
    `rollback_consent` in the terms says. Run it on the server's machine, while no slot is open.
    """
    if to_slot is None or reason is None:
        raise InvalidInput("a rollback needs both --to-slot and --reason")
    slot, why = to_slot, reason
    _propose(place, key, lambda server: server.propose_rollback(slot, why))


@ledger.command()
def waive(
    place: LedgerArgument,
    client: Annotated[str, typer.Argument(metavar="CLIENT", hidden=True)],
    *,
    reason: ReasonOption = None,
    key: KeyOption = None,
) -> None:
    """Propose to end the suspension of CLIENT early.

    The proposal is recorded in LEDGER, and the next run asks all other clients. Every one of them
    must agree; a client that is absent does not. Run it on the server's machine, while no slot is
    open.
    """
    if reason is None:
        raise InvalidInput("a waiver needs a --reason")
    name, why = normalised(client), reason
    _propose(place, key, lambda server: server.propose_return(name, why))


def _propose(place: str, key: Path | None, propose: "Callable[[Coordinator], None]") -> None:
    """Record a proposal, and say what comes next."""
    check_installed("a ledger", "sqlalchemy", "alembic")
    from fedaccord.ledger.store import open_ledger, read_ledger
    from fedaccord.protocol.conclusions import consents_needed, voters
    from fedaccord.protocol.coordinator import Coordinator

    read_ledger(place).close()  # a proposal does not create a ledger
    with open_ledger(place) as opened:
        server = Coordinator(None, opened, key=server_key(place, key))
        propose(server)
    pending = server.state.pending
    if pending is None:
        typer.echo(f"{_shown(place)}: done at once, since the terms require nobody's consent.")
        return
    motion = pending.proposal
    consent = f"consents_to_slot = {motion.to_slot}"
    if motion.returns is not None:
        whom = json_for_people(motion.returns)
        consent = f"consents_to_return = {{client = {whom}, slipped_in = {motion.slipped_in}}}"
    asked, needed = len(voters(server.state, motion)), consents_needed(server.state, motion)
    typer.echo(
        escaped(
            f"{_shown(place)}: proposed to {motion.in_words}. The next run asks {asked} clients, "
            f"and {needed} of them must agree: to agree, a client first sets "
            f"{consent} in its client.toml."
        )
    )
