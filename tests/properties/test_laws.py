"""What the shape of a law implies, for random laws of the class (the statements of our notes)."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.bounds import Bounds, is_concave
from fedaccord.agreement.enforcement import ScaledGame, scale_one
from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray

SIZES = st.integers(1, 5)


@st.composite
def laws(draw: st.DrawFn) -> Law:
    """One to four terms, with or without shifts."""
    terms = draw(st.integers(1, 4))

    def each(element: st.SearchStrategy[float]) -> FloatArray:
        return np.array(draw(st.lists(element, min_size=terms, max_size=terms)))

    shift = each(st.just(0.0) | st.floats(0.5, 500.0))
    exponent = each(st.sampled_from([0.25, 0.5, 1.0, 2.0]) | st.floats(0.1, 5.0))
    weight = each(st.floats(0.1, 10.0)) * (100.0 + shift) ** exponent
    return Law.of_weights(weight, shift, exponent)


@st.composite
def consortia(draw: st.DrawFn) -> fa.Consortium:
    """Clients to whom such a law matters, or one law for each of them."""
    size = draw(SIZES)

    def each(low: float, high: float) -> FloatArray:
        return np.array(draw(st.lists(st.floats(low, high), min_size=size, max_size=size)))

    samples = each(1.0, 100.0)
    law = draw(laws())
    if draw(st.booleans()):
        law = Law.personal([law, *(draw(laws()) for _ in range(size - 1))])
    slope = law.slope(samples.sum() * draw(st.floats(0.05, 1.2)))
    return fa.Consortium(
        valuation=each(0.3, 1.5) / slope,
        cost_per_sample=1.0,
        samples=samples,
        discount_factor=each(0.05, 0.98),
        rounds=1,
        law=law,
    )


def game_of(consortium: fa.Consortium) -> ScaledGame:
    return scale_one(fa.solve_equilibrium(consortium))


def totals_above(game: ScaledGame, count: int = 200) -> FloatArray:
    """Totals from just above the equilibrium's to all samples, one per row."""
    start, end = game.start.item(), float(game.samples.sum())
    assume(end > 1.01 * start)
    low = 1e-4 * (end - start)
    return np.asarray((start + np.geomspace(low, end - start, count))[:, np.newaxis])


@given(laws(), st.floats(1e-3, 1e6), st.floats(1e-6, 1e3))
def test_laws_fall_are_convex_and_have_log_convex_slopes(law: Law, at: float, part: float) -> None:
    points = at * (1.0 + part * np.array([0.0, 1.0, 2.0]))
    loss, slope, bend = law.loss(points), law.slope(points), law.bend(points)
    assert (np.diff(loss) <= 0).all()
    assert (np.diff(slope) <= 0).all()
    for values in (slope, bend):
        assert values[1] ** 2 <= values[0] * values[2] * (1.0 + 1e-12)
    assert np.isclose(
        law.fall(points[0], points[1] - points[0]), loss[0] - loss[1], atol=1e-9 * loss[0]
    )


@given(consortia())
def test_what_the_others_are_left_with_never_falls(consortium: fa.Consortium) -> None:
    """T - u_n(T) increases with T, and u_n is at most a share of T - S above x*_n."""
    game = game_of(consortium)
    totals = totals_above(game)
    bounds = Bounds(game).at(totals)
    rounding = 1e-9 * (game.samples + totals.max())
    assert (np.diff(totals - bounds, axis=0) >= -rounding).all()
    worth = np.minimum(game.worth, 1.0)
    share = game.patience * worth / (1.0 - (1.0 - game.patience) * worth)
    free = game.equilibrium == 0
    assert (np.where(free, bounds - share * (totals - game.start), 0.0) <= rounding).all()


@given(consortia(), st.floats(0.01, 0.99))
def test_along_a_ray_a_free_riders_threshold_never_falls(
    consortium: fa.Consortium, share: float
) -> None:
    game = game_of(consortium)
    totals = totals_above(game)
    amounts = np.broadcast_to(share * (totals - game.start), (totals.size, game.samples.size))
    least = game.gain(amounts, totals) / (game.gain(amounts, totals) + game.saving(amounts, totals))
    free = (game.equilibrium == 0) & (game.satiation <= game.start)
    assert (np.where(free, np.diff(least, axis=0), 0.0) >= -1e-7 * np.abs(least[1:])).all()
    bounds = Bounds(game).at(totals) / (totals - game.start)
    assert (np.where(free, np.diff(bounds, axis=0), 0.0) <= 1e-7 * (1.0 + bounds[1:])).all()


@given(consortia())
def test_bounds_of_small_clients_are_concave_and_rise(consortium: fa.Consortium) -> None:
    game = game_of(consortium)
    start, end = game.start.item(), float(game.samples.sum())
    assume(end > 1.01 * start)
    totals = np.linspace(start + 1e-3 * (end - start), end, 120)[:, np.newaxis]
    for n in range(consortium.size):
        one = game.clients(slice(n, n + 1))
        if not is_concave(one).all():
            continue
        bounds = Bounds(one).at(totals)[:, 0]
        below = (bounds < one.samples.item()) & (totals[:, 0] > one.satiation.item())
        steps = np.diff(bounds)[below[1:] & below[:-1]]
        rounding = 1e-10 * (end + one.samples.item())
        assert (steps >= -rounding).all()
        assert (np.diff(steps) <= rounding).all()


@pytest.mark.slow
@given(consortia(), st.floats(0.02, 0.98))
def test_an_agreement_exists_just_above_the_least_patience(
    consortium: fa.Consortium, other: float
) -> None:
    least = fa.smallest_discount_factor(consortium)
    for delta in (other, 0.9 * other):
        common = consortium._with(discount_factor=np.full(consortium.size, delta))
        if least is None:
            assert not fa.solve_agreement(common).exists
        elif delta > least * 1.01 + 1e-3:
            agreement = fa.solve_agreement(common)
            assert agreement.exists
            assert fa.certify(agreement).holds
        elif delta < least * 0.999:
            assert not fa.solve_agreement(common).exists


@pytest.mark.slow
@given(consortia())
def test_scaling_everything_changes_nothing_else(consortium: fa.Consortium) -> None:
    """Samples counted in thousands: the law's units and shifts are, too."""
    law = consortium.law
    other = fa.Consortium(
        valuation=consortium.valuation,
        cost_per_sample=1e3,
        samples=consortium.samples / 1e3,
        discount_factor=consortium.discount_factor,
        rounds=1,
        law=Law(law.value, law.unit / 1e3, law.shift / 1e3, law.exponent),
    )
    one, scaled = fa.solve_agreement(consortium), fa.solve_agreement(other)
    assert scaled.exists == one.exists
    assert np.isclose(1e3 * scaled.total, one.total, rtol=1e-8)
