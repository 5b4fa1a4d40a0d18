"""`fedaccord flower rehearse`: server, proxy and members on this machine, for a slot or more."""

import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from fedaccord.checks import escaped
from fedaccord.cli.options import from_one
from fedaccord.deployment.processes import STOPS

if TYPE_CHECKING:
    from fedaccord.deployment.rehearsal import Outcome


def rehearse(
    app: Annotated[Path, typer.Argument(metavar="APP", hidden=True)],
    *,
    numbers: Annotated[
        Path | None,
        typer.Option(
            "--numbers",
            metavar="FILE",
            help="A consortium file with the members' numbers. Default: numbers are made up.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            help="Examples for the members: a dataset that `train --dataset` knows. Default: "
            "examples of the form in the terms are made up.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            help="Rehearse in the new directory DIR, and keep it, with all logs.",
        ),
    ] = None,
    last_slot: Annotated[
        int,
        typer.Option(
            "--last-slot",
            callback=from_one,
            show_default=False,
            help="How many slots to run (default 1).",
        ),
    ] = 1,
) -> None:
    """Run a slot of APP with its server, its proxy and stand-ins for all members on this machine.

    It works on a copy of APP with keys of its own; APP stays as it is. The members' samples are
    scaled down to the examples that there are, as `fedaccord train` does it. At the end the ledger
    is verified, and everything is stopped, as it is on Ctrl-C. The exit code is 1 if a slot was
    void, a member did not keep to the agreement, or the ledger does not verify.
    """
    from fedaccord.checks import check_installed

    check_installed("a rehearsal", "torch", "sqlalchemy", "alembic", "flwr")
    from fedaccord.data.dataset import load_dataset
    from fedaccord.deployment.new_directory import check_free
    from fedaccord.deployment.rehearsal import rehearse as run
    from fedaccord.files.consortium import load_consortium

    given = None if numbers is None else load_consortium(numbers)
    data = None if dataset is None else load_dataset(dataset)
    for kind in STOPS:
        signal.signal(kind, _stop)
    with ExitStack() as stack:
        if keep is not None:
            check_free(keep)
        place = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedaccord-")))
        outcome = run(
            app,
            place,
            lambda said: typer.echo(escaped(said)),
            numbers=given,
            dataset=data,
            last_slot=last_slot,
        )
    _show(outcome, keep)


def _stop(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    """Stop everything, once: whoever presses Ctrl-C again does not keep it from being stopped."""
    for kind in STOPS:
        signal.signal(kind, signal.SIG_IGN)
    raise KeyboardInterrupt


def _show(outcome: "Outcome", keep: Path | None) -> None:
    for problem in outcome.problems:
        typer.echo(escaped(f"Wrong: {problem}"))
    if not outcome.problems:
        typer.echo(
            f"Everyone kept to the agreement. The ledger's {outcome.entries} entries verify, and "
            "agree with every member's copy."
        )
    if keep is not None:
        typer.echo(escaped(f"What was made and logged is in {keep}."))
    typer.echo("Nothing runs any more.")
    if outcome.problems:
        raise typer.Exit(1)
