"""The command line: parse, call, print.

Only typer is imported here and at the top of the commands' modules. NumPy, rich and whatever
needs them are imported when a command runs, so that `fedaccord --help` is quick.
"""

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fedaccord
from fedaccord.cli import certify, demo, init, play, solve
from fedaccord.errors import FedaccordError


class _Commands(TyperGroup):
    """The commands; what one of them refuses is a message, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except FedaccordError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    name="fedaccord",
    cls=_Commands,
    help="Self-enforcing participation agreements for cross-silo federated learning.",
    no_args_is_help=True,
    add_completion=False,
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


for command in (demo.demo, init.init, solve.solve, certify.certify, play.play):
    app.command()(command)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name may have letters that a terminal lacks
    app()
