"""Making a directory whole or not at all."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from fedaccord.atomic import locked
from fedaccord.errors import FedaccordError


def check_free(directory: Path) -> None:
    """Refuse a path that is taken, or where nothing can be written."""
    try:
        directory.stat()
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, or a link to itself
        raise FedaccordError(f"{directory}: cannot be written: {error.strerror}") from None
    if not directory.is_dir() or any(directory.iterdir()):
        raise FedaccordError(f"{directory}: exists already, and is not empty")


def put(made: Path, directory: Path) -> None:
    """Move what was made to its place; an empty directory is kept, as someone may be in it."""
    if not directory.exists():
        made.rename(directory)
        return
    with locked(directory):
        check_free(directory)  # somebody else may have made one here meanwhile
        for path in made.iterdir():
            shutil.move(path, directory / path.name)


def write_files(files: Mapping[Path, str]) -> None:
    """Write new files, and the directories that they are in."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def folder_name(client: str) -> str:
    """A client's name as a file has it: letters, digits, dots and dashes.

    >>> folder_name("St Mary / North")
    'St-Mary-North'
    """
    return re.sub(r"[^\w.-]+", "-", client).strip("-.") or "client"


def folder_names(clients: tuple[str, ...]) -> dict[str, str]:
    """The same for all clients of a consortium, all different."""
    result: dict[str, str] = {}
    for name in clients:
        plain = folder_name(name)
        taken, number = {known.lower() for known in result.values()}, 2
        folder = plain
        while folder.lower() in taken:
            folder, number = f"{plain}-{number}", number + 1
        result[name] = folder
    return result
