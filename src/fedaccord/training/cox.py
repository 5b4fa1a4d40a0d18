"""The loss of a Cox model: the partial likelihood, with Breslow's rule for ties.

A model gives each example a risk score s. For an example whose event happened at time T the loss is

    log(sum of exp(s_j) over all j of the batch with T_j >= T) - s,

and for one whose event was not seen it is 0. Labels are signed times: T if the event happened, -T
if it was not yet seen at T. An example with label 0 was seen for no time at all: it counts in
nobody's sum, so batches are filled up with it.

An event that is alone in its sum says nothing: its loss and its gradient are exactly 0. Computed,
the gradient would be a rounding error, and Adam, which divides by the size of a gradient, would
take it for a step.
"""

import torch
from torch import Tensor

from fedaccord.errors import InvalidInput


def cox_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each example, given one score for each.

    The examples are sorted by time, latest first, so that every sum is a beginning of one
    cumulative sum, which is taken in logarithms.

    >>> scores = torch.zeros(3, 1)
    >>> cox_loss(scores, torch.tensor([5, 2, -4])).exp()  # 1 at risk at 5, all 3 at 2
    tensor([1., 3., 1.])
    """
    if outputs.numel() != labels.numel():
        raise InvalidInput(
            "a model of survival times must give one score for each example, "
            f"not {outputs.numel() // max(1, labels.numel())}"
        )
    scores, times = outputs.reshape(labels.shape), labels.abs()
    latest_first = torch.argsort(times, descending=True)
    at_risk = torch.logcumsumexp(scores[latest_first], dim=0)
    last = torch.searchsorted(-times[latest_first], -times, right=True) - 1
    return torch.where((labels > 0) & (last > 0), at_risk[last] - scores, 0.0)
