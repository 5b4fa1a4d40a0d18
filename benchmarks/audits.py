"""What audits cost: committing to records, training with a trace, an opening and a replay."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measure import Contestant, Timing, race
from benchmarks.row import Row, slower
from fedaccord.audits.commitment import RoundInputs
from fedaccord.audits.merkle import MerkleTree, leads_to
from fedaccord.audits.opening import copies_of
from fedaccord.audits.records import Records
from fedaccord.audits.replay import replay, train_round
from fedaccord.audits.software import software_of
from fedaccord.audits.trace import TracedRound
from fedaccord.data.dataset import Dataset
from fedaccord.flower.audited import COMMITTED, AuditedMember
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.training.arrays import Arrays, digest
from fedaccord.training.engine import LocalEpochs
from fedaccord.training.task import Model, find_task

RECORDS, INPUTS = 1_000_000, 20
SECRET = bytes(32)
EXAMPLES, WIDTH, CLASSES = 2_000, 200, 10
"""Of the member whose training is timed: 13,514 parameters, mini-batches of 32."""
LOCAL = LocalEpochs(0.1, 32, 1)
REPEATS = 60


def run() -> Iterator[Row]:
    yield _commitment()
    yield _opening()
    yield from _training()


def _records(count: int) -> Records:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(count, INPUTS)).astype(np.float32)
    return Records(inputs, rng.integers(0, 2, count))


def _commitment() -> Row:
    records = _records(RECORDS)
    (ours,) = race(Contestant(lambda _: MerkleTree(records, SECRET).root), repeats=3, warm_up=False)
    return Row(
        "audits",
        f"commit to {RECORDS:,} records of {INPUTS} numbers",
        "-",
        value=ours.wall,
        target=10.0,
        unit="s",
        ours=ours,
    )


def _opening() -> Row:
    records = _records(RECORDS)
    tree = MerkleTree(records, SECRET)
    root, opened = tree.root, tree.open(RECORDS // 3)
    record = records[RECORDS // 3]
    (each,) = race(
        Contestant(lambda _: [leads_to(root, RECORDS, opened, record) for _ in range(1_000)]),
        repeats=3,
    )
    (copies,) = race(
        Contestant(lambda _: copies_of(records, range(RECORDS))), repeats=1, warm_up=False
    )
    return Row(
        "audits",
        f"check the path of one record among {RECORDS:,}",
        "-",
        value=1e3 * each.wall,
        unit="microseconds",
        ours=each.each(1_000),
        note=f"looking for equal records among all of them takes {copies.wall:.1f} s",
    )


def _training() -> list[Row]:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(EXAMPLES, WIDTH)).astype(np.float32)
    labels = rng.integers(0, CLASSES, EXAMPLES)
    dataset = Dataset("made up", inputs, labels, inputs[:10], labels[:10], CLASSES)
    model = Model(find_task("mlp"), dataset)
    return [*_slots(model), _replay(model)]


def _inputs(turn: int) -> RoundInputs:
    return RoundInputs(client="A", position=0, slot=1, turn=turn, head="a" * 64, amount=EXAMPLES)


def _start(model: Model) -> Arrays:
    return {name: value.numpy() for name, value in model.start(0).items()}


def _slots(model: Model) -> list[Row]:
    """What a slot takes in which nobody is drawn, from its parts.

    The parts that audits add are small beside the training. Timed together with it they would be
    lost in what else the machine does; each by itself, its minimum is stable.
    """
    start = _start(model)
    update = train_round(model, LOCAL, _inputs(1), start)
    with TemporaryDirectory() as folder:
        member = AuditedMember(model, _terms(), Path(folder))
        kept = Path(folder) / COMMITTED
        trained, new, same, traced = race(
            Contestant(lambda _: train_round(model, LOCAL, _inputs(1), start)),
            Contestant(lambda _: member.commit(), lambda: kept.unlink(missing_ok=True)),
            Contestant(lambda _: member.commit(), member.commit),
            Contestant(lambda _: member.keep(_inputs(1), start, update, [])),
            repeats=REPEATS,
        )
    cases = ((5, new, "new"), (10, new, "new"), (50, new, "new"), (5, same, "the same"))
    return [_slot(rounds, trained, commitment, traced, data) for rounds, commitment, data in cases]


def _slot(rounds: int, trained: Timing, commitment: Timing, traced: Timing, data: str) -> Row:
    added = commitment.wall + rounds * traced.wall
    return Row(
        "audits",
        f"a slot of {rounds} rounds, committed and traced, nobody drawn, records are {data}",
        "the same slot without audits",
        value=1.0 + added / (rounds * trained.wall),
        target=1.05,
        note=f"training {1e3 * trained.wall:.1f} ms a round, commitment to {EXAMPLES:,} records "
        f"{1e3 * commitment.wall:.1f} ms a slot, trace {1e3 * traced.wall:.2f} ms a round",
    )


def _terms() -> Terms:
    training = {"shape": [WIDTH], "classes": CLASSES, "task": "mlp", "local": "epochs"}
    audits = {"probability": 0.1, "auditors": {"Notary": "ed25519:" + "ab" * 32}}
    given = {
        "name": "benchmark",
        "clients": ["A"],
        "rounds": 5,
        "discount_factor": 0.8,
        "training": training | {"rate": LOCAL.rate, "batch": LOCAL.batch},
        "audits": audits,
    }
    return read_terms(given, "benchmark")


def _replay(model: Model) -> Row:
    start, inputs = _start(model), _inputs(1)
    update = train_round(model, LOCAL, inputs, start)
    one = TracedRound(
        **inputs.model_dump(),
        model=digest(start),
        update=digest(update),
        software=software_of(model.task),
    )
    ours, theirs = race(
        Contestant(lambda _: replay(model, LOCAL, one, start, update)),
        Contestant(lambda _: train_round(model, LOCAL, inputs, start)),
        repeats=REPEATS,
    )
    what = "replay one of these rounds"
    return slower("audits", what, "training that round", ours, theirs)
