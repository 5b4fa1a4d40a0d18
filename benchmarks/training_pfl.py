"""Mini-batches against pfl, a federated learning simulator, with its PyTorch backend.

When a client's turn comes, its images are gathered in the order that the plan draws for the round,
as in the other loops; pfl uses them in that order. Nothing is evaluated in the timed rounds.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.measure import race
from benchmarks.row import Row, faster

AGAINST = "pfl"


def run() -> Iterator[Row]:
    if find_spec("pfl") is None or find_spec("torch") is None:
        note = "skipped: needs `make bench PEERS=1`"
        yield Row("training_pfl", "mini-batches", AGAINST, note=note)
        return
    from benchmarks import training_setting as setting

    for task in setting.TASKS:
        yield _compare(task)


def _compare(task: str) -> Row:
    from benchmarks import training_setting as setting
    from fedaccord.training.vectorised.engine import VectorisedEngine

    plan = setting.mini_batch_plan(task)
    simulation = Simulation(plan)
    simulation.round()  # evaluates, as its first round always does
    apart = setting.apart(simulation.parameters(), setting.final(VectorisedEngine(), plan))
    ours, *tried = race(
        setting.our_engine(plan),
        *setting.with_one_and_all_threads(simulation.round),
        repeats=3,
    )
    theirs, threads = setting.better(tried)
    return faster(
        "training_pfl",
        f"{task}, mini-batches, {setting.CLIENTS} clients x {setting.MINI_BATCH_SAMPLES:,}",
        AGAINST,
        ours,
        theirs,
        target=4.0,
        note=f"{threads}; after the first round the parameters differ by at most {apart:.0e}",
    )


class Simulation:
    """pfl's federated averaging of a plan, a round at a time."""

    def __init__(self, plan: Any) -> None:
        import torch

        # its PyTorch backend must be imported before anything else of it
        models = import_module("pfl.model.pytorch")
        algorithm, base = import_module("pfl.algorithm"), import_module("pfl.algorithm.base")
        module = _module(plan)
        self.model = models.PyTorchModel(
            module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0)
        )
        self.algorithm = algorithm.FederatedAveraging()
        self.backend = _backend(plan, lambda: self.settings.central_num_iterations)
        self.settings = base.NNAlgorithmParams(
            central_num_iterations=0,
            evaluation_frequency=1_000_000,
            train_cohort_size=len(plan.shares),
            val_cohort_size=None,
        )
        self.local = import_module("pfl.hyperparam").NNTrainHyperParams(
            local_batch_size=plan.local.batch,
            local_num_epochs=plan.local.epochs,
            local_learning_rate=plan.local.rate,
        )

    def round(self) -> None:
        """Run one more round."""
        done = self.settings.central_num_iterations
        self.settings = replace(self.settings, central_num_iterations=done + 1)
        self.algorithm.run(
            self.settings, self.backend, self.model, self.local, send_metrics_to_platform=False
        )

    def parameters(self) -> dict[str, Any]:
        """The global parameters."""
        values = self.model.pytorch_model.named_parameters()
        return {name: value.detach().clone() for name, value in values}


def _module(plan: Any) -> Any:
    """The plan's model with the two methods that pfl requires."""
    from torch.nn.functional import cross_entropy

    weighted = import_module("pfl.metrics").Weighted
    module = plan.model.task.build(plan.model.dataset)
    module.load_state_dict(plan.model.start(seed=0))
    module.loss = lambda inputs, labels: cross_entropy(module(inputs), labels)
    module.metrics = lambda inputs, labels: {
        "loss": weighted(cross_entropy(module(inputs), labels).item() * len(labels), len(labels))
    }
    return module


def _backend(plan: Any, turn: Callable[[], int]) -> Any:
    """All clients, each with its images as tensors, weighted by their number."""
    import torch

    data = import_module("pfl.data.pytorch")

    def client(n: int) -> Any:
        chosen = torch.from_numpy(plan.orders(n, turn())[0])
        tensors = (plan.inputs[chosen], plan.labels[chosen])
        return data.PyTorchTensorDataset(tensors, user_id=str(n))

    sampler = import_module("pfl.data.sampling").get_user_sampler(
        "minimize_reuse", list(range(len(plan.shares)))
    )
    everyone = import_module("pfl.data").FederatedDataset(client, sampler)
    weighting = import_module("pfl.aggregate.weighting").WeightByDatapoints()
    return import_module("pfl.aggregate.simulate").SimulatedBackend(
        everyone, everyone, postprocessors=[weighting]
    )
