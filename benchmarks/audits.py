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
REPEATS = 100
"""Rounds that are timed in all, at least five times each slot."""


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
    model = Model(find_task("mlp"), dataset)
    cases = ((5, True), (5, False), (50, True))
    return [*(_slot(model, rounds, first) for rounds, first in cases), _replay(model)]


def _inputs(turn: int) -> RoundInputs:
    return RoundInputs(client="A", position=0, slot=1, turn=turn, head="a" * 64, amount=EXAMPLES)


def _start(model: Model) -> Arrays:
    return {name: value.numpy() for name, value in model.start(0).items()}


def _slot(model: Model, rounds: int, first: bool) -> Row:
    """A slot in which nobody is drawn; in the first one the commitment is made."""
    start = _start(model)

    def plain(_: object) -> None:
        for turn in range(1, rounds + 1):
            digest(start)  # a participant takes both digests in any case
            digest(train_round(model, LOCAL, _inputs(turn), start))

    def audited(member: AuditedMember) -> None:
        member.commit()
        for turn in range(1, rounds + 1):
            digest(start)
            digest(member.train(_inputs(turn), start))

    with TemporaryDirectory() as folder:

        def member() -> AuditedMember:
            found = AuditedMember(model, _terms(), Path(folder))
            found.commit()
            if first:
                (Path(folder) / COMMITTED).unlink()
            return found

        repeats = max(5, REPEATS // rounds)
        ours, theirs = race(Contestant(audited, member), Contestant(plain), repeats=repeats)
    which = "the first slot, with a new commitment" if first else "a later slot, same records"
    return slower(
        "audits",
        f"{which}, {rounds} rounds, nobody drawn",
        "the same slot without audits",
        ours,
        theirs,
        target=1.05,
        note=f"{EXAMPLES:,} examples, a network with {sum(map(np.size, start.values())):,} "
        "parameters, mini-batches of 32",
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
        repeats=25,
    )
    what = "replay one of these rounds"
    return slower("audits", what, "training that round", ours, theirs)
