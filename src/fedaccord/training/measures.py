"""What a model is judged by: accuracy for classes, concordance for survival times.

A measure gives each test example an error, and the mean of the errors is 1 minus the measure. So
the spread of the errors says how much another choice of test examples would have changed it. For
accuracy that is plain: an example counts 1 if the model is wrong about it.

Concordance is about pairs (Harrell et al., 1982): of two patients, did the one with the higher risk
score have the event first? A pair can be compared if the earlier of the two had the event; at equal
times, if exactly one had it, which then counts as the earlier. Equal scores count half. These are
the conventions of lifelines. With A right pairs of B, A_i of B_i of them with example i, the error
of example i is

    1 - A / B - n (A_i - A B_i / B) / B.

Their mean is 1 - A / B. The last term is n times the derivative of the ratio by the weight of
example i: when examples are drawn again, the mean of their errors follows 1 - concordance to first
order (the errors are its pseudo-values).

>>> import torch
>>> scores, labels = torch.tensor([[2.0], [1.0], [0.0]]), torch.tensor([1, 3, -2])
>>> CONCORDANCE.errors(scores, labels).tolist()  # both pairs that can be compared are right
[0.0, 0.0, 0.0]
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

Weight: TypeAlias = Callable[[Tensor], float]
"""Given the labels of a test: see `Measure.weight`."""
Errors: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""One number per example, given a model's outputs and the labels."""

_PAIRS_AT_ONCE = 4_000_000
"""So that memory grows with the examples, not with their pairs."""


def _as_far(_: Tensor) -> float:
    """An error is as large as the measure says."""
    return 1.0


@dataclass(frozen=True)
class Measure:
    """A name, and the error of each example."""

    name: str
    errors: Errors
    survival: bool = False
    """Whether labels are survival times, not classes."""
    weight: Weight = _as_far
    """How far apart the errors are of an example that the model is right about and of one that it
    is wrong about. Intervals need to know (`estimates`)."""


def wrong_classes(outputs: Tensor, labels: Tensor) -> Tensor:
    """1 for each example whose class is not the most likely one."""
    return (outputs.argmax(dim=1) != labels).to(torch.float64)


def discordance(outputs: Tensor, labels: Tensor) -> Tensor:
    """Pseudo-values of 1 - concordance; NaN if no two examples can be compared."""
    scores = outputs.flatten()
    right, pairs = (torch.zeros(len(labels), dtype=torch.float64) for _ in range(2))
    for earlier, comparable, found in _compared(scores, labels):
        pairs[earlier] += comparable.sum(dim=1)
        right[earlier] += found.sum(dim=1)
        pairs += comparable.sum(dim=0)
        right += found.sum(dim=0)
    every = pairs.sum() / 2.0  # each pair has two examples
    share = right.sum() / 2.0 / every
    return 1.0 - share - len(labels) * (right - share * pairs) / every


def examples_per_event(labels: Tensor) -> float:
    """How much one event matters to concordance: only an event makes pairs.

    >>> examples_per_event(torch.tensor([3, -5, -8, -2]))
    4.0
    """
    scores = torch.zeros(len(labels))
    events = sum(int(found.any(dim=1).sum()) for _, found, _ in _compared(scores, labels))
    return len(labels) / max(1, events)


def _compared(scores: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Examples with an event, some at a time: which others can be compared, and how right it is."""
    times = labels.abs()
    at_once = max(1, _PAIRS_AT_ONCE // max(1, len(labels)))
    for earlier in torch.split(torch.nonzero(labels > 0).flatten(), at_once):
        time, score = times[earlier, None], scores[earlier, None]
        comparable = (time < times) | ((time == times) & (labels <= 0))
        ahead = (score > scores).to(torch.float64) + 0.5 * (score == scores)
        yield earlier, comparable.to(torch.float64), ahead * comparable


ACCURACY = Measure("accuracy", wrong_classes)
CONCORDANCE = Measure("concordance", discordance, survival=True, weight=examples_per_event)
