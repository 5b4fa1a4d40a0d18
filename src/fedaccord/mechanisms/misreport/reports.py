"""What clients say about themselves, and what else each could say.

A client may misreport one of its numbers: its ratio, its data size (only less than it has, for it
would have to train on what it claims) or its discount factor. A ratio of 0 cannot be solved with,
so a tiny one stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.game.consortium import Consortium
from fedaccord.game.filling import fill
from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray

Field = Literal["ratio", "samples", "discount_factor"]

NOTHING = 1e-18
"""The factor that stands for 0. Under the paper's law a client with so low a ratio has a satiation
point of 1e-12 of its true one, so what it is asked for is nothing up to rounding."""
_HIGHEST = 10.0
"""The largest factor of a ratio that is tried."""
_OVERSTATED = 4
"""One ratio in so many is higher than the true one: few lies of that kind pay."""
_OTHER_FIELDS = 5
"""One report in so many is of the data size, and one of the discount factor, if it is asked for."""
_NEXT_TO_OTHERS = 4
"""As many other clients are undercut as there are reports, divided by this."""
_JUST = 1e-9
"""Relative: how far under or above another client's ratio a report is that undercuts it. It must be
more than `filling.TIE`, below which clients are tied, and little enough to lose nothing by it."""


@dataclass(frozen=True)
class Reports:
    """Rows of reports, one column per client, in samples of quality 1."""

    law: Law
    ratio: FloatArray
    samples: FloatArray
    discount_factor: FloatArray

    @classmethod
    def true(cls, consortium: Consortium) -> Reports:
        """One row in which everyone tells the truth."""
        effective = consortium.effective
        columns = effective.ratio, effective.samples, effective.discount_factor
        return cls(effective.law, *(column[np.newaxis] for column in columns))

    @property
    def size(self) -> int:
        """N, the number of clients."""
        return int(self.ratio.shape[-1])

    def if_one_says(self, client: npt.NDArray[np.int64], lies: Lies) -> Reports:
        """This one row for each lie, each told by the client at that place of `client`."""
        here = np.arange(client.size)

        def changed(field: Field) -> FloatArray:
            rows = np.repeat(getattr(self, field), client.size, axis=0)
            rows[here, client] = getattr(lies, field)
            return rows

        return Reports(self.law, changed("ratio"), changed("samples"), changed("discount_factor"))

    def row(self, place: int) -> Reports:
        """One of the rows."""
        here = slice(place, place + 1)
        return Reports(self.law, self.ratio[here], self.samples[here], self.discount_factor[here])

    def law_of(self, client: npt.NDArray[np.int64]) -> Law:
        """The law of each of these clients."""
        if not self.law.is_personal:
            return self.law
        floor = np.broadcast_to(self.law.floor, self.size)[client]
        return self.law.changed(lambda values: values[:, client], floor)


class Lies(NamedTuple):
    """Reports of single clients: any shape, the same for all three."""

    ratio: FloatArray
    samples: FloatArray
    discount_factor: FloatArray

    def at(self, place: object) -> Lies:
        """Some of them."""
        return Lies(*(values[place] for values in self))  # type: ignore[call-overload]


def possible_lies(
    truth: Reports,
    said: Reports,
    client: npt.NDArray[np.int64],
    asks: tuple[Field, ...],
    number: int,
    *,
    undercut: bool,
) -> tuple[Lies, tuple[Field, ...]]:
    """What each of these clients could say, in a row for each, and the field of each column.

    Of `number` reports most are ratios, on a grid of factors. With `undercut` up to half as many
    are added: ratios with which a client stops just before or just after another client does,
    according to `said`.
    """
    true = Lies(*(values[0, client, np.newaxis] for values in _columns(truth)))
    others = number // _OTHER_FIELDS
    columns: list[tuple[Field, FloatArray]] = []
    for field in asks:
        if field == "ratio":
            factors = _ratio_factors(number - others * (len(asks) - 1))
            columns.append((field, true.ratio * factors))
            if undercut:
                beside = _next_to_others(said, client, number // _NEXT_TO_OTHERS)
                columns += [(field, ratios) for ratios in beside]
        elif field == "samples":
            columns.append((field, true.samples * _lower_factors(others)))
        else:
            columns.append((field, _patience(true.discount_factor, others)))
    return _side_by_side(true, columns)


def _columns(reports: Reports) -> tuple[FloatArray, FloatArray, FloatArray]:
    return reports.ratio, reports.samples, reports.discount_factor


def _ratio_factors(number: int) -> FloatArray:
    """Factors from 0 to less than 1, and some above 1."""
    above = np.geomspace(1.0, _HIGHEST, number // _OVERSTATED + 1)[1:]
    return np.append(_lower_factors(number - above.size), above)


def _lower_factors(number: int) -> FloatArray:
    """Factors from 0 to less than 1."""
    return np.maximum(np.arange(max(number, 1)) / max(number, 1), NOTHING)


def _patience(true: FloatArray, number: int) -> FloatArray:
    """Discount factors from 0 to the true one, and from there to 1, without both of these."""
    below = np.arange(max(number - number // 2, 1)) / max(number - number // 2, 1)
    above = np.arange(1, number // 2 + 1) / (number // 2 + 1)
    above = np.minimum(true + (1.0 - true) * above, np.nextafter(1.0, 0.0))
    return np.concatenate([true * below, above], axis=-1)


def _next_to_others(
    said: Reports, client: npt.NDArray[np.int64], number: int
) -> tuple[FloatArray, FloatArray]:
    """Ratios with which each client's satiation point is just under, or above, another client's.

    The others are those whose points are nearest to the equilibrium's total: beyond the totals
    without the client, and with all its samples, its report makes no difference.
    """
    points = said.law.stop(said.ratio)
    total = fill(points, said.samples).total
    near = points[0, np.argsort(np.abs(points - total)[0], kind="stable")[:number]]
    own_law = said.law_of(np.repeat(client, near.size))
    with np.errstate(divide="ignore", over="ignore"):
        same = 1.0 / own_law.slope(np.tile(near, client.size))
    usable = np.where(np.isfinite(same) & (same > 0.0), same, said.ratio.min())
    ratios = usable.reshape(client.size, near.size)
    return ratios * (1.0 - _JUST), ratios * (1.0 + _JUST)


def _side_by_side(
    true: Lies, columns: list[tuple[Field, FloatArray]]
) -> tuple[Lies, tuple[Field, ...]]:
    """Each report with the truth in the fields that it does not change."""
    blocks = {
        field: [
            values if field == changed else np.broadcast_to(getattr(true, field), values.shape)
            for changed, values in columns
        ]
        for field in Lies._fields
    }
    lies = Lies(**{field: np.concatenate(values, axis=-1) for field, values in blocks.items()})
    return lies, tuple(field for field, values in columns for _ in range(values.shape[-1]))
