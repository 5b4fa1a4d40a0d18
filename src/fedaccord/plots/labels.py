"""Names short enough to stand beside a picture."""

from collections.abc import Sequence

LETTERS = 36
"""A longer name would leave no room for what it names."""
_END = 12
"""How many of the letters are a name's last, where names that begin alike often differ."""


def short_names(names: Sequence[str]) -> list[str]:
    """The names with the middle left out of long ones, no two of them alike.

    >>> short_names(["St Mary", "University Hospital of the Free State, Department of Radiology"])
    ['St Mary', 'University Hospital of…of Radiology']
    """
    taken = {name for name in names if len(name) <= LETTERS}
    labels = []
    for name in names:
        label, number = name, 1
        if len(name) > LETTERS:
            label = _shortened(name, "")
            while label in taken:
                number += 1
                label = _shortened(name, f" ({number})")
            taken.add(label)
        labels.append(label)
    return labels


def _shortened(name: str, mark: str) -> str:
    start = LETTERS - 1 - _END - len(mark)
    return f"{name[:start].rstrip()}…{name[-_END:].lstrip()}{mark}"
