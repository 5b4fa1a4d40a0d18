"""The form of a member's data, in words and as an example, from the terms."""

from math import prod

import numpy as np

from fedaccord.deployment.templates import filled
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms

_EXAMPLES = 8


def describe_data(private: Private, terms: Terms) -> str:
    """What has to be in the directory `data`, in Markdown."""
    training = terms.training
    numbers = prod(training.shape)
    return filled(
        "data.md",
        name=private.name,
        shape=", ".join(map(str, training.shape)),
        numbers="one number" if numbers == 1 else f"{numbers:,} numbers",
        last=str(training.classes - 1),
        csv=_CSV.format(columns=numbers) if len(training.shape) == 1 else "",
    ).rstrip()


_CSV = """
Instead of a `.npz` file, a `.csv` file will do: {columns} columns of numbers, and the label in a
last column called `label`.
"""


def example_data(terms: Terms) -> tuple[np.ndarray, np.ndarray]:
    """A few examples of the right form that mean nothing."""
    training = terms.training
    rng = np.random.default_rng(training.seed)
    inputs = rng.normal(size=(_EXAMPLES, *training.shape)).astype(np.float32)
    return inputs, np.arange(_EXAMPLES, dtype=np.int64) % training.classes
