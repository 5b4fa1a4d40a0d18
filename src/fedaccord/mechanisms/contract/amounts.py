"""What a server buys by a deadline, if it knows the number or the probability of each type.

The number of each type is known. Samples come in lots, each with a price; the cheapest are bought
first, until the next one is not worth its price. Under complete information a lot is the samples of
one type, at the price theta_i. If the server cannot tell the types apart, it must pay all clients
that are in time the same: a client with cost theta_1 would take the reward meant for theta_2 as
well. If the k cheapest costs are served, M_k clients get theta_k per sample; so type k adds

    phi_k = theta_k + (theta_k - theta_{k-1}) M_{k-1} / N_k

per sample (its virtual cost). Where phi_k falls, types are pooled into one lot, so that amounts do
not rise with theta: incentive compatibility.

Only the probabilities are known. N clients come, each of type i with probability q_i, and B = sum
of n_i d_i is random. The expected accuracy loss is exact for any number of types: since X^-p =
integral of u^(p-1) exp(-u X) du / Gamma(p) over u > 0, and the N clients are identically
distributed, a law A(X) = floor + sum of w_j (X + s_j)^-p_j has

    E[A(B + b)] = floor + integral of a(u) exp(-u b) (sum q_i exp(-u d_i))^N du,
    a(u) = sum of w_j u^(p_j - 1) exp(-u s_j) / Gamma(p_j),

where b is the server's own samples: one integral, however many terms there are. In v = log u the
trapezoidal rule is exact up to rounding.

The loss is convex in the amounts, rewards are linear in them, and incentive compatibility requires
that amounts do not rise with theta: a small convex programme. The distance of its solution from the
optimum can be bounded: the polytope has few corners, and a convex function lies above its tangents.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput, NotConverged
from fedaccord.game.filling import TIE, fill
from fedaccord.mechanisms.contract.exponentials import ExponentialMixture, exponential_mixture
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
    if not eligible.any():
        return np.zeros(model.size)
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


GAP = 1e-7
"""How far from the optimum a solution may be, relative to the server's avoidable cost."""

MOST_LEVELS = 300
"""The most amounts that are optimised together: a few seconds for each deadline."""

_NEWTON_STEPS = 200
"""At most, for each sharpness; a few tens are enough."""
_CENTRED = 1e-6
"""The squared Newton decrement at which the barrier is made sharper."""
_NEGLIGIBLE = 1e-8
"""A fraction of one sample counts as nothing; all but this fraction of the data as all."""


@dataclass(frozen=True, eq=False)
class _Offer:
    """What can be bought by a deadline: levels of cost per sample, with an amount for each."""

    model: ContractModel
    levels: list[Levels]

    @cached_property
    def probability(self) -> FloatArray:
        """q of each level; the rest, up to 1, comes too late."""
        clients = np.concatenate([level.clients for level in self.levels])
        return np.asarray(clients / self.model.all_clients)

    @cached_property
    def most(self) -> FloatArray:
        """The most worth asking of each level: of a single client at its group's least cost."""
        return np.concatenate(
            [
                np.full(
                    level.cost.size,
                    min(level.samples, float(self.model.worth_up_to(level.cost[0]))),
                )
                for level in self.levels
            ]
        )

    @cached_property
    def price(self) -> FloatArray:
        """How much one more sample asked of a level adds to all rewards, on average."""
        return np.concatenate([level.virtual_cost * level.clients for level in self.levels])

    @cached_property
    def mixture(self) -> ExponentialMixture:
        """The law above its floor at B + b, for every B that can come."""
        largest = self.model.all_clients * float(self.most.max())
        return exponential_mixture(self.model.law, self.model.own_samples, largest)

    def loss(self, amounts: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """gamma E[A(B + b)] without the floor, its gradient and its Hessian."""
        q, number, rates = self.probability, self.model.all_clients, self.mixture.rate
        comes = np.exp(-np.outer(rates, amounts)) * q
        transform = np.maximum(1.0 - q.sum(), 0.0) + comes.sum(axis=1)
        weight = self.model.valuation * self.mixture.weight
        first = weight * rates * number * transform ** (number - 1.0)
        hessian = np.diag((first * rates) @ comes)
        if number > 1:
            second = weight * rates**2 * number * (number - 1.0) * transform ** (number - 2.0)
            hessian += (comes.T * second) @ comes
        return float(weight @ transform**number), -(first @ comes), hessian

    def cost(self, amounts: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Expected loss plus rewards, the gradient and the Hessian."""
        value, gradient, hessian = self.loss(amounts)
        return value + float(self.price @ amounts), gradient + self.price, hessian

    @cached_property
    def groups(self) -> list[slice]:
        """The positions of the levels of each data size."""
        ends = np.cumsum([level.cost.size for level in self.levels]).tolist()
        return [
            slice(end - level.cost.size, end) for end, level in zip(ends, self.levels, strict=True)
        ]

    @cached_property
    def belongs(self) -> FloatArray:
        """1 where a level (column) has a data size (row), 0 elsewhere."""
        result = np.zeros((len(self.groups), self.most.size))
        for row, part in enumerate(self.groups):
            result[row, part] = 1.0
        return result

    @cached_property
    def corners(self) -> FloatArray:
        """The amounts at each corner, one column each: a group's first k levels at their maximum.

        Amounts that do not rise with theta are convex combinations of these and of zero.
        """
        result = np.zeros((self.most.size, self.most.size))
        for part in self.groups:
            result[part, part] = np.triu(np.full((part.stop - part.start,) * 2, self.most[part][0]))
        return result

    def gap(self, amounts: FloatArray) -> float:
        """A bound on the distance of these amounts from the optimum, relative to their cost.

        A convex function lies above its tangents, and a tangent has its minimum at a corner.
        """
        value, gradient, _ = self.cost(amounts)
        at_corners = gradient @ self.corners
        lowest = sum(float(at_corners[part].min(initial=0.0)) for part in self.groups)
        return (float(gradient @ amounts) - lowest) / value


def best_expected_amounts(
    model: ContractModel, kind: MenuKind, eligible: BoolArray
) -> tuple[FloatArray, float]:
    """What the server asks of each type that is in time, and its expected cost without delay."""
    if not eligible.any():
        return np.zeros(model.size), float(model.valuation * model.law.loss(model.own_samples))
    offer = _Offer(model, levels_by_data(model, eligible))
    if offer.most.size > MOST_LEVELS:
        raise InvalidInput(
            f"strongly incomplete information: there are {offer.most.size:,} different costs per "
            f"sample; at most {MOST_LEVELS:,} can be handled"
        )
    if kind == "all-or-nothing":
        amounts = _whole_lots(offer, eligible)
    else:
        amounts = _graded(offer)
    of_type = np.zeros(model.size)
    members = [members for level in offer.levels for members in level.members]
    for at, amount in zip(members, amounts.tolist(), strict=True):
        of_type[at] = amount
    return of_type, offer.cost(amounts)[0] + model.valuation * float(model.law.floor)


def _graded(offer: _Offer) -> FloatArray:
    """The best amounts; fails if they cannot be found accurately enough."""
    exact = offer.corners @ _best_mixture(offer)
    amounts = _rounded(offer, exact)
    best = offer.cost(exact)[0]
    gap = offer.gap(exact) + abs(offer.cost(amounts)[0] - best) / best
    if not gap <= GAP:
        raise NotConverged(f"the best menu was found only to within {gap:.1g} of the server's cost")
    return amounts


def _best_mixture(offer: _Offer) -> FloatArray:
    """The weight of each corner in the best amounts, by Newton's method with a log barrier.

    The weights are positive and sum to less than 1 in each group. The barrier, `-log` of the
    distance to each bound, gets a smaller and smaller weight, so that the distance to the optimum
    falls to the number of bounds divided by `sharpness`.
    """
    belongs = offer.belongs
    mixture = belongs.T @ (1.0 / (1.0 + belongs.sum(axis=1)))
    unit = offer.cost(offer.corners @ mixture)[0]
    for sharpness in np.logspace(0, 12, 13):
        for _ in range(_NEWTON_STEPS):
            value, of_cost, curvature = offer.cost(offer.corners @ mixture)
            left = 1.0 - belongs @ mixture
            gradient = sharpness / unit * (of_cost @ offer.corners)
            gradient += belongs.T @ (1.0 / left) - 1.0 / mixture
            hessian = sharpness / unit * (offer.corners.T @ curvature @ offer.corners)
            hessian += (belongs.T / left**2) @ belongs + np.diag(mixture**-2.0)
            # in units of each weight, which may be small, the system is well conditioned
            inner = hessian * np.outer(mixture, mixture)
            move = mixture * np.linalg.solve(inner, -gradient * mixture)
            decrement = -float(gradient @ move)
            if decrement <= _CENTRED:
                break
            # a damped step stays within the bounds, and decreases a self-concordant function
            mixture = mixture + move / (1.0 + 1.5 * np.sqrt(decrement))
        unit = value
    return np.asarray(mixture)


def _rounded(offer: _Offer, amounts: FloatArray) -> FloatArray:
    """The same amounts, with a negligible amount as 0 and nearly all as all."""
    nothing = amounts < _NEGLIGIBLE * offer.model.own_samples
    everything = amounts > (1.0 - _NEGLIGIBLE) * offer.most
    return np.where(nothing, 0.0, np.where(everything, offer.most, amounts))


def _whole_lots(offer: _Offer, eligible: BoolArray) -> FloatArray:
    """All samples of the cheapest lots, as long as the last sample of the next is worth it."""
    model = offer.model
    lots = lots_for_sale(model, "strong", eligible)
    lot = np.array([lots.of_type[m[0]] for level in offer.levels for m in level.members])
    data = np.concatenate([np.full(level.cost.size, level.samples) for level in offer.levels])
    amounts = np.zeros_like(data)
    for k in range(lots.price.size):
        more = np.where(lot == k, data, amounts)
        gradient = offer.loss(more)[1]
        if -float(gradient @ (lot == k)) < lots.price[k] * lots.clients[k] * (1.0 - TIE):
            break
        amounts = more
    return amounts
