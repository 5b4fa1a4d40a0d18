"""Solving many consortia of equal size in one call: parameter sweeps, Monte Carlo.

Every argument has one row per consortium and one column per client, or broadcasts to that shape.

>>> import numpy as np
>>> batch = solve_batch(
...     valuation=np.arange(1.0, 101.0), cost_per_sample=0.985e-8, samples=10_000.0,
...     rounds=[[50], [100]], discount_factor=0.8, kind="uniform",
... )
>>> batch.equilibrium_total.round(1).tolist(), batch.total.round(1).tolist()
([505063.3, 437460.7], [887448.1, 773227.6])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import FirstConverted, SolvedKind
from fedaccord.agreement.enforcement import WORTHWHILE, ScaledGame, scale
from fedaccord.agreement.fair import NO_UNIFORM_SHARE, FairShare
from fedaccord.agreement.individual import largest_profiles
from fedaccord.agreement.monitoring import BELIEVED, Monitoring
from fedaccord.agreement.punishment import Punishment, PunishmentName, as_punishment
from fedaccord.agreement.uniform import solve_uniform_rows
from fedaccord.agreement.weight import weight_of
from fedaccord.checks import check_choice, check_type
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.law import Law
from fedaccord.game.rules import broken_shared_rules
from fedaccord.numbers import BoolArray, FloatArray, as_text
from fedaccord.record import Columns, Record, Tables

BatchObjective = Literal["most data", "fair share"]

_BLOCK = 131_072
"""How many numbers per field are processed at once: enough to make the overhead of a call
negligible, few enough to stay in a core's cache."""


@dataclass(frozen=True, eq=False, repr=False)
class Batch(Record):
    """One row per consortium: its equilibrium and its agreement."""

    equilibrium_profile: FloatArray
    equilibrium_total: FloatArray
    critical: BoolArray
    """Which clients are at the margin of the equilibrium: the critical client, or a tie."""
    profile: FloatArray
    """The agreement's; the equilibrium's where there is no agreement."""
    total: FloatArray
    exists: BoolArray
    level: FloatArray | None
    """Uniform: what each converted client contributes; 0 where there is no agreement."""
    first_converted: npt.NDArray[np.int64] | None
    """Uniform: position of client l; -1 where nobody could gain."""

    @property
    def ratio(self) -> FloatArray:
        """R_d of each consortium."""
        return self.total / self.equilibrium_total

    @property
    def equilibrium_free_riders(self) -> npt.NDArray[np.int64]:
        """The number of free riders at each equilibrium."""
        return np.asarray((self.equilibrium_profile == 0).sum(axis=-1), dtype=np.int64)

    @property
    def free_riders(self) -> npt.NDArray[np.int64]:
        """The number of free riders under each agreement."""
        return np.asarray((self.profile == 0).sum(axis=-1), dtype=np.int64)

    def _facts(self) -> dict[str, Any]:
        consortia, clients = self.profile.shape
        return {
            "size": consortia,
            "clients_each": clients,
            "agreements": int(self.exists.sum()),
        }

    def _tables(self) -> Tables:
        return {"consortia": self._consortia}

    def _consortia(self) -> Columns:
        columns: dict[str, Any] = {
            "exists": self.exists,
            "total": self.total,
            "equilibrium_total": self.equilibrium_total,
            "ratio": self.ratio,
            "free_riders": self.free_riders,
            "equilibrium_free_riders": self.equilibrium_free_riders,
        }
        if self.level is not None and self.first_converted is not None:
            columns |= {"level": self.level, "first_converted": self.first_converted}
        return columns


def solve_batch(
    *,
    valuation: npt.ArrayLike,
    cost_per_sample: npt.ArrayLike,
    samples: npt.ArrayLike,
    discount_factor: npt.ArrayLike,
    rounds: npt.ArrayLike = 1,
    law: Law | None = None,
    fees: npt.ArrayLike = 0.0,
    kind: SolvedKind = "individual",
    objective: BatchObjective = "most data",
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
    nobody_worse: bool = False,
    first_converted: FirstConverted = "paper",
    monitoring: Monitoring = BELIEVED,
) -> Batch:
    """The equilibrium and the agreement of many consortia of equal size.

    Args:
        valuation: rho_n, consortia x clients, or broadcast to that shape like the next four.
        cost_per_sample: E_n.
        samples: D_n.
        discount_factor: delta_n.
        rounds: G, one number per consortium, as a column, for the paper's law.
        law: Another law of the loss, for all consortia or with terms of shape (consortia, 1).
        fees: C_n + p, which count only if a suspended client saves them.
        kind: "individual" or "uniform".
        objective: "most data", or for the individual kind "fair share".
        margin: Design for discount factors that are this much lower than stated.
        punishment: What follows a deviation, or the name of its kind.
        nobody_worse: Let no client pay more than at the equilibrium.
        first_converted: Uniform: convert from the "paper"'s client l, or from the first
            "feasible" one.
        monitoring: How a slip is seen, in all consortia: numbers for all clients, or one for each
            column.
    """
    check_choice("kind", kind, get_args(SolvedKind))
    check_choice("objective", objective, get_args(BatchObjective))
    check_choice("first_converted", first_converted, get_args(FirstConverted))
    check_type("monitoring", monitoring, Monitoring)
    if law is not None:
        check_type("law", law, Law)
    if kind == "uniform" and objective == "fair share":
        raise InvalidInput(NO_UNIFORM_SHARE, field="objective")
    fields = {
        "valuation": valuation,
        "cost_per_sample": cost_per_sample,
        "samples": samples,
        "discount_factor": discount_factor,
        "fees": fees,
        "rounds": rounds,
    }
    rows = _rows(fields)
    chosen = as_punishment(punishment)
    width = rows[0].shape[1]
    height = max(1, _BLOCK // width)
    rates = monitoring.rates([f"client-{n}" for n in range(1, width + 1)])

    def solve(part: slice) -> tuple[Any, ...]:
        rho, price, data, delta, paid, turns = (values[part] for values in rows)
        game, at_margin = scale(
            rho / price,
            data,
            _law_of(law, turns, part, rows[0].shape),
            weight_of(delta, rates, chosen, monitoring, margin),
            chosen,
            fees=paid / price,
            nobody_worse=nobody_worse,
            samples_checked=monitoring.samples_checked,
        )
        feasible = first_converted == "feasible"
        return _columns(game, at_margin, kind, fair=objective == "fair share", feasible=feasible)

    starts = range(0, len(rows[0]), height)
    blocks = [solve(slice(n, n + height)) for n in starts]
    return Batch(*(_joined(column) for column in zip(*blocks, strict=True)))


def _columns(
    game: ScaledGame, at_margin: BoolArray, kind: SolvedKind, *, fair: bool, feasible: bool
) -> tuple[Any, ...]:
    """The fields of a Batch for some of the consortia."""
    solved = solve_uniform_rows(game, feasible_first=feasible) if kind == "uniform" else None
    profile = solved.profile if solved else largest_profiles(game)
    total = profile.sum(axis=-1, keepdims=True)
    exists = total > game.start * (1.0 + WORTHWHILE)
    if fair and exists.any():
        some = game.rows(exists[:, 0])
        profile[exists[:, 0]] = FairShare(some, [some]).profiles(total[exists[:, 0]])
        total = profile.sum(axis=-1, keepdims=True)
        exists = total > game.start * (1.0 + WORTHWHILE)
    return (
        game.equilibrium,
        game.start[:, 0],
        at_margin,
        np.where(exists, profile, game.equilibrium),
        np.where(exists, total, game.start)[:, 0],
        exists[:, 0],
        np.where(exists, solved.level, 0.0)[:, 0] if solved else None,
        solved.first[:, 0].astype(np.int64) if solved else None,
    )


def _law_of(given: Law | None, turns: FloatArray, part: slice, shape: tuple[int, int]) -> Law:
    """The law of some of the rows."""
    return Law.paper(turns[:, :1]) if given is None else given.each(lambda rows: rows[part], shape)


def _joined(blocks: tuple[Any, ...]) -> Any:
    return None if blocks[0] is None else np.concatenate(blocks)


_ALLOWED = {"discount_factor": "from 0 to less than 1", "fees": "0 or more"}


def _rows(fields: dict[str, npt.ArrayLike]) -> list[FloatArray]:
    """All fields as arrays of one shape, one row per consortium, each checked."""
    try:
        given = [np.atleast_2d(np.asarray(values, np.float64)) for values in fields.values()]
        rows = np.broadcast_arrays(*given)
    except (TypeError, ValueError):
        rows = ()
    if not rows or rows[0].ndim > 2 or rows[0].size == 0:
        raise InvalidInput("a batch takes numbers that broadcast to consortia x clients")
    for field, values in zip(fields, given, strict=True):
        low = values >= 0 if field in ("discount_factor", "fees") else values > 0
        high = values < (1.0 if field == "discount_factor" else np.inf)
        if not (low & high).all():
            b, n = np.argwhere(~(low & high))[0]
            allowed = _ALLOWED.get(field, "more than 0")
            got = as_text(values[b, n])
            wrong = f"must be {allowed} and finite, got {got}"
            raise InvalidInput(Problem(field, wrong, f"{field}[{b}, {n}]"))
    turns = given[-1]
    if (turns != turns[:, :1]).any():
        raise InvalidInput("must be one number per consortium, as a column", field="rounds")
    for row, number in enumerate(turns[:, 0].tolist()):
        for problem in broken_shared_rules(int(number) if number.is_integer() else number, 0.0):
            raise InvalidInput(replace(problem, place=f"rounds[{row}, 0]"))
    return list(rows)
