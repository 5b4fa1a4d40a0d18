"""`fedaccord audit`: who is audited, an audit on a member's premises, and its verdict."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.checks import check_installed, escaped, normalised
from fedaccord.cli.audit_files import (
    audits_of,
    content_of,
    drawn_audit,
    read_digests,
    read_submission,
    reading,
    settled_slot,
    sharing_key,
    signed_verdict,
    write_verdict,
)
from fedaccord.cli.console import json_for_people, working
from fedaccord.cli.options import FormatOption
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.cli.server_keys import KeyOption, server_key
from fedaccord.errors import InvalidInput
from fedaccord.numbers import count

if TYPE_CHECKING:
    from fedaccord.audits.draw import Draw
    from fedaccord.audits.examination import Examination
    from fedaccord.protocol.audited_slot import AuditedSlot

audit = typer.Typer(
    help="Draw audits, audit a member on its premises, submit verdicts.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

LedgerArgument = Annotated[str, typer.Argument(metavar="LEDGER", hidden=True)]
ClientArgument = Annotated[Path, typer.Argument(metavar="CLIENT.toml", hidden=True)]
SlotOption = Annotated[
    int | None,
    typer.Option("--slot", show_default=False, help="The slot (default: the latest drawn)."),
]
AuditorOption = Annotated[
    str | None,
    typer.Option(
        "--auditor",
        callback=lambda name: name and normalised(name),
        help="The auditor's name in the terms.",
    ),
]
AuditorKeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="The auditor's private key.")
]
VerdictOption = Annotated[
    Path | None,
    typer.Option("--verdict", metavar="FILE.json", help="Where to write the signed verdict."),
]

SHOWS = {
    1: "The drawn records are in the data that the member committed to, and its records are not "
    "copies. This does not show that it trained on them, or that they are true.",
    2: "The member trained this round on the records that it committed to, as many as it said, by "
    "the seeds of the ledger. This does not show that its records are true, nor anything about "
    "rounds that were not drawn.",
}
"""What an audit that was passed shows, by level."""


@audit.command()
def draw(
    place: LedgerArgument,
    *,
    slot: Annotated[int | None, typer.Option("--slot", help="Only this slot.")] = None,
    output_format: FormatOption = "text",
) -> None:
    """Show who is audited by LEDGER, and on what.

    After each slot its settlement draws the members, the round and the samples.

    The draw follows from the digest of the settlement, so everyone with the ledger finds the same.
    """
    with reading(place) as found:
        slots = [one for one in audits_of(place, found) if slot in (None, one.number)]
    if not slots:
        raise InvalidInput(f"slot {slot} is not settled, or has no audits", place)
    if output_format == "json":
        typer.echo(json_for_people({"slots": [_drawn_record(one) for one in slots]}))
        return
    for one in slots:
        if not one.draws:
            typer.echo(f"Slot {one.number}: nobody was drawn.")
        for drawn in one.draws:
            samples = ", ".join(map(str, drawn.samples))
            typer.echo(
                escaped(
                    f"Slot {one.number}: {drawn.client}, round {drawn.turn}, samples {samples} "
                    f"({one.standing(drawn.client)})."
                )
            )


@audit.command()
def run(
    client_file: ClientArgument,
    place: LedgerArgument,
    *,
    auditor: AuditorOption = None,
    key: AuditorKeyOption = None,
    verdict: VerdictOption = None,
    slot: SlotOption = None,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--others",
            metavar="FILE.json",
            help="Digests of another member's records, by `audit digests`. Repeatable.",
        ),
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Audit a member on its premises.

    The member is that of CLIENT.toml; LEDGER is the server's.

    It reads the member's data, its secret and its trace, opens the drawn records and, at level 2,
    runs the drawn round again. Only the signed verdict leaves, which has digests and no records.

    The exit code is 0 if the audit is passed, and 1 if not.
    """
    if auditor is None or key is None or verdict is None:
        raise InvalidInput("an audit needs --auditor, --key and --verdict")
    check_installed("an audit", "torch", "flwr", "sqlalchemy", "alembic", "cryptography")
    check_writable(verdict, inputs=[client_file, Path(place), key, *(others or [])])
    from fedaccord.audits.examination import examine
    from fedaccord.flower.client_file import load_client_file
    from fedaccord.flower.premises import Premises
    from fedaccord.protocol.auditing import stated_in

    name = load_client_file(client_file).name
    with working("Auditing"), reading(place) as found:
        audited, drawn = drawn_audit(audits_of(place, found), name, slot)
        stated, rules = stated_in(found.entries(), drawn), audited.terms.audits
        if rules is None:
            raise InvalidInput("the terms have no audits", place)
        digests = [read_digests(path) for path in others or []]
        shown = Premises(client_file, audited.terms).show(stated)
        secret = sharing_key(key, audited)
        result = examine(stated, shown, rules, key=secret, others=digests)
    if result.outcome is not None:
        signed = signed_verdict(
            audited, drawn, auditor, key, outcome=result.outcome, reason=result.reason
        )
        write_verdict(verdict, signed)
    _tell(result, drawn, rules.level, verdict, output_format)
    if result.outcome != "passed":
        raise typer.Exit(1)


@audit.command()
def refused(
    place: LedgerArgument,
    client: Annotated[str, typer.Argument(metavar="CLIENT", hidden=True)],
    *,
    reason: Annotated[
        str | None, typer.Option("--reason", help="What happened, in one line.")
    ] = None,
    auditor: AuditorOption = None,
    key: AuditorKeyOption = None,
    verdict: VerdictOption = None,
    slot: SlotOption = None,
) -> None:
    """Sign that a member refused an audit.

    CLIENT was drawn in LEDGER, and showed nothing in time.
    """
    if auditor is None or key is None or verdict is None or reason is None:
        raise InvalidInput("a refusal needs --reason, --auditor, --key and --verdict")
    check_installed("a verdict", "sqlalchemy", "alembic", "cryptography")
    check_writable(verdict, inputs=[Path(place), key])
    with reading(place) as found:
        audited, drawn = drawn_audit(audits_of(place, found), normalised(client), slot)
    signed = signed_verdict(audited, drawn, auditor, key, outcome="refused", reason=reason)
    write_verdict(verdict, signed)
    typer.echo(escaped(f"Wrote {verdict}: {drawn.client} refused the audit of slot {drawn.slot}."))


@audit.command()
def digests(
    client_file: ClientArgument,
    place: LedgerArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE.json", hidden=True)],
    *,
    key: AuditorKeyOption = None,
) -> None:
    """Write keyed digests of a member's records.

    The member is that of CLIENT.toml; they go to FILE.json.

    The auditor compares them with another member's records (`audit run --others`): records that
    both have show, and no record leaves either. Only the auditor can make such digests, since they
    depend on its private key, so nobody else can find a record by guessing it.
    """
    if key is None:
        raise InvalidInput("digests need the auditor's --key")
    check_installed("an audit", "torch", "flwr", "sqlalchemy", "alembic", "cryptography")
    check_writable(file, inputs=[client_file, Path(place), key])
    from fedaccord.audits.records import keyed_digests
    from fedaccord.flower.premises import Premises

    with working("Hashing"), reading(place) as found:
        audited = audits_of(place, found)[-1]
        premises = Premises(client_file, audited.terms)
        made = keyed_digests(premises.records, sharing_key(key, audited))
    write_file(file, [json.dumps({"digests": made}).encode()])
    typer.echo(f"Wrote {count(len(made), 'digest')} to {file}.")


@audit.command()
def notarise(
    place: LedgerArgument,
    client: Annotated[str, typer.Argument(metavar="CLIENT", hidden=True)],
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    *,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The notary's private key.")
    ] = None,
    slot: SlotOption = None,
) -> None:
    """Sign a contribution as a notary who looked on.

    It is what CLIENT contributed according to LEDGER.

    The client attaches FILE to its contribution by `audit attest --kind notary`.
    """
    if key is None:
        raise InvalidInput("a notary needs its --key")
    check_installed("an attestation", "sqlalchemy", "alembic", "cryptography")
    check_writable(file, inputs=[Path(place), key])
    from fedaccord.audits.attestation import notarise as sign
    from fedaccord.signing.keys import load_key

    with reading(place) as found:
        audited = settled_slot(audits_of(place, found), slot)
    what = audited.contribution(normalised(client))
    write_file(file, [sign(load_key(key), what)])
    typer.echo(escaped(f"Wrote {file}, about {what.client} in slot {what.slot}: {what.digest}."))


@audit.command()
def attest(
    client_file: ClientArgument,
    place: LedgerArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE.json", hidden=True)],
    *,
    kind: Annotated[
        str | None, typer.Option("--kind", help="The kind of evidence, as in the terms.")
    ] = None,
    evidence: Annotated[
        Path | None, typer.Option("--evidence", metavar="FILE", help="The evidence.")
    ] = None,
    slot: SlotOption = None,
) -> None:
    """Attach evidence to a contribution.

    The client of CLIENT.toml signs it, in FILE.json.

    The server records it by `audit submit`. Whether it holds is for a verifier of its kind to say:
    `notary` is built in, and other packages bring others.
    """
    if kind is None or evidence is None:
        raise InvalidInput("an attestation needs --kind and --evidence")
    check_installed("an attestation", "flwr", "sqlalchemy", "alembic", "cryptography")
    check_writable(file, inputs=[client_file, Path(place), evidence])
    from fedaccord.audits.attestation import Attestation, sign_attestation
    from fedaccord.flower.client_file import load_client_file
    from fedaccord.signing.keys import load_key

    known = load_client_file(client_file)
    with reading(place) as found:
        audited = settled_slot(audits_of(place, found), slot)
    what = audited.contribution(known.name)
    attestation = Attestation.of(kind, what, content_of(evidence))
    key = load_key(client_file.parent / known.key)
    signed = sign_attestation(attestation, what, audited.terms.digest, key)
    if (wrong := audited.wrong_attestation(signed)) is not None:
        raise InvalidInput(f"the attestation {wrong}")
    write_file(file, [(signed.model_dump_json(indent=2) + "\n").encode()])
    flaw = audited.flaw_in_evidence(signed)
    holds = "It holds" if flaw is None else f"It proves nothing here: {flaw}"
    typer.echo(escaped(f"Wrote {file}. {holds}."))


@audit.command()
def submit(
    place: LedgerArgument,
    verdict: Annotated[Path, typer.Argument(metavar="VERDICT.json", hidden=True)],
    *,
    key: KeyOption = None,
) -> None:
    """Record a verdict or an attestation in LEDGER.

    A failed or refused audit is a slip: the terms' punishment begins with the next slot. A verdict
    of another auditor on the same audit is an appeal: the majority stands, and nobody is punished
    while there is none. Run it on the server's machine, while no slot is open.
    """
    check_installed("a ledger", "sqlalchemy", "alembic", "cryptography")
    from fedaccord.audits.attestation import SignedAttestation
    from fedaccord.ledger.store import open_ledger, read_ledger
    from fedaccord.protocol.coordinator import Coordinator

    signed = read_submission(verdict)
    read_ledger(place).close()  # a verdict does not create a ledger
    with open_ledger(place) as opened:
        server = Coordinator(None, opened, key=server_key(place, key))
        if isinstance(signed, SignedAttestation):
            flaw = server.submit_attestation(signed)
        else:
            server.submit_verdict(signed)
    if isinstance(signed, SignedAttestation):
        holds = "It holds" if flaw is None else f"It proves nothing here: {flaw}"
        about = f"evidence of {signed.client} in slot {signed.slot}"
        typer.echo(escaped(f"{place}: recorded {about}. {holds}."))
        return
    found = signed.verdict
    standing = server.state.audited[found.slot].standing(found.client)
    typer.echo(
        escaped(
            f"{place}: recorded that {found.auditor} says {found.outcome!r} about {found.client} "
            f"in slot {found.slot}. What stands: {standing}."
        )
    )


# --- What is printed ------------------------------------------------------------------------


def _drawn_record(one: "AuditedSlot") -> dict[str, Any]:
    return {
        "slot": one.number,
        "head": one.draw,
        "audits": [
            {
                "client": drawn.client,
                "round": drawn.turn,
                "samples": list(drawn.samples),
                "standing": one.standing(drawn.client),
                "verdicts": [
                    {"auditor": said.verdict.auditor, "outcome": said.verdict.outcome}
                    for said in one.verdicts
                    if said.verdict.client == drawn.client
                ],
            }
            for drawn in one.draws
        ],
    }


def _tell(
    result: "Examination", drawn: "Draw", level: int, verdict: Path, output_format: str
) -> None:
    if output_format == "json":
        record = {
            "client": drawn.client,
            "slot": drawn.slot,
            "round": drawn.turn,
            "level": level,
            "outcome": result.outcome,
            "findings": [{"check": one.check, "problem": one.problem} for one in result.findings],
        }
        typer.echo(json_for_people(record))
        return
    typer.echo(escaped(f"{drawn.client}, slot {drawn.slot}, round {drawn.turn}, level {level}:"))
    for one in result.findings:
        typer.echo(escaped(f"  {one.check}: {one.problem or 'yes'}"))
    if result.outcome is None:
        typer.echo("Undecided here, so no verdict was written.")
        return
    if result.outcome == "passed":
        typer.echo(f"Passed. {SHOWS[level]}")
    else:
        typer.echo(escaped(f"Failed: {result.reason}."))
    typer.echo(f"Wrote {verdict}, which contains no records.")
