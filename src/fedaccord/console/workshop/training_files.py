"""Files of examples that a visitor brings: whose they are, and where they are kept meanwhile."""

import re
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from fedaccord.checks import in_brief, normalised
from fedaccord.errors import InvalidInput, Problem

KINDS = (".csv", ".npz")
TEST = "test"
_OF_TEST = f"{TEST}/"
"""What comes before a member's name for its own test."""
UNPACKED = 512 * 1024 * 1024
"""Bytes in a compressed file."""
_LONGEST = 80
"""Characters of a file's name that are kept."""


def check_names(files: Sequence[str], members: Sequence[str]) -> list[str]:
    """Whose examples each file has: one file for all (""), or one for each member and `test`.

    Instead of `test`, or beside it, each member may have a test of its own. A browser sends the
    last part of a path alone, so that `North.test.csv` is as good as `test/North.csv`.

    >>> check_names(["patients.csv"], ["North", "South"])
    ['']
    >>> check_names(["South.csv", "test.npz", "North.csv"], ["North", "South"])
    ['South', 'test', 'North']
    >>> check_names(["North.csv", "North.test.csv"], ["North"])
    ['North', 'test/North']
    """
    names = [_last(file) for file in files]
    wrong = [name for name in names if Path(name).suffix not in KINDS]
    if wrong or not names:
        reason = f"{in_brief(wrong[0])} is neither .csv nor .npz." if wrong else "Choose a file."
        raise InvalidInput(Problem("files", reason))
    whose = [_whose(file, members) for file in files]
    if len(whose) == 1 and whose[0] not in members:
        return [""]
    tests = [_OF_TEST + member for member in members]
    expected = [*members, *(tests if any(each in tests for each in whose) else [TEST])]
    missing = [each for each in expected if each not in whose]
    unknown = [each for each in whose if each not in [*expected, TEST]]
    twice = [each for each in whose if whose.count(each) > 1]
    if missing or unknown or twice:
        parts = [
            f"{label} {', '.join(map(_as_file, found[:5]))}{' ...' if len(found) > 5 else ''}."
            for label, found in (
                ("There is no file for", missing),
                ("Nobody is called", unknown),
                ("There are two files for", list(dict.fromkeys(twice))),
            )
            if found
        ]
        raise InvalidInput(Problem("files", " ".join(parts)))
    return whose


def _whose(file: str, members: Sequence[str]) -> str:
    """A member, `test`, or `test/` and the member whose own test it is."""
    stem, folder = normalised(Path(_last(file)).stem), file.replace("\\", "/").split("/")[:-1]
    if folder[-1:] == [TEST] and stem in members:
        return _OF_TEST + stem
    member = stem.removesuffix(f".{TEST}")
    return _OF_TEST + member if stem not in members and member in members else stem


def _as_file(whose: str) -> str:
    """What the file is called, without its ending."""
    owner = owner_of_test(whose)
    return f"{in_brief(owner)}.{TEST}" if owner else in_brief(whose)


def owner_of_test(whose: str) -> str:
    """The member whose own test a file has; empty if it has none's.

    >>> owner_of_test("test/North"), owner_of_test("test"), owner_of_test("North")
    ('North', '', '')
    """
    return whose.removeprefix(_OF_TEST) if whose.startswith(_OF_TEST) else ""


def kept(content: IO[bytes], name: str, folder: Path) -> Path:
    """The path of a file that was written into a new folder, under a name that is safe."""
    last = Path(_last(name))
    stem = re.sub(r"[^\w .()-]", "_", last.stem)[:_LONGEST] or "data"
    folder.mkdir()
    path = folder / f"{stem}{last.suffix}"
    with path.open("wb") as file:
        shutil.copyfileobj(content, file)
    return path


def check_size(path: Path) -> None:
    """Refuse an .npz file that is small, but whose content is not."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(each.file_size for each in archive.infolist())
    except (OSError, zipfile.BadZipFile):
        return  # who reads it says what is wrong
    if size > UNPACKED:
        has, most = (f"{each / 1024**2:,.0f} megabytes" for each in (size, UNPACKED))
        raise InvalidInput(f"{path.name}: has {has} in it, at most {most}")


def _last(name: str) -> str:
    """The last part of a path, as any browser sends it."""
    return PureWindowsPath(PurePosixPath(name).name).name
