"""`fedaccord agreement`: an agreement as a file that all members sign, and anyone can verify."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.atomic import ABSENT
from fedaccord.checks import escaped
from fedaccord.cli.agreement_terms import (
    RuleOptions,
    refuse_rules,
    roster_of,
    terms_for,
    terms_in,
    with_keys,
)
from fedaccord.cli.console import json_for_people, working
from fedaccord.cli.options import (
    FileArgument,
    FormatOption,
    PunishmentOptions,
    WithinOption,
    html_only,
    with_option_groups,
    with_ranges_within,
)
from fedaccord.cli.outputs import check_writable, rewrite_file, write_file
from fedaccord.errors import FedaccordError, InvalidInput

if TYPE_CHECKING:
    from fedaccord.game.consortium import Consortium
    from fedaccord.signed.file import AgreementFile, Party
    from fedaccord.signed.verification import Verification

agreement = typer.Typer(
    help="Write an agreement as a file, sign it, and verify it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


SignedFileArgument = Annotated[Path, typer.Argument(metavar="FILE.html", hidden=True)]


@agreement.command()
def key(file: Annotated[Path, typer.Argument(metavar="NEWFILE", hidden=True)]) -> None:
    """Make a key to sign with, and print the public half of it.

    NEWFILE is the private key: it stays where it is, and nobody else may read it. The public key
    goes to whoever writes the terms, over a channel on which the others know that it is yours.
    """
    from fedaccord.signing.keys import new_key, write_key

    made = new_key()
    write_key(file, made)
    typer.echo(f"Wrote {file}, which stays here. The public key, for the terms:", err=True)
    typer.echo(made.public)


@agreement.command()
def rotate(
    file: Annotated[Path, typer.Argument(metavar="NEWKEY", hidden=True)],
    *,
    old: Annotated[
        Path | None, typer.Option("--old", metavar="KEY", help="The private key until now.")
    ] = None,
    terms: Annotated[
        Path | None, typer.Option("--terms", metavar="TERMS.toml", help="The terms until now.")
    ] = None,
    client: Annotated[
        str | None, typer.Option("--client", metavar="NAME", help="Whose key it is.")
    ] = None,
) -> None:
    """Replace your key in the terms.

    The old key signs the new one, NEWKEY. It prints the lines for the new terms. They take effect
    between two slots, once every member has put the new terms into its directory.
    """
    from fedaccord.checks import client_meant
    from fedaccord.protocol.keys import sign_rotation
    from fedaccord.protocol.terms import load_terms
    from fedaccord.signing.keys import load_key

    if old is None or terms is None or client is None:
        raise InvalidInput("a rotation needs --old, --terms and --client")
    known = load_terms(terms)
    name = client_meant(client, known.clients)
    before, after = load_key(old), load_key(file)
    if known.keys is None or known.keys.clients.get(name) != before.public:
        raise InvalidInput(f"--old: is not the key of {name!r} in {terms}")
    if after.public == before.public:
        raise InvalidInput(f"{file}: is the old key")
    signature = sign_rotation(known.name, name, before, after.public)
    whom = json_for_people(name)
    typer.echo(f'[keys.clients]\n{whom} = "{after.public}"\n')
    typer.echo(f'[keys.rotations]\n{whom} = "{signature}"')


@agreement.command()
@with_option_groups
def export(
    file: FileArgument = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.html", callback=html_only, help="The file to write."),
    ] = None,
    terms: Annotated[
        Path | None,
        typer.Option(
            "--terms",
            metavar="TERMS.toml",
            help="The terms to sign, as an app on Flower has them, instead of the options below.",
        ),
    ] = None,
    member_key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="NAME=KEY",
            help="The public key of a member, unless the terms have it. Repeat for each member.",
        ),
    ] = None,
    server_key: Annotated[
        str | None,
        typer.Option("--server-key", metavar="KEY", help="The public key of the server."),
    ] = None,
    without_numbers: Annotated[
        bool,
        typer.Option(
            "--without-numbers",
            help="Show only the lowest ratios and discount factors, from ranges, not FILE's "
            "numbers.",
        ),
    ] = False,
    within: WithinOption = None,
    rules: RuleOptions,
    punishment: PunishmentOptions,
) -> None:
    """Write an agreement as one file, to read and to sign.

    FILE describes the consortium, in TOML. The page shows ALL numbers of ALL members in it
    (valuations, costs, data sizes, discount factors and their ranges), to everyone who gets the
    page; --without-numbers shows only the lowest that each may have. Without FILE, --terms must
    post the amounts, and the page shows what the terms show.

    The amounts are whole samples. Nobody has signed the file yet: see `fedaccord agreement sign`.
    """
    from fedaccord import __version__
    from fedaccord.signed.drafting import draft_agreement

    if out is None:
        raise InvalidInput("--out: is missing; name the file to write, such as agreement.html")
    if out.exists():
        raise FedaccordError(f"{out}: exists already; agreements are not overwritten")
    check_writable(out, inputs=[file, terms])
    consortium = _consortium(file, within or [])
    roster = roster_of(member_key or [], server_key)
    if terms is not None:
        refuse_rules(rules, punishment)
        agreed = terms_in(terms, roster)
    elif file is None or consortium is None:
        raise InvalidInput("name a consortium FILE, or --terms, or both")
    else:
        given = terms_for(consortium, rules, punishment, file, without_numbers=without_numbers)
        agreed = with_keys(given, roster, file)
    if without_numbers and terms is not None and consortium is not None:
        raise InvalidInput("--without-numbers: leave FILE out, since the terms say it all")
    shown = None if without_numbers else consortium
    with working("Proving"):
        made_with = f"fedaccord {__version__}"
        made = draft_agreement(agreed, shown, made_on=date.today().isoformat(), made_with=made_with)
    write_file(out, made.content, seen=ABSENT)
    typer.echo(
        f"Wrote {out}, which nobody has signed yet. Send it to all {len(agreed.clients)} members "
        f"and to the server; each signs with: fedaccord agreement sign {out} --key KEYFILE"
    )


def _consortium(file: Path | None, within: list[str]) -> "Consortium | None":
    if file is None:
        if within:
            raise InvalidInput("--within: needs a consortium FILE")
        return None
    from fedaccord.files.consortium import load_consortium

    with working("Reading"):
        return with_ranges_within(load_consortium(file), within)


@agreement.command()
def sign(
    file: SignedFileArgument,
    *,
    key_file: Annotated[
        Path | None, typer.Option("--key", metavar="KEYFILE", help="Your private key.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Sign without asking.")] = False,
) -> None:
    """Sign an agreement.

    The file is verified first, and its proof made again; if anything is wrong with it, it is not
    signed. The command then shows what is to be signed, asks, and adds the signature to FILE.html.
    Signatures that others add meanwhile stay. Who signs follows from the key. Send the file back
    afterwards, or on to the next member.

    The exit code is 0 if it is signed, and 1 if it is not.
    """
    from fedaccord.signed.file import load_agreement_file
    from fedaccord.signed.signatures import has_signed, party_of, sign_agreement
    from fedaccord.signed.verification import verify_agreement
    from fedaccord.signing.keys import load_key

    if key_file is None:
        raise InvalidInput("--key: is missing; name the file with your private key")
    private = load_key(key_file)
    with working("Verifying"):
        found = load_agreement_file(file)
        party = party_of(found, private.public)
        verified = verify_agreement(found)
    _show(found, party)
    if verified.problems:
        _tell(file, verified)
        typer.echo("Not signed.")
        raise typer.Exit(1)
    if has_signed(found, party):
        typer.echo(escaped(f"{party.name} has signed it already."))
        return
    if not (yes or _confirmed(f"Sign all of this as {party.name}?")):
        typer.echo("Not signed.")
        raise typer.Exit(1)
    signed = _add_signatures(file, found, lambda now: sign_agreement(now, private))
    _tell(file, verify_agreement(signed))


def _add_signatures(
    path: Path, shown: "AgreementFile", add: "Callable[[AgreementFile], AgreementFile]"
) -> "AgreementFile":
    """Add signatures to the file as it is now, which must be what was shown, others' included."""
    from fedaccord.signed.file import load_agreement_file, read_agreement_file
    from fedaccord.signed.verification import verify_signatures

    def signed() -> bytes:
        now = load_agreement_file(path)
        if now.with_signatures(shown.signatures) != shown:
            raise InvalidInput("is another agreement by now; nothing was added to it", str(path))
        made = add(now)
        if wrong := verify_signatures(made).problems:
            raise InvalidInput(wrong, str(path))
        return made.content

    return read_agreement_file(rewrite_file(path, signed))


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(escaped(question))
    except typer.Abort:
        raise FedaccordError("nothing was signed: without a terminal, use --yes") from None


def _show(file: "AgreementFile", party: "Party") -> None:
    """What a party is about to sign."""
    terms, profile = file.terms, file.document.profile
    lines = [
        f"Consortium: {terms.name}",
        f"Digest of the agreement: {file.digest}",
        f"Digest of the terms: {file.document.terms}",
        f"Punishment: {terms.after_slip}",
        "",
        "Who signs, with which key:",
        *(f"  {one.name}: {one.key}" for one in file.parties),
        "",
        f"In every slot they train on {profile.total:,} samples:",
    ]
    currency = file.document.numbers.currency
    for row in profile.clients:
        you = "  (you)" if row.name == party.client else ""
        lines.append(
            f"  {row.name}: {row.contribution:,} samples{_saving(row.saving, currency)}{you}"
        )
    for line in [*lines, ""]:
        typer.echo(escaped(line))


def _saving(saving: float | None, currency: str) -> str:
    from fedaccord.game.money import money

    if saving is None:
        return ""
    amount = money(abs(saving), currency)
    if saving < 0:
        return f", and pays {amount} MORE than without an agreement"
    return f", and saves {amount}"


@agreement.command(name="collect", hidden=True)
@agreement.command()
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.html COPY.html...", hidden=True)],
) -> None:
    """Add the signatures in copies to one file.

    Copies are files that members signed; their signatures are added to FILE.html, which keeps its
    own. Each must be the same agreement, and each signature valid, or nothing is changed.

    The exit code is 0 if everybody has signed now, and 1 if somebody has not.
    """
    from fedaccord.signed.file import AgreementFile, load_agreement_file
    from fedaccord.signed.signatures import merge_signatures
    from fedaccord.signed.verification import verify_agreement, verify_signatures

    if len(files) < 2:
        raise InvalidInput("name the file, and the copies that were signed")
    with working("Verifying"):
        file, *others = files
        found = load_agreement_file(file)
        copies = [(path, load_agreement_file(path)) for path in others]

        def merged(into: AgreementFile) -> AgreementFile:
            for path, copy in copies:
                try:
                    into = merge_signatures(into, [copy])
                except InvalidInput as error:
                    raise InvalidInput(error.problems, str(path)) from None
            return into

        verified = verify_agreement(merged(found))
        if not verified.problems:
            seals = verify_signatures(_add_signatures(file, found, merged))
            verified = replace(verified, signed=seals.signed, missing=seals.missing)
    _tell(file, verified)
    if not verified.complete:
        raise typer.Exit(1)


@agreement.command()
def verify(file: SignedFileArgument, *, output_format: FormatOption = "text") -> None:
    """Verify an agreement file, with no network.

    Every digest and signature is checked with the keys in the terms, the text of the page is made
    again from what is signed, and so is the proof: each member's best slip is searched for anew.

    The exit code is 0 if all of it is right and everybody has signed; 1 if something is wrong, or a
    signature is missing; 2 if it is not an agreement file.
    """
    from fedaccord.signed.file import load_agreement_file
    from fedaccord.signed.verification import verify_agreement

    with working("Verifying"):
        found = load_agreement_file(file)
        verified = verify_agreement(found)
    if output_format == "json":
        record = {
            "agreement": found.digest,
            "terms": found.document.terms,
            "verified": not verified.problems,
            "complete": verified.complete,
            "signed": verified.signed,
            "missing": verified.missing,
            "problems": verified.problems,
            "notes": verified.notes,
        }
        typer.echo(json_for_people(record))
    else:
        terms = found.terms
        about = f"{terms.name}, {len(terms.clients)} members, digest {found.digest[:16]}..."
        typer.echo(escaped(f"{file}: {about}"))
        _tell(file, verified)
    if not verified.complete:
        raise typer.Exit(1)


def _tell(file: Path, found: "Verification") -> None:
    """What was found out, in sentences."""
    from fedaccord.summaries.signed import agreement_found

    lines = agreement_found(found)
    if found.problems:
        lines.append(f"{file}: NOT verified.")
    for line in [*lines, *(f"Note: {note}." for note in found.notes)]:
        typer.echo(escaped(line))
