"""Monitoring: how a slip is seen.

By default counts are believed: a slip is seen for certain, before the next slot, and nobody is
accused who did not slip. Otherwise client n is *audited* in a slot with probability q_n. An audit
finds a shortfall of a part s of the agreed samples for certain, or if only k of the claimed samples
are checked, with probability 1 - (1 - s)^k. An honest client is accused with probability e_n in a
slot. Such false alarms come from audits, so e_n is at most q_n: a client that is short by s is
accused with probability e_n + (q_n - e_n) (1 - (1 - s)^k). What is found in a slot is acted on J
slots later; J = 1 is before the next slot.

>>> Monitoring(), Monitoring(audit=0.1, samples_checked=1)
(Monitoring(), Monitoring(audit=0.1, samples_checked=1))
>>> Monitoring(audit={"A": 0.5, "B": 0.25}).audits(["B", "A"]).tolist()
[0.25, 0.5]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.checks import (
    LARGEST_COUNT,
    check_whole,
    client_meant,
    is_number,
    refuse_subclass,
    shown,
)
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray, as_text, count
from fedaccord.record import Record

Clients: TypeAlias = Consortium | Sequence[str]
Rate: TypeAlias = float | Mapping[str, float] | tuple[float, ...]
"""A probability for all clients, one for each by name, or one for each in their order."""


@dataclass(frozen=True, eq=False, repr=False)
class Monitoring(Record):
    """How a slip is seen; with no arguments, for certain and at once."""

    audit: Rate | npt.ArrayLike = 1.0
    """q_n: the probability that a client is audited in a slot; for all clients, by name, or an
    array."""
    samples_checked: int | None = None
    """k: how many of the claimed samples an audit checks; None: it sees any shortfall."""
    false_alarm: Rate | npt.ArrayLike = 0.0
    """e_n: the probability that an honest client is accused in a slot; like `audit`."""
    seen_late: int = 1
    """J: how many slots after a slip its punishment begins; 1: with the next slot."""

    def __new__(cls, *_: object, **__: object) -> Self:
        """Refuse subclasses: the solvers compute with the fields, whatever the methods are."""
        instead = "use Monitoring, and set its fields"
        refuse_subclass("monitoring", cls, Monitoring, instead=instead)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check all fields."""
        for field in ("audit", "false_alarm"):
            object.__setattr__(self, field, _rate(field, getattr(self, field)))
        if self.samples_checked is not None:
            check_whole("samples_checked", self.samples_checked, 1, LARGEST_COUNT)
        check_whole("seen_late", self.seen_late, 1, LARGEST_COUNT)
        if self.seen_late > 1 and self.accuses_falsely:
            raise InvalidInput(
                "slips that are seen late cannot be combined with false alarms", field="seen_late"
            )
        rates: tuple[Any, ...] = (self.audit, self.false_alarm)
        lengths = {len(rate) for rate in rates if _by_client(rate)}
        if len(lengths) > 1:
            raise InvalidInput("must have as many entries as audit", field="false_alarm")
        if not lengths:
            self._check_order(np.array([self.audit]), np.array([self.false_alarm]))

    @property
    def accuses_falsely(self) -> bool:
        """Whether honest clients may be accused."""
        return bool(np.any(_values(self.false_alarm) > 0))

    @property
    def is_certain(self) -> bool:
        """Whether every slip is seen, whatever its size, and nobody is accused falsely."""
        certain = bool(np.all(_values(self.audit) == 1.0)) and self.samples_checked is None
        return certain and not self.accuses_falsely

    @property
    def is_plain(self) -> bool:
        """Whether every slip is seen at once: counts are believed."""
        return self.is_certain and self.seen_late == 1

    def audits(self, clients: Clients) -> FloatArray:
        """q_n of the clients of a consortium, or with these names, in their order."""
        return _of_clients("audit", self.audit, clients)

    def false_alarms(self, clients: Clients) -> FloatArray:
        """e_n of the same."""
        return _of_clients("false_alarm", self.false_alarm, clients)

    def rates(self, clients: Clients) -> Rates:
        """Both, checked."""
        audit, false = self.audits(clients), self.false_alarms(clients)
        self._check_order(audit, false)
        return Rates(audit, false)

    def _check_order(self, audit: FloatArray, false: FloatArray) -> None:
        """False alarms come from audits, so there are no more of them."""
        wrong = np.flatnonzero(false > audit)
        if wrong.size:
            e, q = as_text(false[wrong[0]]), as_text(audit[wrong[0]])
            raise InvalidInput(
                f"must be at most the probability of an audit, {q}, got {e}", field="false_alarm"
            )

    def seen(self, shortfall: FloatArray) -> FloatArray:
        """The probability that an audit finds a shortfall of these parts of what was agreed."""
        if self.samples_checked is None:
            return np.asarray(np.where(shortfall > 0, 1.0, 0.0))
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(self.samples_checked * np.log1p(-shortfall)))

    def _facts(self) -> dict[str, Any]:
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def __repr__(self) -> str:
        """What is not as by default."""
        own = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Monitoring({', '.join(f'{name}={getattr(self, name)!r}' for name in own)})"

    def __str__(self) -> str:
        """What is not as by default, in words."""
        said = []
        if np.any(_values(self.audit) < 1.0):
            said.append(f"audited with probability {_in_words(self.audit)} in a slot")
        if self.samples_checked is not None:
            said.append(f"{count(self.samples_checked, 'sample')} checked")
        if self.accuses_falsely:
            said.append(f"falsely accused with probability {_in_words(self.false_alarm)}")
        if self.seen_late > 1:
            said.append(f"punished from {count(self.seen_late, 'slot')} after the slip on")
        return ", ".join(said) or "every slip is seen"


class Rates(NamedTuple):
    """The probabilities of each client."""

    audit: FloatArray
    false_alarm: FloatArray

    def each(self, height: int) -> Rates:
        """The same clients `height` times, one after the other."""
        return Rates(*(np.tile(rate, height) for rate in self))


def read_monitoring(given: object) -> Monitoring:
    """The monitoring in JSON, as `to_dict` returns it.

    >>> read_monitoring({"audit": 0.5, "samples_checked": None})
    Monitoring(audit=0.5)
    """
    if not isinstance(given, dict):
        raise InvalidInput(f"must be an object, got {shown(given)}", field="monitoring")
    extra = [name for name in given if name not in {field.name for field in fields(Monitoring)}]
    if extra:
        raise InvalidInput("unknown key", field=str(extra[0]))
    return Monitoring(**given)


def _rate(field: str, given: Any) -> Rate:
    """A probability for all, or one for each, checked; arrays become tuples."""
    if isinstance(given, Mapping):
        return {str(name): _probability(field, value, name) for name, value in given.items()}
    if isinstance(given, str) or np.ndim(given) == 0:
        return _probability(field, given)
    if np.ndim(given) != 1:
        raise InvalidInput("must be one number, or one for each client", field=field)
    return tuple(
        _probability(field, value, n) for n, value in enumerate(np.asarray(given).tolist())
    )


def _probability(field: str, value: Any, where: object = None) -> float:
    value = value.item() if isinstance(value, np.generic | np.ndarray) else value
    if not is_number(value) or not 0 <= value <= 1:
        place = "" if where is None else f"{field}[{where!r}]"
        raise InvalidInput(Problem(field, f"must be from 0 to 1, got {shown(value)}", place))
    return float(value)


def _by_client(rate: Any) -> bool:
    return not isinstance(rate, float)


def _values(rate: Any) -> FloatArray:
    return np.array(list(rate.values()) if isinstance(rate, Mapping) else rate, dtype=np.float64)


def _of_clients(field: str, rate: Any, clients: Clients) -> FloatArray:
    """One number for each client; a million clients get names only if somebody asks for them."""
    if isinstance(rate, float):
        size = clients.size if isinstance(clients, Consortium) else len(clients)
        return np.broadcast_to(np.float64(rate), (size,))
    names = clients.names if isinstance(clients, Consortium) else clients
    if isinstance(rate, tuple):
        if len(rate) != len(names):
            wrong = f"must have one number for each of {count(len(names), 'client')}"
            raise InvalidInput(f"{wrong}, got {len(rate):,}", field=field)
        return np.array(rate)
    try:
        rate = {client_meant(name, names): each for name, each in rate.items()}
    except InvalidInput as error:
        raise InvalidInput(error.problems[0].message, field=field) from None
    for name in names:
        if name not in rate:
            raise InvalidInput(f"must name every client; {name!r} is missing", field=field)
    return np.array([rate[name] for name in names])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _in_words(rate: Any) -> str:
    """The one probability of all clients, or the smallest and largest.

    >>> _in_words(0.1), _in_words((0.0, 0.25))
    ('0.1', '0 to 0.25')
    """
    values = _values(rate)
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"


BELIEVED = Monitoring()
"""Counts are believed: every slip is seen at once."""
