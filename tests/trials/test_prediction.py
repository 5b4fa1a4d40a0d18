"""What a measured law predicts of a training, and how both are told."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest

import fedaccord as fa
from fedaccord import plots
from fedaccord.errors import InvalidInput
from fedaccord.game.curve import Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.numbers import FloatArray
from fedaccord.report import render_training
from fedaccord.summaries.prediction import gain_sentences, measured_gain, where_it_lies
from fedaccord.training.comparison import Estimate
from fedaccord.trials.prediction import Band, predict
from fedaccord.trials.profiles import PlayedProfile
from fedaccord.trials.trial import Trial, train

pytest.importorskip("torch")
ROUNDS = 5


def measured_law(measure: str = "error") -> Law:
    sizes = np.geomspace(10, 320, 6)
    noise = np.random.default_rng(0).normal(0, 0.004, (6, 5))
    return fit_law(Curve(sizes, range(5), (1.5 / np.sqrt(sizes))[:, np.newaxis] + noise, measure))


def consortium_with(law: Law | None, quality: float = 1.0) -> fa.Consortium:
    return fa.Consortium(
        valuation=np.array([4_000.0, 5_000.0, 6_000.0]),
        cost_per_sample=1.0,
        samples=100.0,
        rounds=ROUNDS,
        discount_factor=0.9,
        law=law,
        quality=quality,
    )


def profiles(*rows: list[float], slots: int = 1) -> list[PlayedProfile]:
    return [
        PlayedProfile(f"profile {n}", np.array([row] * slots), ("cooperating",) * slots)
        for n, row in enumerate(rows)
    ]


def widest(drawn: FloatArray, fitted: float) -> tuple[float, float]:
    """90 % of what was drawn, or of its mirror image about what was fitted, if that is wider."""
    low, high = np.quantile(drawn, [0.05, 0.95])
    return min(low, 2 * fitted - high), max(high, 2 * fitted - low)


def test_the_law_and_its_resamples_say_what_is_predicted() -> None:
    law = measured_law()
    first, second = predict(consortium_with(law), profiles([20, 0, 0], [60, 40, 50]), ROUNDS)
    assert (first.total, second.total) == (20, 150)
    assert law.evidence is not None
    drawn: FloatArray = law.evidence.resampled.loss(np.array([[20.0, 150.0]]))
    for prediction, losses in zip((first, second), drawn.T, strict=True):
        low, high = widest(losses, prediction.level.value)
        assert prediction.level.low == pytest.approx(low)
        assert prediction.level.high == pytest.approx(high)
        assert prediction.level.value == pytest.approx(float(law.loss(prediction.total)))
    assert (first.gain.low, first.gain.value, first.gain.high) == (0, 0, 0)
    low, high = widest(drawn[:, 0] - drawn[:, 1], second.gain.value)
    assert [second.gain.low, second.gain.high] == pytest.approx([low, high])


def test_samples_count_by_quality() -> None:
    consortium = consortium_with(measured_law(), quality=0.5)
    [one] = predict(consortium, profiles([60, 40, 100]), ROUNDS)
    assert one.total == 100


def test_nothing_is_predicted_of_what_was_not_measured() -> None:
    measured, two = consortium_with(measured_law()), profiles([20, 0, 0], [60, 40, 50])
    assert len(predict(measured, two, ROUNDS)) == 2
    assert predict(measured, two, ROUNDS + 1) == ()  # another law
    assert predict(measured, profiles([20, 0, 0], slots=2), ROUNDS) == ()  # a model that goes on
    assert predict(consortium_with(None), two, ROUNDS) == ()  # the paper's law
    assert predict(consortium_with(measured_law("1 - AUC")), two, ROUNDS) == ()
    assert predict(None, two, ROUNDS) == ()


@pytest.fixture(scope="module", params=["error", "loss"])
def trial(request: pytest.FixtureRequest) -> Trial:
    consortium = consortium_with(measured_law(request.param))
    contributions = {"little": [10.0, 0.0, 0.0], "much": [60.0, 40.0, 50.0]}
    return train(consortium, contributions, seeds=3)


@pytest.mark.slow
def test_train_shows_predictions_beside_what_it_measures(trial: Trial) -> None:
    record = trial.to_dict()
    assert [one["profile"] for one in record["predictions"]] == ["little", "much"]
    assert set(record["predictions"][1]["gain"]) == {"value", "low", "high"}
    page = render_training(trial)
    assert "Predicted" in page
    measure = trial.predictions[0].measure
    assert [("points" in one, measure) for one in gain_sentences(trial)[:1]] == [(True, measure)]
    assert "predicted" in gain_sentences(trial)[-1]
    values = {
        name: [1 - run.final.accuracy if measure == "error" else run.final.loss for run in runs]
        for name, runs in ((name, trial.of(name)) for name in ("little", "much"))
    }
    gain = np.mean(values["little"]) - np.mean(values["much"])
    assert measured_gain(trial, trial.predictions[1]).mean == pytest.approx(gain)


def test_without_predictions_nothing_is_said_of_them(trial: Trial) -> None:
    plain = replace(trial, predictions=())
    assert plain.to_dict()["predictions"] == []
    assert "redicted" not in render_training(plain) + "".join(gain_sentences(plain))


def test_the_picture_shows_the_law_and_every_profile(trial: Trial) -> None:
    law = measured_law(trial.predictions[0].measure)
    [axes] = plots.plot_prediction(law, trial).axes
    marks = [container.get_label() for container in axes.containers]
    assert [str(mark).split(",")[0] for mark in marks] == ["little", "much"]
    assert axes.get_ylabel() == (
        "Test accuracy (%)" if law.measure == "error" else f"Test {law.measure}"
    )
    with pytest.raises(InvalidInput, match="law: must be a measured law"):
        plots.plot_prediction(law, replace(trial, predictions=()))


@pytest.mark.parametrize(
    ("mean", "half_width", "words"),
    [
        (0.02, 0.001, "within the band"),
        (0.01, 0.0, "within the band"),
        (0.035, 0.01, "above the band, but the measurement's own 95 % interval reaches into it"),
        (0.005, 0.006, "below the band, but the measurement's own 95 % interval reaches into it"),
        (0.05, 0.01, "above the band, by more than chance: the law does not describe this"),
        (-0.01, 0.01, "below the band, by more than chance: the law does not describe this"),
        (-0.01, nan, "below the band, with a single seed"),
    ],
)
def test_whether_it_lies_in_the_band(mean: float, half_width: float, words: str) -> None:
    said = where_it_lies(Band(0.02, 0.01, 0.03), Estimate(mean, half_width))
    assert said.startswith(words)
