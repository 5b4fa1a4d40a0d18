"""The overhead of the protocol and the ledger over plain Flower FedAvg with the same rounds."""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg

import fedaccord as fa
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.local import LocalTraining
from fedaccord.flower.simulation import simulate, terms_for
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.parameters import Arrays
from fedaccord.training.course import Course, TrainingRun
from fedaccord.training.engine import LocalEpochs
from fedaccord.training.task import Model, find_task

CLIENTS, SAMPLES, ROUNDS = 100, 400, 20
CLOSE = 1e-4
"""How far the two models may differ, relative to the largest parameter. If they differ by more,
they were not trained on the same data, and their times cannot be compared. Flower sums in float32,
in the order in which it sampled its nodes: 1e-5 to 3e-5, from run to run. One sample less at one
client makes 2e-4."""
LOCAL = LocalEpochs(rate=0.05, batch=32)


def run() -> list[Row]:
    logging.getLogger("flwr").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    consortium, course = _setting()
    amounts = _amounts(consortium, course)
    apart = _apart(consortium, course, amounts)
    ours, theirs = race(
        Contestant(lambda _: _ours(consortium, course), cpu_clock=process_time),
        Contestant(lambda _: plain_fedavg(course, amounts), cpu_clock=process_time),
        repeats=3,
    )
    return [
        slower(
            "flower",
            f"a slot of {CLIENTS} clients and {ROUNDS} rounds, with guards and ledger",
            "Flower's FedAvg of the same rounds",
            ours,
            theirs,
            target=1.05,
            note=f"{int(sum(amounts)):,} samples, mlp on digits, one process; "
            f"models differ by at most {apart:.0e}",
        )
    ]


def _setting() -> tuple[fa.Consortium, Course]:
    digits = load_dataset("digits")
    sizes = [SAMPLES] * CLIENTS
    consortium = fa.Consortium(
        valuation=np.linspace(1.0, 100.0, CLIENTS),
        cost_per_sample=1.5e-6,
        samples=sizes,
        rounds=ROUNDS,
        discount_factor=0.8,
    )
    model = Model(find_task("mlp"), digits)
    course = Course(model, lambda seed: RandomPartition(digits, sizes, seed), ROUNDS, LOCAL)
    return consortium, course


def _ours(consortium: fa.Consortium, course: Course, ledger: Path | None = None) -> TrainingRun:
    terms = terms_for(consortium, course, punishment_slots=5, margin=0.05)
    return simulate(consortium, course, terms, slots=1, ledger=ledger, in_process=True)


def _amounts(consortium: fa.Consortium, course: Course) -> list[int]:
    """Each client's contribution under the agreement; an error if any client did not take part."""
    with TemporaryDirectory() as folder:
        place = Path(folder, "ledger.db")
        _ours(consortium, course, place)
        entries = load_entries(str(place))
    if missing := [entry for entry in entries if entry.kind in ("fault", "absence")]:
        raise RuntimeError(f"{missing[0].client} did not take part: {missing[0].text}")
    return [entry.body["contribution"] for entry in entries if entry.kind == "offer"]


def plain_fedavg(course: Course, amounts: list[int]) -> Arrays:
    """The same rounds, written with Flower alone."""
    partition = course.partition(0)
    clients = [
        LocalTraining(course.model, course.local, partition, position=n, drawn=n)
        for n in range(CLIENTS)
    ]
    app = ClientApp()
    answered = 0

    @app.train()  # type: ignore[untyped-decorator,unused-ignore]
    def train(message: Message, context: Context) -> Message:
        nonlocal answered
        n = int(context.node_config["partition-id"])
        content: Any = message.content
        turn = int(content["config"]["server-round"])
        given = {name: array.numpy() for name, array in content["arrays"].items()}
        trained = clients[n](1, turn, amounts[n], given)
        update = RecordDict(
            {
                "arrays": ArrayRecord({name: Array(array) for name, array in trained.items()}),
                "metrics": MetricRecord({"num-examples": amounts[n]}),
            }
        )
        answered += 1
        return Message(update, reply_to=message)

    grid = InProcessGrid(app, [{"partition-id": n} for n in range(CLIENTS)])
    start = {name: Array(value.numpy()) for name, value in course.model.start(0).items()}
    strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS)
    data = course.model.dataset

    def measure(turn: int, arrays: ArrayRecord) -> MetricRecord:  # noqa: ARG001  Flower passes it
        given = {name: torch.from_numpy(array.numpy()) for name, array in arrays.items()}
        loss, accuracy = course.model.evaluate(given, data.test_inputs, data.test_labels)
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    # FedAvg continues without clients that fail, so failures must be detected here
    result = strategy.start(grid, ArrayRecord(start), num_rounds=ROUNDS, evaluate_fn=measure)
    if answered != CLIENTS * ROUNDS:
        raise RuntimeError(f"{answered} of {CLIENTS * ROUNDS} updates came back")
    return {name: array.numpy() for name, array in result.arrays.items()}


def _apart(consortium: fa.Consortium, course: Course, amounts: list[int]) -> float:
    """How far the two models differ, relative to the largest parameter; an error if too far."""
    ours, theirs = _ours(consortium, course).parameters, plain_fedavg(course, amounts)
    apart = max(
        float(np.abs(ours[name].numpy() - theirs[name]).max() / np.abs(theirs[name]).max())
        for name in theirs
    )
    if not apart <= CLOSE:
        raise RuntimeError(
            f"the two models differ by {apart:.0e}, so their times cannot be compared"
        )
    return apart
