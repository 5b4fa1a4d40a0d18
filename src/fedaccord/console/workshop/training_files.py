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
UNPACKED = 512 * 1024 * 1024
"""Bytes in a compressed file."""
_LONGEST = 80
"""Characters of a file's name that are kept."""


def check_names(files: Sequence[str], members: Sequence[str]) -> list[str]:
    """Whose examples each file has: one file for all (""), or one for each member and `test`.

    >>> check_names(["patients.csv"], ["North", "South"])
    ['']
    >>> check_names(["South.csv", "test.npz", "North.csv"], ["North", "South"])
    ['South', 'test', 'North']
    """
    names = [_last(file) for file in files]
    wrong = [name for name in names if Path(name).suffix not in KINDS]
    if wrong or not names:
        reason = f"{in_brief(wrong[0])} is neither .csv nor .npz." if wrong else "Choose a file."
        raise InvalidInput(Problem("files", reason))
    stems = [normalised(Path(name).stem) for name in names]
    if len(stems) == 1 and stems[0] not in members:
        return [""]
    expected = [*members, TEST]
    missing = [each for each in expected if each not in stems]
    unknown = [each for each in stems if each not in expected]
    twice = [each for each in stems if stems.count(each) > 1]
    if missing or unknown or twice:
        parts = [
            f"{label} {', '.join(map(in_brief, found[:5]))}{' ...' if len(found) > 5 else ''}."
            for label, found in (
                ("There is no file for", missing),
                ("Nobody is called", unknown),
                ("There are two files for", list(dict.fromkeys(twice))),
            )
            if found
        ]
        raise InvalidInput(Problem("files", " ".join(parts)))
    return stems


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
