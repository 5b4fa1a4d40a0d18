"""What a measured law says a training will show, before it does.

A law is measured at the end of one slot that begins with an untrained model. So it predicts a
training of one slot, with as many rounds as the consortium has, and nothing else; nor does it say
anything of data that is in one place, or of clients that train alone. The bands are the
middle 90 % of what the resampled laws give for the same totals; the band of a gain is narrower than
those of its two ends, because what the laws have in common cancels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.game.measured import Evidence
from fedaccord.record import Record
from fedaccord.trials.profiles import PlayedProfile


@dataclass(frozen=True, eq=False)
class Band(Record):
    """A value, and between which values it is by 90 % of the resampled laws."""

    value: float
    low: float
    high: float

    def holds(self, measured: float) -> bool:
        """Whether a measured value lies in it."""
        return self.low <= measured <= self.high

    def _facts(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class Prediction(Record):
    """What the law says of one profile."""

    profile: str
    measure: str
    """What is predicted: "error" (1 - accuracy), "1 - concordance" or "loss"."""
    total: float
    """Samples trained on in the slot."""
    level: Band
    """Of the measure after the slot."""
    gain: Band
    """How much lower that is than under the first profile that is predicted."""

    @property
    def shown(self) -> str:
        """What a training shows of it: "accuracy", "concordance" or "loss"."""
        return _shown(self.measure)

    def _facts(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "measure": self.measure,
            "total": self.total,
            "level": self.level,
            "gain": self.gain,
        }


def predict(
    consortium: Consortium | None,
    played: Sequence[PlayedProfile],
    rounds: int,
    measure: str = "accuracy",
) -> tuple[Prediction, ...]:
    """What the consortium's law says of each profile; empty if it says nothing of this training.

    `measure` is what the training shows: accuracy or concordance.
    """
    if consortium is None or len(played[0].phases) > 1 or rounds != consortium.rounds:
        return ()
    law, played = consortium.law, [profile for profile in played if not profile.baseline]
    if law.evidence is None or _shown(law.measure) not in (measure, "loss"):
        return ()
    totals = [consortium.total_of(profile.contributions[0]) for profile in played]
    return tuple(
        Prediction(
            profile.name,
            law.measure,
            total,
            _level(law, law.evidence, total),
            _gain(law, law.evidence, totals[0], total),
        )
        for profile, total in zip(played, totals, strict=True)
    )


def _shown(measure: str) -> str:
    """What a training shows of what a law is about.

    >>> _shown("error"), _shown("1 - concordance"), _shown("loss")
    ('accuracy', 'concordance', 'loss')
    """
    return "accuracy" if measure == "error" else measure.removeprefix("1 - ")


def _level(law: Law, evidence: Evidence, total: float) -> Band:
    low, high = evidence.band(total)
    return Band(float(law.loss(total)), float(low), float(high))


def _gain(law: Law, evidence: Evidence, before: float, after: float) -> Band:
    low, high = evidence.band_of_fall(before, after)
    return Band(float(law.fall(before, after - before)), float(low), float(high))
