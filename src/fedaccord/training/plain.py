"""FedAvg as one would write it down: the readable loop, and the oracle of the other engines."""

from collections.abc import Iterator

import torch

from fedaccord.training.engine import TrainingPlan
from fedaccord.training.task import Parameters


class PlainEngine:
    """One client after another, one batch after another."""

    name = "plain"

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round."""
        for turn in plan.turns:
            average = {name: torch.zeros_like(value) for name, value in parameters.items()}
            for client in plan.taking_part:
                local = self._train(plan, parameters, client, turn)
                weight = len(plan.shares[client]) / plan.total
                for name, value in local.items():
                    average[name] += weight * value
            parameters = average
            yield parameters

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
