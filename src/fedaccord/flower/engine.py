"""FedAvg by Flower's messages, behind the same protocol as the engines in one process.

The rounds alone: the parameters travel as Flower's records, every reply passes the guards, and
the average is the one of the protocol.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedaccord.data.dataset import Dataset
from fedaccord.data.partition import Indices
from fedaccord.flower.grid import InProcessGrid
from fedaccord.flower.ledger.chain import START
from fedaccord.flower.local import LocalTraining
from fedaccord.flower.protocol.guards import read_update, take_replies
from fedaccord.flower.protocol.messages import Ask
from fedaccord.flower.protocol.parameters import average
from fedaccord.flower.server_app import exchange
from fedaccord.flower.wire import pack, pack_arrays, unpack
from fedaccord.training.engine import TrainingFailed, TrainingPlan
from fedaccord.training.task import Parameters


class FlowerEngine:
    """Each client is a node of a grid in this process."""

    name = "flower"

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round that is left."""
        sizes = {str(n): len(plan.shares[n]) for n in plan.taking_part}
        grid = InProcessGrid(_app(plan), [{"client": n} for n in plan.taking_part])
        nodes = dict(zip(grid.get_node_ids(), sizes, strict=True))
        arrays = {name: value.numpy() for name, value in parameters.items()}
        for turn in plan.turns:
            bodies = {name: {"contribution": size} for name, size in sizes.items()}
            ask = Ask("train", plan.slot, turn, START, bodies, arrays)
            good, faults = take_replies(
                ask,
                exchange(grid, nodes, ask, seconds=0.0),
                lambda name, reply: read_update(reply, sizes[name], arrays),  # noqa: B023
            )
            if faults:
                raise plan.failed(int(str(faults[0].client)), turn)
            updates = [good[name] for name in sizes]
            arrays = average((count, given) for count, given in updates if given is not None)
            yield {name: torch.from_numpy(array) for name, array in arrays.items()}


@dataclass(frozen=True)
class _Given:
    """The shares of a plan as a partition."""

    dataset: Dataset
    shares: list[Indices]

    def draw(self, slot: int) -> list[Indices]:  # noqa: ARG002  a plan has only one
        """Everyone's share."""
        return self.shares


def _app(plan: TrainingPlan) -> ClientApp:
    """A client app in which each node trains the share of its client."""
    app = ClientApp()
    partition = _Given(plan.model.dataset, plan.shares)
    clients = {
        n: LocalTraining(plan.model, plan.local, partition, position=n, drawn=n, seed=plan.seed)
        for n in plan.taking_part
    }

    @app.train()  # type: ignore[untyped-decorator,unused-ignore]
    def train(message: Message, context: Context) -> Message:
        asked, arrays = unpack(message)
        place = {key: asked[key] for key in ("stage", "slot", "turn", "token")}
        local = clients[int(context.node_config["client"])]
        amount = asked["contribution"]
        try:
            trained = local(asked["slot"], asked["turn"], amount, arrays or {})
        except TrainingFailed:
            return Message(pack(place | {"problem": "failure"}), reply_to=message)
        return Message(pack(place | {"samples": amount}, pack_arrays(trained)), reply_to=message)

    return app
