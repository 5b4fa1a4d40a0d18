"""How the command line ends. Code 1 is an answer ("refuted"), so no accident may end with it."""

import errno
import io
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import click

CANNOT = 2
"""Something given is wrong, or the answer could not be written."""
UNFORESEEN = 70
"""A mistake of ours: what sysexits.h calls EX_SOFTWARE."""
READER_LEFT = 141
"""What a shell says of a program whose reader left early (`| head`): 128 + SIGPIPE."""
INTERRUPTED = 130
"""And of one that was interrupted: 128 + SIGINT."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def prepare_streams() -> None:
    """Let there be an output that takes anything, even if whoever started us closed it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (it stays open)
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name may have letters that a terminal lacks


def exit_code_of(command: click.Command, name: str, words: list[str]) -> int:
    """Run a command, called so, with these words, and say what became of it."""
    try:
        code = _run(command, name, words)
        sys.stdout.flush()
        sys.stderr.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return READER_LEFT
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in _NO_ROOM
        with suppress(OSError):  # standard error may be full, too
            _explain(error, full)
        return CANNOT if full else UNFORESEEN
    finally:
        _let_go()


def _run(command: click.Command, name: str, words: list[str]) -> int:
    """What click's own `main` does, which would end with code 1 when the reader leaves."""
    try:
        with command.make_context(name, words) as context:
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
        "Error: this is a mistake in fedaccord; please report it with the lines above",
        file=sys.stderr,
    )


def _let_go() -> None:
    """Forget what cannot be written: Python would stumble over it on its way out."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
