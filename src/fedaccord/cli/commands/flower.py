"""`fedaccord flower`: write the server's directory for a consortium on Flower, and rehearse it."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fedaccord.cli.app_training import AppRuleOptions, AppTaskOptions
from fedaccord.cli.options import (
    MarginOption,
    PunishmentOptions,
    WithinOption,
    from_one,
    margin_or_usual,
    with_option_groups,
)
from fedaccord.cli.rehearsing import rehearse

flower = typer.Typer(
    help="Run the slots across machines, on Flower.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@flower.command()
@with_option_groups
def new(
    directory: Annotated[Path, typer.Argument(metavar="APP", hidden=True)],
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None,
    *,
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--client", metavar="NAME", help="A member, instead of FILE. Repeat for each member."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What the consortium is called, without FILE.")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", callback=from_one, help="Rounds in a slot, without FILE (default 50)."
        ),
    ] = None,
    discount_factor: Annotated[
        float | None,
        typer.Option(
            "--discount-factor",
            help="Of members that do not tell their own, without FILE (default 0.9).",
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            help="A name or address at which members reach the server; the first is in the "
            "invitation. Repeatable. Default: localhost, for this machine only.",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=1,
            max=65_535,
            show_default=False,
            help="At which members reach it (default 8443).",
        ),
    ] = 8443,
    superlink_port: Annotated[
        int,
        typer.Option(
            "--superlink-port",
            min=1,
            max=65_535,
            show_default=False,
            help="At which Flower listens, on this machine only (default 8000).",
        ),
    ] = 8000,
    reports: Annotated[
        Literal["ratio", "none"] | None,
        typer.Option(
            "--reports",
            help="What clients report: their ratio of valuation to cost (the default), from which "
            "amounts are computed and which can be gamed; or none, so that nobody can.",
        ),
    ] = None,
    agreement: Annotated[
        Literal["individual", "uniform", "everything", "clock", "serial-clock"],
        typer.Option(
            "--agreement",
            show_default=False,
            help="An amount for each client (individual, the default), or one level for many; "
            "without reports also all samples of everyone, or what a clock finds.",
        ),
    ] = "individual",
    within: WithinOption = None,
    clock_steps: Annotated[
        int | None,
        typer.Option(
            "--clock-steps",
            callback=from_one,
            help="Clocks: in how many steps the share of everyone's samples rises; default 20.",
        ),
    ] = None,
    objective: Annotated[
        Literal["most-data", "least-total-cost", "fair-share"] | None,
        typer.Option(
            "--objective",
            help="What the agreement optimises; default least-total-cost, or most-data with "
            "reversion.",
        ),
    ] = None,
    nobody_worse: Annotated[
        bool,
        typer.Option("--nobody-worse", help="Let nobody pay more than at the equilibrium."),
    ] = False,
    margin: MarginOption = None,
    punishment: PunishmentOptions,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            show_default=False,
            help="Share of the agreed contribution that may be missing unpunished (default 0).",
        ),
    ] = 0.0,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum",
            callback=from_one,
            help="How many clients a slot needs (default: more than half of them).",
        ),
    ] = None,
    on_refusal: Annotated[
        Literal["without", "equilibrium", "void"],
        typer.Option(
            "--on-refusal",
            show_default=False,
            help="If a client refuses: agree without it (default), play the equilibrium, or train "
            "nothing (void).",
        ),
    ] = "without",
    task: AppTaskOptions,
    steps: AppRuleOptions,
) -> None:
    """Write the server's directory APP for a consortium on Flower.

    Names are enough: --client for each member. FILE is a consortium file or a file of terms; of a
    consortium file the names and what all members share go into APP. Nobody's private numbers and
    keys do: each member keeps its own (`fedaccord member new`). README.md in APP says what comes
    next. Unless the options say otherwise, whoever slips is suspended for one slot.
    """
    from fedaccord.checks import check_installed

    check_installed("a Flower app", "torch", "sqlalchemy", "alembic", "flwr")
    from fedaccord.cli.app_terms import agreed, described, scale_for, terms_for_app, terms_in
    from fedaccord.data.dataset import load_dataset
    from fedaccord.deployment.app_directory import write_app
    from fedaccord.protocol.terms import rules_of

    terms, code = terms_in(file), None
    if terms is None:
        known = described(
            file,
            client or [],
            within or [],
            name=name,
            rounds=rounds,
            discount_factor=discount_factor,
        )
        data = None if task.dataset is None else load_dataset(task.dataset)
        own, form = task.in_app(data), task.form(data)
        training = own.terms | form | steps.in_terms() | scale_for(known, data)
        code = own.code
        after_slip = punishment.chosen(directory)
        rules: dict[str, Any] = {
            "nobody_worse": nobody_worse,
            "margin": margin_or_usual(margin, directory),
            "tolerance": tolerance,
            "quorum": quorum or 0,
            "on_refusal": on_refusal,
        } | rules_of(after_slip)
        if objective is not None:
            rules["objective"] = objective.replace("-", " ")
        if clock_steps is not None:
            rules["clock_steps"] = clock_steps
        rules |= agreed(known, agreement, reports, after_slip, rules)
        terms = terms_for_app(known, rules, training, own.places)
    reached = host or ["localhost"]
    _refusing_hosts(
        lambda: write_app(directory, terms, reached, port=port, superlink=superlink_port, code=code)
    )
    typer.echo(
        f"Wrote {directory}, the server's directory for {len(terms.clients)} members. "
        f"Send {directory / 'invitation.toml'} to each of them; {directory / 'README.md'} says "
        "what comes next."
    )
    if not host:
        typer.echo(
            "Members on other machines cannot reach it at localhost: name the server with --host.",
            err=True,
        )


flower.command()(rehearse)


@flower.command()
def keys(
    directory: Annotated[Path, typer.Argument(metavar="APP", hidden=True)],
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", help="A name or address at which members reach the server. Repeatable."
        ),
    ] = None,
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
    """Renew the server's certificates in APP before they expire.

    Members recognise the server by keys/ca.pem, which is new then: the command writes it into
    APP/invitation.toml and APP/to-sign.toml, and each member signs the latter again.
    """
    from fedaccord.deployment.renewal import renew_certificates

    _refusing_hosts(lambda: renew_certificates(directory, host or [], days))
    typer.echo(
        f"Wrote certificates for {', '.join(host or [])} into {directory / 'keys'}. Restart the "
        f"server, and send {directory / 'to-sign.toml'} to every member."
    )


def _refusing_hosts(write: Callable[[], None]) -> None:
    """Run something that takes hosts and days, whose mistakes are those of the options."""
    from fedaccord.errors import InvalidInput, Problem

    try:
        write()
    except InvalidInput as error:
        raise InvalidInput(
            Problem(one.field, one.message, f"--{one.field}")
            if one.field in ("host", "days")
            else one
            for one in error.problems
        ) from None
