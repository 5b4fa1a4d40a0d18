"""An agreement from a file: contributions alone, or whole as `fedaccord solve` wrote it."""

from math import isnan
from pathlib import Path
from typing import Any, get_args

from fedaccord.agreement.agreement import (
    Agreement,
    FirstConverted,
    Kind,
    Objective,
    agreement_on,
    check_punishment_slots,
)
from fedaccord.checks import shown
from fedaccord.errors import InvalidInput
from fedaccord.files.problems import Mistakes
from fedaccord.files.profile import load_profile
from fedaccord.files.reading import load_json
from fedaccord.files.tables import finite_number
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.numbers import count

_WORDS = {
    "kind": get_args(Kind),
    "objective": (None, *get_args(Objective)),
    "first_converted_by": (None, *get_args(FirstConverted)),
}
_NUMBERS = ("level", "largest_level", "margin")
_FIELDS = (*_WORDS, *_NUMBERS, "exists", "reason", "first_converted", "whole_samples")


def load_agreement(
    path: str | Path, consortium: Consortium, punishment_slots: int | None = None
) -> Agreement:
    """The agreement in a file that `load_profile` reads.

    JSON as `fedaccord solve` and `play` print it is taken whole, with the length of the
    punishment and all else that was agreed on. Other files have contributions only;
    `punishment_slots` is for them, and must not contradict an agreement.
    """
    path = Path(path)
    profile = load_profile(path, consortium)
    data = load_json(path) if path.suffix.lower() == ".json" else None
    agreed = data.get("agreement") if isinstance(data, dict) else None
    if not isinstance(agreed, dict):
        return agreement_on(consortium, profile, punishment_slots)
    fields = _checked(agreed, path)
    slots = fields["punishment_slots"]
    if punishment_slots not in (None, slots):
        length = "for ever" if slots is None else f"for {count(slots, 'slot')}"
        raise InvalidInput(
            f"its agreement punishes a slip {length}, and not for "
            f"{count(punishment_slots or 0, 'slot')}: take it as it is, or only its contributions",
            str(path),
        )
    return Agreement(equilibrium=solve_equilibrium(consortium), profile=profile, **fields)


def _checked(agreed: dict[str, Any], path: Path) -> dict[str, Any]:
    """The fields of the record, each of a kind that it can have."""
    mistakes = Mistakes(str(path))
    fields = {field: agreed.get(field) for field in (*_FIELDS, "punishment_slots")}

    def expect(field: str, right: bool, expected: str) -> None:
        if field not in agreed:
            mistakes.add(f"agreement.{field}", "is missing")
        elif not right:
            mistakes.add(f"agreement.{field}", f"must be {expected}, got {shown(agreed[field])}")

    for field, words in _WORDS.items():
        expect(field, fields[field] in words, "one of " + ", ".join(map(shown, words)))
    for field in _NUMBERS:
        number = not isnan(finite_number(fields[field]))
        expect(field, number or (fields[field] is None and field != "margin"), "a number")
    for field in ("exists", "whole_samples"):
        expect(field, isinstance(fields[field], bool), "true or false")
    for field in ("reason", "first_converted"):
        expect(field, fields[field] is None or isinstance(fields[field], str), "text or null")
    try:
        check_punishment_slots(fields["punishment_slots"])
        expect("punishment_slots", True, "")
    except InvalidInput:
        expect("punishment_slots", False, "a whole number, 1 or more, or null for ever")
    if mistakes:
        raise mistakes.error()
    return fields
