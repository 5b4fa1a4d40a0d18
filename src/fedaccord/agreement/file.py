"""Agreement files: contributions alone, or a whole agreement as `fedaccord solve` writes it."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any, get_args

from fedaccord.agreement.agreement import Agreement, FirstConverted, Kind, Objective, agreement_on
from fedaccord.agreement.monitoring import BELIEVED, Monitoring, read_monitoring
from fedaccord.agreement.punishment import (
    Punishment,
    PunishmentName,
    as_punishment,
    read_punishment,
)
from fedaccord.checks import shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.reading import Mistakes, load_json
from fedaccord.files.tables import finite_number, load_profile
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.law import Law
from fedaccord.game.ranges import Ranges

_WORDS = {
    "kind": get_args(Kind),
    "objective": (None, *get_args(Objective)),
    "first_converted_by": (None, *get_args(FirstConverted)),
}
_NUMBERS = ("level", "largest_level", "margin")
_FLAGS = ("exists", "whole_samples", "nobody_worse", "robust")
_FIELDS = (*_WORDS, *_NUMBERS, *_FLAGS, "reason", "first_converted")


def load_agreement(
    path: str | Path,
    consortium: Consortium,
    punishment: Punishment | PunishmentName | None = None,
    monitoring: Monitoring | None = None,
) -> Agreement:
    """The agreement in a file.

    Args:
        path: Any file that `load_profile` reads. JSON as `fedaccord solve` and `play` print it
            holds a whole agreement, with the punishment and all other terms; other files hold
            contributions only.
        consortium: The clients that the contributions belong to.
        punishment: What follows a deviation, or the name of its kind, if the file holds
            contributions only (reversion for ever by default); it must not contradict a whole
            agreement.
        monitoring: How a deviation is seen, in the same way; by default for certain, at once.
    """
    wanted = None if punishment is None else as_punishment(punishment)
    path = Path(path)
    profile = load_profile(path, consortium)
    data = load_json(path) if path.suffix.lower() == ".json" else None
    agreed = data.get("agreement") if isinstance(data, dict) else None
    if not isinstance(agreed, dict):
        return agreement_on(consortium, profile, wanted or "reversion", monitoring or BELIEVED)
    fields = _checked(agreed, path)
    agreed_on = fields["punishment"]
    if fields.pop("robust"):
        fields["laws"], fields["ranges"] = _made_for(consortium, path)
    if wanted not in (None, agreed_on):
        raise InvalidInput(
            f"its agreement punishes a slip by {agreed_on}, and not by {wanted}: "
            "use it unchanged, or use only its contributions",
            str(path),
        )
    if monitoring not in (None, fields["monitoring"]):
        raise InvalidInput(
            f"its agreement says how slips are seen ({fields['monitoring']}), and not: "
            f"{monitoring}; use it unchanged, or use only its contributions",
            str(path),
        )
    fields["monitoring"].rates(consortium)
    return Agreement(equilibrium=solve_equilibrium(consortium), profile=profile, **fields)


def _made_for(consortium: Consortium, path: Path) -> tuple[Law | None, Ranges | None]:
    """What a robust agreement was made for: the laws that resampling gives, and the ranges."""
    evidence, ranges = consortium.law.evidence, consortium.ranges
    if evidence is None and ranges is None:
        wrong = (
            "its agreement was made for ranges of numbers or a measured law of the loss, and the "
            "consortium has neither"
        )
        raise InvalidInput(wrong, str(path))
    return None if evidence is None else evidence.resampled, ranges


def _checked(agreed: dict[str, Any], path: Path) -> dict[str, Any]:
    """The fields of the record, each checked to have a valid value."""
    mistakes = Mistakes(str(path))
    fields = {field: agreed.get(field) for field in _FIELDS}

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
    for field in _FLAGS:
        expect(field, isinstance(fields[field], bool), "true or false")
    for field in ("reason", "first_converted"):
        expect(field, fields[field] is None or isinstance(fields[field], str), "text or null")
    if "punishment" not in agreed:
        mistakes.add(Problem("punishment", "is missing", "agreement.punishment"))
    readers: dict[str, Callable[[object], Any]] = {
        "punishment": read_punishment,
        "monitoring": read_monitoring,  # missing in files of versions before it
    }
    fields["monitoring"] = BELIEVED
    for field, read in readers.items():
        if field not in agreed:
            continue
        try:
            fields[field] = read(agreed[field])
        except InvalidInput as error:
            for problem in error.problems:
                place = f"agreement.{field}.{problem.field}".removesuffix(f".{field}")
                mistakes.add(Problem(problem.field, problem.message, place))
    if mistakes:
        raise mistakes.error()
    return fields
