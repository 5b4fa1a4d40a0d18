"""`fedaccord member`: a member's own directory, on its own machine."""

import os
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.checks import check_installed, escaped
from fedaccord.cli.check_lines import show_checks
from fedaccord.cli.commands.serve import NoBrowserOption, PortOption
from fedaccord.cli.dialogue import ask_all
from fedaccord.cli.options import FormatOption, LogFormatOption, from_one, with_option_groups
from fedaccord.errors import FedaccordError, InvalidInput

if TYPE_CHECKING:
    from fedaccord.deployment.cards import Card
    from fedaccord.deployment.invitation import Invitation
    from fedaccord.protocol.private import Private
    from fedaccord.protocol.terms import Terms

member = typer.Typer(
    help="Take part in a consortium on Flower: keys, numbers and data stay on this machine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

DirectoryArgument = Annotated[Path, typer.Argument(metavar="[DIR]", hidden=True)]


@dataclass(frozen=True, kw_only=True)
class NumberOptions:
    """A member's private numbers, if it knows them."""

    valuation: Annotated[
        float | None, typer.Option("--valuation", help="What a loss of 1 costs in a slot.")
    ] = None
    cost_per_sample: Annotated[
        float | None,
        typer.Option("--cost-per-sample", help="What training on one sample costs in a slot."),
    ] = None
    samples: Annotated[
        int | None,
        typer.Option("--samples", callback=from_one, help="How many samples it has."),
    ] = None
    discount_factor: Annotated[
        float | None,
        typer.Option(
            "--discount-factor",
            help="What 1 saved in the next slot is worth now; default: that of the terms.",
        ),
    ] = None
    communication_cost: Annotated[
        float,
        typer.Option(
            "--communication-cost", show_default=False, help="Of a slot, whatever it trains on."
        ),
    ] = 0.0


@member.command()
@with_option_groups
def new(
    directory: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    invitation: Annotated[Path, typer.Argument(metavar="INVITATION", hidden=True)],
    *,
    client: Annotated[
        str | None, typer.Option("--client", metavar="NAME", help="Which member this is.")
    ] = None,
    numbers: NumberOptions,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers", metavar="FILE.json", help="Answers to the interview, by question."
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option(
            "--days",
            callback=from_one,
            show_default=False,
            help="How many days its certificate is valid (default 365).",
        ),
    ] = 365,
) -> None:
    """Make a member's directory DIR from the coordinator's INVITATION.

    All keys are made here, and the private halves stay here. The private numbers are given by
    options or by --answers; otherwise the questions of `fedaccord interview` are asked. Afterwards
    send DIR/card.json to the coordinator.
    """
    from fedaccord.deployment.invitation import load_invitation
    from fedaccord.deployment.member_directory import write_member
    from fedaccord.deployment.new_directory import check_free

    check_free(directory)
    invited = load_invitation(invitation)
    name = _name(client, invited.terms)
    private = _private(name, invited.terms, numbers, answers)
    card = write_member(directory, invited, private, days=days)
    typer.echo(
        f"Wrote {directory}. Private: client.toml, the keys and data/; they stay here. "
        f"{directory / 'README.md'} says what comes next."
    )
    _show_card(directory, card)


@member.command()
def renew(
    directory: DirectoryArgument = Path(),
    *,
    days: Annotated[
        int,
        typer.Option(
            "--days",
            callback=from_one,
            show_default=False,
            help="How many days the certificate is valid (default 365).",
        ),
    ] = 365,
) -> None:
    """Make a new TLS certificate in DIR before the old one expires; all other keys stay.

    Send DIR/card.json to the coordinator. The server's proxy accepts the new certificate once it is
    admitted; start the node again then.
    """
    from fedaccord.deployment.renewal import renew_member

    _show_card(directory, renew_member(_checked(directory), days))


@member.command()
def sign(
    directory: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    file: Annotated[Path, typer.Argument(metavar="TO-SIGN", hidden=True)],
    *,
    new_key: Annotated[
        list[str] | None,
        typer.Option(
            "--new-key",
            metavar="FINGERPRINT",
            help="What the owner of a new key read out as its fingerprint. Repeatable.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Sign without asking, but for others' new keys.")
    ] = False,
) -> None:
    """Sign the terms and the app in the coordinator's file TO-SIGN.

    Shows what changed since the invitation, and asks. If somebody has another key than in what you
    signed before, call its owner, and give the fingerprint that it reads out with --new-key:
    nothing is signed without it. Then DIR/terms.toml and DIR/client.toml have what was signed: the
    node takes part under these terms and runs this app, and no other. Send DIR/signature.json to
    the coordinator. The exit code is 1 if it is not signed.
    """
    from fedaccord.deployment.invitation import load_invitation
    from fedaccord.deployment.member_directory import (
        SIGNATURE,
        changed_keys,
        rests_on,
        sign_member,
        wrong_to_sign,
    )
    from fedaccord.flower.client_file import load_client_file
    from fedaccord.protocol.terms import load_terms
    from fedaccord.signing.keys import load_key

    seen = rests_on(_checked(directory))
    own = load_client_file(directory / "client.toml")
    offered = load_invitation(file)
    public = load_key(directory / own.key).public
    if (wrong := wrong_to_sign(own, public, offered)) is not None:
        raise InvalidInput(wrong, str(file))
    changed = changed_keys(directory, load_terms(directory / own.terms), offered.terms)
    _show_terms(directory / own.terms, offered, own.name, changed)
    _check_new_keys(changed, new_key or [])
    if not (yes or _confirmed(f"Sign this as {own.name}?")):
        typer.echo("Not signed.")
        raise typer.Exit(1)
    sign_member(directory, offered, seen)
    typer.echo(f"Signed. Send {directory / SIGNATURE} to the coordinator.")


@member.command()
def check(
    directory: DirectoryArgument = Path(),
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not try to reach the server.")
    ] = False,
    output_format: FormatOption = "text",
) -> None:
    """Check everything that a slot needs in DIR, and say what to do about what is wrong.

    The files, the terms and who signed them, the keys and certificates, the data, one local step,
    disk, clock and versions, and whether the server is reached. The exit code is 1 if anything is
    wrong.
    """
    from fedaccord.deployment.member_check import check_member

    show_checks(check_member(_checked(directory), offline=offline), output_format)


@member.command()
def start(
    directory: DirectoryArgument = Path(),
    *,
    log_format: LogFormatOption = "text",
) -> None:
    """Run the node of the member in DIR until it is stopped (Ctrl-C).

    It waits for slots, and says what happens in them. It runs the app that was signed, and no
    other.
    """
    from fedaccord.flower.keep_node import keep_node
    from fedaccord.flower.member_log import FORMAT_VARIABLE

    os.environ[FORMAT_VARIABLE] = log_format
    keep_node(_checked(directory) / "client.toml")


@member.command()
def serve(
    directory: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    *,
    port: PortOption = 0,
    no_browser: NoBrowserOption = False,
    authority: Annotated[
        Path | None,
        typer.Option(
            "--authority",
            metavar="FILE",
            help="A certificate (PEM) by which to recognise the room, besides the usual ones.",
        ),
    ] = None,
) -> None:
    """Open the page of the member in DIR: join a room, read, sign, and run the node.

    DIR may be new: the page makes it, with the member's keys. Only this machine, and on it only
    whoever has the address that is printed, can reach the page; if the output is not a terminal, a
    file that only you can read leads there, and its name is printed. The private keys, the private
    numbers and the data stay in DIR. Ctrl-C ends the page, and the node with it.
    """
    parts = ("fastapi", "uvicorn", "python_multipart", "httpx", "torch", "flwr")
    check_installed("fedaccord member serve", *parts)
    from fedaccord.console.member.app import create_member_page
    from fedaccord.console.member.room_client import trusting
    from fedaccord.console.web.opening import opening_file
    from fedaccord.console.web.serving import listen
    from fedaccord.console.web.serving import serve as keep_serving

    if authority is not None and not authority.is_file():
        raise InvalidInput(f"--authority: there is no file {authority}")
    trusting(authority)  # so that a wrong file is said now, and not when somebody joins
    page = create_member_page(directory, authority)
    at = listen("127.0.0.1", port)
    place = f"http://127.0.0.1:{at.getsockname()[1]}/"
    address = f"{place}#{page.state.access.code}"
    with opening_file(page.state.pages, address) as file:
        if sys.stdout.isatty():
            typer.echo(f"Your page is at {address} (Ctrl-C ends it)")
        else:  # what is printed may be kept where others read it
            typer.echo(f"Your page is at {place}; open {file}, which only you can read")
        sys.stdout.flush()
        keep_serving(page, at, opened=None if no_browser else file.as_uri)


def _checked(directory: Path) -> Path:
    if not (directory / "client.toml").is_file():
        raise InvalidInput(f"{directory}: is not a directory that `fedaccord member new` wrote")
    return directory


def _name(given: str | None, terms: "Terms") -> str:
    from fedaccord.checks import client_meant, unknown

    names = list(terms.clients)
    if given is None:
        raise InvalidInput(f"--client: is missing; the members are {', '.join(names)}")
    try:
        return client_meant(given, names)
    except InvalidInput:
        wrong = f"there is no {given!r} in the terms: {unknown(given, names)}"
        raise InvalidInput(f"--client: {wrong}") from None


# --- Private numbers -----------------------------------------------------------------------


def _private(name: str, terms: "Terms", numbers: NumberOptions, answers: Path | None) -> "Private":
    """The numbers of the options, of a file of answers, or of an interview."""
    given = (numbers.valuation, numbers.cost_per_sample, numbers.samples)
    if answers is None and any(value is not None for value in given):
        return _from_options(name, terms, numbers)
    if answers is not None and any(value is not None for value in given):
        raise InvalidInput("--answers: cannot be combined with the numbers themselves")
    from fedaccord.cli.commands.interview import answers_in, evaluated, lacks_answers, show

    known: dict[str, Any] = {"rounds": str(terms.rounds)} | answers_in(answers) | {"name": name}
    if answers is None and lacks_answers(known):
        known = ask_all(known)
    result = evaluated(known, answers)
    show(result)
    client = result.client
    return _of(
        name,
        terms,
        valuation=client.valuation,
        cost_per_sample=client.cost_per_sample,
        samples=int(client.samples),
        discount_factor=client.discount_factor,
        communication_cost=numbers.communication_cost,
    )


def _from_options(name: str, terms: "Terms", numbers: NumberOptions) -> "Private":
    if numbers.valuation is None or numbers.cost_per_sample is None or numbers.samples is None:
        raise InvalidInput(
            "--valuation, --cost-per-sample and --samples: give all three, or none to be asked"
        )
    return _of(name, terms, **vars(numbers))


def _of(name: str, terms: "Terms", **numbers: Any) -> "Private":
    """The numbers as a client's file has them, checked as that file is."""
    from fedaccord.flower.client_file import read_client_file

    if numbers["discount_factor"] is None:
        numbers["discount_factor"] = terms.discount_factor
    differs = numbers["discount_factor"] != terms.discount_factor
    return read_client_file({"name": name, "tell_discount_factor": differs} | numbers).private


# --- What people see -----------------------------------------------------------------------


def _show_card(directory: Path, card: "Card") -> None:
    typer.echo(
        f"Send {directory / 'card.json'} to the coordinator, and tell it this fingerprint over "
        f"another channel: {card.fingerprint}"
    )


def _show_terms(before: Path, offered: "Invitation", own: str, changed: Container[str]) -> None:
    """Everything that differs from the terms that this member has, and who has which key."""
    from fedaccord.deployment.member_directory import keys_in
    from fedaccord.flower.client_file import rules_by_name
    from fedaccord.protocol.terms import load_terms
    from fedaccord.signing.keys import fingerprint

    terms = offered.terms
    old, new = rules_by_name(load_terms(before)), rules_by_name(terms)
    changes = [
        f"  {key}: {old.get(key, 'not there')} -> {new.get(key, 'not there')}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key) and not key.startswith("keys")
    ]
    typer.echo(escaped(f"{terms.name}: {len(terms.clients)} members, terms {terms.digest[:16]}"))
    if changes:
        typer.echo("These rules differ from the terms that you have:")
        typer.echo("\n".join(map(escaped, changes)))
    else:
        typer.echo(f"The rules are those of {before}, which you have read.")
    for name, public in keys_in(terms).items():
        mine = " (yours)" if name == own else ""
        other = " (another key than in what you signed)" if name in changed else ""
        typer.echo(escaped(f"  {name}{mine}: {fingerprint(public)}{other}"))
    typer.echo(f"The app that your node will run: {offered.server.app}")


def _check_new_keys(changed: Mapping[str, str], given: Sequence[str]) -> None:
    """Refuse keys that replace others' earlier ones, but for those whose owners were called."""
    from fedaccord.signing.keys import fingerprint

    read_out = {"".join(one.split()).lower() for one in given}
    names = {"".join(fingerprint(key).split()): name for name, key in changed.items()}
    if wrong := read_out - names.keys():
        raise InvalidInput(f"--new-key: no new key has the fingerprint {', '.join(sorted(wrong))}")
    if left := [name for digits, name in names.items() if digits not in read_out]:
        raise InvalidInput(
            f"nothing was signed: call {', '.join(left)}, on a number that you knew before, and "
            "give the fingerprint that is read out to you with --new-key; if it is another one "
            "than above, somebody else has that key"
        )


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(escaped(question))
    except typer.Abort:
        raise FedaccordError("nothing was signed: without a terminal, use --yes") from None
