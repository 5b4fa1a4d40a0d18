"""`fedaccord server`: admit members, start the server, check it, and run slots."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.checks import escaped
from fedaccord.cli.check_lines import show_checks
from fedaccord.cli.options import FormatOption, LogFormatOption, from_one
from fedaccord.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from fedaccord.deployment.admission import Members

server = typer.Typer(
    help="Run the server of a consortium on Flower: admit members, check, start, run slots.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

AppArgument = Annotated[Path, typer.Argument(metavar="APP", hidden=True)]


@server.command()
def admit(
    app: AppArgument,
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", hidden=True)] = None,
    *,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Take a card with a new signing key, which replaces the member's old one. Call "
            "the member first.",
        ),
    ] = False,
) -> None:
    """Take cards and signatures that members sent, into the server's directory APP.

    As soon as every member's card is there, the keys go into the terms, and APP/to-sign.toml is
    written for the members to sign. Compare the fingerprints with the members over another
    channel: whoever sends a card in a member's name can speak for it. After the terms in APP were
    changed by hand, run it without FILE: invitation.toml and to-sign.toml then have these terms.
    """
    from fedaccord.deployment.admission import REPLACES
    from fedaccord.deployment.admission import admit as take
    from fedaccord.deployment.cards import Card, load_sent
    from fedaccord.deployment.invitation import host_of
    from fedaccord.deployment.processes import listens
    from fedaccord.deployment.server import (
        register_members,
        reload_proxy,
        superlink_address,
    )

    sent_files = files or []
    try:
        members = take(app, sent_files, replaces=replace)
    except InvalidInput as error:
        raise InvalidInput(
            [
                Problem(
                    one.field, one.message.replace(REPLACES, f"{REPLACES}: --replace"), one.place
                )
                for one in error.problems
            ],
            error.source,
        ) from None
    for path in sent_files:
        sent = load_sent(path)
        if isinstance(sent, Card):
            typer.echo(escaped(f"{sent.client}: card {sent.fingerprint}"))
        else:
            typer.echo(escaped(f"{sent.client}: signed"))
    if not sent_files:
        typer.echo(escaped(f"{app / 'invitation.toml'} has the terms as they are now."))
    for name in members.rotated:
        typer.echo(escaped(f"{name}: the key in the terms stays; that of its card has signed it"))
    if reload_proxy(app) and listens(*host_of(superlink_address(app))):
        for name in register_members(app):
            typer.echo(escaped(f"{name}: its node is registered at the running server"))
    typer.echo(escaped(_next(app, members)))


def _next(app: Path, members: "Members") -> str:
    if members.missing:
        return f"Still missing: the cards of {', '.join(members.missing)}."
    if members.unsigned:
        return (
            f"Send {app / 'to-sign.toml'} to every member. Signatures are missing of "
            f"{', '.join(members.unsigned)}."
        )
    return (
        f"Everyone has signed, as {app / 'signatures.json'} shows. Start the server with: "
        f"fedaccord server start {app}"
    )


@server.command()
def start(app: AppArgument) -> None:
    """Run the server in APP until it is stopped (Ctrl-C): Flower's SuperLink, and nginx before it.

    Flower listens on this machine only. Members reach nginx, which lets nobody else in and passes
    on nothing but what their nodes need. The nodes of admitted members are registered. What a
    server that was killed left running is ended first, and a SuperLink that is killed is started
    again.
    """
    from fedaccord.deployment.admission import load_app_terms
    from fedaccord.deployment.server import serve

    load_app_terms(app)
    serve(app, _say)


def _say(said: str) -> None:
    typer.echo(escaped(said))
    sys.stdout.flush()  # it may be a log, and somebody may be waiting for this line


@server.command()
def check(app: AppArgument, *, output_format: FormatOption = "text") -> None:
    """Check everything that a slot needs in APP, and say what to do about what is wrong.

    The terms, who signed them, keys and certificates, the ledger, the proxy, that a part of a large
    model passes it, that Flower is reached from this machine only, and which nodes are online. The
    exit code is 1 if anything is wrong.
    """
    from fedaccord.deployment.server_check import check_app

    show_checks(check_app(app), output_format)


@server.command()
def run(
    app: AppArgument,
    *,
    last_slot: Annotated[
        int,
        typer.Option("--last-slot", callback=from_one, help="Run until this slot is settled."),
    ],
    log_format: LogFormatOption = "text",
    metrics: Annotated[
        Path | None,
        typer.Option(
            "--metrics",
            metavar="FILE.prom",
            help="Keep metrics for Prometheus in FILE.prom, which node_exporter reads.",
        ),
    ] = None,
    mlflow: Annotated[
        str | None,
        typer.Option(
            "--mlflow",
            metavar="URI",
            help="Log each slot as a run of MLflow, on the tracking server or store at URI.",
        ),
    ] = None,
    listener: Annotated[
        list[str] | None,
        typer.Option("--listener", help="Also tell this installed listener. Repeatable."),
    ] = None,
) -> None:
    """Run slots of the app in the directory APP, and say what happens until they are settled.

    The SuperLink must be running. Ctrl-C ends the watching, and the run goes on.

    The exit code is 0 if every slot was trained, and 1 if one is void: nothing was trained in it.
    """
    from fedaccord.checks import check_installed
    from fedaccord.flower.listeners import find_listener
    from fedaccord.flower.running import run_slots_and_watch

    listeners = [find_listener(name) for name in listener or []]
    if metrics is not None:
        from fedaccord.cli.outputs import check_writable
        from fedaccord.flower.metrics import MetricsFile

        check_writable(metrics)
        listeners.append(MetricsFile(metrics))
    if mlflow is not None:
        check_installed("--mlflow", "mlflow")
        from fedaccord.flower.mlflow_runs import MlflowRuns

        listeners.append(MlflowRuns(mlflow))
    if not run_slots_and_watch(app, last_slot, log_format=log_format, listeners=listeners):
        raise typer.Exit(1)
