"""FedAvg as one would write it down: the readable loop, and the oracle of the other engines.

It runs on one thread, so its numbers don't depend on how many there may be.
"""

from collections.abc import Iterator

import torch

from fedaccord.training.engine import TrainingPlan
from fedaccord.training.task import Parameters
from fedaccord.training.threads import one_thread


class PlainEngine:
    """One client after another, one batch after another."""

    name = "plain"

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round."""
        plan, trained = plan.freeze(parameters)
        for turn in plan.turns:
            with one_thread():
                trained = self._round(plan, trained, turn)
            yield parameters | trained

    def _round(self, plan: TrainingPlan, parameters: Parameters, turn: int) -> Parameters:
        """Everyone's parameters after its own steps, averaged."""
        average = {name: torch.zeros_like(value) for name, value in parameters.items()}
        for client in plan.taking_part:
            with plan.chance(client, turn):
                local = self._train(plan, parameters, client, turn)
            weight = len(plan.shares[client]) / plan.total
            for name, value in local.items():
                average[name] += weight * value
        return average

    def _train(
        self, plan: TrainingPlan, parameters: Parameters, client: int, turn: int
    ) -> Parameters:
        """A client's parameters after its own steps from the global ones."""
        local = {name: value.clone().requires_grad_() for name, value in parameters.items()}
        for batch in plan.batches(client, turn):
            chosen = torch.from_numpy(batch)
            loss = plan.model.losses(local, plan.inputs[chosen], plan.labels[chosen]).mean()
            gradients = torch.autograd.grad(loss, list(local.values()))
            with torch.no_grad():
                for value, gradient in zip(local.values(), gradients, strict=True):
                    value.sub_(gradient, alpha=plan.local.rate)
        if not all(bool(value.isfinite().all()) for value in local.values()):
            raise plan.failed(client, turn)
        return {name: value.detach() for name, value in local.items()}
