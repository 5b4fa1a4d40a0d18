"""The model of contract design: types of clients, what the server minimises, and its menu.

After Ding, Fang, Huang (*Optimal contract design for efficient federated learning with
multi-dimensional private information*, IEEE JSAC 2020). Clients of type i pay theta_i for each
sample that they train on and are ready after a delay t_i. The server offers a menu of items (amount
d, reward r) and a deadline T; a client with t_i <= T picks an item or none, and its payoff is
r - theta_i d. The server minimises

    gamma A(B) + alpha * (largest delay served) + sum of the rewards,

where B is the number of samples trained on and A the law of the loss, 1/sqrt(G B) + 1/G in their
paper.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.checks import is_number, shown
from fedaccord.errors import FedaccordError, InvalidInput, Problem
from fedaccord.files.reading import Mistakes, tell
from fedaccord.files.tables import load_table, rows_in_order
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.game.rules import LARGEST_AMOUNT, broken_shared_rules
from fedaccord.numbers import BoolArray, FloatArray, as_text
from fedaccord.record import Columns, Record, Tables, Value

Information = Literal["complete", "weak", "strong"]
"""What the server knows: each client's type (complete), the number of clients of each type (weakly
incomplete), or the probability of each type (strongly incomplete)."""

MenuKind = Literal["graded", "all-or-nothing"]
"""Whether a type may be asked for a part of its samples."""


TOLERANCE = 1e-9
"""Relative error up to which a condition on sums still holds: rewards are sums of products, a
binding condition is an equation between two of them, and probabilities add up to 1 only
approximately."""


@dataclass(frozen=True, init=False, eq=False)
class ContractModel(Value):
    """The types of clients, with one number per type, and the server."""

    cost_per_sample: FloatArray
    """theta_i."""
    delay: FloatArray
    """t_i."""
    clients: FloatArray
    """N_i; under strongly incomplete information the expected number, N times the probability."""
    samples: FloatArray
    """D_i: the most that one client of the type can be asked for; may be infinite. The server knows
    it, since it sees what it buys."""
    rounds: int
    """G."""
    law: Law
    """A: the loss of a model by the samples that it is trained on; the paper's unless given."""
    valuation: float
    """gamma: what one unit of accuracy loss costs the server."""
    delay_price: float
    """alpha: what one unit of delay costs it."""
    own_samples: float
    """Under strongly incomplete information it may happen that nobody comes, and the loss would be
    infinite, as 1/sqrt(G B) is. So the server's own samples are added to B: the loss is bounded and
    convex."""

    def __init__(
        self,
        *,
        cost_per_sample: npt.ArrayLike,
        delay: npt.ArrayLike,
        clients: npt.ArrayLike,
        samples: npt.ArrayLike = np.inf,
        rounds: int,
        valuation: float,
        delay_price: float,
        own_samples: float = 1.0,
        law: Law | None = None,
    ) -> None:
        """Take one number per type (or one for all), and check them all at once."""
        given = {
            "cost_per_sample": cost_per_sample,
            "delay": delay,
            "clients": clients,
            "samples": samples,
        }
        for field, column in _columns(given).items():
            object.__setattr__(self, field, column)
        object.__setattr__(self, "rounds", rounds)
        object.__setattr__(self, "valuation", valuation)
        object.__setattr__(self, "delay_price", delay_price)
        object.__setattr__(self, "own_samples", own_samples)
        problems = list(self._problems())
        if problems:
            raise InvalidInput(problems)
        object.__setattr__(self, "law", Law.paper(rounds) if law is None else law)
        if self.law.is_personal:
            raise InvalidInput("must be one law: that of the server's model", field="law")
        if not float(self.law.loss(own_samples)) * valuation < LARGEST_AMOUNT:
            raise InvalidInput(
                "valuation times the loss of the server's own samples is too large for a "
                "floating-point number"
            )

    @property
    def size(self) -> int:
        """I, the number of types."""
        return self.delay.size

    @property
    def all_clients(self) -> float:
        """N, the number of clients of all types."""
        return float(round(self.clients.sum()))  # probabilities may add up to slightly less than 1

    def eligible(self, deadline: float) -> BoolArray:
        """Which types are ready in time."""
        return np.asarray(self.delay <= deadline)

    def worth_up_to(self, price: npt.ArrayLike) -> FloatArray:
        """The total up to which a sample is worth its price.

        (gamma / (2 price sqrt(G)))^(2/3) in the paper.
        """
        return self.law.stop(self.valuation / np.asarray(price, dtype=np.float64))

    def _problems(self) -> Iterator[Problem]:
        yield from broken_shared_rules(self.rounds, 0.0)
        rules = {
            "cost_per_sample": (0.0, np.inf, "more than 0"),
            "clients": (0.0, np.inf, "more than 0"),
            "samples": (0.0, None, "more than 0"),
            "delay": (None, np.inf, "0 or more"),
        }
        for field, (above, below, words) in rules.items():
            values: FloatArray = getattr(self, field)
            low = values >= 0 if above is None else values > above
            high = ~np.isnan(values) if below is None else values < below
            for n in np.flatnonzero(~(low & high)).tolist():
                message = f"must be {words}, got {as_text(values[n])}"
                yield Problem(field, message, f"types[{n}].{field}")
        number = float(self.clients.sum())
        if not abs(number - round(number)) <= TOLERANCE * number < np.inf:
            yield Problem("clients", f"must add up to a whole number, got {as_text(number)}")
        wrong = [
            *broken_amount("valuation", self.valuation),
            *broken_amount("own_samples", self.own_samples),
            *broken_amount("delay_price", self.delay_price, may_be_zero=True),
        ]
        yield from wrong
        if not wrong:
            yield from self._products_beyond_numbers()

    def _products_beyond_numbers(self) -> Iterator[Problem]:
        with np.errstate(all="ignore"):
            ratio = self.valuation / self.cost_per_sample
            waiting = self.delay_price * self.delay
        if np.isinf(ratio).any():
            message = "valuation / cost_per_sample is too large for a floating-point number"
            yield Problem("", message)
        if np.isinf(waiting).any():
            yield Problem("", "delay_price * delay is too large for a floating-point number")


def broken_amount(field: str, value: Any, may_be_zero: bool = False) -> Iterator[Problem]:
    """Problems with one of the server's own numbers."""
    if not is_number(value):
        yield Problem(field, f"must be a number, got {shown(value)}")
    elif not (value > 0 or (may_be_zero and value == 0)) or value == np.inf:
        words = "0 or more" if may_be_zero else "more than 0"
        yield Problem(field, f"must be {words}, got {as_text(value)}")
    elif value >= LARGEST_AMOUNT:
        yield Problem(field, f"must be less than {LARGEST_AMOUNT:g}")


def _columns(given: dict[str, npt.ArrayLike]) -> dict[str, FloatArray]:
    """Read-only arrays of the same length, with one number per type."""
    columns: dict[str, FloatArray] = {}
    try:
        arrays = [np.asarray(values, dtype=np.float64) for values in given.values()]
        alike = np.broadcast_arrays(*arrays, np.zeros(1))
        columns = dict(zip(given, (array.copy() for array in alike), strict=False))
    except (TypeError, ValueError):
        pass
    if not columns or columns["delay"].ndim != 1 or columns["delay"].size == 0:
        raise InvalidInput(f"{', '.join(given)}: must have one number for each type of client")
    for column in columns.values():
        column.flags.writeable = False
    return columns


class Item(NamedTuple):
    """What clients of one type are offered."""

    type: int
    """The position of the type in the model."""
    amount: float
    """How many samples each client trains on."""
    reward: float
    """What each client is paid for it."""


@dataclass(frozen=True, eq=False, repr=False)
class Menu(Record):
    """One item for each type; zero amount and reward if a type is not served."""

    model: ContractModel
    information: Information
    kind: MenuKind
    amounts: FloatArray
    rewards: FloatArray
    expected_cost: float
    """What the server minimises: accuracy loss, delay and rewards; their expected value, if types
    are random."""

    def __post_init__(self) -> None:
        """Refuse a menu from which clients would not choose as intended."""
        broken = self._broken_condition()
        if broken is not None:
            raise FedaccordError(f"this menu is not {broken}")

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items of the types that are served."""
        served = np.flatnonzero(self.amounts > 0).tolist()
        return tuple(Item(n, float(self.amounts[n]), float(self.rewards[n])) for n in served)

    @property
    def deadline(self) -> float | None:
        """T: the largest delay served; None if nobody is served."""
        served = self.amounts > 0
        return float(self.model.delay[served].max()) if served.any() else None

    @property
    def total(self) -> float:
        """B: all samples bought; expected, if types are random."""
        return float(self.amounts @ self.model.clients)

    @property
    def payoffs(self) -> FloatArray:
        """r_i - theta_i d_i of each type if it takes its own item."""
        return self.rewards - self.model.cost_per_sample * self.amounts

    def _facts(self) -> dict[str, Any]:
        return {
            "information": self.information,
            "kind": self.kind,
            "total": self.total,
            "deadline": self.deadline,
            "expected_cost": self.expected_cost,
        }

    def _tables(self) -> Tables:
        return {"items": self._items}

    def _items(self) -> Columns:
        return {field: [getattr(item, field) for item in self.items] for field in Item._fields}

    def _broken_condition(self) -> str | None:
        """The first condition that does not hold, if any."""
        payoffs = self.payoffs
        if (payoffs < -TOLERANCE * self.rewards).any():
            return "individually rational: a client would prefer to take nothing"
        if self.information == "complete":
            return None  # the server knows a client's type and offers it no other item
        for n in self._open_to_several():
            tempted = self.rewards[n] - self.model.cost_per_sample * self.amounts[n]
            allowed = TOLERANCE * (self.rewards[n] + self.rewards)
            if ((tempted > payoffs + allowed) & self._may_take(n)).any():
                return "incentive compatible: a client would prefer the item of another type"
        return None

    def _open_to_several(self) -> list[int]:
        """Positions of distinct items, since many may be the same."""
        items = np.stack([self.amounts, self.rewards, self.model.samples], axis=1)
        _, first = np.unique(items[self.amounts > 0], axis=0, return_index=True)
        positions: list[int] = np.flatnonzero(self.amounts > 0)[first].tolist()
        return positions

    def _may_take(self, item: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Which types are offered an item: those in time and with the same data size."""
        in_time = self.model.delay <= (self.deadline or 0.0)
        return np.asarray(in_time & (self.model.samples == self.model.samples[item]))


_RULES = {"delay": "0 or more", "cost_per_sample": "more than 0"}


def load_types(path: str | Path, consortium: Consortium) -> dict[str, tuple[float, ...]]:
    """The columns `delay` and `cost_per_sample` of a spreadsheet, in the order of the clients.

    Besides `name` the file has one of them or both. The result has only the columns of the file,
    so `Contract(**load_types(...))` uses its default for the other.
    """
    path = Path(path)
    mistakes = Mistakes(str(path))
    try:
        given = load_table(path, mistakes, [], list(_RULES))
        if not given.numbers:
            missing = "column 'delay' or 'cost_per_sample' is missing"
            raise InvalidInput(Problem("delay", missing, "line 1"))
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None
    for field, values in given.numbers.items():
        least = values >= 0 if field == "delay" else values > 0
        for k in np.flatnonzero(~least).tolist():
            if given.place(k, field) not in mistakes and given.names[k] is not None:
                got = "none" if np.isnan(values[k]) else as_text(values[k])
                given.add(mistakes, k, field, f"must be {_RULES[field]}, got {got}")
    rows = rows_in_order(given, consortium, mistakes, "line")
    if mistakes:
        raise mistakes.error()
    tell(given.notes, path)
    return {field: tuple(values[rows].tolist()) for field, values in given.numbers.items()}
