"""Public data sets to rehearse with: which of them has the form that the terms are about.

The room's server measures on the test examples of the one that its coordinator chose, and every
member's page deals out the examples of the same one. They need not tell each other which: no two of
these have the same form.
"""

from fedaccord.protocol.training_terms import TrainingTerms

REHEARSALS: dict[str, tuple[tuple[int, ...], int]] = {
    "digits": ((8, 8), 10),
    "breast-cancer": ((30,), 2),
    "mnist": ((28, 28), 10),
    "heart-disease": ((13,), 2),
}
"""Each with the shape of an example and the number of classes."""


def rehearsal_for(training: TrainingTerms) -> str | None:
    """The data set of this form; None if there is none, and examples have to be made up.

    >>> rehearsal_for(TrainingTerms(shape=(30,), classes=2))
    'breast-cancer'
    """
    form = (training.shape, training.classes)
    return next((name for name, one in REHEARSALS.items() if one == form), None)
