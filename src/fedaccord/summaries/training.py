"""What is said about a training."""

from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.data.inputs import scale_note
from fedaccord.data.notes import partition_notes
from fedaccord.data.partition import skew_of
from fedaccord.data.scale import rounding_note
from fedaccord.numbers import count
from fedaccord.summaries.match import account_of, some
from fedaccord.summaries.words import listed
from fedaccord.training.estimates import Estimate
from fedaccord.training.records import ALONE

if TYPE_CHECKING:
    from fedaccord.training.comparison import AloneScore, Comparison, ProfileScore
    from fedaccord.trials.profiles import PlayedProfile
    from fedaccord.trials.trial import Trial


def training_record(trial: "Trial", skew: float | None = None) -> dict[str, Any]:
    """Everything that was measured, and what to know about it, as `train` prints it."""
    return trial.to_dict() | {"notes": training_notes(trial), "skew": skew}


def training_title(comparison: "Comparison") -> str:
    """What was measured, in a few words."""
    measure, (first, *others) = comparison.measure, comparison.scores
    if not others:
        return f"{written_score(first.accuracy, measure)} test {measure} under {first.profile}"
    single = comparison.seeds == 1
    told = [score for score in others if single or score.accuracy_gain.sure]
    if not told:
        return f"No sure difference in {measure}"
    largest = max(told, key=lambda score: abs(score.accuracy_gain.mean))
    gain = largest.accuracy_gain.mean
    seeds = ", with a single seed" if single else ""
    if gain == 0:
        return f"The same {measure}{seeds}"
    more = "more" if gain > 0 else "less"
    against = f"under {largest.profile} than under {first.profile}{_which_test(comparison)}"
    return f"{_difference(abs(gain), measure)} {more} {measure} {against}{seeds}"


def setting_sentence(comparison: "Comparison") -> str:
    """What was trained on, and how."""
    course = comparison.course
    data = course.model.dataset
    slots = count(len(comparison.runs[0].slots), "slot")
    scale = "" if course.scale == 1 else f"; one example stands for {1 / course.scale:,.4g} samples"
    skew = label_skew(comparison)
    labels = "" if skew is None else f"; labels skewed, alpha {skew:g}"
    epochs = course.fine_tuning
    tuning = f"; fine-tuned by each client for {count(epochs, 'epoch')}" if epochs else ""
    server = f"; {course.optimiser_in_words}" if course.optimiser_in_words else ""
    return (
        f"Task {course.model.task.name} on {data.name} ({data.size:,} training examples), "
        f"{count(course.rounds, 'round')} in a slot, {slots}, "
        f"{count(comparison.seeds, 'seed')}{server}{labels}{tuning}{scale}"
    )


def gain_sentence(comparison: "Comparison", score: "ProfileScore") -> str:
    """The gain of a profile over the first one, and how certain it is as far as seeds can tell."""
    gain, measure = score.accuracy_gain, comparison.measure
    who = f"{score.profile} against {comparison.scores[0].profile}{_which_test(comparison)}"
    points = _difference(gain.mean, measure, "+")
    if gain.mean == 0 == gain.half_width:
        return f"{who}: the same {measure} with every seed."
    if not np.isfinite(gain.half_width):
        return f"{who}: {points} of {measure}, from a single seed."
    low, high = (gain.mean + side * gain.half_width for side in (-1, 1))
    ends = [written_score(Estimate(end, np.nan), measure, signed=True) for end in (low, high)]
    if ends[0] == ends[1]:
        return f"{who}: {points} of {measure} with every seed."
    between = f"(95 % interval over the seeds {ends[0]} to {ends[1]})"
    chance = "" if gain.sure else ", which may be chance"
    return f"{who}: {points} of {measure} {between}{chance}."


def _which_test(comparison: "Comparison") -> str:
    """Said where clients have tests of their own as well."""
    return ", on everyone's test" if comparison.scores[0].clients else ""


def training_notes(trial: "Trial") -> list[str]:
    """What to know about the runs: which agreement does not exist, who slipped, and so on.

    A model that was trained on nothing, or on rather more or less than agreed, says little about
    the data, so that is noted as well.
    """
    notes = [f"{profile.name}: {line}" for profile in trial.played for line in _course_of(profile)]
    for profile in trial.played:
        run = trial.of(profile.name)[0]
        idle = [slot.slot for slot in run.slots if slot.total == 0]
        if idle:
            notes.append(
                f"{profile.name}: nothing was trained on in {len(idle):,} of "
                f"{count(len(run.slots), 'slot')} (slot {idle[0]}: nobody contributes)"
            )
        if coarse := rounding_note(profile.contributions[0], trial.course.scale):
            notes.append(f"{profile.name}: {coarse}")
    return notes + data_notes(trial)


def data_notes(comparison: "Comparison") -> list[str]:
    """Whose data says little, and which features have scales that are far apart."""
    uneven = scale_note(comparison.course.model.dataset)
    notes = partition_notes(comparison.course.partition(comparison.runs[0].seed))
    return [*([uneven] if uneven else []), *notes]


def _course_of(profile: "PlayedProfile") -> list[str]:
    """Whether there was an agreement, and who slipped."""
    if profile.match is not None:
        return account_of(profile.match).slips
    if profile.agreement is not None:
        return [
            f"no such agreement exists ({profile.agreement.reason}), so everyone acts selfishly"
        ]
    return []


def alone_sentences(comparison: "Comparison") -> list[str]:
    """How each client on its own did, slot by slot; past a dozen they are counted."""
    said = [_alone(score, comparison.measure) for score in comparison.alone]
    return some(said, "slots of clients on their own")


def _alone(score: "AloneScore", measure: str) -> str:
    own, others = (written_score(each, measure) for each in (score.accuracy, score.others))
    old = ""
    if score.old is not None:
        old = f"; the last model that it received has {written_score(score.old, measure)}"
    return (
        f"{score.profile}: slot {score.slot:,}: {score.client} trained alone on "
        f"{count(score.total, 'example')}: {own} test {measure}; the others have {others}{old}"
    )


def alone_note(comparison: "Comparison") -> str:
    """What the table of clients on their own means."""
    return (
        f"Test {comparison.measure} at the end of the slot. Alone, a member starts again from the "
        "initial model, as the agreement's costs assume, while the others go on with theirs. The "
        "last model that it received stays as good as it was here, because what there is to learn "
        "does not change from slot to slot; where it does, an old model is worth less."
    )


def written_score(estimate: Estimate, measure: str, *, signed: bool = False) -> str:
    """An accuracy in per cent, a concordance as a fraction, each with its interval.

    A signed difference of accuracies is in percentage points.

    >>> written_score(Estimate(0.9, 0.01), "accuracy"), written_score(Estimate(0.7, 0.05), "loss")
    ('90.00 ± 1.00 %', '0.700 ± 0.050')
    """
    if np.isnan(estimate.mean):
        return "–"
    sign = "+" if signed else ""
    if measure == "accuracy":
        mean, half = f"{100 * estimate.mean:{sign}.2f}", f"{100 * estimate.half_width:.2f}"
    else:
        mean, half = f"{estimate.mean:{sign}.3f}", f"{estimate.half_width:.3f}"
    width = f" ± {half}" if np.isfinite(estimate.half_width) else ""
    return f"{mean}{width}{' %' if measure == 'accuracy' and not signed else ''}"


def _difference(value: float, measure: str, sign: str = "") -> str:
    return f"{100 * value:{sign}.2f} points" if measure == "accuracy" else f"{value:{sign}.3f}"


def label_skew(comparison: "Comparison") -> float | None:
    """The alpha of the Dirichlet distribution of labels, the same in all runs; None if even."""
    return skew_of(comparison.course.partition(comparison.runs[0].seed))


def scores_note(comparison: "Comparison") -> str:
    """What the table of scores shows."""
    note = f"At the end of the last slot{_which_test(comparison)}. "
    if comparison.seeds == 1:
        note += "With one seed there are no intervals; gains are taken on the same data and from "
        note += "the same start."
    else:
        note += (
            f"95 % intervals over {count(comparison.seeds, 'seed')} (Student's t), which do not "
            "cover the choice of test examples; gains are taken seed by seed, on the same data "
            "and from the same start."
        )
    alone = [score.profile for score in comparison.scores if is_alone(comparison, score.profile)]
    if alone:
        note += f" Under {listed(alone)} everyone has a model of its own; these are their means."
    return note


def is_alone(comparison: "Comparison", profile: str) -> bool:
    """Whether everyone trains by itself under a profile."""
    return comparison.of(profile)[0].phase == ALONE


def learning_caption(comparison: "Comparison") -> tuple[str, str]:
    """A heading and an explanation for the picture of a training."""
    return (
        f"Test {comparison.measure} and test loss after each round.",
        "Lines are means over the seeds; bands range from the smallest to the largest value.",
    )
