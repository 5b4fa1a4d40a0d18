"""Each client's own test: how well a model does on the examples that one client kept for testing.

The common test says how well a model does on everyone's cases. A member of a consortium asks how
well it does on its own.
"""

from collections.abc import Sequence

from fedaccord.data.partition import Indices
from fedaccord.numbers import FloatArray
from fedaccord.training.records import Score
from fedaccord.training.task import Model, Parameters


def on_own_tests(
    model: Model, models: Sequence[Parameters], tests: Sequence[Indices]
) -> tuple[tuple[Score, ...], tuple[FloatArray, ...]]:
    """The score of each client's model on its own test, and the errors example by example.

    `tests` are those of a `Partition`: both are empty if it has none. A score's accuracy is NaN if
    nothing can be measured, as the concordance of patients none of whom had the event.
    """
    found = [model.evaluate_each(has, own) for has, own in zip(models, tests, strict=False)]
    scores = tuple(
        Score(float(losses.mean()), (len(errors) - float(errors.sum())) / len(errors))
        for losses, errors in found
    )
    return scores, tuple(errors for _, errors in found)
