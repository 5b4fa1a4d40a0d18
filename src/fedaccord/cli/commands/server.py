"""`fedaccord server`: run a consortium's slots on the server, and see what happens."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fedaccord.cli.options import from_one

server = typer.Typer(
    help="Run the slots on the server, and see what happens.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

AppArgument = Annotated[Path, typer.Argument(metavar="APP", hidden=True)]
LogFormatOption = Annotated[
    Literal["text", "json"],
    typer.Option(
        "--log-format",
        show_default=False,
        help="Sentences (text, default), or one JSON object a line (json).",
    ),
]


@server.callback()
def _server() -> None:
    pass


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
        from fedaccord.flower.metrics import MetricsFile

        listeners.append(MetricsFile(metrics))
    if mlflow is not None:
        check_installed("--mlflow", "mlflow")
        from fedaccord.flower.mlflow_runs import MlflowRuns

        listeners.append(MlflowRuns(mlflow))
    if not run_slots_and_watch(app, last_slot, log_format=log_format, listeners=listeners):
        raise typer.Exit(1)
