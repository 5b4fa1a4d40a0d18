"""The texts of files that are written for people and other programs, with words to fill in."""

from importlib import resources
from string import Template


class _Text(Template):
    """nginx and systemd have their own use for `$`."""

    delimiter = "@"


def filled(name: str, /, **words: str) -> str:
    """A text of `app_files` with its words filled in."""
    files = resources.files("fedaccord.deployment") / "app_files"
    return _Text((files / f"{name}.txt").read_text("utf-8")).substitute(words)
