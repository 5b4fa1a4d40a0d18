"""One gradient step of everyone, taken on the union of all samples.

Each client's step is along the mean gradient of its x_n samples, and FedAvg weighs it by x_n / X;
so the average is one step along the sum of all chosen samples' gradients over X. A sample that
several clients chose counts as often as it was chosen, but its gradient is worked out once: the
cost is that of the distinct samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedaccord.training.engine import TrainingPlan
from fedaccord.training.task import Parameters

_AT_ONCE = 1_024
"""Samples whose gradients are worked out together, so that memory does not grow with them."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the distinct samples."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor
    """How often each was chosen, over X."""


def split_union(plan: TrainingPlan) -> list[Part]:
    """All distinct samples, in parts; not copied if they are the whole dataset."""
    times = np.bincount(np.concatenate(plan.shares), minlength=plan.model.dataset.size)
    distinct = torch.from_numpy(np.flatnonzero(times))
    weights = torch.from_numpy(times[times > 0] / plan.total).to(plan.inputs.dtype)
    everything = len(distinct) == plan.model.dataset.size
    inputs = plan.inputs if everything else plan.inputs[distinct]
    labels = plan.labels if everything else plan.labels[distinct]
    return [
        Part(inputs[n : n + _AT_ONCE], labels[n : n + _AT_ONCE], weights[n : n + _AT_ONCE])
        for n in range(0, len(weights), _AT_ONCE)
    ]


def step(parameters: Parameters, slopes: Iterator[Parameters], rate: float) -> Parameters:
    """The parameters after a step along the slopes of all parts."""
    after = {name: value.detach().clone() for name, value in parameters.items()}
    for slope in slopes:
        for name, value in after.items():
            value.sub_(slope[name], alpha=rate)
    return after
