"""A slow implementation of the game under any law of the loss, for many games at once.

Nothing here calls a solver or shares a formula with one. Arrays are games x clients, and a law is
arrays of weights, shifts and exponents, terms x games x clients: A(X) = sum of w (X + s)^-p. Costs
are in units of a client's own cost per sample: r_n A(X) + x_n.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedaccord.agreement.punishment import Punishment, Reversion
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import ARRAYS, Law
from fedaccord.numbers import BoolArray, FloatArray

HALVINGS = 60


@dataclass(frozen=True)
class Games:
    """Many games of as many clients each."""

    weight: FloatArray
    shift: FloatArray
    power: FloatArray
    ratio: FloatArray
    samples: FloatArray
    patience: FloatArray
    fees: FloatArray
    """(C_n + p) / E_n."""
    punishment: Punishment = field(default_factory=Reversion)
    nobody_worse: bool = False
    margin: float = 0.0

    def loss(self, total: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(
                sum(
                    np.where(w > 0, w * (total + s) ** -p, 0.0)
                    for w, s, p in zip(self.weight, self.shift, self.power, strict=True)
                )
            )

    def worth(self, total: FloatArray) -> FloatArray:
        """b_n: what one more sample is worth, from the derivative of each term."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = sum(
                np.where(w > 0, w * p * (total + s) ** (-p - 1.0), 0.0)
                for w, s, p in zip(self.weight, self.shift, self.power, strict=True)
            )
        return np.asarray(self.ratio * slope)

    def some(self, chosen: Any) -> "Games":
        """Only some of the games."""
        laws = {name: getattr(self, name)[:, chosen] for name in ("weight", "shift", "power")}
        clients = ("ratio", "samples", "patience", "fees")
        return replace(self, **laws, **{name: getattr(self, name)[chosen] for name in clients})

    def law(self) -> Law:
        """The same as our law."""
        return Law.of_weights(self.weight, self.shift, self.power)

    def consortium(self, game: int, quality: FloatArray | float = 1.0) -> Consortium:
        """One of the games; `quality` changes nothing but how samples are counted."""
        one = self.law()
        own: dict[str, Any] = {
            name: np.ascontiguousarray(getattr(one, name)[:, game]) for name in ARRAYS
        }
        law = Law(**own)
        return Consortium(
            valuation=self.ratio[game],
            cost_per_sample=np.broadcast_to(quality, self.ratio[game].shape),
            samples=self.samples[game] / quality,
            discount_factor=self.patience[game],
            communication_cost=self.fees[game],
            rounds=1,
            law=law,
            quality=quality,
        )

    # --- the stage game --------------------------------------------------------------------

    def satiation(self) -> FloatArray:
        """h_n, by halving: the first sample at which b_n is 1; 0 if it never is more."""
        low, high = np.zeros_like(self.ratio), 1e6 * self.samples.sum(axis=1, keepdims=True)
        high = np.broadcast_to(high, low.shape)
        for _ in range(2 * HALVINGS):
            middle = 0.5 * (low + high)
            wanted = self.worth(middle) > 1.0
            low, high = np.where(wanted, middle, low), np.where(wanted, high, middle)
        return low

    def equilibrium_total(self) -> FloatArray:
        """S, as a column: the last total below the samples of all that want more."""
        low = np.zeros((len(self.ratio), 1))
        high = self.samples.sum(axis=1, keepdims=True)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            offered = np.where(self.worth(middle) > 1.0, self.samples, 0.0)
            more = offered.sum(axis=1, keepdims=True) > middle
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        nobody = (self.worth(np.zeros_like(low)) <= 1.0).all(axis=1, keepdims=True)
        return np.where(nobody, 0.0, high)

    def best_response(self, others: FloatArray, most: FloatArray) -> FloatArray:
        """The cheapest amount from 0 to `most`, by ternary search on the cost alone."""
        low, high = np.zeros_like(most), most
        for _ in range(100):
            left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
            cost = [one + self.ratio * self.loss(others + one) for one in (left, right)]
            lower = cost[0] <= cost[1]
            low, high = np.where(lower, low, left), np.where(lower, right, high)
        return np.asarray(0.5 * (low + high))


class Enforcement:
    """What every client of every game keeps to, from the costs alone."""

    def __init__(self, games: Games, equilibrium: FloatArray) -> None:
        """`equilibrium` is a profile that was checked to be one."""
        self.games = games
        self.satiation = games.satiation()
        self.start = equilibrium.sum(axis=1, keepdims=True)
        self.reverted = equilibrium + games.ratio * games.loss(self.start)
        self.alone = np.minimum(self.satiation, games.samples)
        self.alone_cost = self.alone + games.ratio * games.loss(self.alone)
        self.noise = 1e-14 * (np.maximum(self.reverted, self.alone_cost) + games.samples)
        delta, slots = np.maximum(games.patience - games.margin, 0.0), games.punishment.slots
        self.weight = delta / (1.0 - delta)
        if slots is not None:
            self.weight = np.sum([delta**t for t in range(1, slots + 1)], axis=0)

    def punished(self, total: FloatArray) -> FloatArray:
        """The cost of a slot of the punishment."""
        games, punishment = self.games, self.games.punishment
        if isinstance(punishment, Reversion):
            return self.reverted
        cost = self.alone_cost
        if punishment.model_keeps:
            cost = np.minimum(cost, games.ratio * games.loss(punishment.model_keeps * total))
        if punishment.fees_saved:
            cost = cost - games.fees
        return np.maximum(cost, self.reverted) if punishment.or_reversion else cost

    def excess(self, amount: FloatArray, total: FloatArray) -> FloatArray:
        """By how much each client's condition fails, per weight of a slot; contributing more apart.

        A client that is asked for nothing cannot contribute less; it can stay away.
        """
        games = self.games
        others = total - amount
        slip = np.clip(self.satiation - others, 0.0, amount)
        agreed = amount + games.ratio * games.loss(total)
        least = slip + games.ratio * games.loss(others + slip)
        saved = self.punished(total) - agreed
        over = ((agreed - least) - self.weight * saved) / (1.0 + self.weight)
        if isinstance(games.punishment, Reversion):
            over = np.where(amount > 0, np.maximum(over, -saved), -np.inf)
        else:
            over = np.where(amount > 0, np.maximum(over, -saved), -saved)
        return np.maximum(over, agreed - self.reverted) if games.nobody_worse else over

    def eager(self, total: FloatArray) -> BoolArray:
        """Who would rather contribute more, however much is asked for."""
        return np.asarray(self.satiation > total)

    def bounds(self, total: FloatArray, halvings: int) -> FloatArray:
        """An amount above u_n(T) by at most D_n / 2^halvings; -inf if no amount will do.

        Contributors that want more contribute all they have; it must not be too much for them.
        """
        most = np.minimum(self.games.samples, np.broadcast_to(total, self.games.samples.shape))
        low, high = np.zeros_like(most), most
        allowed = self.noise
        all_fine = self.excess(most, total) <= allowed
        for _ in range(halvings):
            middle = 0.5 * (low + high)
            fine = self.excess(middle, total) <= allowed
            low, high = np.where(fine, middle, low), np.where(fine, high, middle)
        amount = np.where(all_fine, most, high)
        stays = isinstance(self.games.punishment, Reversion)
        nothing = np.zeros_like(most)
        leaves = (self.excess(nothing, total) > allowed) & (not stays)
        eager = self.eager(total)
        amount = np.where(eager, np.where(all_fine | stays, most, -np.inf), amount)
        return np.where(leaves & ~eager, -np.inf, amount)

    def can_reach(self, total: FloatArray, halvings: int = 24) -> BoolArray:
        """Whether there may be an agreement with this total in each game, beyond rounding."""
        spare = self.bounds(total, halvings).sum(axis=1, keepdims=True) - total
        return np.asarray(spare > 1e-9 * self.games.samples.sum(axis=1, keepdims=True))[:, 0]


def random_games(
    seed: int,
    games: int,
    clients: int,
    *,
    personal: bool = False,
    empty: bool = False,
    calm: bool = False,
) -> Games:
    """Random laws of one to four terms, and clients to whom they matter.

    With `calm`, no client has most of the samples, and all are patient. With `personal`, each
    client has its own law; with `empty`, laws are finite without data and no client's first sample
    pays. Some exponents are those with formulas of their own.
    """
    rng = np.random.default_rng(seed)
    shape = (games, clients)
    terms = int(rng.integers(1, 5))
    laws = (terms, games, clients if personal else 1)
    samples = 10.0 ** rng.uniform(1.7 if calm else 0.0, 2.0, shape)
    everything = samples.sum(axis=1, keepdims=True)
    usual = rng.choice([0.25, 0.5, 1.0, 2.0], size=(terms, 1, 1))
    power = np.broadcast_to(usual, laws)
    if seed % 3 == 0:
        power = 10.0 ** rng.uniform(-1.0, 0.6, laws)
    shifted = rng.random(laws) < 0.5
    if seed % 4 == 1:
        shifted = np.zeros(laws, dtype=bool)
    if empty or seed % 4 == 0:
        shifted = np.ones(laws, dtype=bool)
    shift = np.where(
        shifted, everything * 10.0 ** rng.uniform(-0.5 if calm else -2.0, 1.0, laws), 0.0
    )
    weight = 10.0 ** rng.uniform(-1.0, 1.0, laws) * (everything + shift) ** power
    weight[1:] *= rng.random((terms - 1, *laws[1:])) < 0.9  # some have fewer terms
    wanted = rng.choice([0.3, 0.9, 1.1, 1.5], size=shape) * rng.uniform(0.9, 1.1, shape)
    weight, shift, power = (np.broadcast_to(one, (terms, *shape)) for one in (weight, shift, power))
    draft = Games(
        weight,
        shift,
        power,
        ratio=np.ones(shape),
        samples=samples,
        patience=rng.uniform(0.9, 0.98, shape)
        if calm
        else rng.uniform(0.1, 0.98, shape) * (rng.random(shape) < 0.95),
        fees=rng.choice([0.0, 1.0], size=shape) * 0.1 * samples * rng.random(shape),
    )
    least = 0.5 if calm else 0.05
    at = np.zeros_like(everything) if empty else everything * rng.uniform(least, 1.1, (games, 1))
    if empty:
        wanted = rng.uniform(0.05, 1.0, shape)
    return replace(draft, ratio=wanted / draft.worth(at))
