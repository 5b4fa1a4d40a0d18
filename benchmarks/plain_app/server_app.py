"""FedAvg of all members, as in Flower's examples; it writes down how long it took."""

import json
import time
from pathlib import Path

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from torch import nn

app = ServerApp()


@app.main()  # type: ignore[untyped-decorator,unused-ignore]
def main(grid: Grid, context: Context) -> None:  # noqa: ARG001  Flower passes it
    setting = json.loads(Path("setting.json").read_text())
    members = len(setting["amounts"])
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=members, min_train_nodes=members)
    start = time.perf_counter()
    result = strategy.start(
        grid, ArrayRecord(model.state_dict()), num_rounds=setting["rounds"], timeout=600
    )
    seconds = time.perf_counter() - start
    if len(result.train_metrics_clientapp) != setting["rounds"]:
        raise RuntimeError("some rounds failed")
    Path("seconds.json").write_text(json.dumps(seconds))
