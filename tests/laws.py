"""Laws of the loss beyond the paper's, and consortia that have them, for the tests."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray

MEASURED = Law.mixture([6.4555, 0.8714, 0.0232, 0.0434], [11.7, 21.1, 405.5, 732.2])
"""Like one that is fitted to a measured curve: four terms, finite without data."""
LAWS = {
    "paper": Law.paper(50),
    "power": Law.power(40.0, 1.0),
    "flat power": Law.power(2.0, 0.2, floor=0.1),
    "shifted": Law.power(90.0, 1.3, shift=150.0, floor=0.05),
    "measured": MEASURED,
}


def loss_by_hand(law: Law, total: npt.ArrayLike) -> FloatArray:
    """A(X) of one law, from the definition."""
    terms = zip(law.value, law.unit, law.shift, law.exponent, strict=True)
    at = np.asarray(total, dtype=np.float64)
    with np.errstate(divide="ignore"):
        parts = [v * (u / (at + s)) ** p for v, u, s, p in terms]
    return np.asarray(np.sum(parts, axis=0) + law.floor)


def cost_by_hand(
    consortium: Consortium, n: int, own: npt.ArrayLike, total: npt.ArrayLike
) -> FloatArray:
    """F_n (eq. 5) of many contributions and totals, from the definition."""
    loss = loss_by_hand(consortium.law.of(n), total)
    paid = consortium.valuation[n] * loss + consortium.cost_per_sample[n] * np.asarray(own)
    return np.asarray(paid + consortium.communication_cost[n] + consortium.server_fee)


def some_law(rng: np.random.Generator) -> Law:
    """A law of the class with a few terms that matter at some hundreds of samples."""
    terms = int(rng.integers(1, 5))
    shift = np.where(rng.random(terms) < 0.4, 0.0, 10.0 ** rng.uniform(0.5, 3.0, terms))
    unit = shift + 10.0 ** rng.uniform(1.5, 3.0, terms)
    value, exponent = 10.0 ** rng.uniform(-1.5, 0.5, terms), rng.uniform(0.1, 3.0, terms)
    return Law(value, unit, shift, exponent, np.asarray(rng.uniform(0.0, 0.2)))


def some_consortium(
    rng: np.random.Generator,
    law: Law | list[Law],
    *,
    clients: int = 5,
    quality: bool = False,
    reach: tuple[float, float] = (0.1, 1.2),
) -> Consortium:
    """Clients that are satiated at some part of all data, within `reach`."""
    samples = np.round(rng.uniform(20.0, 300.0, clients))
    laws = law if isinstance(law, list) else [law] * clients
    wanted = samples.sum() * rng.uniform(*reach, clients)
    worth = [float(one.slope(at)) for one, at in zip(laws, wanted, strict=True)]
    price = rng.uniform(0.5, 2.0, clients)
    return Consortium(
        valuation=price / np.array(worth),
        cost_per_sample=price,
        samples=samples,
        rounds=50,
        discount_factor=rng.uniform(0.3, 0.95, clients),
        communication_cost=rng.uniform(0.0, 5.0, clients),
        law=law,
        quality=rng.uniform(0.3, 2.0, clients) if quality else 1.0,
    )


def counted_by_quality(consortium: Consortium) -> Consortium:
    """The same game with quality 1: q_n D_n samples, each of which costs E_n / q_n."""
    laws = [consortium.law.of(n) for n in range(consortium.size)]
    return Consortium(
        valuation=consortium.valuation,
        cost_per_sample=consortium.cost_per_sample / consortium.quality,
        samples=consortium.samples * consortium.quality,
        rounds=consortium.rounds,
        discount_factor=consortium.discount_factor,
        communication_cost=consortium.communication_cost,
        server_fee=consortium.server_fee,
        law=laws if consortium.law.is_personal else consortium.law,
    )


def nobody_trains(discount_factor: float = 0.8) -> Consortium:
    """Ten clients whose first sample is worth half of what it costs."""
    return Consortium(
        valuation=50.0,
        cost_per_sample=1.0,
        samples=np.full(10, 100.0),
        rounds=50,
        discount_factor=discount_factor,
        law=Law.power(100.0, 1.0, 100.0),
    )


def a_little_different(law: Law, clients: int, rng: np.random.Generator) -> list[Law]:
    """A law for each client: this one with other numbers."""
    return [
        replace(
            law,
            value=law.value * rng.uniform(0.5, 2.0, law.value.shape),
            exponent=law.exponent * rng.uniform(0.7, 1.4, law.exponent.shape),
            kind="mixture",
        )
        for _ in range(clients)
    ]
