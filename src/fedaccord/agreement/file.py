"""Agreement files: contributions alone, or a whole agreement as `fedaccord solve` writes it."""

from math import isnan
from pathlib import Path
from typing import Any, get_args

from fedaccord.agreement.agreement import Agreement, FirstConverted, Kind, Objective, agreement_on
from fedaccord.checks import LARGEST_COUNT, shown, wrong_whole
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.reading import Mistakes, load_json
from fedaccord.files.tables import finite_number, load_profile
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
    """The agreement in a file.

    Args:
        path: Any file that `load_profile` reads. JSON as `fedaccord solve` and `play` print it
            holds a whole agreement, with the length of the punishment and all other terms; other
            files hold contributions only.
        consortium: The clients that the contributions belong to.
        punishment_slots: How many slots a deviation is punished for, if the file holds
            contributions only; it must not contradict a whole agreement.
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
        asked = count(punishment_slots or 0, "slot")
        raise InvalidInput(
            f"its agreement punishes a slip {length}, and not for {asked}: "
            "use it unchanged, or use only its contributions",
            str(path),
        )
    return Agreement(equilibrium=solve_equilibrium(consortium), profile=profile, **fields)


def _checked(agreed: dict[str, Any], path: Path) -> dict[str, Any]:
    """The fields of the record, each checked to have a valid value."""
    mistakes = Mistakes(str(path))
    fields = {field: agreed.get(field) for field in (*_FIELDS, "punishment_slots")}

    def expect(field: str, right: bool, expected: str) -> None:
        if field not in agreed:
            mistakes.add(Problem(field, "is missing", f"agreement.{field}"))
        elif not right:
            wrong = f"must be {expected}, got {shown(agreed[field])}"
            mistakes.add(Problem(field, wrong, f"agreement.{field}"))

    for field, words in _WORDS.items():
        expect(field, fields[field] in words, "one of " + ", ".join(map(shown, words)))
    for field in _NUMBERS:
        number = not isnan(finite_number(fields[field]))
        expect(field, number or (fields[field] is None and field != "margin"), "a number")
    for field in ("exists", "whole_samples"):
        expect(field, isinstance(fields[field], bool), "true or false")
    for field in ("reason", "first_converted"):
        expect(field, fields[field] is None or isinstance(fields[field], str), "text or null")
    slots = fields["punishment_slots"]
    valid = slots is None or wrong_whole(slots, 1, LARGEST_COUNT) is None
    expect("punishment_slots", valid, "a whole number, 1 or more, or null for ever")
    if mistakes:
        raise mistakes.error()
    return fields
