"""Writing files atomically: each is complete or unchanged, even if the disk is full.

A file is written under a temporary name, flushed to disk, and renamed once all of its group are
there. A private file is readable by its owner alone from the moment it is created.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

_PRIVATE = 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class WholeFile(NamedTuple):
    """A file to write, in parts that need not fit into memory together."""

    path: Path
    parts: Iterable[bytes | memoryview]
    private: bool = False


def write_whole(
    path: Path, content: bytes | Iterable[bytes | memoryview], *, private: bool = False
) -> None:
    """Write a file. An existing one is replaced and keeps its permissions, unless private."""
    parts = [content] if isinstance(content, bytes) else content
    write_together([WholeFile(path, parts, private)])


def write_together(files: Sequence[WholeFile]) -> None:
    """Write files that are of no use without one another."""
    written: list[Path] = []
    try:
        for file in files:
            written.append(file.path.with_name(f".{token_hex(8)}.new"))
            _write(written[-1], file)
        for fresh, file in zip(list(written), files, strict=True):
            fresh.replace(file.path)
    finally:
        for fresh in written:  # those that were renamed no longer exist
            fresh.unlink(missing_ok=True)


def create_private(path: Path) -> None:
    """Create an empty file, unless it exists, for a program that would make it world-readable."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, _PRIVATE))


def _write(fresh: Path, file: WholeFile) -> None:
    # the process's umask applies, as to any new file
    mode = _PRIVATE if file.private else 0o666
    with os.fdopen(os.open(fresh, _NEW, mode), "wb") as opened:
        opened.writelines(file.parts)
        opened.flush()
        os.fsync(opened.fileno())
    if not file.private and file.path.exists():
        fresh.chmod(stat.S_IMODE(file.path.stat().st_mode))
