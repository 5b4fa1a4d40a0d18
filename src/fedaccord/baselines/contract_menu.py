"""A menu that a server offers, and whether clients would take it as meant.

Individual rationality: nobody loses by taking the item meant for its type. Incentive
compatibility: nobody gains by taking another's, or one though none was meant for it. A menu is
checked when it is made, from its items alone, whichever way they were found.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fedaccord.baselines.contract_model import ContractModel, Information, MenuKind
from fedaccord.errors import FedaccordError
from fedaccord.game.arrays import FloatArray

TOLERANCE = 1e-9
"""By how much a condition may fail, relative to the money in it: rewards are sums of products,
and a binding condition is an equation between two of them."""


class Item(NamedTuple):
    """What clients of one type are offered."""

    type: int
    """Its position in the model."""
    amount: float
    """How many samples each is to train on."""
    reward: float
    """What each is paid for it."""


@dataclass(frozen=True, eq=False)
class Menu:
    """One item a type; nothing for nothing where a type isn't served."""

    model: ContractModel
    information: Information
    kind: MenuKind
    amounts: FloatArray
    rewards: FloatArray
    expected_cost: float
    """What the server pays: accuracy loss, delay and rewards; on average, if it can't know."""

    def __post_init__(self) -> None:
        """Refuse a menu that clients would not take as meant."""
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
        """T: the largest delay served; None when nobody is."""
        served = self.amounts > 0
        return float(self.model.delay[served].max()) if served.any() else None

    @property
    def total(self) -> float:
        """B: all samples bought; on average, if the server can't know."""
        return float(self.amounts @ self.model.clients)

    @property
    def payoffs(self) -> FloatArray:
        """r_i - theta_i d_i of each type that takes its own item."""
        return self.rewards - self.model.cost_per_sample * self.amounts

    def _broken_condition(self) -> str | None:
        """The first condition that fails, if any."""
        payoffs = self.payoffs
        if (payoffs < -TOLERANCE * self.rewards).any():
            return "individually rational: a client would rather take nothing"
        if self.information == "complete":
            return None  # the server sees a client's type, and shows it no other item
        for n in self._open_to_several():
            tempted = self.rewards[n] - self.model.cost_per_sample * self.amounts[n]
            allowed = TOLERANCE * (self.rewards[n] + self.rewards)
            if ((tempted > payoffs + allowed) & self._may_take(n)).any():
                return "incentive compatible: a client would rather take another's item"
        return None

    def _open_to_several(self) -> list[int]:
        """Positions of items that differ, of the many that may be the same."""
        items = np.stack([self.amounts, self.rewards, self.model.samples], axis=1)
        _, first = np.unique(items[self.amounts > 0], axis=0, return_index=True)
        positions: list[int] = np.flatnonzero(self.amounts > 0)[first].tolist()
        return positions

    def _may_take(self, item: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Which types are offered an item: those in time, and with as many samples."""
        in_time = self.model.delay <= (self.deadline or 0.0)
        return np.asarray(in_time & (self.model.samples == self.model.samples[item]))
