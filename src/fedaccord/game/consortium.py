"""Clients and the consortium they form: immutable, validated once, stored as arrays.

In the paper's notation client n has a valuation rho_n, a cost per sample E_n, D_n samples,
a communication cost C_n and a discount factor delta_n; the consortium has G rounds of FedAvg
in a slot and a server fee p. Beyond the paper it may have a law of the loss of its own, one for all
clients or one each, and a client's samples may be worth more or less than others' (their quality
q_n): the law then sees X = sum q_n x_n. Numbers that are not known exactly have ranges (`Ranges`).

>>> consortium = Consortium(
...     valuation=[1, 2, 4], cost_per_sample=1e-6, samples=[500, 400, 900], rounds=50,
...     discount_factor=0.8,
... )
>>> consortium.size, consortium.names
(3, ('client-1', 'client-2', 'client-3'))
>>> consortium.satiation.round(1).tolist()
[1710.0, 2714.4, 4308.9]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import (
    check_number,
    check_type,
    client_meant,
    normalised,
    unusable_names,
)
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.law import Law
from fedaccord.game.ranges import RANGED, Ranges, read_ranges
from fedaccord.game.rules import (
    RULES,
    broken_rules,
    broken_shared_rules,
    extreme_together,
    wrong_slot,
)
from fedaccord.game.slot import slots_per_year
from fedaccord.game.turnover import Turnover, read_turnover, turned_over
from fedaccord.numbers import FloatArray, read_only
from fedaccord.record import Columns, Record, Tables


@dataclass(frozen=True, eq=False, slots=True)
class Client(Record):
    """One organisation: what it has and what it wants."""

    name: str
    valuation: float
    """rho_n: what one unit of accuracy loss costs the client."""
    cost_per_sample: float
    """E_n: what training on one sample for a slot costs it (eq. 4)."""
    samples: float
    """D_n: how many samples it has."""
    communication_cost: float = 0.0
    """C_n: what it pays for sending models, whatever it contributes."""
    discount_factor: float | None = None
    """delta_n: how much it values the next slot against this one; None: the consortium's."""
    quality: float = 1.0
    """q_n: how many samples of quality 1 one of its samples is worth."""

    def _facts(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Consortium(Record):
    """The clients, and what they share. See `Client` for what the arrays hold, one entry each."""

    valuation: FloatArray
    cost_per_sample: FloatArray
    samples: FloatArray
    discount_factor: FloatArray
    communication_cost: FloatArray
    quality: FloatArray
    rounds: int
    server_fee: float
    name: str
    law: Law
    """A(X), the law of the loss; the paper's unless given."""
    currency: str
    """What costs are counted in, such as "EUR"; empty if it was not said."""
    slot: str
    """How long a slot is, such as "3 months"; empty if it was not said."""
    ranges: Ranges | None
    """How far off the numbers may be; None if all are exact."""
    turnover: Turnover | None
    """What the discount factors already take into account: members that leave, and growth."""

    def __init__(
        self,
        *,
        valuation: npt.ArrayLike,
        cost_per_sample: npt.ArrayLike,
        samples: npt.ArrayLike,
        rounds: int,
        discount_factor: npt.ArrayLike,
        communication_cost: npt.ArrayLike = 0.0,
        server_fee: float = 0.0,
        name: str = "consortium",
        names: Sequence[str] | None = None,
        law: Law | Sequence[Law] | None = None,
        quality: npt.ArrayLike = 1.0,
        currency: str = "",
        slot: str = "",
        ranges: Ranges | Mapping[str, Any] | None = None,
        turnover: Turnover | None = None,
    ) -> None:
        """Validate everything at once; all problems are reported together.

        Args:
            valuation: rho_n, one number per client or one for all, like the other arrays.
            cost_per_sample: E_n.
            samples: D_n.
            rounds: G, rounds of federated averaging in a slot.
            discount_factor: delta_n, from 0 to less than 1.
            communication_cost: C_n.
            server_fee: p, what each client pays the server for a slot.
            name: What the consortium is called.
            names: The clients' names; `client-1` ... `client-N` unless given.
            law: The law of the loss, or a list with one for each client; the paper's unless given.
            quality: q_n, what one of a client's samples is worth in samples of quality 1.
            currency: What costs are counted in.
            slot: How long a slot is.
            ranges: The lowest and highest that some of the numbers may be, as pairs by field:
                valuation, cost_per_sample, samples, discount_factor, or ratio for the first two.
            turnover: What the discount factors take into account already; see `with_turnover`.
        """
        given = {
            "valuation": valuation,
            "cost_per_sample": cost_per_sample,
            "samples": samples,
            "discount_factor": discount_factor,
            "communication_cost": communication_cost,
            "quality": quality,
        }
        for field, array in _columns(given).items():
            object.__setattr__(self, field, array)
        object.__setattr__(self, "rounds", rounds)
        object.__setattr__(self, "server_fee", server_fee)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "currency", currency)
        object.__setattr__(self, "slot", slot)
        object.__setattr__(self, "turnover", turnover)
        given_names = None if names is None else tuple(map(normalised, names))
        object.__setattr__(self, "_given_names", given_names)
        self._check()
        object.__setattr__(self, "law", _law(law, rounds, self.size))
        object.__setattr__(self, "ranges", read_ranges(ranges, self._numbers))
        if self.ranges is not None:
            self.ranges.check_observed(self._ratio_at_observed)

    @classmethod
    def of(
        cls,
        clients: Sequence[Client],
        *,
        rounds: int,
        discount_factor: float | None = None,
        server_fee: float = 0.0,
        name: str = "consortium",
        law: Law | Sequence[Law] | None = None,
        currency: str = "",
        slot: str = "",
    ) -> Consortium:
        """The consortium of these clients; `discount_factor` is for those without their own."""
        if not clients:
            raise InvalidInput("a consortium needs at least one client", field="clients")
        missing = [c.name for c in clients if c.discount_factor is None]
        if missing and discount_factor is None:
            wrong = f"neither the consortium nor {missing[0]} has one"
            raise InvalidInput(wrong, field="discount_factor")
        return cls(
            valuation=[c.valuation for c in clients],
            cost_per_sample=[c.cost_per_sample for c in clients],
            samples=[c.samples for c in clients],
            communication_cost=[c.communication_cost for c in clients],
            discount_factor=[
                discount_factor if c.discount_factor is None else c.discount_factor for c in clients
            ],  # type: ignore[arg-type]
            rounds=rounds,
            server_fee=server_fee,
            name=name,
            names=[c.name for c in clients],
            law=law,
            quality=[c.quality for c in clients],
            currency=currency,
            slot=slot,
        )

    @property
    def size(self) -> int:
        """N, the number of clients."""
        return self.valuation.size

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The clients' names, `client-1` ... `client-N` unless given."""
        given: tuple[str, ...] | None = self.__dict__["_given_names"]
        return given or tuple(f"client-{n}" for n in range(1, self.size + 1))

    @cached_property
    def ratio(self) -> FloatArray:
        """rho_n / E_n, which together with its samples determines a client's behaviour."""
        return self.valuation / self.cost_per_sample

    @cached_property
    def satiation(self) -> FloatArray:
        """h_n: the total at which one more sample stops paying; (r_n^2 / 4G)^(1/3) in the paper."""
        return self.law.stop(self.counted(self.ratio))

    def total_of(self, profile: npt.ArrayLike) -> float:
        """X = sum of q_n x_n: what the law sees of a profile."""
        return float((np.asarray(profile, dtype=np.float64) * self.quality).sum())

    def totals_of(self, profiles: FloatArray) -> FloatArray:
        """X of each of many profiles, one per row."""
        return np.asarray((profiles * self.quality).sum(axis=-1))

    def counted(self, numbers: FloatArray) -> FloatArray:
        """Numbers per sample of each client's, times its quality; the same array if all are 1."""
        return numbers if self.equal_quality else self.quality * numbers

    def in_samples(self, amounts: FloatArray) -> FloatArray:
        """The samples behind amounts that count by quality: x_n = amount / q_n.

        Whoever gives all it has gives exactly that many, whatever rounding says.
        """
        if self.equal_quality:
            return np.minimum(amounts, self.samples)
        everything = amounts >= self.samples * self.quality
        return np.where(everything, self.samples, np.minimum(amounts / self.quality, self.samples))

    def with_law(self, law: Law | Sequence[Law]) -> Consortium:
        """The same clients with another law of the loss."""
        return self._with(law=law)

    def with_turnover(self, leaves: npt.ArrayLike = 0.0, growth: float = 0.0) -> Consortium:
        """The same clients, if members leave and are replaced, or all grow: delta (1 - l)(1 + g).

        `leaves` is the probability that a client leaves after a slot, one number for all or one
        each; `growth` the part by which data sizes and satiation points grow from slot to slot.
        """
        turnover = read_turnover(self.discount_factor, leaves, growth)
        ranges = self.ranges and replace(
            self.ranges,
            discount_factor=turned_over(self.ranges.discount_factor, turnover.leaves, growth),
        )
        counts = turned_over(self.discount_factor, turnover.leaves, growth)
        return self._with(discount_factor=counts, ranges=ranges, turnover=turnover)

    def with_ranges(self, **pairs: Any) -> Consortium:
        """The same clients with ranges around their numbers, as pairs (lowest, highest) by field.

        `observed` may be given, too: what each client trained on when there was no agreement.
        """
        return self._with(ranges=pairs)

    def without_ranges(self) -> Consortium:
        """The same clients, their numbers taken to be exact."""
        return self._with(ranges=None)

    def within(self, share: float | None = None, *, factor: float | None = None) -> Consortium:
        """The same clients, every ratio of valuation to cost known to within a share of it.

        `within(0.3)` is plus or minus 30 %, `within(factor=2)` half to double.
        """
        if (share is None) == (factor is None):
            raise InvalidInput("takes a share or a factor", field="within")
        if factor is not None:
            check_number("within", factor, least=1)
            return self.with_ranges(ratio=(self.ratio / factor, self.ratio * factor))
        check_number("within", share, least=0, below=1)
        assert share is not None
        return self.with_ranges(ratio=(self.ratio * (1.0 - share), self.ratio * (1.0 + share)))

    @property
    def _numbers(self) -> dict[str, FloatArray]:
        """The numbers that may have ranges, by field."""
        return {field: getattr(self, field) for field in RANGED}

    @cached_property
    def ratio_range(self) -> FloatArray:
        """The lowest and highest ratio of each client (rows), given what was observed."""
        if self.ranges is None:
            return np.stack([self.ratio, self.ratio])
        return self.ranges.ratio_given(self._ratio_at_observed)

    @property
    def _ratio_at_observed(self) -> FloatArray | None:
        """The ratio at which each client is satiated at the total that was observed."""
        if self.ranges is None or self.ranges.observed is None:
            return None
        total = self.total_of(self.ranges.observed)
        return np.asarray(1.0 / (self.quality * self.law.slope(total)))

    def _with(self, **changed: Any) -> Consortium:
        """The same consortium with some fields changed."""
        same = {field.name: getattr(self, field.name) for field in fields(self)}
        return Consortium(**(same | {"names": self.__dict__["_given_names"]} | changed))

    @cached_property
    def equal_quality(self) -> bool:
        """Whether every client's samples count as one, as the paper assumes."""
        return bool((self.quality == 1.0).all())

    @cached_property
    def effective(self) -> Consortium:
        """The same game counted in samples of quality 1: q_n D_n of them, each for E_n / q_n."""
        if self.equal_quality:
            return self
        changed = {
            "samples": self.samples * self.quality,
            "cost_per_sample": self.cost_per_sample / self.quality,
            "quality": np.ones(self.size),
            "ranges": None if self.ranges is None else self.ranges.weighted(self.quality),
        }
        return self._with(**changed)

    @property
    def slots_per_year(self) -> float | None:
        """How many slots a year has; None if it was not said how long one is."""
        return slots_per_year(self.slot) if self.slot else None

    @property
    def equal_samples(self) -> bool:
        """Whether all clients have the same number of samples, as the paper assumes (D_n = D)."""
        return bool((self.samples == self.samples[0]).all())

    def __len__(self) -> int:
        """N, the number of clients."""
        return self.size

    def __iter__(self) -> Iterator[Client]:
        """The clients one by one, in their order."""
        columns = (
            self.valuation,
            self.cost_per_sample,
            self.samples,
            self.communication_cost,
            self.discount_factor,
            self.quality,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return (Client(name, *row) for name, row in zip(self.names, rows, strict=True))

    def index(self, name: str) -> int:
        """The position of the client called `name`."""
        return self.names.index(client_meant(name, self.names))

    def to_dict(self) -> dict[str, Any]:
        """A summary: name, number of clients, rounds and samples. `to_frame` has the clients.

        Also what the discount factors take into account, if anything.
        """
        turnover = {} if self.turnover is None else {"turnover": self.turnover.to_dict()}
        return self._facts() | turnover

    def _facts(self) -> dict[str, Any]:
        samples = float(self.samples.sum())
        return {
            "name": self.name,
            "clients": self.size,
            "rounds": int(self.rounds),
            "samples": int(samples) if samples.is_integer() else samples,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.names,
            "valuation": self.valuation,
            "cost_per_sample": self.cost_per_sample,
            "samples": self.samples,
            "communication_cost": self.communication_cost,
            "discount_factor": self.discount_factor,
            "quality": self.quality,
        }

    def _check(self) -> None:
        problems = [*self._shared_problems(), *self._client_problems(), *self._name_problems()]
        if problems:
            raise InvalidInput(problems)

    def _shared_problems(self) -> Iterator[Problem]:
        yield from broken_shared_rules(self.rounds, self.server_fee)
        yield from wrong_slot(self.slot)
        if self.size == 0:
            yield Problem("clients", "a consortium needs at least one client")

    def _client_problems(self) -> Iterator[Problem]:
        for field in RULES:
            for n, message in broken_rules(field, getattr(self, field)):
                yield Problem(field, message, f"clients[{n}].{field}")
        columns = self.valuation, self.cost_per_sample, self.samples
        for n, message in extreme_together(*columns):
            yield Problem("", message, f"clients[{n}]")

    def _name_problems(self) -> Iterator[Problem]:
        given: tuple[str, ...] | None = self.__dict__["_given_names"]
        if given is None:
            return
        if len(given) != self.size:
            yield Problem("names", f"{len(given)} names for {self.size} clients")
        for n, message in unusable_names(given, lambda first: f"clients[{first}]"):
            yield Problem("name", message, f"clients[{n}].name")


def _law(given: Law | Sequence[Law] | None, rounds: int, clients: int) -> Law:
    """The law of the loss: the paper's unless given, and personal if there is one per client."""
    if given is None:
        return Law.paper(rounds)
    if not isinstance(given, Law):
        check_type("law", given, Law, Sequence)
        given = Law.personal(given)
    if given.is_personal and given.value.shape != (len(given.value), clients):
        raise InvalidInput(f"must be one law, or one for each of {clients} clients", field="law")
    return given


def _columns(given: dict[str, npt.ArrayLike]) -> dict[str, FloatArray]:
    """Read-only arrays of one length: that of the longest list is the number of clients."""
    arrays: dict[str, FloatArray] = {}
    problems = []
    for field, values in given.items():
        try:
            arrays[field] = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            problems.append(Problem(field, f"must be numbers, got {values!r}"))
        except OverflowError:
            problems.append(Problem(field, "must be numbers that a float can hold"))
    size = max((array.size for array in arrays.values() if array.ndim > 0), default=1)
    for field, array in arrays.items():
        if array.ndim > 0 and array.shape != (size,):
            problems.append(Problem(field, f"must have one number for each of {size} clients"))
    if problems:
        raise InvalidInput(problems)
    return {field: read_only(array, size, field) for field, array in arrays.items()}
