"""What to buy by a deadline if the server knows how many clients of each type there are.

Samples come in lots, each with a price; the cheapest are bought first, until the next one is not
worth its price. Under complete information a lot is the samples of one type, at the price theta_i.
If the server cannot tell the types apart, it must pay all clients that are in time the same: a
client with cost theta_1 would take the reward meant for theta_2 as well. If the k cheapest costs
are served, M_k clients get theta_k per sample; so type k adds

    phi_k = theta_k + (theta_k - theta_{k-1}) M_{k-1} / N_k

per sample (its virtual cost). Where phi_k falls, types are pooled into one lot, so that amounts do
not rise with theta: incentive compatibility.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedaccord.game.filling import TIE, fill
from fedaccord.mechanisms.contract.model import ContractModel, Information, MenuKind
from fedaccord.numbers import BoolArray, FloatArray

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lots:
    """Samples for sale by a deadline, in ascending order of price."""

    price: FloatArray
    clients: FloatArray
    samples: FloatArray
    """The samples of each client in a lot."""
    of_type: Positions
    """The lot of each type, -1 if it is not in time."""

    @property
    def size(self) -> FloatArray:
        """All samples of each lot."""
        return self.clients * self.samples

    def amounts(self, each: FloatArray) -> FloatArray:
        """The amount of each type, given that of each client of a lot."""
        return np.where(self.of_type >= 0, np.append(each, 0.0)[self.of_type], 0.0)


def best_amounts(
    model: ContractModel, information: Information, kind: MenuKind, eligible: BoolArray
) -> FloatArray:
    """What the server asks of a client of each type that is in time."""
    lots = lots_for_sale(model, information, eligible)
    worth = model.worth_up_to(lots.price)
    if kind == "all-or-nothing":
        taken = np.logical_and.accumulate(lots.size.cumsum() <= worth * (1.0 + TIE))
        return lots.amounts(np.where(taken, lots.samples, 0.0))
    # no more of a lot is bought than is worth its price, so infinite lots become finite
    size = np.minimum(lots.size, worth)
    bought = fill(worth[np.newaxis], size[np.newaxis]).profile[0]
    return lots.amounts(np.minimum(bought / lots.clients, lots.samples))


def lots_for_sale(model: ContractModel, information: Information, eligible: BoolArray) -> Lots:
    """The lots in ascending order of price; at the same price, the smaller delay comes first."""
    if information == "complete":
        at = np.flatnonzero(eligible)
        at = at[np.lexsort((model.delay[at], model.cost_per_sample[at]))]
        of_type = np.full(model.size, -1)
        of_type[at] = np.arange(at.size)
        return Lots(model.cost_per_sample[at], model.clients[at], model.samples[at], of_type)
    price, clients, samples, members = [], [], [], []
    for level in levels_by_data(model, eligible):
        start = 0
        for cost, number, end in _pooled(level.virtual_cost, level.clients):
            price.append(cost)
            clients.append(number)
            samples.append(level.samples)
            members.append(np.concatenate(level.members[start:end]))
            start = end
    order = np.argsort(price, kind="stable")
    of_type = np.full(model.size, -1)
    for lot, n in enumerate(order.tolist()):
        of_type[members[n]] = lot
    return Lots(np.array(price)[order], np.array(clients)[order], np.array(samples)[order], of_type)


@dataclass(frozen=True, eq=False)
class Levels:
    """Clients of the same data size that are in time, in ascending order of cost per sample.

    Data sizes are not secret, so each size has its own menu.
    """

    cost: FloatArray
    """The distinct theta, ascending."""
    clients: FloatArray
    """How many clients have each."""
    samples: float
    members: list[Positions]
    """Positions of the types that have each."""

    @property
    def virtual_cost(self) -> FloatArray:
        """phi_k: the cost of a sample of a level, including what it adds to the cheaper levels."""
        cheaper = np.append(0.0, self.clients.cumsum()[:-1])
        step = np.diff(self.cost, prepend=0.0)
        return np.asarray(self.cost + step * cheaper / self.clients)


def levels_by_data(model: ContractModel, eligible: BoolArray) -> list[Levels]:
    """The levels of each data size."""
    result = []
    for samples in np.unique(model.samples[eligible]).tolist():
        at = np.flatnonzero(eligible & (model.samples == samples))
        cost, level = np.unique(model.cost_per_sample[at], return_inverse=True)
        clients = np.bincount(level, model.clients[at], cost.size).astype(np.float64)
        members = [at[level == k] for k in range(cost.size)]
        result.append(Levels(cost, clients, samples, members))
    return result


def rewards(model: ContractModel, amounts: FloatArray, eligible: BoolArray) -> FloatArray:
    """The least rewards at which every client in time takes its own item.

    r_k = theta_k d_k + sum over j > k of (theta_j - theta_{j-1}) d_j: the most expensive type is
    paid its cost, the others also what they would gain by posing as the next more expensive one.
    """
    result = np.zeros(model.size)
    for level in levels_by_data(model, eligible):
        asked = np.array([amounts[members[0]] for members in level.members])
        rent = np.append(np.diff(level.cost) * asked[1:], 0.0)
        paid = level.cost * asked + rent[::-1].cumsum()[::-1]
        for members, reward in zip(level.members, paid.tolist(), strict=True):
            result[members] = reward
    return result


def _pooled(price: FloatArray, clients: FloatArray) -> list[tuple[float, float, int]]:
    """Price, clients and end of each lot, after pooling lots whose price falls."""
    lots: list[tuple[float, float, int]] = []
    for k, (cost, number) in enumerate(zip(price.tolist(), clients.tolist(), strict=True)):
        lot = (cost, number, k + 1)
        while lots and lots[-1][0] >= lot[0]:
            before = lots.pop()
            together = before[1] + lot[1]
            lot = ((before[0] * before[1] + lot[0] * lot[1]) / together, together, k + 1)
        lots.append(lot)
    return lots
