"""What is said about a training that a measured law predicted: both numbers, and whether they meet."""

from typing import TYPE_CHECKING

import numpy as np

from fedaccord.game.measured import LEVEL
from fedaccord.training.comparison import estimate

if TYPE_CHECKING:
    from fedaccord.training.comparison import Estimate
    from fedaccord.training.course import TrainingRun
    from fedaccord.trials.prediction import Band, Prediction
    from fedaccord.trials.trial import Trial

PREDICTED_NOTE = (
    f"Predicted: by the law of the loss, before this training, with {LEVEL:.0%} of the laws that "
    "fit the measurements as well."
)
"""What the column of predictions shows."""


def predicted_level(prediction: "Prediction") -> str:
    """The accuracy, or the loss, that the law predicts, with its band."""
    level = prediction.level
    if prediction.measure == "error":
        value, low, high = (100 * (1 - x) for x in (level.value, level.high, level.low))
        return f"{value:.2f} % ({low:.2f} to {high:.2f})"
    return f"{level.value:.4f} ({level.low:.4f} to {level.high:.4f})"


def predicted_heading(prediction: "Prediction") -> str:
    """The heading of the column of predictions, as two lines."""
    return f"Predicted\n{'accuracy' if prediction.measure == 'error' else 'loss'}"


def prediction_sentences(trial: "Trial") -> list[str]:
    """Of each profile but the first: the gain that was predicted, that was measured, and if they meet."""
    return [_sentence(trial, one) for one in trial.predictions[1:]]


def measured_gain(trial: "Trial", prediction: "Prediction") -> "Estimate":
    """How much lower the predicted measure was than under the first profile, seed by seed."""

    def value(run: "TrainingRun") -> float:
        return 1 - run.final.accuracy if prediction.measure == "error" else run.final.loss

    first = {run.seed: value(run) for run in trial.of(trial.predictions[0].profile)}
    return estimate([first[run.seed] - value(run) for run in trial.of(prediction.profile)])


def predicted_gain(prediction: "Prediction") -> str:
    """The band of a predicted gain."""
    gain = prediction.gain
    if prediction.measure == "error":
        return f"{_points(gain.low)} to {_points(gain.high)} points of accuracy"
    return f"a loss that is {gain.low:.4f} to {gain.high:.4f} lower"


def _sentence(trial: "Trial", prediction: "Prediction") -> str:
    measured = measured_gain(trial, prediction)
    found = (
        f"{_points(measured.mean)} points"
        if prediction.measure == "error"
        else f"{measured.mean:.4f} lower"
    )
    first = trial.predictions[0].profile
    return (
        f"{prediction.profile} against {first}: predicted {predicted_gain(prediction)}, measured "
        f"{found}: {where_it_lies(prediction.gain, measured)}."
    )


def where_it_lies(band: "Band", measured: "Estimate") -> str:
    """Whether what was measured lies in the band that was predicted, in words."""
    if band.holds(measured.mean):
        return "within the band"
    side = "above" if measured.mean > band.high else "below"
    if not np.isfinite(measured.half_width):
        return f"{side} the band, with a single seed"
    low, high = measured.mean - measured.half_width, measured.mean + measured.half_width
    if low <= band.high and high >= band.low:
        return f"{side} the band, but the measurement's own 95 % interval reaches into it"
    return f"{side} the band, by more than chance: the law was wrong here"


def _points(gain: float) -> str:
    return f"{100 * gain:+.2f}"
