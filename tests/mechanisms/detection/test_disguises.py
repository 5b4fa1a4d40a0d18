"""The disguises match the definitions in their papers."""

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.mechanisms.detection.setting import (
    DISGUISES,
    DecayingNoise,
    DeltaWeights,
    NoisyDelta,
    Nothing,
    RandomWeights,
    read_disguise,
)

PARAMETERS = 20_000
MODELS = np.cumsum(np.random.default_rng(0).normal(0.0, 0.02, (4, PARAMETERS)), axis=0)
# five times the relative error of a standard deviation of 20,000 numbers, 0.5 %
FIVE_SIGMA = 0.025


def made_by(disguise: object, models: object = MODELS, count: int = 3) -> np.ndarray:
    return disguise.updates(models, count, np.random.default_rng(5))  # type: ignore[attr-defined,no-any-return]


def test_nothing() -> None:
    assert not made_by(Nothing()).any()


def test_random_weights_are_uniform() -> None:
    updates = made_by(RandomWeights(0.3))
    assert np.abs(updates).max() <= 0.3
    assert updates.std() == pytest.approx(0.3 / np.sqrt(3), rel=FIVE_SIGMA)
    assert np.abs(np.corrcoef(updates) - np.eye(3)).max() < 0.05


def test_delta_is_the_last_step_for_everyone() -> None:
    for row in made_by(DeltaWeights()):
        assert np.array_equal(row, MODELS[3] - MODELS[2])


def test_noisy_delta_is_the_last_step_plus_noise_of_its_size() -> None:
    step = MODELS[3] - MODELS[2]
    noise = made_by(NoisyDelta(0.5)) - step
    np.testing.assert_allclose(noise.std(axis=1), 0.5 * step.std(), rtol=FIVE_SIGMA)
    assert np.abs(np.corrcoef(noise) - np.eye(3)).max() < 0.05
    assert np.array_equal(made_by(NoisyDelta(0.0)), made_by(DeltaWeights()))


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0, 2.0])
def test_decaying_noise_is_sigma_t_to_the_minus_gamma(decay: float) -> None:
    sigma = (MODELS[1] - MODELS[0]).std()
    for turn in (2, 3, 4):
        updates = made_by(DecayingNoise(decay), MODELS[:turn])
        expected = sigma * turn**-decay
        np.testing.assert_allclose(updates.std(axis=1), expected, rtol=FIVE_SIGMA)


@pytest.mark.parametrize("disguise", [DeltaWeights(), NoisyDelta(), DecayingNoise()])
def test_in_the_first_round_there_is_nothing_to_copy(disguise: object) -> None:
    assert not made_by(disguise, MODELS[:1]).any()


@pytest.mark.parametrize("name", DISGUISES)
def test_same_rng_same_updates(name: str) -> None:
    disguise = read_disguise(name)
    assert np.array_equal(made_by(disguise), made_by(disguise))
    assert made_by(disguise, count=7).shape == (7, PARAMETERS)


def test_by_name() -> None:
    assert [read_disguise(name) for name in DISGUISES] == [
        Nothing(),
        RandomWeights(),
        DeltaWeights(),
        NoisyDelta(),
        DecayingNoise(),
    ]
    assert read_disguise("random:0.01") == RandomWeights(0.01)
    assert read_disguise("decaying-noise:0.5") == DecayingNoise(0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("deltas", "no disguise called 'deltas': did you mean 'delta'"),
        ("delta:1", "delta: takes no number, got '1'"),
        ("random:", "random: R must be 0 or more, got ''"),
        ("random:-1", "R must be 0 or more, got '-1'"),
        ("noisy-delta:nan", "the noise must be 0 or more, got 'nan'"),
        ("decaying-noise:inf", "gamma must be 0 or more, got 'inf'"),
    ],
)
def test_rejected(text: str, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        read_disguise(text)
