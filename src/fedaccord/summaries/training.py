"""What is said about a training."""

from typing import TYPE_CHECKING

import numpy as np

from fedaccord.data.inputs import scale_note
from fedaccord.data.partition import skew_of
from fedaccord.data.scale import rounding_note
from fedaccord.numbers import count
from fedaccord.summaries.match import account_of, some

if TYPE_CHECKING:
    from fedaccord.training.comparison import AloneScore, Comparison, Estimate, ProfileScore
    from fedaccord.trials.profiles import PlayedProfile
    from fedaccord.trials.trial import Trial


def training_title(comparison: "Comparison") -> str:
    """What was measured, in a few words."""
    first, *others = comparison.scores
    if not others:
        return f"{percent(first.accuracy)} test accuracy under {first.profile}"
    single = comparison.seeds == 1
    told = [score for score in others if single or _sure(score.accuracy_gain)]
    if not told:
        return "No sure difference in accuracy"
    largest = max(told, key=lambda score: abs(score.accuracy_gain.mean))
    gain = 100 * largest.accuracy_gain.mean
    seeds = ", with a single seed" if single else ""
    if gain == 0:
        return f"The same accuracy{seeds}"
    more = "more" if gain > 0 else "less"
    against = f"under {largest.profile} than under {first.profile}"
    return f"{abs(gain):.2f} points {more} accuracy {against}{seeds}"


def setting_sentence(comparison: "Comparison") -> str:
    """What was trained on, and how."""
    course = comparison.course
    data = course.model.dataset
    slots = count(len(comparison.runs[0].slots), "slot")
    scale = "" if course.scale == 1 else f"; one example stands for {1 / course.scale:,.4g} samples"
    skew = label_skew(comparison)
    labels = "" if skew is None else f"; labels skewed, alpha {skew:g}"
    return (
        f"Task {course.model.task.name} on {data.name} ({data.size:,} training examples), "
        f"{count(course.rounds, 'round')} in a slot, {slots}, "
        f"{count(comparison.seeds, 'seed')}{labels}{scale}"
    )


def gain_sentence(comparison: "Comparison", score: "ProfileScore") -> str:
    """The gain of a profile over the first one, and how certain it is."""
    first, gain = comparison.scores[0].profile, score.accuracy_gain
    points = f"{100 * gain.mean:+.2f} points"
    if gain.mean == 0 == gain.half_width:
        return f"{score.profile} against {first}: the same accuracy with every seed."
    if not np.isfinite(gain.half_width):
        return f"{score.profile} against {first}: {points} of accuracy, from a single seed."
    low, high = 100 * (gain.mean - gain.half_width), 100 * (gain.mean + gain.half_width)
    between = f"(95 % interval {low:+.2f} to {high:+.2f})"
    chance = "" if _sure(gain) else ", which may be chance"
    return f"{score.profile} against {first}: {points} of accuracy {between}{chance}."


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
    if uneven := scale_note(trial.course.model.dataset):
        notes.append(uneven)
    return notes


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
    return some([_alone(score) for score in comparison.alone], "slots of clients on their own")


def _alone(score: "AloneScore") -> str:
    old = "" if score.old is None else f"; the last model that it received has {percent(score.old)}"
    return (
        f"{score.profile}: slot {score.slot:,}: {score.client} trained alone on "
        f"{count(score.total, 'example')}: {percent(score.accuracy)} test accuracy; the others "
        f"have {percent(score.others)}{old}"
    )


ALONE_NOTE = (
    "Test accuracy at the end of the slot. Alone, a member starts again from the initial model, as "
    "the agreement's costs assume, while the others go on with theirs. The last model that it "
    "received stays as good as it was here, because what there is to learn does not change from "
    "slot to slot; where it does, an old model is worth less."
)
"""What the table of clients on their own means."""


def percent(estimate: "Estimate", signed: bool = False) -> str:
    """A share in per cent, with its interval; a signed difference in percentage points."""
    mean = f"{100 * estimate.mean:{'+' if signed else ''}.2f}"
    width = f" ± {100 * estimate.half_width:.2f}" if np.isfinite(estimate.half_width) else ""
    return f"{mean}{width}" if signed else f"{mean}{width} %"


def label_skew(comparison: "Comparison") -> float | None:
    """The alpha of the Dirichlet distribution of labels, the same in all runs; None if even."""
    return skew_of(comparison.course.partition(comparison.runs[0].seed))


def _sure(estimate: "Estimate") -> bool:
    """Whether the interval excludes 0; a single seed has no interval."""
    return abs(estimate.mean) > estimate.half_width


def scores_note(comparison: "Comparison") -> str:
    """What the table of scores shows."""
    return (
        f"At the end of the last slot. 95 % intervals over {count(comparison.seeds, 'seed')} "
        "(Student's t); gains are taken seed by seed, on the same data and from the same start."
    )


LEARNING_CAPTION = (
    "Test accuracy and test loss after each round.",
    "Lines are means over the seeds; bands range from the smallest to the largest value.",
)
"""A heading and an explanation for the picture of a training."""
