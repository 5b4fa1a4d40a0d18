"""What is said about a training that a measured law predicted: both numbers, and if they meet."""

from typing import TYPE_CHECKING

import numpy as np

from fedaccord.game.curve import LEVEL
from fedaccord.summaries.training import gain_sentence
from fedaccord.training.estimates import Estimate, estimate

if TYPE_CHECKING:
    from fedaccord.training.course import TrainingRun
    from fedaccord.trials.prediction import Band, Prediction
    from fedaccord.trials.trial import Trial

PREDICTED_NOTE = (
    f"Predicted: by {100 * LEVEL:.0f} % of the laws of the loss that fit the measurements, which "
    "were made before this training."
)
"""What the column of predictions shows."""


def predicted_level(prediction: "Prediction") -> str:
    """The band of the accuracy (concordance, loss) that the law predicts."""
    low, high = prediction.level.low, prediction.level.high
    if prediction.measure == "error":
        return f"{100 * (1 - high):.1f} to {100 * (1 - low):.1f} %"
    if prediction.measure == "loss":
        return f"{low:.4f} to {high:.4f}"
    return f"{1 - high:.3f} to {1 - low:.3f}"


def predicted_heading(prediction: "Prediction") -> str:
    """The heading of the column of predictions, as two lines."""
    return f"Predicted\n{prediction.shown}"


def gain_sentences(trial: "Trial") -> list[str]:
    """The gain of each profile over the first one, beside the predicted gain if there is one."""
    predictions = {one.profile: one for one in trial.predictions[1:]}
    both_first = trial.predictions and trial.predictions[0].profile == trial.scores[0].profile
    said = []
    for score in trial.scores[1:]:
        prediction = predictions.get(score.profile)
        if prediction is None or prediction.measure == "loss" or not both_first:
            said.append(gain_sentence(trial, score))
        if prediction is not None:
            said.append(_sentence(trial, prediction))
    return said


def measured_gain(trial: "Trial", prediction: "Prediction") -> Estimate:
    """How much lower the predicted measure was than under the first profile, seed by seed."""

    def value(run: "TrainingRun") -> float:
        return run.final.loss if prediction.measure == "loss" else 1 - run.final.accuracy

    first = {run.seed: value(run) for run in trial.of(trial.predictions[0].profile)}
    return estimate([first[run.seed] - value(run) for run in trial.of(prediction.profile)])


def gain_in_words(prediction: "Prediction") -> str:
    """The band of a predicted gain."""
    gain = prediction.gain
    if prediction.measure == "error":
        return f"{100 * gain.low:+.2f} to {100 * gain.high:+.2f} points of accuracy"
    if prediction.measure == "loss":
        return f"{gain.low:.4f} to {gain.high:.4f} less loss"
    return f"{gain.low:+.3f} to {gain.high:+.3f} of {prediction.shown}"


def measured_in_words(prediction: "Prediction", measured: Estimate) -> str:
    """A measured gain and its interval, in the unit of the prediction."""
    if prediction.measure == "error":
        mean, width = f"{100 * measured.mean:+.2f} points", f"{100 * measured.half_width:.2f}"
    elif prediction.measure == "loss":
        mean, width = f"{measured.mean:.4f} less", f"{measured.half_width:.4f}"
    else:
        mean, width = f"{measured.mean:+.3f}", f"{measured.half_width:.3f}"
    return f"{mean} (± {width})" if np.isfinite(measured.half_width) else mean


def where_it_lies(band: "Band", measured: Estimate) -> str:
    """Whether what was measured lies in the band that was predicted, in words."""
    if band.holds(measured.mean):
        return "within the band"
    side = "above" if measured.mean > band.high else "below"
    if not np.isfinite(measured.half_width):
        return f"{side} the band, with a single seed"
    low, high = measured.mean - measured.half_width, measured.mean + measured.half_width
    if low <= band.high and high >= band.low:
        return f"{side} the band, but the measurement's own 95 % interval reaches into it"
    return f"{side} the band, by more than chance: the law does not describe this training"


def _sentence(trial: "Trial", prediction: "Prediction") -> str:
    measured = measured_gain(trial, prediction)
    return (
        f"{prediction.profile} against {trial.predictions[0].profile}: predicted "
        f"{gain_in_words(prediction)}, measured {measured_in_words(prediction, measured)}: "
        f"{where_it_lies(prediction.gain, measured)}."
    )
