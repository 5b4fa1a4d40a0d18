"""Fine-tuning: each client goes on with the shared model by itself, on its own samples.

Organisations that share a model seldom use it as it is: each adapts it to its own cases. The result
is the client's alone. Nothing of it is averaged, and the next slot starts from the shared model.
"""

from dataclasses import replace

from fedaccord.data.partition import Partition
from fedaccord.errors import InvalidInput
from fedaccord.training.engine import Engine, TrainingPlan
from fedaccord.training.optimisers import FEDAVG
from fedaccord.training.rules import LocalEpochs, MiniBatches
from fedaccord.training.task import Parameters
from fedaccord.training.vectorised.engine import VectorisedEngine
from fedaccord.training.vectorised.many import train_many


def check_fine_tuning(epochs: int, partition: Partition) -> None:
    """Refuse to fine-tune what nobody could judge."""
    if epochs and not len(partition.tests):
        raise InvalidInput("needs a test of each client's own to judge by", field="fine_tuning")


def fine_tune(
    engine: Engine, plan: TrainingPlan, parameters: Parameters, epochs: int
) -> dict[int, Parameters]:
    """Each client's model, by its position, after more epochs on its share of a slot's examples.

    In an epoch it goes once through its share, with the same steps as in the slot's rounds (a
    gradient step on all its samples is an epoch). A client that contributed nothing has none.
    """
    clients = plan.taking_part
    plans = [more_epochs(plan, n, epochs) for n in clients]
    if isinstance(engine, VectorisedEngine):
        after = train_many(plans, [parameters] * len(plans))
        return {n: {name: each[k] for name, each in after.items()} for k, n in enumerate(clients)}
    found = {}
    for n, own in zip(clients, plans, strict=True):
        *_, found[n] = engine.rounds(own, parameters)
    return found


def more_epochs(plan: TrainingPlan, client: int, epochs: int) -> TrainingPlan:
    """Rounds after the slot's own, of one client without a server: its examples in a new order."""
    own = [share if n == client else share[:0] for n, share in enumerate(plan.shares)]
    first, local = plan.rounds + 1, plan.local
    plan = replace(plan, shares=own, first=first, server=FEDAVG)
    if not isinstance(local, MiniBatches):
        return replace(plan, rounds=plan.rounds + epochs)
    more = LocalEpochs(
        local.rate, local.batch, epochs, proximal=local.proximal, optimiser=local.optimiser
    )
    return replace(plan, local=more, rounds=first)
