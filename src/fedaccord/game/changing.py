"""A consortium that changes: states, and how likely each is to follow another.

A state says who takes part and with which numbers: members may be away, or have more samples, other
valuations, other costs. After every slot the next state is drawn from the row of the transition
matrix that belongs to the present one. All states have the same roster, the same law of the loss
and the same discount factors. A client that is away contributes nothing and pays nothing.

>>> from fedaccord.game.paper import paper_consortium
>>> everyone = paper_consortium(clients=3)
>>> changing = ChangingConsortium(
...     everyone,
...     [State("all"), State("two", without=["client-3"]), State("more", samples=20_000)],
...     {"all": {"all": 0.8, "two": 0.1, "more": 0.1}, "two": {"all": 1.0}},
... )
>>> changing.transitions.tolist()
[[0.8, 0.1, 0.1], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
>>> [state.size for state in changing.consortia], changing.samples[2].tolist()
([3, 2, 3], [20000.0, 20000.0, 20000.0])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedaccord.checks import (
    check_type,
    is_number,
    no_such_client,
    normalised,
    shown,
    unknown,
    unusable_names,
)
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.law import Law
from fedaccord.numbers import BoolArray, FloatArray, as_text
from fedaccord.record import Columns, Record, Tables

STATE_FIELDS = ("valuation", "cost_per_sample", "samples", "communication_cost", "quality")
"""The numbers of a client that may differ from state to state."""

_SUMS_TO_ONE = 1e-9
"""How far the probabilities of a row may add up to something else than 1: thirds that are written
with ten digits do not add up exactly. The row is then scaled to 1."""


@dataclass(frozen=True)
class State:
    """One state: who is away, and the numbers that are not as usual, for every client in order."""

    name: str
    without: Sequence[str] = ()
    """The clients that do not take part."""
    valuation: npt.ArrayLike | None = None
    """What differs is given for all clients of the roster, or as one number for all of them."""
    cost_per_sample: npt.ArrayLike | None = None
    samples: npt.ArrayLike | None = None
    communication_cost: npt.ArrayLike | None = None
    quality: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        """Let all spellings of a name be equal; `ChangingConsortium` checks the rest."""
        object.__setattr__(self, "name", normalised(self.name))
        object.__setattr__(self, "without", tuple(map(normalised, self.without)))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class ChangingConsortium(Record):
    """States of one consortium, and the probabilities with which they follow each other.

    The arrays of numbers have one row per state and one column per client; where a client is away
    they hold its usual numbers.
    """

    everyone: Consortium
    """All clients, with their usual numbers."""
    states: tuple[str, ...]
    """The names of the states; the first is the one that it starts in."""
    transitions: FloatArray
    """M: row o holds the probabilities of the states that may follow state o."""
    present: BoolArray
    """Who takes part in each state."""
    valuation: FloatArray
    cost_per_sample: FloatArray
    samples: FloatArray
    communication_cost: FloatArray
    quality: FloatArray

    def __init__(
        self,
        everyone: Consortium,
        states: Sequence[State],
        transitions: npt.ArrayLike | Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """Validate everything at once.

        Args:
            everyone: All clients that may take part, with their usual numbers.
            states: What may be the case in a slot; the first is the one that it starts in.
            transitions: The matrix, or its rows by the names of states. A state that has no row,
                or every state if there are none, lasts for ever.
        """
        check_type("everyone", everyone, Consortium)
        if everyone.ranges is not None:
            wrong = "states take the numbers as exact: ranges cannot be combined with them"
            raise InvalidInput(wrong, field="ranges")
        names = tuple(state.name for state in states)
        problems = [*_state_problems(everyone, states, names)]
        matrix, wrong_rows = transition_matrix(names, transitions)
        if problems or wrong_rows:
            raise InvalidInput([*problems, *wrong_rows])
        absent = [[name in state.without for name in everyone.names] for state in states]
        values = {field: _grid(everyone, states, field) for field in STATE_FIELDS}
        fields = {"everyone": everyone, "states": names, "transitions": matrix}
        for field, value in (fields | {"present": ~np.array(absent)} | values).items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field, value)

    @classmethod
    def lasting(cls, consortium: Consortium) -> ChangingConsortium:
        """A consortium that never changes: one state that lasts for ever."""
        return cls(consortium, [State("always")])

    @property
    def name(self) -> str:
        """What the consortium is called."""
        return self.everyone.name

    @property
    def names(self) -> tuple[str, ...]:
        """The clients' names."""
        return self.everyone.names

    @property
    def discount_factor(self) -> FloatArray:
        """delta_n, the same in all states."""
        return self.everyone.discount_factor

    @property
    def size(self) -> int:
        """W, the number of states."""
        return len(self.states)

    @cached_property
    def consortia(self) -> tuple[Consortium, ...]:
        """The consortium of each state: those who take part, with their numbers."""
        return tuple(self._consortium(o) for o in range(self.size))

    @cached_property
    def equilibria(self) -> tuple[Equilibrium, ...]:
        """What selfish clients do in each state."""
        return tuple(map(solve_equilibrium, self.consortia))

    def index(self, state: str) -> int:
        """The position of the state called `state`."""
        try:
            return self.states.index(normalised(state))
        except ValueError:
            raise InvalidInput(f"no such state; {unknown(state, self.states)}", state) from None

    def spread(self, values: Sequence[npt.ArrayLike]) -> FloatArray:
        """What is so for those present in each state, as one row per state; 0 for the others."""
        result = np.zeros(self.present.shape)
        for row, here, given in zip(result, self.present, values, strict=True):
            row[here] = given
        return result

    def _consortium(self, o: int) -> Consortium:
        own = {field: getattr(self, field)[o] for field in STATE_FIELDS}
        return some_members(self.everyone, self.present[o], own)

    _headline: ClassVar = ("name", "clients", "states")

    def _facts(self) -> dict[str, Any]:
        return {"name": self.name, "clients": self.everyone.size, "states": list(self.states)}

    def _tables(self) -> Tables:
        return {"transitions": self._transitions}

    def _transitions(self) -> Columns:
        followed = {f"to {name}": self.transitions[:, o] for o, name in enumerate(self.states)}
        return {"from": self.states, **followed}


def some_members(
    consortium: Consortium, present: BoolArray, numbers: Mapping[str, FloatArray] | None = None
) -> Consortium:
    """The consortium of some of its clients, with other numbers for all of them if given."""
    own = numbers or {}
    ranges, turnover = consortium.ranges, consortium.turnover
    columns: dict[str, Any] = {
        field: own.get(field, getattr(consortium, field))[present]
        for field in (*STATE_FIELDS, "discount_factor")
    }
    return Consortium(
        **columns,
        rounds=consortium.rounds,
        server_fee=consortium.server_fee,
        name=consortium.name,
        names=[name for name, here in zip(consortium.names, present.tolist(), strict=True) if here],
        law=_law_of_some(consortium.law, present),
        currency=consortium.currency,
        slot=consortium.slot,
        ranges=ranges.of(present) if ranges is not None and not own else None,
        turnover=turnover and turnover.of(present),
    )


def _law_of_some(law: Law, present: BoolArray) -> Law:
    """The law of some of the clients: the common one, or their own."""
    if not law.is_personal:
        return law
    floor = law.floor if law.floor.ndim == 0 else law.floor[present]
    return law.changed(lambda values: values if values.ndim == 1 else values[:, present], floor)


def _grid(everyone: Consortium, states: Sequence[State], field: str) -> FloatArray:
    """A number of each client in each state."""
    usual = getattr(everyone, field)
    given = [getattr(state, field) for state in states]
    return np.array([np.broadcast_to(usual if own is None else own, usual.shape) for own in given])


def _state_problems(
    everyone: Consortium, states: Sequence[State], names: tuple[str, ...]
) -> Iterator[Problem]:
    """What is wrong with the states, one by one and together."""
    if not states:
        yield Problem("states", "a changing consortium needs at least one state")
    for o, message in unusable_names(names, lambda first: f"states[{first}]"):
        yield Problem("name", message, f"states[{o}].name")
    for o, state in enumerate(states):
        yield from (problem.inside(f"states[{o}]") for problem in _own_problems(everyone, state))


def _own_problems(everyone: Consortium, state: State) -> Iterator[Problem]:
    for name in state.without:
        if name not in everyone.names:
            yield Problem("without", no_such_client(name, everyone.names))
    if not set(everyone.names) - set(state.without):
        yield Problem("without", "nobody takes part: at least one client must")
        return
    own = {f: getattr(state, f) for f in STATE_FIELDS if getattr(state, f) is not None}
    usual = {field: getattr(everyone, field) for field in STATE_FIELDS}
    try:
        Consortium(
            **(usual | own),
            rounds=everyone.rounds,
            discount_factor=everyone.discount_factor,
            names=everyone.names,
        )
    except InvalidInput as error:
        yield from error.problems


def transition_matrix(
    names: Sequence[str], given: npt.ArrayLike | Mapping[str, Mapping[str, float]] | None
) -> tuple[FloatArray, list[Problem]]:
    """The transition matrix of states with these names, and all that is wrong with it."""
    size = len(names)
    if given is None:
        return np.eye(size), []
    if isinstance(given, Mapping):
        matrix, problems = _matrix_of_rows(names, given)
    else:
        try:
            matrix, problems = np.array(given, dtype=np.float64), []
        except (TypeError, ValueError):
            return np.eye(size), [Problem("transitions", f"must be numbers, got {shown(given)}")]
    if matrix.shape != (size, size):
        wrong = f"must have {size} rows of {size} probabilities, one for each state"
        return np.eye(size), [Problem("transitions", wrong)]
    if not problems:
        problems = [*_row_problems(names, matrix)]
    with np.errstate(all="ignore"):
        return matrix / matrix.sum(axis=1, keepdims=True), problems


def _matrix_of_rows(
    names: Sequence[str], given: Mapping[str, Mapping[str, float]]
) -> tuple[FloatArray, list[Problem]]:
    """The matrix of rows by name; states without a row last for ever."""
    matrix, problems = np.eye(len(names)), []
    for name, row in given.items():
        if name not in names:
            message = f"there is no such state; {unknown(str(name), names)}"
            problems.append(Problem("transitions", message, f"transitions.{name}"))
            continue
        if not isinstance(row, Mapping):
            message = f"must be a table of probabilities by state, got {shown(row)}"
            problems.append(Problem("transitions", message, f"transitions.{name}"))
            continue
        o = names.index(name)
        matrix[o] = 0.0
        for to, probability in row.items():
            place = f"transitions.{name}.{to}"
            if to not in names:
                message = f"there is no such state; {unknown(str(to), names)}"
                problems.append(Problem("transitions", message, place))
            elif not is_number(probability):
                message = f"must be a probability, got {shown(probability)}"
                problems.append(Problem("transitions", message, place))
            else:
                matrix[o, names.index(to)] = probability
    return matrix, problems


def _row_problems(names: Sequence[str], matrix: FloatArray) -> Iterator[Problem]:
    """What is wrong with the probabilities of each row."""
    for name, row in zip(names, matrix, strict=True):
        place = f"transitions.{name}"
        wrong = ~((row >= 0) & (row <= 1 + _SUMS_TO_ONE))
        if wrong.any():
            o = int(np.argmax(wrong))
            message = f"must be a probability from 0 to 1, got {as_text(row[o])}"
            yield Problem("transitions", message, f"{place}.{names[o]}")
        elif abs(row.sum() - 1.0) > _SUMS_TO_ONE:
            message = f"the probabilities must add up to 1, got {as_text(row.sum())}"
            yield Problem("transitions", message, place)
