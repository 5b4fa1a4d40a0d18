"""Consortia for the tests: some fixed ones, and Hypothesis strategies for others."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray

NEARLY_ONE = 0.9999999999999999
"""The largest valid discount factor."""

SIZES = st.sampled_from([1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 60])
FEW = st.integers(2, 8)
SOME_PATIENCE = st.integers(50, 999).map(lambda n: n / 1000) | st.just(NEARLY_ONE)
ANY_PATIENCE = SOME_PATIENCE | st.sampled_from([0.0, 0.5, 1e-12, 0.01])


def with_satiation(
    satiation: FloatArray | list[float],
    samples: FloatArray | list[float] | float,
    discount_factor: FloatArray | list[float] | float = 0.8,
    rounds: int = 1,
    cost_per_sample: FloatArray | list[float] | float = 1.0,
    *,
    communication_cost: FloatArray | float = 0.0,
) -> Consortium:
    """The consortium whose clients have these satiation points h_n."""
    ratio = 2.0 * np.sqrt(float(rounds)) * np.asarray(satiation, dtype=np.float64) ** 1.5
    return Consortium(
        valuation=ratio * np.asarray(cost_per_sample),
        cost_per_sample=cost_per_sample,
        samples=samples,
        rounds=rounds,
        discount_factor=discount_factor,
        communication_cost=communication_cost,
    )


@st.composite
def consortia(
    draw: st.DrawFn,
    sizes: st.SearchStrategy[int] = SIZES,
    patience: st.SearchStrategy[float] = ANY_PATIENCE,
    *,
    extreme: bool = True,
    whole_data: bool = False,
    fees: bool = False,
) -> Consortium:
    """Any consortium: unequal data and patience, ties, one giant, ratios of any size.

    Three kinds of satiation points are drawn. `close` ones lie about the data of the first few
    clients, so that agreements tend to exist; `spread` ones within a factor of 9 of all the data;
    `wild` ones (only if `extreme`) over 13 orders of magnitude, and so ratios over 20. With `fees`
    clients may have a communication cost, of up to three times all the training they could do.
    """
    size = draw(sizes)

    def each(element: st.SearchStrategy[float]) -> FloatArray:
        """One number for each client, or the same for all."""
        if draw(st.booleans()):
            return np.full(size, draw(element))
        return np.array(draw(st.lists(element, min_size=size, max_size=size)))

    whole = st.sampled_from([10, 100]) | st.integers(1, 1_000)
    samples = each(whole if draw(st.booleans()) or whole_data else st.floats(1.0, 1_000.0))
    samples = samples.astype(np.float64)
    if extreme and draw(st.integers(0, 5)) == 0:
        samples[draw(st.integers(0, size - 1))] *= 1e6
    kind = draw(st.sampled_from(["close", "close", "spread", "wild"] if extreme else ["close"]))
    if kind == "close":
        eager = draw(st.integers(1, size))
        level = samples[:eager].sum()
        satiation = level * each(st.floats(0.6, 1.02) | st.sampled_from([0.9, 1.0]))
        satiation[:eager] = level * draw(st.floats(0.9, 1.5))
    else:
        reach = 1.0 if kind == "spread" else 6.5
        satiation = samples.sum() * 10.0 ** each(st.floats(-reach, reach))
    price = draw(st.sampled_from([1.0, 0.985e-8, 3e5])) * each(st.floats(0.5, 2.0))
    paid = each(st.just(0.0) | st.floats(1e-3, 3.0)) if fees else 0.0
    return with_satiation(
        satiation,
        samples,
        each(patience),
        draw(st.integers(1, 200)),
        price,
        communication_cost=paid * price * samples,
    )


def permuted(consortium: Consortium, order: npt.NDArray[np.int64]) -> Consortium:
    """The same clients in another order."""
    return changed(consortium, lambda values: values[order])


def changed(consortium: Consortium, change: Callable[[FloatArray], FloatArray]) -> Consortium:
    """The consortium with `change` applied to each of its clients' arrays."""
    return Consortium(
        valuation=change(consortium.valuation),
        cost_per_sample=change(consortium.cost_per_sample),
        samples=change(consortium.samples),
        discount_factor=change(consortium.discount_factor),
        communication_cost=change(consortium.communication_cost),
        rounds=consortium.rounds,
        server_fee=consortium.server_fee,
    )


def with_patience(consortium: Consortium, discount_factor: FloatArray | float) -> Consortium:
    """The same clients with other discount factors."""
    return Consortium(
        valuation=consortium.valuation,
        cost_per_sample=consortium.cost_per_sample,
        samples=consortium.samples,
        discount_factor=np.broadcast_to(discount_factor, consortium.samples.shape),
        communication_cost=consortium.communication_cost,
        rounds=consortium.rounds,
        server_fee=consortium.server_fee,
    )
