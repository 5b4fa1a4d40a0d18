"""A member that trains for one epoch, as in Flower's examples."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn

app = ClientApp()


@app.train()  # type: ignore[untyped-decorator,unused-ignore]
def train(message: Message, context: Context) -> Message:
    folder = Path(str(context.node_config["client-file"])).parent
    amount = json.loads((folder.parents[1] / "setting.json").read_text())["amounts"][folder.name]
    with np.load(folder / "data" / f"{folder.name}.npz") as data:
        inputs = torch.from_numpy(data["inputs"][:amount]).float()
        labels = torch.from_numpy(data["labels"][:amount]).long()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    content: Any = message.content
    model.load_state_dict(content["arrays"].to_torch_state_dict())
    optimiser, loss_of = torch.optim.SGD(model.parameters(), lr=0.05), nn.CrossEntropyLoss()
    for batch in torch.split(torch.randperm(len(labels)), 32):
        optimiser.zero_grad()
        loss_of(model(inputs[batch]), labels[batch]).backward()
        optimiser.step()
    update = RecordDict(
        {
            "arrays": ArrayRecord(model.state_dict()),
            "metrics": MetricRecord({"num-examples": amount}),
        }
    )
    return Message(update, reply_to=message)
