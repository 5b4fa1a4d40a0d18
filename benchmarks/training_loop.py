"""FedAvg as most people write it: a module, an optimiser, one client after another."""

import copy

import torch
from torch import nn

from fedaccord.training.engine import TrainingPlan
from fedaccord.training.task import Parameters


def torch_loop(plan: TrainingPlan) -> Parameters:
    """The global parameters after all rounds."""
    module = copy.deepcopy(plan.model.module)
    loss_of = nn.CrossEntropyLoss()
    parameters = plan.model.start(seed=0)
    for turn in plan.turns:
        average = {name: torch.zeros_like(value) for name, value in parameters.items()}
        for client in plan.taking_part:
            module.load_state_dict(parameters)
            optimiser = torch.optim.SGD(module.parameters(), lr=plan.local.rate)
            for batch in plan.batches(client, turn):
                chosen = torch.from_numpy(batch)
                optimiser.zero_grad()
                loss_of(module(plan.inputs[chosen]), plan.labels[chosen]).backward()
                optimiser.step()
            share = len(plan.shares[client]) / plan.total
            with torch.no_grad():
                for name, value in module.named_parameters():
                    average[name] += share * value
        parameters = average
    return parameters
