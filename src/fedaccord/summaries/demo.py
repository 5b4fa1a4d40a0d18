"""What the demo says, step by step: one story, on the terminal and on its page."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fedaccord.agreement.worth import worth
from fedaccord.game.alone import alone_contribution
from fedaccord.game.curve import LEVEL
from fedaccord.game.money import money
from fedaccord.summaries.prediction import (
    gain_in_words,
    measured_gain,
    measured_in_words,
    where_it_lies,
)
from fedaccord.summaries.words import listed
from fedaccord.summaries.worth import verdict_sentence

if TYPE_CHECKING:
    from fedaccord.agreement.certificate import Certificate
    from fedaccord.game.law import Law
    from fedaccord.trials.trial import Trial

_MOST_LAWS = f"{100 * LEVEL:.0f} % of the laws that fit"
INTRODUCTION = (
    "Six made-up hospitals train a model together that reads images. The images are real: "
    "handwritten digits, which stand for slides of tissue. A slide is of use once two specialists "
    "have labelled it, and that is what a sample costs."
)
HEADINGS = (
    "They measure what one more image is worth",
    "Left to itself, each hospital looks at its own bill",
    "Together, quarter after quarter, they can agree on more",
    "What each hospital is asked to do, and the proof",
    "They train, to see whether the gain is there that was predicted",
    "A page to send to everyone",
)
LAW_CAPTION = (
    "What the model gets wrong, by the images it was trained on.",
    "Every point is one training. The blue line is the law that all calculations use; the band "
    f"shows {_MOST_LAWS} the points as well. The dashed lines are laws with a fixed shape.",
)
PREDICTION_CAPTION = (
    "What was predicted, and what training then showed.",
    "The line and its band were there first, from the crosses. Both marks with whiskers (95 % "
    "intervals) are trainings with seeds that the measurement had not used.",
)


@dataclass(frozen=True)
class Story:
    """The demo's results, and the sentences about them."""

    certificate: "Certificate"
    trial: "Trial"

    @property
    def law(self) -> "Law":
        """The measured law of the loss."""
        return self.certificate.agreement.consortium.law

    @cached_property
    def steps(self) -> list[tuple[str, str]]:
        """Each step before the test: its heading, and what is said about it."""
        said = (
            measured_sentence(self.law),
            selfish_sentence(self.certificate),
            agreed_sentence(self.certificate),
        )
        return list(zip(HEADINGS, said, strict=False))

    @property
    def tested(self) -> str:
        """What the test showed."""
        return tested_sentence(self.trial)

    @property
    def meets(self) -> bool:
        """Whether the measured gain lies in the band that was predicted."""
        prediction = self.trial.predictions[-1]
        return prediction.gain.holds(measured_gain(self.trial, prediction).mean)


def measured_sentence(law: "Law") -> str:
    """How accuracy grows with data, in one line."""
    assert law.evidence is not None
    curve = law.evidence.curve
    largest = law.evidence.range[1]
    totals = [largest / 8, largest / 4, largest / 2, largest]
    with_each = [f"{_accuracy(law, total)} with {total:,.0f}" for total in totals]
    return (
        f"Accuracy of the model: {', '.join(with_each)} images (in brackets: {_MOST_LAWS}). "
        f"Measured with {curve.sizes.size * len(curve.seeds):,} trainings and {curve.examples:,} "
        "test images."
    )


def selfish_sentence(certificate: "Certificate") -> str:
    """Who free-rides, what is left, and what each would reach by itself."""
    equilibrium = certificate.agreement.equilibrium
    consortium, law = equilibrium.consortium, equilibrium.consortium.law
    riders = [
        name
        for name, amount in zip(consortium.names, equilibrium.profile, strict=True)
        if amount == 0
    ]
    alone = 100 * (1 - law.loss(alone_contribution(consortium)))
    total, samples = equilibrium.total, consortium.samples.sum()
    return (
        f"{listed(riders)} would let the others pay: they free-ride. Of {samples:,.0f} images only "
        f"{total:,.0f} are labelled and trained on: {_accuracy(law, total)} accuracy. By itself, "
        f"each would reach {alone.min():.1f} to {alone.max():.1f} %."
    )


def agreed_sentence(certificate: "Certificate") -> str:
    """What is agreed, and the gain that the law predicts."""
    agreement = certificate.agreement
    consortium = agreement.consortium
    law, before, after = consortium.law, agreement.equilibrium.total, agreement.total
    assert law.evidence is not None
    low, high = (100 * float(end) for end in law.evidence.band_of_fall(before, after))
    least = money(float(agreement.saving.min()), consortium.currency)
    return (
        f"With {after:,.0f} images they would reach {_accuracy(law, after)} accuracy: the law "
        f"predicts {low:+.2f} to {high:+.2f} points. "
        f"{verdict_sentence(worth(certificate), 'member')} No hospital saves less than {least} in "
        f"a slot of {consortium.slot}.{_held(certificate)}"
    )


def _held(certificate: "Certificate") -> str:
    """For how many resampled and fresh laws it holds."""
    under, fresh = certificate.under_laws, certificate.under_fresh_laws
    if under is None or fresh is None:
        return ""
    return (
        f" The agreement holds for {under.held:,} of {under.laws:,} laws that fit the "
        f"measurements, and for {fresh.held:,} of {fresh.laws:,} fresh ones."
    )


def tested_sentence(trial: "Trial") -> str:
    """Predicted beside measured, and whether they meet."""
    prediction = trial.predictions[-1]
    measured = measured_gain(trial, prediction)
    return (
        f"Predicted: {gain_in_words(prediction)}. Measured, with {trial.seeds} seeds that were not "
        f"used before: {measured_in_words(prediction, measured)}. That is "
        f"{where_it_lies(prediction.gain, measured)}."
    )


def _accuracy(law: "Law", total: float) -> str:
    """Accuracy by the law, with its band, in per cent."""
    assert law.evidence is not None
    low, high = law.evidence.band(total)
    value, least, most = (100 * (1 - float(loss)) for loss in (law.loss(total), high, low))
    return f"{value:.1f} % ({least:.1f} to {most:.1f})"
