"""Files that are written whole or not at all, also on a full disk.

Each is written under another name, down to the disk, and renamed when all are there. What is
private can be read by its owner only, from the first moment.
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
    """Write a file; one that is there is replaced, and keeps its permissions unless private."""
    parts = [content] if isinstance(content, bytes) else content
    write_together([WholeFile(path, parts, private)])


def write_together(files: Sequence[WholeFile]) -> None:
    """Write files of which none is of use without the others."""
    written: list[Path] = []
    try:
        for file in files:
            written.append(file.path.with_name(f".{token_hex(8)}.new"))
            _write(written[-1], file)
        for fresh, file in zip(list(written), files, strict=True):
            fresh.replace(file.path)
    finally:
        for fresh in written:  # those that were renamed are not there any more
            fresh.unlink(missing_ok=True)


def create_private(path: Path) -> None:
    """Make an empty file for a program that would make it readable by anyone, if there is none."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, _PRIVATE))


def _write(fresh: Path, file: WholeFile) -> None:
    # the system takes off what the process's umask says, as for any new file
    mode = _PRIVATE if file.private else 0o666
    with os.fdopen(os.open(fresh, _NEW, mode), "wb") as opened:
        opened.writelines(file.parts)
        opened.flush()
        os.fsync(opened.fileno())
    if not file.private and file.path.exists():
        fresh.chmod(stat.S_IMODE(file.path.stat().st_mode))
