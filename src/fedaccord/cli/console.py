"""Where text for people goes: tables to stdout, notes and progress to stderr."""

import os
import sys
from collections.abc import Callable, Iterator
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


def escaped(text: str) -> str:
    r"""Text that somebody else wrote, as it may go to a terminal: nothing in it acts there.

    Characters that cannot be printed (control characters, those that turn the direction of
    writing, line breaks) are spelt out.

    >>> print(escaped("St Mary\x1b[2J\u202e"))
    St Mary\x1b[2J\u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_for_people(value: object) -> str:
    """JSON to print, in which such characters are spelt out as well."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


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


@contextmanager
def counting(what: str, steps: int) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal: tell it how many steps are done, and what is going on."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=_console(stderr=True), transient=True) as progress:
        bar = progress.add_task(what, total=steps)
        yield lambda done, doing: progress.update(bar, completed=done, description=doing)


def _console(stderr: bool) -> "Console":
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end with code 1, which means something else

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH
    return Output(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)
