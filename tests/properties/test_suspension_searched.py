"""Suspension by brute force: no larger total, who keeps while others are out; order and units.

Slips are searched on grids here, and what a client does alone, too: nothing is shared with the
solver or the certificate but the equilibrium.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.numbers import BoolArray, FloatArray
from tests.consortia import FEW, SOME_PATIENCE, consortia, permuted, with_satiation
from tests.oracles import pulls

MILDER = st.builds(
    fa.Suspension,
    slots=st.sampled_from([1, 2, 3, None]),
    model_keeps=st.sampled_from([0.0, 0.05, 0.3, 0.6, 0.9, 0.99]),
    fees_saved=st.booleans(),
    or_reversion=st.booleans(),
)
LENGTHS = st.sampled_from([1, 2, 3, 7, None])
OBJECTIVES = ("most data", "least total cost", "fair share")


def least_cost(pull: FloatArray, low: FloatArray, high: FloatArray, grids: int = 9) -> FloatArray:
    """The least of a/sqrt(X) + X for totals X from `low` to `high`, on finer and finer grids.

    Each grid has 17 points and covers two steps of the one before: after nine of them a step is
    4e-9 of the range, which may be a million times where the least is.
    """
    part = np.linspace(0.0, 1.0, 17)
    for _ in range(grids):
        totals = low[..., np.newaxis] + (high - low)[..., np.newaxis] * part
        with np.errstate(divide="ignore"):
            costs = pull[..., np.newaxis] / np.sqrt(totals) + totals
        best = costs.argmin(axis=-1)[..., np.newaxis]
        low = np.take_along_axis(totals, np.maximum(best - 1, 0), axis=-1)[..., 0]
        high = np.take_along_axis(totals, np.minimum(best + 1, 16), axis=-1)[..., 0]
    return np.asarray(costs.min(axis=-1))


def weight(delta: FloatArray, slots: int | None) -> FloatArray:
    """delta + ... + delta^L."""
    if slots is None:
        return np.asarray(delta / (1.0 - delta))
    return np.asarray(sum(delta**t for t in range(1, slots + 1)))


@dataclass(frozen=True)
class Oracle:
    """A consortium and a suspension; amounts and costs in the clients' own samples."""

    consortium: fa.Consortium
    punishment: fa.Suspension

    def punished(self, total: FloatArray | float) -> FloatArray:
        """What a slot of the punishment costs each client if `total` was agreed on."""
        c, pull = self.consortium, pulls(self.consortium)
        cost = least_cost(pull, np.zeros_like(pull), c.samples, grids=13)
        with np.errstate(divide="ignore"):
            cost = np.minimum(cost, pull / np.sqrt(self.punishment.model_keeps * total))
        if self.punishment.fees_saved:
            cost = cost - (c.communication_cost + c.server_fee) / c.cost_per_sample
        if self.punishment.or_reversion:
            profile = fa.solve_equilibrium(c).profile
            cost = np.maximum(cost, pull / np.sqrt(profile.sum()) + profile)
        return np.asarray(cost)

    def slip_gain(self, amount: FloatArray, total: FloatArray) -> FloatArray:
        """What the best slip from `amount` saves while `total` is contributed."""
        others = total - amount
        pull = np.broadcast_to(pulls(self.consortium), amount.shape)
        return np.asarray(pull / np.sqrt(total) + total - least_cost(pull, others, total))

    def possible(self, totals: FloatArray, spare: float) -> BoolArray:
        """Whether amounts that everyone keeps to, with something to spare, add up to each total.

        What a client keeps to is an interval from 0 on, of which the end is bisected; a client
        that wants more than the total gives all it has. A client prefers no agreement that costs
        it more than the punishment, even if it is asked for nothing.
        """
        samples, total = self.consortium.samples, totals[:, np.newaxis]
        weigh = weight(self.consortium.discount_factor, self.punishment.slots)
        loss, punished = pulls(self.consortium) / np.sqrt(total), self.punished(total)

        def keeps(amount: FloatArray) -> BoolArray:
            saving, needed = punished - loss - amount, spare * (loss + amount)
            left = (weigh * saving - self.slip_gain(amount, total)) / (1.0 + weigh)
            return np.asarray((saving >= needed) & ((left >= needed) | (amount == 0)))

        everything = np.minimum(samples, total)
        low, high = np.zeros_like(everything), everything
        all_of_it = keeps(everything)
        eager = self.consortium.satiation > total
        fit = np.where(eager, all_of_it & (samples <= total), keeps(low)).all(axis=-1)
        for _ in range(36):
            middle = 0.5 * (low + high)
            fine = keeps(middle)
            low, high = np.where(fine, middle, low), np.where(fine, high, middle)
        most = np.where(all_of_it, everything, low)
        return np.asarray(fit & (most.sum(axis=-1) >= totals * (1.0 - 1e-10)))


@pytest.mark.slow
@settings(max_examples=60)
@given(
    consortium=consortia(st.integers(2, 5), SOME_PATIENCE, fees=True),
    punishment=MILDER,
)
def test_no_larger_total_exists(consortium: fa.Consortium, punishment: fa.Suspension) -> None:
    agreement = fa.solve_agreement(consortium, objective="most data", punishment=punishment)
    assert fa.certify(agreement).holds
    oracle, everything = Oracle(consortium, punishment), consortium.samples.sum()
    if agreement.exists:
        assert oracle.possible(np.array([agreement.total]), -1e-8).all()
    bottom = agreement.total * (1.0 + 1e-5)
    if bottom < everything:
        assert not oracle.possible(np.geomspace(bottom, everything, 40), 1e-9).any()


# --- While others are out ------------------------------------------------------------------


def spare_while_out(agreement: fa.Agreement, punished: float, n: int, out: list[int]) -> float:
    """By how much client n's condition holds if those others are out for the whole time.

    Relative to what it pays, and over the weight of it all: gain(Y) is at most the discounted sum
    of V - f(Y) over the L - 1 slots in which they would still be out, and of V - f(T) in the last.
    """
    consortium, slots = agreement.consortium, agreement.punishment.slots
    amount = float(agreement.profile[n])
    delta, pull = float(consortium.discount_factor[n]), float(pulls(consortium)[n])
    others = float(np.delete(agreement.profile, [n, *out]).sum())
    trained = np.linspace(0.0, amount, 4_001)
    with np.errstate(divide="ignore"):
        paid = pull / np.sqrt(others + trained) + trained
    meanwhile, after = float(paid[-1]), pull / np.sqrt(agreement.total) + amount
    gain = meanwhile - float(paid.min())
    if slots is None:
        lost, weigh = delta / (1.0 - delta) * (punished - meanwhile), delta / (1.0 - delta)
    else:
        costs = [meanwhile] * (slots - 1) + [after]
        lost = sum(delta**t * (punished - cost) for t, cost in enumerate(costs, 1))
        weigh = sum(delta**t for t in range(1, slots + 1))
    return float((lost - gain) / meanwhile / (1.0 + weigh))


@st.composite
def amounts(draw: st.DrawFn) -> fa.Agreement:
    """A few clients, any amounts, and a suspension without reversion."""
    patience = st.floats(0.02, 0.98)
    consortium = draw(consortia(st.integers(2, 5), patience, extreme=draw(st.booleans())))
    size = consortium.size
    share = draw(st.lists(st.floats(0.01, 1.0) | st.just(1.0), min_size=size, max_size=size))
    slots, kept = draw(st.sampled_from([1, 2, 3, None])), draw(st.sampled_from([0.0, 0.0, 0.1]))
    return fa.agreement_on(
        consortium, np.array(share) * consortium.samples, fa.Suspension(slots, model_keeps=kept)
    )


def spare_if_out(agreement: fa.Agreement) -> FloatArray:
    """Rows: one other client out, whichever is worst, and all others out."""
    assert isinstance(agreement.punishment, fa.Suspension)
    oracle = Oracle(agreement.consortium, agreement.punishment)
    found = []
    for n, punished in enumerate(oracle.punished(agreement.total).tolist()):
        others = [m for m in range(agreement.consortium.size) if m != n]
        one = min(spare_while_out(agreement, punished, n, [m]) for m in others)
        found.append([one, spare_while_out(agreement, punished, n, others)])
    return np.array(found).T


@pytest.mark.slow
@settings(max_examples=60)
@given(agreement=amounts())
def test_who_keeps_its_amount_while_others_are_out(agreement: fa.Agreement) -> None:
    spare, certificate = spare_if_out(agreement), fa.certify(agreement)
    found = np.array([certificate.keeps_if_one_is_out, certificate.keeps_if_all_are_out])
    close = np.abs(spare) < 1e-6  # the grid of slips is not exact
    assert ((spare > 0) | close == found | close).all()


@pytest.mark.slow
@pytest.mark.parametrize("row", [0, 1], ids=["one", "all"])
@pytest.mark.parametrize("keeps", [True, False])
def test_both_are_drawn(row: int, keeps: bool) -> None:
    """Agreements that are kept on the path, and while others are out by all, or not by all."""

    def found(agreement: fa.Agreement) -> bool:
        spare = spare_if_out(agreement)[row].min()
        return fa.certify(agreement).holds and (spare > 1e-3 if keeps else spare < -1e-3)

    find(amounts(), found, settings=settings(max_examples=2_000, phases=[Phase.generate]))


# --- Order and scale -----------------------------------------------------------------------

KINDS: list[dict[str, Any]] = [
    *({"kind": "individual", "objective": objective} for objective in OBJECTIVES),
    *({"kind": "uniform", "objective": objective} for objective in OBJECTIVES[:2]),
    {"kind": "uniform", "objective": "most data", "first_converted": "feasible"},
]


def untied(consortium: fa.Consortium) -> bool:
    """Whether no two ratios are equal, to rounding.

    The first feasible client is looked for in the order of ratios, and of patience where they are
    equal. If they differ by rounding, that decides.
    """
    ratio = np.sort(consortium.ratio)
    return bool((np.diff(ratio) > 1e-9 * ratio[1:]).all())


def same(here: fa.Agreement, there: fa.Agreement, data: float = 1.0, money: float = 1.0) -> None:
    """Two agreements are as good by their objective, but for the units of data and of money.

    Searched totals are accurate to 1e-9 about a flat optimum; an agreement must add 1e-6.
    """
    close = 1e-8 if here.exists == there.exists else 3e-6
    assert there.equilibrium.total == pytest.approx(data * here.equilibrium.total, rel=1e-12)
    if here.objective == "most data":
        assert there.total == pytest.approx(data * here.total, rel=close)
    elif here.objective == "least total cost":
        assert there.cost.sum() == pytest.approx(money * here.cost.sum(), rel=close)
    else:
        least = [(one.saving / one.equilibrium.cost).min() for one in (here, there)]
        assert least[1] == pytest.approx(least[0], abs=close)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()))
@given(
    consortium=consortia(FEW, extreme=False),
    slots=LENGTHS,
    random=st.randoms(use_true_random=False),
)
@settings(max_examples=8)
def test_the_order_of_clients_does_not_matter(
    kind: dict[str, Any], consortium: fa.Consortium, slots: int | None, random: Any
) -> None:
    assume("first_converted" not in kind or untied(consortium))
    order = np.arange(consortium.size)
    random.shuffle(order)
    here, there = (
        fa.solve_agreement(c, punishment=fa.Suspension(slots), **kind)
        for c in (consortium, permuted(consortium, order))
    )
    same(here, there)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()))
@given(
    consortium=consortia(FEW, extreme=False),
    slots=LENGTHS,
    data=st.floats(1e-3, 1e3),
    money=st.floats(1e-6, 1e6),
)
@settings(max_examples=8)
def test_the_units_do_not_matter(
    kind: dict[str, Any],
    consortium: fa.Consortium,
    slots: int | None,
    data: float,
    money: float,
) -> None:
    """Samples in thousands, costs in cents.

    In other units of data the cost of the rounds, rho_n / G, is another part of all costs, which
    the other two objectives look at.
    """
    assume("first_converted" not in kind or untied(consortium))
    data = data if kind["objective"] == "most data" else 1.0
    scaled = with_satiation(
        data * consortium.satiation,
        data * consortium.samples,
        consortium.discount_factor,
        consortium.rounds,
        money / data * consortium.cost_per_sample,
    )
    here, there = (
        fa.solve_agreement(c, punishment=fa.Suspension(slots), **kind) for c in (consortium, scaled)
    )
    same(here, there, data, money)
