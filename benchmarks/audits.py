"""What audits cost: committing to records, training with a trace, an opening and a replay."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower
from fedaccord.audits.commitment import RoundInputs
from fedaccord.audits.merkle import MerkleTree, leads_to
from fedaccord.audits.opening import copies_of
from fedaccord.audits.records import Records
from fedaccord.audits.replay import replay, train_round
from fedaccord.audits.software import software_of
from fedaccord.audits.trace import Trace, TracedRound
from fedaccord.data.dataset import Dataset
from fedaccord.training.arrays import Arrays, digest
from fedaccord.training.engine import LocalEpochs
from fedaccord.training.task import Model, find_task

RECORDS, INPUTS = 1_000_000, 20
SECRET = bytes(32)
EXAMPLES, WIDTH, CLASSES, ROUNDS = 2_000, 200, 10, 5
"""Of the member whose training is timed: 13,514 parameters, mini-batches of 32."""
REPEATS = 25


def run() -> list[Row]:
    return [_commitment(), _opening(), *_training()]


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
    model, local = Model(find_task("mlp"), dataset), LocalEpochs(0.1, 32, 1)
    start = {name: value.numpy() for name, value in model.start(0).items()}

    def inputs_of(turn: int) -> RoundInputs:
        head = "a" * 64
        return RoundInputs(client="A", position=0, slot=1, turn=turn, head=head, amount=EXAMPLES)

    def plain() -> None:
        for turn in range(1, ROUNDS + 1):
            digest(start), digest(train_round(model, local, inputs_of(turn), start))

    def traced(folder: str) -> None:
        trace, software = Trace(Path(folder)), software_of(model.task)
        for turn in range(1, ROUNDS + 1):
            inputs = inputs_of(turn)
            update = train_round(model, local, inputs, start)
            came, sent = digest(start), digest(update)
            one = TracedRound(**inputs.model_dump(), model=came, update=sent, software=software)
            trace.keep(one, start, update)

    with TemporaryDirectory() as folder:
        ours, theirs = race(Contestant(lambda _: traced(folder)), Contestant(lambda _: plain()), repeats=REPEATS)
    overhead = slower(
        "audits",
        f"{ROUNDS} rounds of local training, committed and traced, nobody drawn",
        "the same rounds without a trace",
        ours,
        theirs,
        target=1.05,
        note=f"{EXAMPLES:,} examples, a network with {sum(map(np.size, start.values())):,} "
        "parameters, mini-batches of 32",
    )
    return [overhead, _replay(model, local, inputs_of(1), start)]


def _replay(model: Model, local: LocalEpochs, inputs: RoundInputs, start: Arrays) -> Row:
    update = train_round(model, local, inputs, start)
    one = TracedRound(
        **inputs.model_dump(),
        model=digest(start),
        update=digest(update),
        software=software_of(model.task),
    )
    ours, theirs = race(
        Contestant(lambda _: replay(model, local, one, start, update)),
        Contestant(lambda _: train_round(model, local, inputs, start)),
        repeats=REPEATS,
    )
    what = "replay one of these rounds"
    return slower("audits", what, "training that round", ours, theirs, target=1.1)
