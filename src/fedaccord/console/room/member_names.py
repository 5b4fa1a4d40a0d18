"""The names of members in a form, one on each line."""

from collections.abc import Sequence

from fedaccord.checks import normalised, unusable_names
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
    twice = dict(unusable_names(names, lambda n: f"member {n + 1}"))
    same = [
        f"{names[n][:40]}: two have the same name" if names[n] in names[:n] else each
        for n, each in twice.items()
    ]
    return wrong + [Problem(FIELD, each) for each in dict.fromkeys(same)]
