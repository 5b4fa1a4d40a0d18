"""The names of members in a form, one on each line."""

from collections import Counter
from collections.abc import Sequence

from fedaccord.checks import normalised
from fedaccord.errors import Problem

LONGEST_NAME = 200
FIELD = "members"


def names_in(text: str) -> list[str]:
    """The names; what one begins and ends with in blanks does not count."""
    return [normalised(line.strip()) for line in text.splitlines() if line.strip()]


def wrong_names(names: Sequence[str]) -> list[Problem]:
    """What is wrong with them: each is also the name of a file."""
    wrong = [] if names else [Problem(FIELD, "are needed, one on each line")]
    for name in names:
        if len(name) > LONGEST_NAME or not name.isprintable():
            shown = name[:40].encode("unicode_escape").decode()
            wrong.append(Problem(FIELD, f"{shown}: not printable, or too long for a name"))
        elif "/" in name or "\\" in name or name == "test":
            wrong.append(Problem(FIELD, f"{name}: cannot be the name of a file"))
    twice = [name for name, times in Counter(names).items() if times > 1]
    return wrong + [Problem(FIELD, f"{name[:40]}: two have the same name") for name in twice]
