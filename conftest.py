"""Runs the code in the pages: README.md and docs/ (`make pages`).

The blocks of a page run from top to bottom, in one temporary directory:

- A block marked `python` is executed; its names stay for the page's next blocks. If it starts with
  `>>>`, it is a doctest.
- In a block marked `console`, each line `$ command` is run if its first word is in RUN, and what it
  prints (errors too) must be the lines that follow. A line `...` stands for any number of lines,
  `...` at the end of a line for the rest of it, and a time such as 2026-01-31 09:30:00 for any.
  A backslash continues a command on the next line. A command must succeed, unless
  `$ echo $?` follows.
- `<!-- skip: next -->` before a block skips it.
"""

import contextlib
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

pytest_plugins = ["pytester"]  # for the test of this file

RUN = ("fedaccord", "cat")
TIME = re.compile(r"\d{4}\\-\d\d\\-\d\d(T|\\ )\d\d:\d\d:\d\d")
"""A time in a line whose special characters are escaped."""
TIMES = r"\\d{4}-\\d\\d-\\d\\d\1\\d\\d:\\d\\d:\\d\\d"
"""A pattern of all times."""
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}


def enter_directory(namespace: dict[str, Any]) -> None:
    """Gives the page a directory of its own."""
    stack = namespace["_page"] = contextlib.ExitStack()
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    stack.enter_context(contextlib.chdir(directory))


def leave_directory(namespace: dict[str, Any]) -> None:
    """Leaves the page's directory and removes it."""
    namespace["_page"].close()


def read_commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each command of a console block with the lines it should print."""
    for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip().splitlines()
        yield command, [line.rstrip() for line in lines]


def run(command: str) -> tuple[list[str], int]:
    """Runs a shell command, with this Python first on the path; its output and exit code."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        command,
        shell=True,
        env=os.environ | ENVIRONMENT | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return [line.rstrip() for line in done.stdout.rstrip().splitlines()], done.returncode


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether the lines match: `...` stands for any lines or the end of one, a time for any."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else as_pattern(line) for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def as_pattern(line: str) -> str:
    """Matches a line with any times in it, and with any end if it ends in `...`."""
    end = r".*\n" if line.endswith("...") else r"\n"
    return TIME.sub(TIMES, re.escape(line.removesuffix("..."))) + end


def check_console(example: Example) -> str | None:
    """Runs the commands of a console block; returns what is wrong, if anything."""
    commands = list(read_commands(example.parsed))
    following = [command for command, _ in commands[1:]] + [""]
    code = 0
    for (command, expected), next_command in zip(commands, following, strict=True):
        if command == "echo $?":
            printed = [str(code)]
        elif command.split()[0] in RUN:
            printed, code = run(command)
            if code and next_command != "echo $?":
                return "\n".join([f"$ {command}", *printed, f"exit code {code}"])
        else:
            continue
        if not matches(expected, printed):
            lines = difflib.unified_diff(expected, printed, "on the page", "printed", lineterm="")
            return "\n".join([f"$ {command}", *lines])
    return None


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser("console", check_console), SkipParser()],
    pattern="*.md",
    setup=enter_directory,
    teardown=leave_directory,
).pytest()
