"""The rounds of `train --engine flower` as an engine: contributions are given, not agreed on.

There the protocol decides who contributes what, so a slot cannot be compared with the same slot
of another engine. Here it can: the clients are those of the simulation, who accepted what the plan
says, and each round is asked for, guarded and averaged by the code that a server runs. So what
holds for every engine is tested of these rounds, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from fedaccord.data.dataset import Dataset
from fedaccord.data.partition import Indices
from fedaccord.flower.client_app import client_app
from fedaccord.flower.grid import InProcessGrid
from fedaccord.flower.server_app import put
from fedaccord.flower.simulation import Cast
from fedaccord.ledger.chain import GENESIS, START, Head
from fedaccord.protocol import notes
from fedaccord.protocol.messages import Ask, AskedOffer, AskedTraining
from fedaccord.protocol.notes import Note
from fedaccord.protocol.parameters import digest
from fedaccord.protocol.participant import Private
from fedaccord.protocol.rounds import take_round
from fedaccord.protocol.terms import Terms, TrainingTerms
from fedaccord.training.course import Course
from fedaccord.training.engine import TrainingPlan
from fedaccord.training.task import Parameters


class FlowerEngine:
    """Each client is a node of a grid in this process."""

    name = "flower"

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round that is left."""
        sizes = {str(n): len(plan.shares[n]) for n in plan.taking_part}
        cast = _cast(plan)
        nodes = [{"partition-id": n} for n in plan.taking_part]
        grid = InProcessGrid(client_app(cast.client), nodes)
        names = dict(zip(grid.get_node_ids(), sizes, strict=True))
        arrays = {name: value.numpy() for name, value in parameters.items()}
        for turn in plan.turns:
            model = digest(arrays)
            contents = {
                name: AskedTraining(basis="agreement", contribution=x, model=model)
                for name, x in sizes.items()
            }
            ask = Ask("train", plan.slot, turn, Head(plan.slot, GENESIS), contents, arrays)
            replies = put(grid, names, ask, seconds=0.0)
            over = take_round(ask, replies, arrays, sizes, needed=len(sizes), terms=cast.terms)
            if over.faults:
                raise plan.failed(int(str(over.faults[0].client)), turn)
            arrays = over.model
            yield {name: torch.from_numpy(array) for name, array in arrays.items()}


@dataclass(frozen=True)
class _Given:
    """The shares of a plan as a partition."""

    dataset: Dataset
    shares: list[Indices]

    def draw(self, slot: int) -> list[Indices]:  # noqa: ARG002  a plan has only one
        """Everyone's share."""
        return self.shares


def _cast(plan: TrainingPlan) -> Cast:
    """The clients of a plan, each of which agreed to train on its whole share."""
    data, names = plan.model.dataset, [str(n) for n in range(len(plan.shares))]
    terms = Terms(
        name=data.name,
        clients=tuple(names),
        rounds=plan.rounds,
        discount_factor=0.0,
        update_bound="off",
        training=TrainingTerms(shape=data.shape, classes=data.classes),
    )
    course = Course(plan.model, lambda _: _Given(data, plan.shares), plan.rounds, plan.local)
    sizes = {name: len(share) for name, share in zip(names, plan.shares, strict=True)}
    privates = [Private(name, 1.0, 1.0, size, discount_factor=0.0) for name, size in sizes.items()]
    known = {name: _accepted(plan, name, size) for name, size in sizes.items()}
    return Cast(course, terms, privates, plan.seed, known)


def _accepted(plan: TrainingPlan, name: str, amount: int) -> list[Note]:
    """What a client's copy says when it accepted an offer."""
    at: dict[str, Any] = {"slot": plan.slot, "client": name, "turn": 1, "ledger": START}
    offer = AskedOffer(
        rank=1,
        clients=1,
        above=None,
        tied=None,
        contribution=amount,
        agreement="individual",
        total=amount,
        equilibrium_total=0.0,
        punishment_slots=None,
        tolerance=0.0,
        rounds=plan.rounds,
    )
    return [notes.Offer(**at, **dict(offer)), notes.Answer(**at, accepts=True)]
