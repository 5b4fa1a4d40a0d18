"""Slots on one machine: the same protocol, ledger and messages, in Flower's simulation.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from fedaccord.data.dataset import load_dataset
>>> from fedaccord.data.partition import RandomPartition
>>> from fedaccord.game.consortium import Consortium
>>> from fedaccord.training.course import Course
>>> from fedaccord.training.task import Model, find_task
>>> digits = load_dataset("digits")
>>> sizes = [300, 250, 200]
>>> consortium = Consortium(valuation=[40.0, 30.0, 20.0], cost_per_sample=0.005, samples=sizes,
...                         rounds=3, discount_factor=0.8)
>>> course = Course(Model(find_task("softmax"), digits),
...                 lambda seed: RandomPartition(digits, sizes, seed), rounds=3)
>>> rules = terms_for(consortium, course, punishment="suspension")
>>> with TemporaryDirectory() as folder:
...     run = simulate(consortium, course, rules, slots=3, ledger=Path(folder, "ledger.db"),
...                    slips={"client-1": {1: 0}}, in_process=True)
>>> [slot.suspended for slot in run.slots]
[(), ('client-1',), ()]
"""

import logging
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from flwr.app import ConfigRecord, Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.data.partition import Indices, Partition
from fedaccord.errors import FedaccordError
from fedaccord.flower.client_app import client_app
from fedaccord.flower.diary import Diary
from fedaccord.flower.events import Say
from fedaccord.flower.grids import InProcessGrid, closed_cluster
from fedaccord.flower.local import LocalTraining, training_in_terms
from fedaccord.flower.narration import Narrator
from fedaccord.flower.server_app import run_slots
from fedaccord.flower.shared_terms import Slips, privates_of, shared_law, shared_terms
from fedaccord.game.alone import alone_contribution
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.notes import CopyInMemory, Note
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.private import Private
from fedaccord.protocol.restored import restored_notes
from fedaccord.protocol.terms import Terms, read_terms, rules_of
from fedaccord.repeated.match import Match
from fedaccord.training.course import (
    AfterRound,
    Course,
    TrainingRun,
)


def slips_in(match: Match) -> Slips:
    """The slips of a match, in whole samples, to train what was played."""
    found: dict[str, dict[int, int]] = {}
    for event in match.events:
        if event.kind == "deviation" and event.client is not None:
            last = int(min(event.slot + event.lasted - 1, match.slots))
            for slot in range(event.slot, last + 1):
                found.setdefault(event.client, {})[slot] = int(event.contributed or 0)
    return found


def terms_for(consortium: Consortium, course: Course, **rules: Any) -> Terms:
    """The terms of a consortium that trains this course; `rules` are fields of the terms."""
    dataset = course.model.dataset
    training = {
        "task": course.model.task.name,
        "shape": list(dataset.shape),
        "classes": dataset.classes,
        **training_in_terms(course.local, course.server),
    }
    given = shared_terms(consortium, course.rounds) | {"training": training}
    return read_terms(given | rules, consortium.name)


def as_offered(agreement: Agreement, rounds: int) -> Agreement:
    """The agreement that the server would offer instead of this one.

    It asks for whole samples. And it knows ratios, but no prices, so for the least total cost it
    counts each client's cost in that client's own samples.
    """
    consortium = agreement.consortium
    price, fee = consortium.cost_per_sample, consortium.communication_cost + consortium.server_fee
    common: dict[str, Any] = {
        "samples": consortium.samples,
        "discount_factor": consortium.discount_factor,
        "rounds": rounds,
        "law": shared_law(consortium, rounds),
        "name": consortium.name,
        "names": consortium.names,
    }
    offered = solve_agreement(
        Consortium(
            valuation=consortium.ratio,
            cost_per_sample=1.0,
            communication_cost=fee / price,
            **common,
        ),
        "uniform" if agreement.kind == "uniform" else "individual",
        objective=agreement.objective,
        margin=agreement.margin,
        whole_samples=True,
        punishment=agreement.punishment,
        nobody_worse=agreement.nobody_worse,
    )
    real = Consortium(
        valuation=consortium.valuation,
        cost_per_sample=price,
        communication_cost=consortium.communication_cost,
        server_fee=consortium.server_fee,
        **common,
    )
    return replace(offered, equilibrium=solve_equilibrium(real))


def terms_of(agreement: Agreement, course: Course, **rules: Any) -> Terms:
    """The terms under which a consortium would come to this agreement, and train this course."""
    given: dict[str, Any] = {
        "agreement": agreement.kind,
        "margin": agreement.margin,
        "nobody_worse": agreement.nobody_worse,
    }
    given |= rules_of(agreement.punishment)
    if agreement.objective is not None:
        given["objective"] = agreement.objective
    return terms_for(agreement.consortium, course, **(given | rules))


def simulate(
    consortium: Consortium,
    course: Course,
    terms: Terms,
    *,
    slots: int,
    ledger: str | Path | None = None,
    slips: Slips | None = None,
    seed: int = 0,
    profile: str = "",
    in_process: bool = False,
    progress: AfterRound | None = None,
    say: Say | None = None,
) -> TrainingRun:
    """Run slots until `slots` are settled, in Flower's simulation with a node for each client.

    If the ledger has some slots already, it continues after them and returns only the new ones. A
    slot that was begun is finished; if some of its rounds were over, only its end is measured. With
    `in_process` the messages are the same, but Ray is not started. `say` is told what happens, as
    the server would say it.
    """
    privates = privates_of(consortium, slips)
    with TemporaryDirectory() as folder, open_ledger(ledger or Path(folder, "ledger.db")) as book:
        start = {name: value.numpy() for name, value in course.model.start(seed).items()}
        coordinator = Coordinator(terms, book, start)
        state = coordinator.state
        if state.between_slots and state.settled >= slots:
            raise FedaccordError(
                f"{book.name}: has {state.settled} slots already; "
                "ask for more slots, or use another ledger"
            )
        done = 0 if state.between_slots else state.current.rounds
        diary = Diary(course, seed, progress, done)
        cast = Cast(course, terms, privates, seed, restored_notes(state, book.head))

        def serve(grid: Grid) -> None:
            narrator = None if say is None else Narrator(coordinator, say)
            run_slots(grid, coordinator, slots, diary.watch, narrator=narrator)

        if in_process:
            nodes = [{"partition-id": n} for n in range(consortium.size)]
            serve(InProcessGrid(client_app(cast.client), nodes))
        else:
            _run_on_ray(serve, cast, Path(folder))
    out = [[name in suspended for name in consortium.names] for suspended in diary.suspended]
    return diary.run(profile, np.where(out, alone_contribution(consortium), 0.0))


def copy_of_node(context: Context) -> CopyInMemory:
    """A client's copy in the state that Flower keeps for a node, for as long as the run lasts."""
    return CopyInMemory(context.state.setdefault("fedaccord.copy", ConfigRecord({})))


@dataclass
class Cast:
    """The clients of a simulation; Flower numbers their nodes from 0."""

    course: Course
    terms: Terms
    privates: list[Private]
    seed: int
    known: dict[str, list[Note]] = field(default_factory=dict)
    """What clients agreed to before this simulation was started."""
    _partition: Partition | None = field(default=None, init=False, repr=False)

    def client(self, context: Context) -> Participant:
        """The client that a node stands for."""
        n, course = int(context.node_config["partition-id"]), self.course
        train = LocalTraining(
            course.model,
            course.local,
            self.partition,
            position=n,
            drawn=n,
            seed=self.seed,
            scale=course.scale,
        )
        private, copy = self.privates[n], copy_of_node(context)
        known = self.known.get(private.name, [])
        if known and not any(copy.entries()):
            copy.append([note.fact for note in known])
        return Participant(private, self.terms, copy, train)

    @property
    def partition(self) -> Partition:
        """Who has which examples, drawn once per slot."""
        if self._partition is None:
            self._partition = _Remembering(self.course.partition(self.seed))
        return self._partition


class _Remembering:
    """A partition that remembers its last draw: every client needs it."""

    def __init__(self, partition: Partition) -> None:
        self.dataset, self.tests = partition.dataset, partition.tests
        self._partition = partition
        self._slot, self._drawn = 0, list[Indices]()

    def draw(self, slot: int) -> list[Indices]:
        if self._slot != slot:
            self._slot, self._drawn = slot, self._partition.draw(slot)
        return self._drawn


# --- Ray -----------------------------------------------------------------------------------


def _run_on_ray(serve: Callable[[Grid], None], cast: Cast, folder: Path) -> None:
    """Flower's own simulation: one of Ray's processes answers each message."""
    import cloudpickle

    server = ServerApp()

    @server.main()  # type: ignore[untyped-decorator,unused-ignore]
    def main(grid: Grid, context: Context) -> None:  # noqa: ARG001  Flower passes it
        serve(grid)

    # Flower sends the app with every message, so each process reads the data from a file, once.
    place = folder / "cast.pickle"
    place.write_bytes(cloudpickle.dumps(cast))
    with closed_cluster() as init_args, _quiet():
        from flwr.simulation import run_simulation

        run_simulation(
            server,
            _app_of(str(place)),
            num_supernodes=len(cast.privates),
            backend_config={
                "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                "init_args": init_args,
            },
        )


def _app_of(place: str) -> ClientApp:
    return client_app(lambda context: _cast_at(place).client(context))


@lru_cache(maxsize=1)
def _cast_at(place: str) -> Cast:
    torch.set_num_threads(1)  # there is already one process per core
    cast: Cast = pickle.loads(Path(place).read_bytes())
    return cast


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Flower log errors only."""
    logger = logging.getLogger("flwr")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
