"""What is said about a calibration: the law, how well it is known, and what a sample costs."""

from typing import TYPE_CHECKING

import numpy as np

from fedaccord.data.notes import partition_notes
from fedaccord.game.curve import LEVEL
from fedaccord.game.measured import LARGEST_CHI2
from fedaccord.numbers import count
from fedaccord.summaries.worth import capital
from fedaccord.training.estimates import Estimate

if TYPE_CHECKING:
    from fedaccord.game.candidates import Candidate
    from fedaccord.trials.calibration import AloneScore, Calibration

_FAMILIES = {"measured": "This law", "power": "A single power", "paper": "The paper's law"}
_WORTH_NOTING = 0.1
"""Of its samples: how far a member alone may be from the law without being told apart."""
_HUGE = 1e4
_ROUNDING = 1e-6
"""Of a number: runs that differ by less have the same result, up to rounding."""


def calibration_sentences(calibration: "Calibration") -> list[str]:
    """What was measured, the law, what speaks against it, notes, and the cost of a sample."""
    lines = [measured_sentence(calibration), law_sentence(calibration)]
    evidence = calibration.law.evidence
    if evidence is not None and evidence.objections:
        lines.append(f"What speaks against relying on it: {'; '.join(evidence.objections)}.")
    lines += [_candidate(one) for one in calibration.candidates]
    lines.append(calibration.next.sentence)
    if calibration.course.scale != 1:
        lines.append(
            f"One example stands for {1 / calibration.course.scale:,.4g} samples, because the "
            "dataset is smaller than the consortium: this is an illustration."
        )
    together = float(calibration.law.loss(calibration.curve.largest))
    lines += [_alone(score, calibration, together) for score in calibration.alone]
    lines += _intervals_note(calibration)
    lines += [f"Note: {note}." for note in partition_notes(calibration.course.partition(0))]
    lines.append(speed_sentence(calibration))
    if calibration.cost_per_sample is not None:
        lines.append(f"cost_per_sample = {calibration.cost_per_sample:.4g}")
    return lines


def measured_sentence(calibration: "Calibration") -> str:
    """What was trained, on how much, how often."""
    curve, model = calibration.curve, calibration.model
    course = calibration.course
    tuned = f"fine-tuned by each client for {count(course.fine_tuning, 'epoch')}, on its own test"
    how = "; ".join(filter(None, [course.optimiser_in_words, tuned if course.fine_tuning else ""]))
    return (
        f"Measured with {model.task.name} on {model.dataset.name}"
        f"{f' ({how})' if how else ''}: {_the(calibration)} after "
        f"{count(calibration.rounds, 'round')}, at {len(curve.sizes)} sizes from "
        f"{curve.smallest:,.0f} to {curve.largest:,.0f} samples, {count(len(curve.seeds), 'seed')}"
        f" each, {count(curve.examples, 'test example')}."
    )


def law_sentence(calibration: "Calibration") -> str:
    """What more data brings, with its band, and whether the law fits."""
    law, curve = calibration.law, calibration.curve
    assert law.evidence is not None
    half, end = curve.largest / 2, curve.largest
    low, high = (float(bound) for bound in law.evidence.band_of_fall(half, end))
    chi2 = law.evidence.chi2
    fits = "" if np.isnan(chi2) else f" It fits: chi^2 is {chi2:.1f} per degree of freedom."
    if chi2 > LARGEST_CHI2:
        fits = f" It does NOT fit: chi^2 is {chi2:.1f} per degree of freedom."
    return (
        f"{capital(_the(calibration))} falls from {_number(law.loss(half))} to "
        f"{_number(law.loss(end))} when {half:,.0f} samples become {end:,.0f}: by {low:.2g} to "
        f"{high:.2g} in {100 * LEVEL:.0f} % of the resampled laws.{fits}"
    )


def _the(calibration: "Calibration") -> str:
    lost = calibration.lost
    return lost if lost.startswith("1 - ") else f"the {lost}"


def _candidate(one: "Candidate") -> str:
    """How far a law is off at sizes that it was not fitted to."""
    chi2 = f"{one.chi2:,.1f}" if one.chi2 < _HUGE else f"{one.chi2:.1e}"
    return (
        f"{_FAMILIES[one.family]}: chi^2 {chi2}; off by {100 * one.between:.0f} % at sizes in "
        f"between that it was not fitted to, and by {100 * one.beyond:+.0f} % at the largest."
    )


def _alone(score: "AloneScore", calibration: "Calibration", together: float) -> str:
    """What a member reaches alone, beside the law and what all reach together."""
    told = f"{score.name} alone, with its {score.samples:,.0f} samples: {calibration.lost} "
    told += _give_or_take(Estimate(score.value, score.half_width))
    told += _own(score, calibration.course.fine_tuning)
    if np.isnan(score.by_law):
        return f"{told}."
    if score.value <= together:
        return f"{told}, no worse than with all members' data ({_number(together)})."
    if abs(score.worth - 1) <= _WORTH_NOTING:
        return f"{told}, as the law says ({_number(score.by_law)})."
    return (
        f"{told}; the law says {_number(score.by_law)}. Alone, its samples are worth "
        f"{score.worth:.2g} times as many of all members'."
    )


def _own(score: "AloneScore", epochs: int) -> str:
    """What it reaches on its own test alone and with everyone, if it has one."""
    if score.own is None or score.together is None or np.isnan(score.own.mean):
        return ""
    tuned = ", fine-tuned" if epochs else ""
    return (
        f" (on its own test {_give_or_take(score.own)}, and {_give_or_take(score.together)} with "
        f"all members' model{tuned})"
    )


def _intervals_note(calibration: "Calibration") -> list[str]:
    """What the intervals are about, if there are any."""
    seeds = len(calibration.curve.seeds) > 1
    over = ["over the seeds"] if seeds else []
    if any(score.own is not None for score in calibration.alone):
        kinds = "seeds and test examples" if seeds else "the choice of test examples"
        over.append(f"on own tests, over {kinds}")
    if not calibration.alone or not over:
        return []
    return [f"± is half of a 95 % interval: {'; '.join(over)}."]


def _give_or_take(found: Estimate) -> str:
    """A number and half of its interval; without it if there is none, or nothing but rounding.

    >>> _give_or_take(Estimate(0.25, 0.031)), _give_or_take(Estimate(0.25, 3.9e-17))
    ('0.25 ± 0.031', '0.25')
    """
    known = np.isfinite(found.half_width) and found.half_width > _ROUNDING * abs(found.mean)
    return f"{_number(found.mean)} ± {found.half_width:.2g}" if known else _number(found.mean)


def speed_sentence(calibration: "Calibration") -> str:
    """How long a sample takes on this machine."""
    seconds = calibration.speed.seconds
    slower = calibration.speed.slowest / seconds
    return (
        f"A sample takes {seconds:.3g} seconds in a round on this machine (up to {slower:.1f} times"
        f" that), {seconds * calibration.rounds:.3g} in a slot of {calibration.rounds} rounds."
    )


def _number(value: object) -> str:
    return f"{float(value):.3g}"  # type: ignore[arg-type]
