"""The command line: parse, call, print.

Only typer is imported here, so that `fedaccord --help` is quick. A command's module is imported
when the command is called, and NumPy, rich and everything that needs them when it runs.
"""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fedaccord
from fedaccord.checks import escaped
from fedaccord.cli.console import (
    CANNOT,
    exit_code_of,
    notes_on_stderr,
    prepare_streams,
    questions_on_terminal,
)
from fedaccord.errors import FedaccordError, InvalidInput, Problem

COMMANDS = {
    "demo": "Walk through an example of six hospitals, and write a report",
    "init": "Write a commented consortium file to start from",
    "interview": "Find a client's numbers from what its people know",
    "serve": "Design an agreement in the browser, on this machine alone",
    "solve": "Find the equilibrium, a better agreement, and its proof",
    "certify": "Prove or refute any profile",
    "ranges": "Say what it costs not to know numbers exactly",
    "audit-rates": "Say how often each client must be audited",
    "departures": "See what happens if any one client leaves",
    "play": "Play the repeated game, slot by slot",
    "train": "Train a real model under one profile or several",
    "calibrate": "Measure the numbers that a consortium file asks for",
    "value": "Measure how much each member's data helps the others",
    "join": "Find out who should train together, and who gains by it",
    "study": "Carry out a case study on real organisations' records",
    "compare": "Compare ways to deal with free riders",
    "misreport": "Find out who gains by lying, and how much",
    "detect": "Measure how well detectors find free riders by their updates",
    "reproduce": "Recompute the paper's figures and check its claims",
    "agreement": "Write an agreement as a file, sign it, and verify it",
    "flower": "Write or rehearse a consortium on Flower, across machines",
    "server": "Admit members, check and start the server, and run slots",
    "member": "Take part on Flower: keys, numbers and data stay here",
    "room": "Discuss, sign and watch an agreement on a server's page",
    "ledger": "Show, verify, compare and export the ledger",
    "audit": "Draw audits of training, carry them out, and submit verdicts",
}
"""Each is in the module of its name in `commands`, with _ instead of -."""


class _Commands(TyperGroup):
    """The commands; an error of theirs becomes a message, not a traceback."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, instead of its entry in the list."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, stand_in and _load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with notes_on_stderr(), questions_on_terminal():
                return super().invoke(ctx)
        except FedaccordError as refused:
            error = _naming_flags(refused, _load(ctx.invoked_subcommand))
            lines = map(escaped, str(error).split("\n"))  # it may quote text from outside
            typer.echo("Error: " + "\n".join(lines), err=True)
            raise typer.Exit(CANNOT) from None
        except OSError as error:
            if error.filename is None:  # about the output, or a bug
                raise
            typer.echo(f"Error: {error.filename}: {error.strerror}", err=True)
            raise typer.Exit(CANNOT) from None


def _load(name: str) -> Any:
    """A command, or a group of them, from its module."""
    module = name.replace("-", "_")
    found = getattr(import_module(f"fedaccord.cli.commands.{module}"), module)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    return typer.main.get_command(found)


def _naming_flags(error: FedaccordError, command: Any) -> FedaccordError:
    """The same error, with the option's flag instead of the field that it sets.

    Problems in a file have a source or a place, and are left unchanged.
    """
    if not isinstance(error, InvalidInput) or error.source is not None:
        return error
    flags = {option.name: max(option.opts, key=len) for option in command.params}
    return InvalidInput(
        problem
        if problem.place
        else Problem(flags.get(problem.field, problem.field), problem.message)
        for problem in error.problems
    )


app = typer.Typer(
    name="fedaccord",
    cls=_Commands,
    help="Self-enforcing participation agreements for cross-silo federated learning.",
    no_args_is_help=True,
    add_completion=False,
    suggest_commands=False,  # click does
    rich_markup_mode=None,  # plain help does not import rich, which is slow
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedaccord {fedaccord.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def _stand_in() -> None:
    """Never called: `_Commands` replaces it by the command."""


for name, words in COMMANDS.items():
    app.command(name, help=words)(_stand_in)


def main() -> None:
    """Run the command line."""
    prepare_streams()
    sys.exit(exit_code_of(typer.main.get_command(app), "fedaccord", sys.argv[1:]))
