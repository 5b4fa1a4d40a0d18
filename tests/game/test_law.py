"""The law of the loss: against 60 digits, and what its class contains."""

from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.game.law_rows import rows_of, some_rows, stacked
from fedaccord.numbers import FloatArray

EXACTLY_AS_PRINTED = 6e-16
"""Relative: how far off differences of the loss are, as our notes say."""


def random_law(rng: np.random.Generator, exponent: float, terms: int, *, shifted: bool) -> Law:
    shift = 10.0 ** rng.uniform(-2, 3, terms) if shifted else np.zeros(terms)
    return Law.of_weights(10.0 ** rng.uniform(-3, 3, terms), shift, np.full(terms, exponent))


def numbers_of(law: Law) -> list[tuple[Decimal, Decimal, Decimal, Decimal]]:
    given = (law.value, law.unit, law.shift, law.exponent)
    columns = [[Decimal(float(one)) for one in values.ravel()] for values in given]
    return list(zip(*columns, strict=True))


def fall_by_digits(law: Law, total: float, gap: float) -> float:
    """A(X) - A(X + gap) with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        before, after = Decimal(total), Decimal(total) + Decimal(gap)
        return float(
            sum(
                value * ((unit / (before + shift)) ** power - (unit / (after + shift)) ** power)
                for value, unit, shift, power in numbers_of(law)
            )
        )


def slope_by_digits(law: Law, total: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        at = Decimal(total)
        return sum(
            (
                value * power / (at + shift) * (unit / (at + shift)) ** power
                for value, unit, shift, power in numbers_of(law)
            ),
            Decimal(0),
        )


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.83, 1.0, 2.0, 3.7])
@pytest.mark.parametrize("shifted", [False, True])
def test_differences_lose_nothing(exponent: float, shifted: bool) -> None:
    """Gaps from 1e-14 X to 1e3 X, against 60 digits."""
    rng = np.random.default_rng(1)
    off = []
    for k in range(60):
        law = random_law(rng, exponent, 1 + k % 4, shifted=shifted)
        total = float(10.0 ** rng.uniform(-3, 6))
        gap = total * float(10.0 ** rng.uniform(-14, 3))
        exact = fall_by_digits(law, total, gap)
        off.append(abs(float(law.fall(total, gap)) / exact - 1.0))
    assert np.median(off) < 0.5 * EXACTLY_AS_PRINTED
    # the rounding of (unit / (X + shift))^p counts p times
    assert max(off) < EXACTLY_AS_PRINTED * max(1.0, exponent)


@pytest.mark.parametrize("power", [1e2, 1e4, 1e8])
def test_nearly_exponential_laws_lose_nothing_either(power: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        length = float(10.0 ** rng.uniform(0, 4))
        law = Law.mixture([1.0], [power * length], power)
        total, gap = (float(length * 10.0 ** rng.uniform(-3, 1)) for _ in range(2))
        exact = fall_by_digits(law, total, gap)
        assert float(law.fall(total, gap)) == pytest.approx(exact, rel=2e-14)
        ratio = float(1 / slope_by_digits(law, total))
        assert float(law.stop(ratio)) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("terms", [1, 2, 4, 9])
def test_satiation_points_are_where_the_slope_is_as_asked(terms: int) -> None:
    rng = np.random.default_rng(terms)
    for k in range(40):
        exponent = float(rng.choice([0.25, 0.5, 1.0, 2.0, 3.3]))
        law = random_law(rng, exponent, terms, shifted=k % 2 == 0)
        total = float(10.0 ** rng.uniform(-2, 6))
        ratio = float(1 / slope_by_digits(law, total))
        rounding = 1e-15 * (1.0 + float(law.shift.max()) / total)
        assert float(law.stop(ratio)) == pytest.approx(total, rel=20 * rounding)


def test_satiation_points_of_wild_ratios() -> None:
    """From 1e-100 to 1e100, climbing and never beyond the point."""
    ratio = 10.0 ** np.linspace(-100, 100, 401)
    for law in (
        Law.of_weights([1.0, 1e3, 1e-3], [0.0, 10.0, 1e4], [0.3, 2.0, 1.0]),
        Law.mixture([6.4555, 0.8714, 0.0232, 0.0434], [11.7, 21.1, 405.5, 732.2]),
        Law.of_weights([1.0, 1.0], [0.0, 0.0], [0.5, 4.0]),
    ):
        point = law.stop(ratio)
        assert np.isfinite(point).all()
        assert (np.diff(point) >= 0).all()
        some = point > 1e-6
        np.testing.assert_allclose((ratio * law.slope(point))[some], 1.0, rtol=1e-10)
        nothing = point == 0
        assert (ratio[nothing] * law.slope(0.0) <= 1.0).all()


def test_satiation_points_of_very_many_are_those_of_each() -> None:
    rng = np.random.default_rng(5)
    law = Law.mixture([6.4555, 0.8714, 0.0232, 0.0434], [11.7, 21.1, 405.5, 732.2])
    ratio = 10.0 ** rng.uniform(-1, 6, 50_001)
    some = rng.integers(0, ratio.size, 100)
    np.testing.assert_allclose(law.stop(ratio)[some], [float(law.stop(r)) for r in ratio[some]])
    personal = Law(np.tile(law.value[:, np.newaxis], 50_001), law.unit, law.shift, law.exponent)
    np.testing.assert_allclose(personal.stop(ratio), law.stop(ratio), rtol=1e-14)


def test_no_data_at_all() -> None:
    law = Law.power(100.0, 1.0, 100.0)
    assert law.finite_at_zero
    assert float(law.loss(0.0)) == 1.0
    assert float(law.fall(0.0, 100.0)) == 0.5
    assert law.stop([1.0, 100.0, 100.1]).tolist() == [0.0, 0.0, pytest.approx(0.05, abs=1e-4)]
    assert not Law.paper(50).finite_at_zero
    assert float(Law.paper(50).loss(0.0)) == np.inf


# --- Laws outside the class ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"weight": [1.0, -0.5]}, "weights must be 0 or more, got -0.5"),
        ({"weight": [0.0, 0.0]}, "never falls"),
        ({"weight": [np.nan, 1.0]}, "weights must be 0 or more, got nan"),
        ({"shift": [-1.0, 0.0]}, "shifts must be 0 or more, got -1"),
        ({"exponent": [0.5, 0.0]}, "exponents must be more than 0, got 0"),
        ({"floor": np.inf}, "floor must be a number, got inf"),
        ({"weight": [], "shift": [], "exponent": []}, "at least one term"),
    ],
)
def test_a_law_that_could_rise_or_bend_the_wrong_way_is_refused(
    fields: dict[str, object], words: str
) -> None:
    given = {"weight": [1.0, 1.0], "shift": [0.0, 1.0], "exponent": [0.5, 2.0], **fields}
    with pytest.raises(InvalidInput, match=words):
        Law.of_weights(**given)  # type: ignore[arg-type]


CORNERS = np.array([0.0, 34.0, 35.0, 81.0, 82.0, 1e9])
SLOPES = np.array([1.0, 1.0, 0.6, 0.6, 0.18, 0.18])
"""A convex law's slope at the corners, straight in between: not log-convex."""


def broken_loss(total: FloatArray) -> FloatArray:
    """The law with those slopes."""
    fallen = np.append(0.0, np.cumsum(np.diff(CORNERS) * (SLOPES[1:] + SLOPES[:-1]) / 2.0))
    n = np.searchsorted(CORNERS, total, side="right") - 1
    mean = (SLOPES[n] + np.interp(total, CORNERS, SLOPES)) / 2.0
    return np.asarray(-(fallen[n] + (total - CORNERS[n]) * mean))


def test_a_convex_law_outside_the_class_may_rule_out_two_intervals() -> None:
    """A contributor with 22 samples: fine, too much, fine, too much, fine, as the total rises."""
    data, ratio, total_alone, delta = 22.0, 1.05, 33.0, 0.3
    totals = np.arange(37.0, 200.0)
    amounts = np.linspace(0.0, data, 2_201)
    after = (totals - data)[:, np.newaxis] + amounts
    least = (amounts + ratio * broken_loss(after)).min(axis=1)
    keeps = data + ratio * broken_loss(totals) <= (1.0 - delta) * least + delta * (
        data + ratio * broken_loss(np.array(total_alone))
    )
    expected = [(37, True), (42, False), (61, False), (63, True), (95, True), (97, False)]
    for total, kept in [*expected, (136, False), (139, True)]:
        assert keeps[int(total - 37)] == kept, total
    assert np.count_nonzero(np.diff(keeps.astype(int))) == 4


def test_a_kink_at_the_equilibrium_takes_the_critical_clients_share() -> None:
    """The slope falls from 1 to 0.4 at 100: the second client keeps to less than at S."""
    ratio, delta, data = 1.2, 0.5, 60.0

    def loss(total: FloatArray) -> FloatArray:
        return np.asarray(-np.minimum(total, 100.0) - 0.4 * np.maximum(total - 100.0, 0.0))

    total, amounts = 101.0, np.linspace(0.0, data, 600_001)
    slip = np.clip(100.0 - (total - amounts), 0.0, amounts)  # the slope is above 1/r below 100
    least = slip + ratio * loss(total - amounts + slip)
    reverted = 40.0 + ratio * loss(np.array(100.0))
    keeps = amounts + ratio * loss(np.array(total)) <= (1 - delta) * least + delta * reverted
    assert amounts[keeps].max() == pytest.approx(39.96, abs=0.005)
    worth = ratio * 0.4
    assert (worth - (1 - delta)) / delta == pytest.approx((39.96 - 40.0) / 1.0, abs=1e-6)


def test_a_law_that_is_not_convex_has_two_equilibria() -> None:
    amounts = np.linspace(0.0, 40.0, 4_001)

    def settled(profile: list[float]) -> list[float]:
        for turn in range(90):
            others = sum(profile) - profile[turn % 3]
            cost = 60.0 / (1.0 + np.exp((others + amounts - 50.0) / 5.0)) + amounts
            profile[turn % 3] = float(amounts[np.argmin(cost)])
        return profile

    assert sum(settled([0.0, 0.0, 0.0])) == 0.0
    assert sum(settled([20.0, 20.0, 20.0])) == pytest.approx(61.46, abs=0.01)


def test_clients_that_weigh_each_others_samples_differently_have_several_totals() -> None:
    """h = 30 for both, and each counts the other's samples twice: outside what quality can say."""
    for first, second in ((30.0, 0.0), (0.0, 30.0), (10.0, 10.0)):
        assert max(30.0 - 2.0 * second, 0.0) == first
        assert max(30.0 - 2.0 * first, 0.0) == second
    with pytest.raises(InvalidInput, match="quality"):
        Consortium(
            valuation=[1.0, 1.0],
            cost_per_sample=1.0,
            samples=40.0,
            discount_factor=0.5,
            rounds=1,
            quality=[[1.0, 2.0], [2.0, 1.0]],
        )


def test_a_law_does_not_hold_on_to_the_callers_arrays() -> None:
    values, shifts = np.array([1.0, 2.0]), np.array([10.0, 100.0])
    law = Law.mixture(values, shifts)
    before = float(law.loss(50.0))
    values[:] = 7.0
    assert float(law.loss(50.0)) == before
    with pytest.raises(ValueError, match="read-only"):
        law.value[0] = 3.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value": -1e-9}, "weights must be 0 or more"),
        ({"value": np.inf}, "weights must be 0 or more"),
        ({"unit": 0.0}, "units must be more than 0"),
        ({"unit": np.inf}, "units must be more than 0"),
        ({"shift": -1e-9}, "shifts must be 0 or more"),
        ({"shift": np.inf}, "shifts must be 0 or more"),
        ({"exponent": 0.0}, "exponents must be more than 0"),
        ({"exponent": np.nan}, "exponents must be more than 0"),
        ({"value": 0.0}, "never falls"),
    ],
)
def test_each_number_of_a_law_has_its_bounds(wrong: dict[str, float], message: str) -> None:
    right = Law(np.ones(1), np.ones(1), np.zeros(1), np.array([0.5]), np.array(0.0))
    numbers: Any = {name: np.array([number]) for name, number in wrong.items()}
    with pytest.raises(InvalidInput, match=message):
        replace(right, **numbers)


@pytest.mark.parametrize("floor", [np.nan, np.inf])
def test_a_law_s_floor_is_a_number(floor: float) -> None:
    one = np.ones(1)
    assert Law(one, one, 0 * one, one, np.array(-1.0)).floor == -1.0
    with pytest.raises(InvalidInput, match="the floor must be a number"):
        Law(one, one, 0 * one, one, np.array(floor))


@pytest.mark.parametrize("value", [np.array(1.0), np.zeros(0), np.zeros((0, 3))])
def test_a_law_has_at_least_one_term(value: FloatArray) -> None:
    with pytest.raises(InvalidInput, match="at least one term"):
        Law(value, np.ones(1), np.zeros(1), np.ones(1), np.array(0.0))


class Logarithmic(Law):
    """A loss of one's own, beside the terms of a law that it is not."""

    def loss(self, total: Any) -> Any:
        return 2.0 - np.log1p(total) / 20.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Logarithmic(*(np.ones(1),) * 4),
        lambda: Logarithmic.paper(50),
        lambda: Logarithmic.power(scale=1.0, exponent=0.5),
        lambda: Logarithmic.personal([Law.paper(50)]),
    ],
)
def test_a_subclass_is_refused_by_name(make: Any) -> None:
    """The solvers would use the terms of its base class, and the certificate its own loss."""
    with pytest.raises(InvalidInput, match=r"law: the subclass Logarithmic .* Law\.mixture"):
        make()


@pytest.mark.parametrize("law", [np.sqrt, 3, [np.sqrt]], ids=repr)
def test_what_is_no_law_is_refused(law: Any) -> None:
    clients: dict[str, Any] = {
        "valuation": 1e6,
        "cost_per_sample": 0.004,
        "samples": 1000.0,
        "discount_factor": 0.8,
        "law": law,
    }
    for build in (Consortium, fa.solve_batch):
        with pytest.raises(InvalidInput, match="law: must be of type Law"):
            build(**clients, rounds=50)
    with pytest.raises(InvalidInput, match="laws: must be of type Law"):
        fa.solve_agreement(fa.paper_consortium(clients=3), laws=[law])


def test_laws_one_below_the_other_are_each_itself() -> None:
    """With other numbers of terms, floors and exponents, twice over, and a row of them again."""
    laws = [
        Law.paper(50),
        Law.mixture([0.5, 0.0, 0.3], [10.0, 20.0, 200.0], floor=0.1),
        Law.power(2.0, 0.3, shift=5.0, floor=0.2),
        Law.mixture([0.4, 0.6], [30.0, 300.0], 1.5),
    ]
    totals = np.geomspace(1.0, 1e6, 30)
    at = np.broadcast_to(totals, (len(laws), totals.size))
    both = stacked([stacked(laws[:2]), *laws[2:]])
    assert len(both.value) == 2  # the most terms that count
    for several in (stacked(laws), both, rows_of(both)):
        for number in ("loss", "slope", "bend"):
            expected = [getattr(law, number)(totals) for law in laws]
            np.testing.assert_allclose(getattr(several, number)(at), expected, rtol=1e-14)
        assert (several.floor.shape, several.measure) == ((len(laws), 1), "loss")
    some = some_rows(both, np.array([3, 1]))
    np.testing.assert_allclose(some.loss(at[:2]), [laws[3].loss(totals), laws[1].loss(totals)])
    one = rows_of(laws[1])
    assert (one.value.shape, one.floor.shape) == ((2, 1, 1), (1, 1))
    np.testing.assert_allclose(one.loss(at[:1])[0], laws[1].loss(totals))


def test_all_laws_that_are_stacked_keep_their_measure() -> None:
    errors = [Law.power(scale, 0.3, measure="error") for scale in (1.0, 2.0)]
    assert (stacked(errors).measure, stacked(errors).kind) == ("error", "power")
    assert stacked([*errors, Law.mixture([0.5], [9.0], measure="error")]).kind == "power"


SHAPES = {
    "the paper's": Law.paper(50),
    "a root of another unit": Law.of_weights([2.0], [5.0], [0.5]),
    "power 1": Law.power(40.0, 1.0, shift=3.0, floor=0.1),
    "power 2": Law.mixture([0.6], [70.0], 2.0),
    "any": Law.power(2.0, 0.27, shift=1.0),
    "nearly exponential": Law.mixture([0.6], [900.0], 90.0),
    "several": Law.mixture([0.5, 0.3, 0.0], [10.0, 300.0, 40.0], 2.0, floor=0.2),
    "several kinds": Law.of_weights([2.0, 30.0, 0.4], [0.0, 5.0, 1.0], [0.5, 1.0, 0.2]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_what_its_terms_say(shape: str) -> None:
    """The loss, its derivatives, and where each has a given value, against 60 digits."""
    law = SHAPES[shape]
    for total in (0.7, 12.0, 345.0, 20_000.0):
        with localcontext() as context:
            context.prec = 60
            at = Decimal(total)
            loss, slope, bend = (
                float(
                    sum(
                        (
                            value * (unit / (at + shift)) ** power * factor(power, at + shift)
                            for value, unit, shift, power in numbers_of(law)
                        ),
                        Decimal(0),
                    )
                )
                for factor in (
                    lambda p, x: Decimal(1),
                    lambda p, x: p / x,
                    lambda p, x: p * (p + 1) / x**2,
                )
            )
        found = [float(each(total)) for each in (law.loss, law.slope, law.bend)]
        assert found == pytest.approx([loss + float(law.floor), slope, bend], rel=1e-13)
        if loss > 1e-6:  # nearer to the floor, that is all there is of the loss
            assert law.reach(found[0]) == pytest.approx(total, rel=1e-8)
        assert law.stop(1.0 / slope) == pytest.approx(total, rel=1e-9)


def test_personal_laws_are_each_clients_own() -> None:
    """With one, two and three terms, and floors of their own; and what all lose together."""
    laws = [Law.paper(50), SHAPES["several"], SHAPES["several kinds"], SHAPES["any"]]
    together, totals = Law.personal(laws), np.geomspace(1.0, 1e5, 9)
    columns = np.broadcast_to(totals[:, np.newaxis], (9, 4))
    for number in ("loss", "slope", "bend"):
        expected = np.stack([getattr(law, number)(totals) for law in laws], axis=1)
        np.testing.assert_allclose(getattr(together, number)(columns), expected, rtol=1e-14)
        for n in range(4):
            own = getattr(together.of(n), number)(totals)
            np.testing.assert_allclose(own, expected[:, n], rtol=1e-14)
        weights = np.array([3.0, 0.5, 2.0, 10.0])
        all_lose = getattr(together.together(weights), number)(totals)
        np.testing.assert_allclose(all_lose, expected @ weights, rtol=1e-13)
        alike = getattr(laws[1].together(weights), number)(totals)
        np.testing.assert_allclose(alike, expected[:, 1] * weights.sum(), rtol=1e-13)
    worth = 1.0 / together.slope(columns)
    np.testing.assert_allclose(together.stop(worth), columns, rtol=1e-9)
    same = Law.paper(50)
    assert same.of(3) is same
    with pytest.raises(InvalidInput, match="needs a law for each client"):
        Law.personal([])
    with pytest.raises(InvalidInput, match=r"different measures: \['error', 'loss'\]"):
        Law.personal([Law.power(1.0, 0.5, measure="error"), same])


def test_the_power_law_through_two_results() -> None:
    law = Law.through((1_000, 0.22), (4_000, 0.16), floor=0.1, measure="error")
    assert law.loss([1_000.0, 4_000.0]) == pytest.approx([0.22, 0.16])
    assert float(law.exponent[0]) == pytest.approx(0.5)
    assert (float(law.floor), law.measure, law.kind) == (0.1, "error", "power")
    for few, many in (((1, 0.2), (1, 0.1)), ((2, 0.2), (1, 0.1)), ((0, 0.2), (1, 0.1))):
        with pytest.raises(InvalidInput, match="more samples must mean a lower loss"):
            Law.through(few, many)
    with pytest.raises(InvalidInput, match="more samples must mean a lower loss"):
        Law.through((1, 0.2), (2, 0.2))
    for floor in (-0.01, 0.1, 0.15):
        with pytest.raises(InvalidInput, match="as good as what is never reached"):
            Law.through((1, 0.2), (2, 0.1), floor=floor)


def test_a_term_that_a_client_does_not_have_is_nothing_even_without_data() -> None:
    """0 times infinity would be no number."""
    value = np.array([[1.0, 0.0], [0.0, 2.0]])
    law = Law(value, np.ones(2), np.zeros(2), np.array([0.5, 1.0]), np.zeros(2), kind="personal")
    assert law.loss([4.0, 4.0]).tolist() == [0.5, 0.5]
    assert law.loss([0.0, 0.0]).tolist() == [np.inf, np.inf]
    one = Law(np.array([0.0, 2.0]), np.ones(2), np.array([0.0, 3.0]), np.ones(2))
    assert law.of(1).loss(4.0) == 0.5
    assert one.loss([0.0, 1.0]).tolist() == pytest.approx([2 / 3, 0.5])
