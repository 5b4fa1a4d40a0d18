"""Writing files atomically: each is complete or unchanged, even if the disk is full.

A file is written under a temporary name, flushed to disk, and renamed once all of its group are
there. A private file is readable by its owner alone from the moment it is created.

Whoever writes a file that it read before says what it had read (`fingerprint`): nothing is written
if the file is another one by then. The file is locked while it is read again and replaced, and at
no other time. Locks are advisory: they work between programs that use this module.

A process that is killed leaves its temporary files. It held a lock on each, which ended with it, so
the next writer of the same file knows them and removes them.
"""

import errno
import hashlib
import os
import platform
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, NamedTuple

from fedaccord.errors import FedaccordError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

ABSENT = "absent"
"""The fingerprint of a file that does not exist."""
_PRIVATE = 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_PATIENCE = 10.0
"""Seconds to wait for a lock, which is held for as long as it takes to read and rename a file."""
_TRIES = 1_000
"""How often a change is made again to a file that others change; each time one of them succeeds."""
_OPEN = 100
"""Temporary files of a group that are held open and locked; the rest only have their age."""
_ABANDONED = 24 * 3600.0
"""Seconds after which a temporary file is nobody's that another host wrote, or that was not held:
on some file systems the locks of one host do not reach the others."""
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_UNHELD = "0" * 8
"""In the place of the host in the name of a temporary file that is not locked."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF)
"""Errors of file systems without locks, or without them for what is open for reading."""


class Changed(FedaccordError):
    """A file that is no longer as it was when it was read."""

    def __init__(self, path: Path) -> None:
        """`path` is the file's."""
        super().__init__(
            f"{path}: was changed by another program meanwhile, so nothing was written; look at it "
            "and try again"
        )


class WholeFile(NamedTuple):
    """A file to write, in parts that need not fit into memory together."""

    path: Path
    parts: Iterable[bytes | memoryview]
    private: bool = False


def fingerprint(path: Path) -> str:
    """What identifies the content of a file; take it before the file is read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT


def write_whole(
    path: Path,
    content: bytes | Iterable[bytes | memoryview],
    *,
    private: bool = False,
    seen: str | None = None,
) -> None:
    """Write a file. An existing one is replaced and keeps its permissions, unless private.

    With `seen`, the fingerprint of the file when it was read, another one is not replaced.

    Raises:
        Changed: if the file is another one by now.
    """
    parts = [content] if isinstance(content, bytes) else content
    write_together([WholeFile(path, parts, private)], {} if seen is None else {path: seen})


def write_together(files: Sequence[WholeFile], seen: Mapping[Path, str] | None = None) -> None:
    """Write files that are of no use without one another.

    `seen` has the fingerprints of what they rest on: files that are written, or that were read.

    Raises:
        Changed: if one of those is another one by now; then no file is written.
    """
    known = {} if seen is None else seen
    written: list[Path] = []
    with ExitStack() as ending:
        ending.callback(_remove, written)  # those that were renamed no longer exist
        _remove_abandoned([file.path for file in files])
        for number, file in enumerate(files):
            try:
                _write(file, written, ending if number < _OPEN else None)
            except OSError as error:
                error.filename = str(file.path)  # its temporary name says nothing
                raise
        with _unchanged(known):
            pairs = list(zip(list(written), files, strict=True))
            pairs.sort(key=lambda pair: known.get(pair[1].path) != ABSENT)  # these may be refused
            for fresh, file in pairs:
                _put(fresh, file.path, new=known.get(file.path) == ABSENT)


def rewrite(path: Path, change: Callable[[], bytes], *, private: bool = False) -> bytes:
    """Change a file, as it is at the moment of writing; returns what was written.

    `change` reads it and returns what it should be; it is called again if the file was changed
    meanwhile, so that no change of anybody's is lost.
    """
    for _ in range(_TRIES):
        seen = fingerprint(path)
        content = change()
        with suppress(Changed):
            write_whole(path, content, private=private, seen=seen)
            return content
    raise Changed(path)


def create_private(path: Path) -> None:
    """Create an empty file, unless it exists, for a program that would make it world-readable."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, _PRIVATE))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other programs that do the same out of an existing file or directory for a moment.

    A file may be replaced by another of the same name under the lock. Without effect where the
    system or the file system has no locks.
    """
    if fcntl is None:
        yield
        return
    until = time.monotonic() + _PATIENCE
    while True:
        held = _opened(path)
        try:
            free = _is_free(held)
            if free and _is_at(held, path):  # it was not replaced before it was locked
                yield
                return
        finally:
            os.close(held)
        if time.monotonic() > until:
            raise FedaccordError(
                f"{path}: is locked by another program; try again when that has ended"
            )
        time.sleep(0.01)


# --- Temporary files -----------------------------------------------------------------------


def _write(file: WholeFile, written: list[Path], ending: ExitStack | None) -> None:
    """Write a file under a temporary name, and hold it until the end, if there is one."""
    # the process's umask applies, as to any new file
    mode = _PRIVATE if file.private else 0o666
    held = ending is not None and fcntl is not None  # Windows renames no file that is open
    owner = _HOST if held else _UNHELD
    while True:
        fresh = file.path.with_name(f".{_mark(file.path)}.{owner}.{token_hex(8)}.new")
        written.append(fresh)
        opened = os.fdopen(os.open(fresh, _NEW, mode), "wb")
        if not held or _is_held(opened):
            break
        opened.close()  # somebody took it for abandoned before it was locked
        _remove([written.pop()])
    with ExitStack() as now:
        (ending if held and ending is not None else now).enter_context(opened)
        opened.writelines(file.parts)
        opened.flush()
        os.fsync(opened.fileno())
    if not file.private and file.path.exists():
        fresh.chmod(stat.S_IMODE(file.path.stat().st_mode))


def _mark(path: Path) -> str:
    """What the names of all temporary files for a file have in common; its name may be too long."""
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]


def _is_held(opened: BinaryIO) -> bool:
    """Lock a temporary file that was created just now; false if it was removed before that."""
    return _is_free(opened.fileno()) and os.fstat(opened.fileno()).st_nlink > 0


def _put(fresh: Path, path: Path, *, new: bool) -> None:
    """Give a file its name; a new one is not put in the place of another."""
    if new:
        try:
            os.link(fresh, path)  # unlike a rename it fails if there is a file by now
            fresh.unlink()
            return
        except FileExistsError:
            raise Changed(path) from None
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise Changed(path) from None
    fresh.replace(path)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _remove_abandoned(paths: Sequence[Path]) -> None:
    """Remove temporary files for these files whose writers were killed."""
    if fcntl is None:
        return
    for folder in {path.parent for path in paths}:
        marks = {_mark(path) for path in paths if path.parent == folder}
        with suppress(OSError):  # the directory cannot be listed
            for name in os.listdir(folder):  # noqa: PTH208 (a Path for each would be slow)
                match name.split("."):
                    case ["", mark, owner, _, "new"] if mark in marks:
                        _remove_if_abandoned(folder / name, owner)


def _remove_if_abandoned(fresh: Path, owner: str) -> None:
    with suppress(OSError):  # somebody else's, or renamed meanwhile
        held = os.open(fresh, os.O_RDWR)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if owner == _HOST or time.time() - os.fstat(held).st_mtime > _ABANDONED:
                fresh.unlink()
        finally:
            os.close(held)


# --- Locks ---------------------------------------------------------------------------------


@contextmanager
def _unchanged(seen: Mapping[Path, str]) -> Iterator[None]:
    """Make sure that files are as they were, and stay so for this moment."""
    with ExitStack() as locks:
        for path in sorted(seen):  # everybody in this order, so that nobody waits for ever
            if seen[path] != ABSENT:
                try:
                    locks.enter_context(locked(path))
                except FileNotFoundError:
                    raise Changed(path) from None
            if fingerprint(path) != seen[path]:
                raise Changed(path)
        yield


def _opened(path: Path) -> int:
    """A descriptor to lock; some file systems lock only what is open for writing."""
    try:
        return os.open(path, os.O_RDWR)
    except (PermissionError, IsADirectoryError):
        return os.open(path, os.O_RDONLY)


def _is_free(held: int) -> bool:
    """Lock an open file if nobody else has it; on a file system without locks it is free."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    return True


def _is_at(held: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(held))
    return False
