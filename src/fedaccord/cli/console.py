"""Where text for people goes: tables to stdout, notes and progress to stderr."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE = 1.0
"""Seconds before a spinner shows that work is going on."""
_PIPED_WIDTH = 100


def output() -> "Console":
    """The console for results. Markup is off: names are printed as they are."""
    return _console(stderr=False)


def say_where_from(file: Path | None, paper: bool, output_format: str) -> None:
    """Say that nothing was asked for; on stderr where stdout is for programs."""
    if file is None and not paper:
        stream = sys.stderr if output_format == "json" else sys.stdout
        print(
            "No file given, so this is the paper's setting (--paper); "
            "`fedaccord init` writes a file to start from.\n",
            file=stream,
        )


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on a terminal when the work takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    status = _console(stderr=True).status(f"{what} ...")
    timer = Timer(_PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def _console(stderr: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)
