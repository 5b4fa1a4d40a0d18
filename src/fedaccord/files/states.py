"""The states of a consortium file: who is away when, with which numbers, and what follows what.

    [[states]]
    name = "all six"

    [[states]]
    name = "without Riverside"
    without = ["Riverside"]

    [[states]]
    name = "summer"
    times = { samples = 0.25 }                            # of everyone's usual samples
    clients = [{ name = "St Mary", samples = 9_000 }]     # or one client's own number

    [transitions]
    "all six" = { "all six" = 0.9, "without Riverside" = 0.1 }

The first state is the one that the consortium starts in; a state without a row in `[transitions]`
lasts for ever.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fedaccord.checks import client_meant, shown, unknown
from fedaccord.errors import MISSING, UNKNOWN_KEY, InvalidInput, Problem
from fedaccord.files.consortium import build_consortium, load_description
from fedaccord.files.reading import Mistakes
from fedaccord.game.changing import STATE_FIELDS, ChangingConsortium, State
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray, as_text

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Numbers(BaseModel):
    """Numbers of a client, all optional."""

    model_config = _STRICT
    valuation: float | None = None
    cost_per_sample: float | None = None
    samples: float | None = None
    communication_cost: float | None = None
    quality: float | None = None


class StateClient(_Numbers):
    """A client whose numbers are not as usual in a state."""

    name: str
    """Which client it is."""


class StateTable(BaseModel):
    """One `[[states]]` table."""

    model_config = _STRICT
    name: str
    """What the state is called; no two have the same name."""
    without: list[str] = Field(default=[])
    """The clients that do not take part."""
    times: _Numbers | None = None
    """Factors for the usual numbers of all clients, such as `{ samples = 0.25 }`."""
    clients: list[StateClient] = Field(default=[])
    """Clients with other numbers than usual, by name; these are not multiplied."""


_WORDS = {
    "missing": MISSING,
    "float_type": "must be a number, got {}",
    "finite_number": "must be a finite number, got {}",
    "string_type": "must be text in quotes, got {}",
    "list_type": "must be a list, got {}",
}


def load_changing(path: str | Path) -> ChangingConsortium:
    """The changing consortium that a TOML file describes; without states it never changes.

    Args:
        path: The TOML file.

    Raises:
        InvalidInput: with the problems found in the file, each with its place.
    """
    return build_changing(load_description(path), Path(path))


def load_either(path: str | Path, *, exact: bool = False) -> Consortium | ChangingConsortium:
    """The consortium that a file describes: one that changes only if it has states.

    With `exact` its numbers are taken as stated, without ranges.
    """
    data = load_description(path)
    if {"states", "transitions"} & data.keys():
        return build_changing(data, Path(path), exact=exact)
    consortium = build_consortium(data, Path(path))
    return consortium.without_ranges() if exact else consortium


def build_changing(data: dict[str, Any], path: Path, *, exact: bool = False) -> ChangingConsortium:
    """The changing consortium in the data of a TOML file at `path`."""
    everyone = build_consortium(data, path)
    if exact:
        everyone = everyone.without_ranges()
    if "states" not in data and "transitions" not in data:
        return ChangingConsortium.lasting(everyone)
    mistakes = Mistakes(str(path))
    states = _states(data.get("states"), everyone, mistakes)
    rows = data.get("transitions", {})
    if not isinstance(rows, dict):
        wrong = f"must be a table with a row for each state, got {shown(rows)}"
        mistakes.add(Problem("transitions", wrong))
    if mistakes:
        raise mistakes.error()
    try:
        return ChangingConsortium(everyone, states, rows)
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None


def _states(given: Any, everyone: Consortium, mistakes: Mistakes) -> list[State]:
    """The states, if nothing is wrong with their shape; what is wrong is noted."""
    if not isinstance(given, list) or not given:
        wrong = MISSING if given is None else f"must be tables [[states]], got {shown(given)}"
        mistakes.add(Problem("states", wrong))
        return []
    try:
        tables = TypeAdapter(list[StateTable]).validate_python(given)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_context=False):
            mistakes.add(_problem(one))
        return []
    return [_state(table, o, everyone, mistakes) for o, table in enumerate(tables)]


def _problem(error: Any) -> Problem:
    """The place and the words for one of pydantic's errors."""
    place = "states" + "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in error["loc"])
    if error["type"] == "extra_forbidden":
        inner: dict[str, type[BaseModel]] = {"times": _Numbers, "clients": StateClient}
        outer = str(error["loc"][1]) if len(error["loc"]) > 2 else ""
        model = inner.get(outer, StateTable)
        message = f"{UNKNOWN_KEY}; {unknown(str(error['loc'][-1]), model.model_fields)}"
    else:
        words = _WORDS.get(error["type"], "must be a table, got {}")
        message = words.format(shown(error["input"]))
    return Problem(str(error["loc"][-1]), message, place)


def _state(table: StateTable, o: int, everyone: Consortium, mistakes: Mistakes) -> State:
    """The state that a table describes."""
    numbers: dict[str, FloatArray] = {}
    for field in STATE_FIELDS:
        factor = getattr(table.times, field) if table.times is not None else None
        if factor is not None and factor <= 0:
            wrong = f"must be more than 0, got {as_text(factor)}"
            mistakes.add(Problem(field, wrong, f"states[{o}].times.{field}"))
        elif factor is not None:
            numbers[field] = getattr(everyone, field) * factor
    for place, client in _clients(table, o, everyone, mistakes):
        for field in STATE_FIELDS:
            own = getattr(client, field)
            if own is not None:
                values = np.array(numbers.get(field, getattr(everyone, field)))
                values[place] = own
                numbers[field] = values
    without = [name.strip() for name in table.without]
    return State(table.name.strip(), without, **numbers)


def _clients(
    table: StateTable, o: int, everyone: Consortium, mistakes: Mistakes
) -> Sequence[tuple[int, StateClient]]:
    """The clients that have other numbers than usual, and their positions."""
    found: dict[int, StateClient] = {}
    for k, client in enumerate(table.clients):
        place, name = f"states[{o}].clients[{k}].name", client.name
        try:
            name = client_meant(name, everyone.names)
        except InvalidInput as error:
            mistakes.add(Problem("name", error.problems[0].message, place))
            continue
        if everyone.index(name) in found:
            mistakes.add(Problem("name", f"{shown(name)} is there twice", place))
        else:
            found[everyone.index(name)] = client
    return list(found.items())
