"""Learning curves: what is refused, and what is taken for noise."""

import numpy as np
import pytest

from fedaccord.errors import InvalidInput
from fedaccord.game.curve import Curve
from fedaccord.game.measured import fit_law
from fedaccord.numbers import FloatArray

SIZES = np.array([120.0, 240.0, 480.0, 960.0, 1920.0, 2880.0])
FALLING = np.array([0.9, 0.7, 0.556, 0.5, 0.47, 0.45])


def by_seed(means: FloatArray, noise: float = 0.004, seeds: int = 5) -> FloatArray:
    """The means with noise whose own mean is exactly 0."""
    drawn = np.random.default_rng(0).normal(0, noise, (len(means), seeds))
    return np.asarray(means[:, np.newaxis] + drawn - drawn.mean(axis=1, keepdims=True))


@pytest.mark.parametrize("seeds", [1, 5])
def test_a_curve_that_rises_is_refused_with_the_place(seeds: int) -> None:
    values = by_seed(np.array([0.9, 0.7, 0.556, 0.56, 0.57, 0.583]), seeds=seeds)
    with pytest.raises(InvalidInput, match=r"at 480 samples 0\.556, at 2,880 0\.583: more data"):
        fit_law(Curve(SIZES, tuple(range(seeds)), values))


def test_a_curve_that_bends_the_wrong_way_is_refused_with_the_place() -> None:
    values = by_seed(np.array([0.9, 0.89, 0.85, 0.76, 0.3, 0.1]))
    wrong = r"at 960 samples 0\.76, above the line .* from 120 to 1,920: .* bends the wrong way"
    with pytest.raises(InvalidInput, match=wrong):
        fit_law(Curve(SIZES, range(5), values))


def test_a_rise_within_noise_is_none() -> None:
    values = by_seed(np.array([0.9, 0.7, 0.556, 0.5, 0.47, 0.475]), noise=0.02)
    assert fit_law(Curve(SIZES, range(5), values)).slope(480.0) > 0


def test_a_rise_that_other_test_examples_could_undo_is_none() -> None:
    means = np.array([0.9, 0.7, 0.556, 0.5, 0.47, 0.49])
    values = by_seed(means)
    with pytest.raises(InvalidInput, match="more data made it worse"):
        fit_law(Curve(SIZES, range(5), values))
    examples = np.clip(by_seed(means, noise=0.2, seeds=50), 0, None)
    assert fit_law(Curve(SIZES, range(5), values, by_example=examples)).slope(480.0) > 0


@pytest.mark.parametrize(
    ("sizes", "values", "wrong"),
    [
        ([100, 200], [[0.5], [0.4]], "has 2 sizes, which show no shape"),
        (list(range(1, 202)), [[0.5]] * 201, "has 201 sizes: give 200 or fewer"),
        ([100, 200, 300, 300], [[0.5]] * 4, "sizes must increase"),
        ([0, 200, 300, 400], [[0.5]] * 4, "sizes must be more than 0"),
        ([100, 200, 300, 400], [[0.5]] * 3, "a value for each of 4 sizes and 1 seeds"),
        ([100, 200, 300, 400], [[0.5], [np.nan], [0.4], [0.3]], "no value at 200 samples"),
        ([100, 200, 300, 400], [[0.5], [-0.1], [0.4], [0.3]], "at 200 samples: error must be f"),
        ([100, 200, 300, 400], [[0.5], [np.inf], [0.4], [0.3]], "at 200 samples: error must be f"),
        ([100, 200, 300, 400], [[0.0]] * 4, "the error is 0 at all sizes: nothing is lost"),
    ],
)
def test_what_is_no_curve_is_refused(sizes: list[float], values: list[float], wrong: str) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        Curve(sizes, (0,), values)


def test_a_flat_curve_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"does not fall: 0\.5 at 100 samples, 0\.5 at 400"):
        fit_law(Curve([100, 200, 300, 400], (0,), [[0.5]] * 4))


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'error'"):
        Curve(SIZES, (0,), FALLING[:, np.newaxis], "errors")


def test_values_may_be_missing() -> None:
    values = by_seed(FALLING)
    values[:3, 4] = np.nan
    curve = Curve(SIZES, range(5), values)
    assert curve.runs.tolist() == [4, 4, 4, 5, 5, 5]
    assert fit_law(curve, resamples=20).evidence is not None


def test_resampled_means_have_the_variance_of_the_seeds_and_examples() -> None:
    rng = np.random.default_rng(1)
    values = by_seed(FALLING, noise=0.02, seeds=8)
    examples = np.clip(FALLING[:, np.newaxis] + rng.normal(0, 0.1, 40), 0, None)
    curve = Curve(SIZES, range(8), values, by_example=examples)
    drawn = curve.resampled(20_000, np.random.default_rng(2))
    by_seed_alone = curve.widening**2 * values.var(axis=1, ddof=1) / 8
    expected = by_seed_alone + examples.var(axis=1, ddof=1) / 40
    assert drawn[:-1].var(axis=1) == pytest.approx(expected[:-1], rel=0.05)
    same = curve.resampled(20_000, np.random.default_rng(2), same_examples=True)
    assert same[:-1].var(axis=1) == pytest.approx(by_seed_alone[:-1], rel=0.05)
    assert drawn.mean(axis=1) == pytest.approx(FALLING, abs=1e-3)


def test_the_whole_pool_is_taken_to_be_as_noisy_as_smaller_sizes_suggest() -> None:
    values = by_seed(FALLING, noise=0.02)
    values[-1] = 0.45
    curve = Curve(SIZES, range(5), values)
    assert curve.noise[-1] > 0.005
    spread = np.sqrt((curve.seed_factors[-1] ** 2).sum() * 5)
    assert spread == pytest.approx(curve.noise[-1])


@pytest.mark.parametrize(
    ("seeds", "quantile"), [(2, 6.314), (3, 2.920), (5, 2.132), (10, 1.833), (31, 1.697)]
)
def test_few_seeds_are_made_up_for_by_students_t(seeds: int, quantile: float) -> None:
    curve = Curve(SIZES, range(seeds), by_seed(FALLING, seeds=seeds))
    assert curve.widening == pytest.approx(quantile / 1.645, rel=1e-3)  # from printed tables


def test_the_noise_of_a_fall_is_that_of_paired_runs() -> None:
    values = by_seed(FALLING, noise=0.02, seeds=8)
    examples = np.clip(FALLING[:, np.newaxis] + by_seed(0 * FALLING, 0.1, 40), 0, None)
    curve = Curve(SIZES, range(8), values, by_example=examples)
    seeds = curve.widening * (values[1] - values[3]).std(ddof=1)
    assert curve.noise_of_fall(240.0, 960.0, runs=4) == pytest.approx(seeds / 2)
    others = (examples[1] - examples[3]).std(ddof=1)
    both = curve.noise_of_fall([240.0, 240.0], [960.0, 240.0], runs=4, examples=9)
    assert both == pytest.approx([np.hypot(seeds / 2, others / 3), 0.0])
    assert curve.noise_of_fall(0.0, 960.0, runs=4) == curve.noise_of_fall(120.0, 960.0, runs=4)


def test_one_test_example_says_nothing_of_other_test_examples() -> None:
    one = Curve(SIZES, range(5), by_seed(FALLING), by_example=FALLING[:, np.newaxis])
    assert (one.example_factors == 0).all()
    two = Curve(SIZES, range(5), by_seed(FALLING), by_example=np.stack([FALLING, 0.5 * FALLING], 1))
    covariance = two.example_factors @ two.example_factors.T
    assert covariance == pytest.approx(np.cov(two.by_example) / 2)  # type: ignore[arg-type]


def test_a_curve_with_a_single_seed_may_fall_to_0() -> None:
    values = np.array([0.9, 0.5, 0.2, 0.05, 0.0, 0.0])[:, np.newaxis]
    Curve(SIZES, (0,), values).refuse_shape()
    values[-1] = 0.001  # a rise from 0, by more than noise at such an error
    with pytest.raises(InvalidInput, match="more data made it worse"):
        Curve(SIZES, (0,), values).refuse_shape()


def test_with_one_seed_noise_is_what_a_parabola_in_logarithms_leaves() -> None:
    """At even steps 1, -3, 3, -1 is orthogonal to every parabola, and one degree is left of four.

    Values of 0 have no logarithm. With three others a parabola leaves nothing, and only the least
    noise of any measurement: 1e-4 of the value, or of a hundredth of the largest.
    """
    step, rest = np.arange(4.0), 0.01 * np.array([1.0, -3.0, 3.0, -1.0])
    values = np.exp(-0.5 - 0.4 * step + 0.02 * step**2 + rest)
    noise = 0.01 * np.sqrt(1 + 9 + 9 + 1)
    curve = Curve(100 * 2.0**step, (0,), values[:, np.newaxis])
    assert curve.noise == pytest.approx(noise * values)
    longer = Curve(100 * 2.0 ** np.arange(5), (0,), np.append(values, 0.0)[:, np.newaxis])
    assert longer.noise[:4] == pytest.approx(noise * values)
    three = np.array([0.9, 0.5, 0.2, 0.0, 0.0])
    short = Curve(100 * 2.0 ** np.arange(5), (0,), three[:, np.newaxis])
    assert short.noise == pytest.approx([0.9e-4, 0.5e-4, 0.2e-4, 0.9e-6, 0.9e-6])


def test_noise_is_a_line_in_logarithms_without_the_largest_size() -> None:
    """Two seeds that are d above and below their mean have a standard deviation of sqrt(2) d."""

    def noise(apart: FloatArray) -> FloatArray:
        means = FALLING[: apart.size, np.newaxis]
        return Curve(SIZES[: apart.size], range(2), means + np.outer(apart, [1, -1])).noise

    usual = 0.2 * SIZES**-0.5
    odd = np.append(usual[:-1], 5.0 * usual[-1])
    for apart in (usual, odd):
        assert noise(apart) == pytest.approx(np.sqrt(2) * usual)
    # where all seeds agree there is nothing to draw a line through, and two points make no line
    some = np.array([0.02, 0.0, 0.0, 0.01, 0.0, 0.0])
    assert noise(some) == pytest.approx([np.sqrt(2) * np.sqrt(0.02 * 0.01)] * 6)


def test_the_largest_value_of_a_measure() -> None:
    """Nothing is computed of a loss above 1e50."""
    values = np.array([1e50, 9e49, 8e49, 7e49])
    Curve(SIZES[:4], (0,), values[:, np.newaxis], "loss")
    with pytest.raises(InvalidInput, match=r"from 0 to 1e\+50, got 1\.1e\+50"):
        Curve(SIZES[:4], (0,), np.append(1.1e50, values[1:])[:, np.newaxis], "loss")


def test_as_many_sizes_as_are_allowed() -> None:
    for number in (4, 200):
        Curve(np.arange(1, number + 1), (0,), np.linspace(0.9, 0.1, number)[:, np.newaxis])
    with pytest.raises(InvalidInput, match="has 3 sizes, which show no shape: measure at 4 or m"):
        Curve([1, 2, 3], (0,), [[0.9], [0.5], [0.4]])


@pytest.mark.parametrize("measure", ["1 - AUC", "error"])
def test_values_of_single_examples_may_be_negative_if_pairs_are_measured(measure: str) -> None:
    examples = np.stack([FALLING - 0.6, FALLING + 0.6], axis=1)
    values = FALLING[:, np.newaxis]
    if measure == "1 - AUC":
        assert Curve(SIZES, (0,), values, measure, examples).examples == 2
    else:
        with pytest.raises(InvalidInput, match="at 480 samples: error must be from 0 to"):
            Curve(SIZES, (0,), values, measure, examples)
    with pytest.raises(InvalidInput, match="keep all of them or none"):
        Curve(SIZES, (0,), values, measure, np.where(examples == examples[0, 0], np.nan, 0.5))
    for wrong in (FALLING, examples[:-1]):
        with pytest.raises(InvalidInput, match="for each of 6 sizes"):
            Curve(SIZES, (0,), values, measure, wrong)


def test_what_other_seeds_could_change_at_each_size() -> None:
    """The deviations of each seed over sqrt(n (n - 1)); a single run has the noise of all."""
    values = by_seed(FALLING, noise=0.02)
    values[2, 1:] = np.nan
    values[-1] = 0.45 + 0.1 * (values[-1] - values[-1].mean())
    curve = Curve(SIZES, range(5), values)
    factors = curve.seed_factors
    assert factors.shape == (6, 6)
    usual = [0, 1, 3, 4]
    expected = (values - values.mean(axis=1, keepdims=True)) / np.sqrt(20)
    assert factors[usual, :5] == pytest.approx(expected[usual])
    assert factors[:, 5] == pytest.approx([0, 0, curve.noise[2], 0, 0, 0])
    assert (factors[2, :5] == 0).all()
    # all seeds may have used the same samples at the largest size, and spread less than usual
    assert (factors[-1] ** 2).sum() == pytest.approx(curve.noise[-1] ** 2 / 5)
    assert np.corrcoef(factors[-1, :5], expected[-1])[0, 1] == pytest.approx(1.0)
    values[-1] = 0.45
    same = Curve(SIZES, range(5), values)
    assert (same.seed_factors[-1] ** 2).sum() == pytest.approx(same.noise[-1] ** 2 / 5)
    assert np.corrcoef(same.seed_factors[-1, :5], expected[-2])[0, 1] == pytest.approx(1.0)
    values[-1] = 0.45 + 0.05 * np.array([-1.0, 0.5, 0.0, 0.5, 0.0])
    more = Curve(SIZES, range(5), values)
    spread = values[-1].std(ddof=1)
    assert spread > more.noise[-1]
    assert (more.seed_factors[-1] ** 2).sum() == pytest.approx(spread**2 / 5)


def test_a_rise_within_the_noise_of_several_seeds_is_none_if_one_size_has_a_single() -> None:
    values = by_seed(np.array([0.9, 0.7, 0.556, 0.5, 0.47, 0.475]), noise=0.02)
    values[1, 1:] = np.nan
    Curve(SIZES, range(5), values).refuse_shape()
