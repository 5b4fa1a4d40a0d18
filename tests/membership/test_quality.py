"""Quality weights: simulated ones are found, others refused, and real ones on MNIST."""

import numpy as np
import pytest

from fedaccord.data.dataset import load_dataset
from fedaccord.game.curve import Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.membership.quality import Change, QualityWeight, quality_of
from fedaccord.membership.values import value_data
from fedaccord.numbers import FloatArray

BASES = np.array([2_000.0, 1_000.0])


def truth(total: FloatArray) -> FloatArray:
    return 0.2 + 3.0 * (total + 50.0) ** -0.5


@pytest.fixture(scope="module")
def law() -> Law:
    sizes = np.round(np.geomspace(60, 4_000, 13))
    noise = np.random.default_rng(0).normal(0, 0.002, (13, 10))
    return fit_law(Curve(sizes, range(10), truth(sizes)[:, np.newaxis] + noise, "loss"))


def change(quality: tuple[float, float], samples: float, noise: float = 1e-4) -> Change:
    """What samples of this quality at each base do, with noise by seed and by example."""
    rng = np.random.default_rng(1)
    with_it = truth(BASES + np.array(quality) * samples) - truth(BASES)
    by_seed = with_it[:, np.newaxis] + noise * np.sqrt(10) * rng.normal(size=(1, 10))
    by_example = with_it[:, np.newaxis] + noise * np.sqrt(200) * rng.normal(size=(1, 200))
    centred = by_seed - by_seed.mean(axis=1, keepdims=True) + with_it[:, np.newaxis]
    return Change(centred, by_example)


def found(law: Law, quality: tuple[float, float], samples: float, noise: float) -> QualityWeight:
    return quality_of("East", samples, BASES, change(quality, samples, noise), law)


@pytest.mark.parametrize("quality", [0.4, 1.0, 1.5])
def test_a_quality_is_found(law: Law, quality: float) -> None:
    weight = found(law, (quality, quality), 500.0, 1e-4)
    assert weight.verdict == "usable"
    assert weight.value == pytest.approx(quality, rel=0.15)
    assert weight.low < quality < weight.high
    assert weight.low == pytest.approx(weight.value, rel=0.5)


def test_a_quality_that_depends_on_the_base_is_refused(law: Law) -> None:
    weight = found(law, (0.2, 1.2), 500.0, 1e-4)
    assert weight.verdict == "depends on the rest"
    assert weight.at_bases == pytest.approx((0.2, 1.2), rel=0.2)


def test_harm_at_both_bases_is_left_out_even_if_they_differ(law: Law) -> None:
    assert found(law, (-0.5, -1.5), 300.0, 1e-4).verdict == "leave it out"
    assert found(law, (0.8, -1.5), 300.0, 1e-4).verdict == "depends on the rest"


def test_few_samples_tell_nothing(law: Law) -> None:
    weight = found(law, (1.0, 1.0), 5.0, 1e-3)
    assert weight.verdict == "too uncertain"
    assert weight.low < 0
    assert weight.high > 2


def test_more_than_all_data_could_bring_is_infinite_and_not_used(law: Law) -> None:
    far = Change(np.full((2, 10), -5.0), np.full((2, 200), -5.0))
    weight = quality_of("East", 100.0, BASES, far, law)
    assert weight.value == np.inf
    assert weight.verdict != "usable"
    assert weight.to_dict()["value"] is None


@pytest.mark.slow
def test_intervals_cover_the_quality(law: Law) -> None:
    """The law's own noise is in them, so they are wide: at least as often as they say."""
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mean = truth(BASES + 0.7 * 500) - truth(BASES)
        by_seed = mean[:, np.newaxis] + 0.002 * rng.normal(size=(2, 10))
        by_example = by_seed.mean(axis=1, keepdims=True) + 0.002 * rng.normal(size=(2, 200))
        weight = quality_of("East", 500.0, BASES, Change(by_seed, by_example), law, seed=seed)
        covered.append(weight.low <= 0.7 <= weight.high)
    assert np.mean(covered) >= 0.93


@pytest.mark.slow
@pytest.mark.originals("mnist")
def test_noisy_inputs_and_wrong_labels_on_mnist() -> None:
    """Noisy inputs are worth less than clean ones; wrong labels do harm; few samples are noise."""
    mnist, rng = load_dataset("mnist"), np.random.default_rng(0)
    order, data, at = rng.permutation(mnist.size), {}, 0
    sizes = {"clean": 1_500, "more": 1_100, "noisy": 600, "wrong": 400, "small": 40}
    for name, size in sizes.items():
        chosen = order[at : at + size]
        inputs, labels = mnist.inputs[chosen], mnist.labels[chosen]
        at += size
        if name == "noisy":
            inputs = inputs + rng.normal(0, 0.5, inputs.shape).astype(np.float32)
        if name == "wrong":
            labels = np.where(rng.random(size) < 0.25, rng.integers(0, 10, size), labels)
        data[name] = (inputs, labels)
    data["test"] = (mnist.test_inputs[:3_000], mnist.test_labels[:3_000])
    weights = {
        weight.name: weight for weight in value_data(data=data, seeds=6, quality="loss").quality
    }
    assert weights["wrong"].verdict == "leave it out"
    assert weights["small"].verdict == "too uncertain"
    assert weights["wrong"].value < 0 < weights["noisy"].value < weights["more"].value
