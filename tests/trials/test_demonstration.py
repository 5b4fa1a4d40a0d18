"""The demo's consortium, data and test: real examples, none twice, and seeds of their own."""

import numpy as np
import pytest

from fedaccord.data.dataset import load_dataset
from fedaccord.files.consortium import demo_consortium
from fedaccord.game.curve import LEVEL
from fedaccord.summaries.demo import Story
from fedaccord.trials.demonstration import (
    agree_in_demo,
    demo_dataset,
    measure_demo,
    train_in_demo,
)

pytest.importorskip("torch")
SEEDS = 6


@pytest.fixture(scope="module")
def story() -> Story:
    certificate = agree_in_demo(measure_demo(SEEDS))
    return Story(certificate, train_in_demo(certificate, SEEDS))


def test_the_hospitals_have_what_is_not_needed_for_testing() -> None:
    consortium, digits, whole = demo_consortium(), demo_dataset(), load_dataset("digits")
    assert digits.size == consortium.samples.sum()
    kept = [digits.inputs, digits.test_inputs]
    assert sum(map(len, kept)) == len(whole.inputs) + len(whole.test_inputs) == 1797
    images = np.concatenate(kept).reshape(1797, -1)
    original = np.concatenate([whole.inputs, whole.test_inputs]).reshape(1797, -1)
    assert np.array_equal(np.sort(images, axis=0), np.sort(original, axis=0))


def test_the_discount_factor_is_as_its_comment_says() -> None:
    assert demo_consortium().discount_factor == pytest.approx((0.9 / 1.05) ** 0.25, abs=5e-4)


@pytest.mark.slow
def test_without_an_agreement_accuracy_is_left_on_the_table(story: Story) -> None:
    agreement = story.certificate.agreement
    assert agreement.equilibrium.free_riders > 0 == agreement.free_riders
    assert (agreement.saving > 0).all()
    before, after = story.trial.predictions
    assert before.level.low - after.level.low > 0.01
    assert after.gain.low > 0.01


@pytest.mark.slow
def test_the_agreement_holds_for_every_law_that_fits(story: Story) -> None:
    certificate = story.certificate
    assert certificate.holds
    assert certificate.agreement.robust
    assert certificate.under_laws is not None
    assert certificate.under_laws.held == certificate.under_laws.laws == 1000


def test_the_law_is_used_only_where_it_was_measured(story: Story) -> None:
    assert story.law.evidence is not None
    low, high = story.law.evidence.range
    for prediction in story.trial.predictions:
        assert low <= prediction.total <= high
    assert high == demo_consortium().samples.sum()


def test_the_test_has_seeds_that_the_measurement_had_not(story: Story) -> None:
    assert story.law.evidence is not None
    measured = set(story.law.evidence.curve.seeds)
    assert not measured & {run.seed for run in story.trial.runs}


def test_what_is_trained_on_is_what_was_agreed(story: Story) -> None:
    agreed = story.certificate.agreement
    equilibrium, agreement = story.trial.scores
    assert agreement.total == agreed.total
    assert equilibrium.total == pytest.approx(agreed.equilibrium.total, abs=3)


@pytest.mark.slow
def test_a_measurement_is_the_same_every_time() -> None:
    first, again = measure_demo(2), measure_demo(2)
    assert np.array_equal(first.curve.values, again.curve.values)


def test_the_verdict_is_that_of_the_two_numbers(story: Story) -> None:
    gain = story.trial.scores[1].accuracy_gain.mean
    band = story.trial.predictions[1].gain
    assert story.meets == (band.low <= gain <= band.high)
    assert ("within the band" in story.tested) == story.meets
    assert f"{100 * band.low:+.2f} to {100 * band.high:+.2f} points" in story.tested
    assert f"{100 * gain:+.2f} points" in story.tested
    assert any(f"{100 * LEVEL:.0f} % of the laws" in said for _, said in story.steps)
