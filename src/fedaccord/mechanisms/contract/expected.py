"""What to ask of clients by a deadline when the server knows the types' probabilities only.

N clients come, each of type i with probability q_i, and B = sum of n_i d_i is left to chance.
The expected accuracy loss is exact for any number of types: since
1/sqrt(B) = 2/sqrt(pi) * integral of exp(-u^2 B) du over u > 0, and the N clients are alike,

    E[1/sqrt(B + b)] = 2/sqrt(pi) * integral of exp(-u^2 b) (sum q_i exp(-u^2 d_i))^N du,

b being the server's own samples. In v = log u the trapezoidal rule is exact to rounding.

It is convex in the amounts, rewards are linear in them, and incentive compatibility says that
amounts do not rise with theta: a small convex programme. Of its answer we know how far from the
best it can be at most: the polytope's corners are few, and a convex function lies above its
tangent.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedaccord.errors import InvalidInput, NotConverged
from fedaccord.game.filling import TIE
from fedaccord.mechanisms.contract.known import Levels, levels_by_data, lots_for_sale
from fedaccord.mechanisms.contract.model import ContractModel, MenuKind
from fedaccord.numbers import BoolArray, FloatArray

GAP = 1e-7
"""How far from the best, relative to the server's cost that can be helped, an answer may be."""

MOST_LEVELS = 300
"""Amounts that are chosen at once: a few seconds for each deadline."""

_STEP = 0.15
"""Of the trapezoidal rule in log u. Its relative error for every single B is
2 |Gamma(1/2 + i pi/step)| / sqrt(pi), 1e-14 here: what rounding makes of a sum, too."""
_BEYOND = 34.0
"""How far below 1/sqrt(B), in log u, the integral may begin: e^-34 of it is left out."""

_NEWTON_STEPS = 200
"""For each sharpness; a few tens do."""
_CENTRED = 1e-6
"""Newton's decrement, squared, at which the barrier may be made sharper."""
_NEGLIGIBLE = 1e-8
"""A part of one sample that nobody would ask for, or a part of all that nobody would spare."""


@dataclass(frozen=True, eq=False)
class _Offer:
    """What is open by a deadline: levels of cost per sample, and amounts to choose for each."""

    model: ContractModel
    levels: list[Levels]

    @cached_property
    def probability(self) -> FloatArray:
        """q of each level; the rest, to 1, comes too late."""
        clients = np.concatenate([level.clients for level in self.levels])
        return np.asarray(clients / self.model.all_clients)

    @cached_property
    def most(self) -> FloatArray:
        """The most worth asking of each level: of one client alone, at its group's least cost."""
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
        """What one more sample asked of a level makes all rewards grow by, on average."""
        return np.concatenate([level.virtual_cost * level.clients for level in self.levels])

    @cached_property
    def nodes(self) -> FloatArray:
        """u^2 of the trapezoidal rule."""
        largest = self.model.all_clients * self.most.max() + self.model.own_samples
        first = -0.5 * np.log(largest) - _BEYOND
        last = 0.5 * np.log(40.0 / self.model.own_samples)
        steps = np.arange(int(np.ceil((last - first) / _STEP)) + 1)
        return np.asarray(np.exp(2.0 * (first + _STEP * steps)))

    def loss(self, amounts: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """gamma E[1/sqrt(G (B + b))], its slope in each amount, and its second derivatives."""
        q, number, squares = self.probability, self.model.all_clients, self.nodes
        comes = np.exp(-np.outer(squares, amounts)) * q
        transform = np.maximum(1.0 - q.sum(), 0.0) + comes.sum(axis=1)
        scale = 2.0 / np.sqrt(np.pi) * _STEP * self.model.valuation / np.sqrt(self.model.rounds)
        weight = scale * np.sqrt(squares) * np.exp(-squares * self.model.own_samples)
        first = weight * squares * number * transform ** (number - 1.0)
        curvature = np.diag((first * squares) @ comes)
        if number > 1:
            second = weight * squares**2 * number * (number - 1.0) * transform ** (number - 2.0)
            curvature += (comes.T * second) @ comes
        return float(weight @ transform**number), -(first @ comes), curvature

    def cost(self, amounts: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Expected loss and rewards together, their slope and second derivatives."""
        value, slope, curvature = self.loss(amounts)
        return value + float(self.price @ amounts), slope + self.price, curvature

    @cached_property
    def groups(self) -> list[slice]:
        """Where the levels of each data size are."""
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
        """The amounts of each corner, a column each: a group's first k levels give the most.

        Amounts that don't rise with theta are mixtures of these, and of nothing at all.
        """
        result = np.zeros((self.most.size, self.most.size))
        for part in self.groups:
            result[part, part] = np.triu(np.full((part.stop - part.start,) * 2, self.most[part][0]))
        return result

    def gap(self, amounts: FloatArray) -> float:
        """How far from the best these amounts are at most, relative to their cost.

        A convex function lies above its tangent, and a tangent is least at a corner.
        """
        value, slope, _ = self.cost(amounts)
        at_corners = slope @ self.corners
        lowest = sum(float(at_corners[part].min(initial=0.0)) for part in self.groups)
        return (float(slope @ amounts) - lowest) / value


def best_expected_amounts(
    model: ContractModel, kind: MenuKind, eligible: BoolArray
) -> tuple[FloatArray, float]:
    """What the server asks of a client of each type in time, and its expected cost but delay."""
    if not eligible.any():
        unhelped = 1.0 / np.sqrt(model.rounds * model.own_samples) + 1.0 / model.rounds
        return np.zeros(model.size), float(model.valuation * unhelped)
    offer = _Offer(model, levels_by_data(model, eligible))
    if offer.most.size > MOST_LEVELS:
        raise InvalidInput(
            f"strongly incomplete information: {offer.most.size:,} different costs per sample are "
            f"too many to choose amounts for, {MOST_LEVELS:,} would do"
        )
    if kind == "all-or-nothing":
        amounts = _whole_lots(offer, eligible)
    else:
        amounts = _graded(offer)
    of_type = np.zeros(model.size)
    members = [members for level in offer.levels for members in level.members]
    for at, amount in zip(members, amounts.tolist(), strict=True):
        of_type[at] = amount
    return of_type, offer.cost(amounts)[0] + model.valuation / model.rounds


def _graded(offer: _Offer) -> FloatArray:
    """The best amounts; refuses to answer with less than nearly the best."""
    exact = offer.corners @ _best_mixture(offer)
    amounts = _plainly(offer, exact)
    best = offer.cost(exact)[0]
    gap = offer.gap(exact) + abs(offer.cost(amounts)[0] - best) / best
    if not gap <= GAP:
        raise NotConverged(f"the best menu was found to {gap:.1g} of the server's cost only")
    return amounts


def _best_mixture(offer: _Offer) -> FloatArray:
    """How much of each corner makes the best amounts: Newton's method behind a barrier.

    The weights are more than 0 and a group's sum to less than 1; `-log` of what is left to each
    of these bounds keeps within them, and counts for less and less. So the distance to the best
    falls to the number of bounds over `sharpness`.
    """
    belongs = offer.belongs
    mixture = belongs.T @ (1.0 / (1.0 + belongs.sum(axis=1)))
    unit = offer.cost(offer.corners @ mixture)[0]
    for sharpness in np.logspace(0, 12, 13):
        for _ in range(_NEWTON_STEPS):
            value, slope, curvature = offer.cost(offer.corners @ mixture)
            left = 1.0 - belongs @ mixture
            gradient = sharpness / unit * (slope @ offer.corners)
            gradient += belongs.T @ (1.0 / left) - 1.0 / mixture
            hessian = sharpness / unit * (offer.corners.T @ curvature @ offer.corners)
            hessian += (belongs.T / left**2) @ belongs + np.diag(mixture**-2.0)
            # in units of each weight itself, which may be small, the equations are well posed
            inner = hessian * np.outer(mixture, mixture)
            move = mixture * np.linalg.solve(inner, -gradient * mixture)
            decrement = -float(gradient @ move)
            if decrement <= _CENTRED:
                break
            # so short a step stays within the bounds, and improves a function of this kind
            mixture = mixture + move / (1.0 + 1.5 * np.sqrt(decrement))
        unit = value
    return np.asarray(mixture)


def _plainly(offer: _Offer, amounts: FloatArray) -> FloatArray:
    """The same with hardly anything as nothing, and nearly all as all."""
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
        slope = offer.loss(more)[1]
        if -float(slope @ (lot == k)) < lots.price[k] * lots.clients[k] * (1.0 - TIE):
            break
        amounts = more
    return amounts
