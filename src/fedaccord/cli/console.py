"""The terminal: results go to stdout, notes and progress to stderr; and how the program ends."""

import errno
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import click

from fedaccord.checks import escaped
from fedaccord.errors import FileNote

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.files.questions import Question

_PATIENCE = 1.0
"""Seconds before a spinner shows that something is running."""
_PIPED_WIDTH = 100


def output() -> "Console":
    """The console for results. Markup is off: names are printed as they are."""
    return _console(stderr=False)


def json_for_people(value: object) -> str:
    """Indented JSON to print, with the same characters escaped."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def say_where_from(file: Path | None, paper: bool, output_format: str) -> None:
    """Say that the paper's setting is used by default; on stderr if stdout is for programs."""
    if file is None and not paper:
        stream = sys.stderr if output_format == "json" else sys.stdout
        print(
            "No file given, so this is the paper's setting (--paper); "
            "`fedaccord init` writes a file to start from.\n",
            file=stream,
        )


@contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Print each note on a file once, on stderr; other warnings are shown as ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FileNote)
        show, said = warnings.showwarning, set[str]()

        def say(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if not issubclass(category, FileNote):
                show(message, category, *rest)
            elif str(message) not in said:
                said.add(str(message))
                click.echo(f"Note: {escaped(str(message))}", err=True)

        warnings.showwarning = say  # type: ignore[assignment]
        yield


@contextmanager
def questions_on_terminal() -> Iterator[None]:
    """Ask what files leave open, if there is a terminal to ask on and to answer from."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        yield
        return
    from fedaccord.files.questions import asking

    with asking(_ask):
        yield


def _ask(question: "Question") -> str:
    """The answer that a person chooses by its number; empty with Enter alone.

    A file may be read more than once in a command, and is asked about once.
    """
    if question.text not in _answered:
        _answered[question.text] = _reply_to(question)
    return _answered[question.text]


_answered: dict[str, str] = {}


def _reply_to(question: "Question") -> str:
    for stop in _spinners:
        stop()
    say = partial(click.echo, err=True)
    say(escaped(question.text))
    for number, choice in enumerate(question.choices, start=1):
        say(f"  {number}  {escaped(choice.meaning)}")
    say(f"  Enter alone: {'none of these' if len(question.choices) > 1 else 'no'}")
    while True:
        say("> ", nl=False)
        reply = sys.stdin.readline()
        if not reply.strip():
            return ""
        if reply.strip() in map(str, range(1, len(question.choices) + 1)):
            return question.choices[int(reply) - 1].answer
        say(f"Please type a number from 1 to {len(question.choices)}, or Enter alone.")


_spinners: list[Callable[[], None]] = []
"""Stops each spinner that is, or will be, on the terminal."""


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

    def stop() -> None:
        timer.cancel()
        timer.join()
        status.stop()

    _spinners.append(stop)
    try:
        yield
    finally:
        _spinners.remove(stop)
        stop()


@contextmanager
def counting(what: str, steps: int) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar on a terminal; call it with the steps done and a description."""
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
            raise BrokenPipeError  # rich would exit with code 1, which means "refuted"

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH
    return Output(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


# --- How the program ends ------------------------------------------------------------------
# Exit code 1 is an answer ("refuted"), so no accident may end with it.

CANNOT = 2
"""An argument or a file is wrong, or the answer could not be written."""
UNFORESEEN = 70
"""A bug in fedaccord: EX_SOFTWARE of sysexits.h."""
READER_LEFT = 141
"""The reader of the output closed it early (`| head`): 128 + SIGPIPE, as in a shell."""
INTERRUPTED = 130
"""Interrupted by Ctrl-C: 128 + SIGINT, as in a shell."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def prepare_streams() -> None:
    """Make both streams usable, even if they were closed or lack some characters."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (it stays open)
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name may have characters that a terminal lacks


def exit_code_of(command: click.Command, name: str, arguments: list[str]) -> int:
    """Run a command under this name with these arguments, and return its exit code."""
    try:
        code = _run(command, name, arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return READER_LEFT
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in _NO_ROOM
        with suppress(OSError):  # stderr may be full as well
            _explain(error, full)
        return CANNOT if full else UNFORESEEN
    finally:
        _drop_unwritable()


def _run(command: click.Command, name: str, arguments: list[str]) -> int:
    """Like click's own `main`, which exits with code 1 when the reader closes the pipe."""
    try:
        with command.make_context(name, arguments) as context:
            command.invoke(context)
        return 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code


def _explain(error: Exception, full: bool) -> None:
    if full:
        print(f"Error: the output cannot be written: {error.args[1]}", file=sys.stderr)
        return
    traceback.print_exception(error)
    print(
        "Error: this is a bug in fedaccord; please report it with the lines above",
        file=sys.stderr,
    )


def _drop_unwritable() -> None:
    """Drop output that cannot be written: flushing it at exit would fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
