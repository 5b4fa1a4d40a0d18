"""The command line: parse, call, print.

Only typer is imported here, so that `fedaccord --help` is quick; a command's module is imported
when the command is asked for, and NumPy, rich and whatever needs them when it runs.
"""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fedaccord
from fedaccord.cli.console import escaped
from fedaccord.cli.ending import CANNOT, exit_code_of, prepare_streams
from fedaccord.errors import FedaccordError

COMMANDS = {
    "demo": "The whole story of six made-up hospitals, and a report",
    "init": "A commented consortium file to start from",
    "solve": "What selfish clients do, what they can agree on, and its proof",
    "certify": "Prove or refute any profile",
    "play": "The repeated game, slot by slot: who slips, what it costs",
    "train": "A real model under one profile or several",
    "calibrate": "Measure the numbers that a consortium's file asks for",
    "compare": "What else could be done about free riders, side by side",
    "detect": "How well free riders are found by their updates, measured",
    "reproduce": "The paper's figures and claims, checked",
    "flower": "The slots across machines, on Flower",
    "ledger": "Show, verify, compare and export what was settled",
}
"""Each is in the module of its name, which is imported when the command runs."""


class _Commands(TyperGroup):
    """The commands; what one of them refuses is a message, not a traceback."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was asked for, itself and not what stands for it in the list."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, stand_in and _load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except FedaccordError as error:
            lines = map(escaped, str(error).split("\n"))  # it may quote what somebody else wrote
            typer.echo("Error: " + "\n".join(lines), err=True)
            raise typer.Exit(CANNOT) from None
        except OSError as error:
            if error.filename is None:  # about what is printed, or nothing that was given
                raise
            typer.echo(f"Error: {error.filename}: {error.strerror}", err=True)
            raise typer.Exit(CANNOT) from None


def _load(name: str) -> Any:
    """A command, or a group of them, from its module."""
    found = getattr(import_module(f"fedaccord.cli.commands.{name}"), name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    return typer.main.get_command(found)


app = typer.Typer(
    name="fedaccord",
    cls=_Commands,
    help="Self-enforcing participation agreements for cross-silo federated learning.",
    no_args_is_help=True,
    add_completion=False,
    suggest_commands=False,  # click does
    rich_markup_mode=None,  # plain help needs no rich, and so no time
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
    """Never runs: `_Commands` puts the command in its place."""


for name, words in COMMANDS.items():
    app.command(name, help=words)(_stand_in)


def main() -> None:
    """Run the command line."""
    prepare_streams()
    sys.exit(exit_code_of(typer.main.get_command(app), "fedaccord", sys.argv[1:]))
