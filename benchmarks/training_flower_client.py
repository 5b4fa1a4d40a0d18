"""A client in Flower's simulation: its own module and optimiser, as in Flower's examples."""

from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import nn

from benchmarks import training_setting as setting
from fedaccord.training.engine import TrainingPlan

_app, _clientapp = map(import_module, ("flwr.app", "flwr.clientapp"))


@cache
def plan_of(task: str) -> TrainingPlan:
    """The plan, built once per process."""
    return setting.mini_batch_plan(task)


def client_app(task: str) -> Any:
    """Trains as the plan says."""
    app = _clientapp.ClientApp()

    @app.train()  # type: ignore[untyped-decorator]
    def train(message: Any, context: Any) -> Any:
        plan = plan_of(task)
        module = plan.model.task.build(plan.model.dataset)
        module.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimiser = torch.optim.SGD(module.parameters(), lr=plan.local.rate)
        loss_of = nn.CrossEntropyLoss()
        client = int(context.node_config["partition-id"])
        for batch in plan.batches(client, message.content["config"]["server-round"]):
            chosen = torch.from_numpy(batch)
            optimiser.zero_grad()
            loss_of(module(plan.inputs[chosen]), plan.labels[chosen]).backward()
            optimiser.step()
        content = {
            "arrays": _app.ArrayRecord(module.state_dict()),
            "metrics": _app.MetricRecord({"num-examples": len(plan.shares[client])}),
        }
        return _app.Message(content=_app.RecordDict(content), reply_to=message)

    return app
