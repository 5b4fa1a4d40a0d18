"""The form of a member's data, in words and as an example, from the terms."""

from math import prod
from pathlib import Path

import numpy as np

from fedaccord.data.dataset import Inputs, Labels
from fedaccord.data.survival import EVENT, TIME, from_signed
from fedaccord.deployment.templates import filled
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms

_EXAMPLES = 8


def describe_data(private: Private, terms: Terms) -> str:
    """What has to be in the directory `data`, in Markdown."""
    training = terms.training
    numbers = prod(training.shape)
    targets = ("time", "event") if training.survival else ("labels",)
    columns = _TIMES_COLUMNS if training.survival else _LABEL_COLUMN
    return filled(
        "data.md",
        name=private.name,
        shape=", ".join(map(str, training.shape)),
        numbers="one number" if numbers == 1 else f"{numbers:,} numbers",
        arrays="three" if training.survival else "two",
        labels=_TIMES if training.survival else _LABELS.format(last=training.classes - 1),
        train=", ".join(f"{name}={name}" for name in targets),
        test=", ".join(f"{name}=test_{name}" for name in targets),
        csv=_CSV.format(columns=numbers, last=columns) if len(training.shape) == 1 else "",
    ).rstrip()


_LABELS = (
    "| `labels` | (examples,) | whole numbers from 0 to {last}, which mean the same at all "
    "members |"
)
_TIMES = (
    "| `time` | (examples,) | how long each was followed: whole numbers from 0 on, in the unit "
    "that all members use |\n"
    "| `event` | (examples,) | 1 if the event happened then (at time 1 or later), 0 if it was not "
    "seen until then |"
)
_CSV = """
Instead of a `.npz` file, a `.csv` file will do: {columns} columns of numbers, and {last}.
"""
_LABEL_COLUMN = "the label in a\nlast column called `label`"
_TIMES_COLUMNS = "two columns\ncalled `time` and `event`"


def example_data(terms: Terms) -> tuple[Inputs, Labels]:
    """A few examples of the right form that mean nothing."""
    training = terms.training
    rng = np.random.default_rng(training.seed)
    inputs = rng.normal(size=(_EXAMPLES, *training.shape)).astype(np.float32)
    order = np.arange(_EXAMPLES, dtype=np.int64)
    if training.survival:  # every second one was seen
        return inputs, (order + 1) * np.where(order % 2, -1, 1)
    return inputs, order % training.classes


def save_examples(path: Path, inputs: Inputs, labels: Labels, terms: Terms) -> None:
    """Write examples of a dataset as a file of the form in the terms."""
    if terms.training.survival:
        times = from_signed(labels)
        np.savez(path, inputs=inputs, time=times[TIME], event=times[EVENT])
    else:
        np.savez(path, inputs=inputs, labels=labels)
