"""The local rules (`fedaccord.training.rules`) for many clients at once.

All clients of a group begin a round together and take their first step at once, then their second.
Those that have finished are the last rows, so a step concerns the first rows of every array.
"""

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import TypeAlias

import torch
from torch import Tensor

from fedaccord.training.rules import MiniBatches
from fedaccord.training.task import Model, Parameters
from fedaccord.training.vectorised.gradients import find_chain, general_gradients

Step: TypeAlias = Callable[[Parameters, Tensor, Tensor, Tensor], None]
"""Updates the parameters of some clients in place, given a batch of each: inputs, labels, weights.
The first axis of everything counts the clients."""
Change: TypeAlias = Callable[[Parameters, Parameters], None]
"""Updates parameters in place, given their gradients."""


def find_steps(model: Model, rule: MiniBatches) -> Callable[[Parameters], Step]:
    """A function that is given the parameters at the beginning of a round, and makes its steps."""
    chain = find_chain(model)
    if chain is not None and rule.optimiser == "sgd" and not rule.proximal:
        return lambda _: partial(chain.step, rate=rule.rate)
    gradients_of = chain.gradients if chain else general_gradients(model)

    def begin(each: Parameters) -> Step:
        start = {name: value.clone() for name, value in each.items()} if rule.proximal else {}
        change = _Adam(each, rule.rate) if rule.optimiser == "adam" else partial(_sgd, rule.rate)

        def step(going_on: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor) -> None:
            gradients = gradients_of(going_on, inputs, labels, weights)
            for name in start:
                value = going_on[name]
                gradients[name] += rule.proximal * (value - start[name][: len(value)])
            change(going_on, gradients)

        return step

    return begin


def _sgd(rate: float, each: Parameters, gradients: Parameters) -> None:
    for name, value in each.items():
        value.sub_(gradients[name], alpha=rate)


class _Adam:
    """Kingma and Ba's rule (ICLR 2015) with bias correction, and with PyTorch's defaults."""

    _FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-8

    def __init__(self, each: Parameters, rate: float) -> None:
        self._m, self._v = ({n: torch.zeros_like(value) for n, value in each.items()} for _ in "mv")
        self._rate, self._steps = rate, 0

    def __call__(self, each: Parameters, gradients: Parameters) -> None:
        self._steps += 1
        first, second = (1.0 - beta**self._steps for beta in (self._FIRST, self._SECOND))
        for name, value in each.items():
            gradient, rows = gradients[name], len(value)
            m = self._m[name][:rows].lerp_(gradient, 1.0 - self._FIRST)
            v = self._v[name][:rows].mul_(self._SECOND)
            v.addcmul_(gradient, gradient, value=1.0 - self._SECOND)
            root = v.sqrt().div_(sqrt(second)).add_(self._LEAST)
            value.addcdiv_(m, root, value=-self._rate / first)
