"""How far one client's update may move the model.

A single update of huge but finite numbers would ruin the average for good. So an update is judged
by its length, the Euclidean norm of what it adds to the model, per local step: who trains on more
samples takes more steps, and may go further. The robust bound is `FACTOR` times the median of the
others in the same round (the upper of the two middle ones): it takes half of the others to
move it. With fewer than two others there is nobody to compare with, and no bound.
"""

from collections.abc import Mapping
from math import ceil, inf
from statistics import median_high
from typing import NamedTuple

from fedaccord.flower.protocol.terms import Terms, TrainingTerms

FACTOR = 10.0
"""Of the others' median. Honest clients with unlike data came to at most 5.4 times."""
_FEWEST = 2
"""Others that a client is compared with."""


class Length(NamedTuple):
    """How long an update is."""

    samples: int
    """What it was trained on."""
    norm: float
    """Of the update: the client's parameters less the model it was given."""


def largest_norms(terms: Terms, lengths: Mapping[str, Length]) -> dict[str, float]:
    """The largest norm that each client's update may have, given everyone's in the round."""
    if terms.update_bound == "off":
        return dict.fromkeys(lengths, inf)
    if terms.update_bound != "robust":
        return dict.fromkeys(lengths, terms.update_bound)
    steps = {name: _steps(terms.training, length.samples) for name, length in lengths.items()}
    per_step = {name: length.norm / steps[name] for name, length in lengths.items()}
    found = {}
    for name in lengths:
        others = [length for other, length in per_step.items() if other != name]
        median = median_high(others) if len(others) >= _FEWEST else 0.0
        # a median of 0 says that most did not move: there is nothing to compare with, either
        found[name] = FACTOR * median * steps[name] or inf
    return found


def _steps(training: TrainingTerms, samples: int) -> int:
    """How many steps a client takes in a round that trains on so many samples."""
    if training.local == "gradient step":
        return 1
    return max(1, ceil(samples / training.batch) * training.epochs)
