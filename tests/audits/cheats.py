"""Members that cheat, each in its own way, and an honest one.

All of them play the same slot: four rounds of softmax regression in mini-batches. Those that cheat
in their training do so in the first two rounds; those that cheat with their data do so in all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256

import numpy as np

from fedaccord.audits.commitment import Commitment, RoundInputs, commit
from fedaccord.audits.draw import Draw, Trained
from fedaccord.audits.examination import Examination, Shown, examine
from fedaccord.audits.merkle import MerkleTree
from fedaccord.audits.opening import open_records
from fedaccord.audits.records import Records, keyed_digests
from fedaccord.audits.replay import train_round
from fedaccord.audits.settings import AuditTerms
from fedaccord.audits.software import software_of
from fedaccord.audits.stated import Stated, drawn_records
from fedaccord.audits.trace import TracedRound
from fedaccord.data.dataset import Dataset
from fedaccord.training.arrays import Arrays, digest
from fedaccord.training.engine import GradientStep, LocalEpochs
from fedaccord.training.local import Turn, train_locally
from fedaccord.training.task import Model, find_task

RECORDS, ROUNDS, CHEATED, OPENED = 200, 4, 2, 5
"""Records of a member, rounds of the slot, rounds with a cheat in the training, records opened."""
AUDITORS = {"Notary": "ed25519:" + "ab" * 32}
HEAD, OTHER_HEAD = "1" * 64, "2" * 64
SECRET, KEY = b"s" * 32, b"a key of the auditor's"
CLIENT = "St Mary"
LOCAL = LocalEpochs(0.2, 16, 1)
Update = Callable[["Member", int], Arrays]


def records_of(seed: int, count: int = RECORDS) -> Records:
    """Two clouds of points."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    inputs = rng.normal(size=(count, 6)) + labels[:, None]
    return Records(inputs.astype(np.float32), labels)


def model_on(records: Records) -> Model:
    """Softmax regression on these records."""
    few = records.only(np.arange(2))
    dataset = Dataset("points", records.inputs, records.labels, few.inputs, few.labels, 2)
    return Model(find_task("softmax"), dataset)


@lru_cache
def incoming(turn: int) -> Arrays:
    """The model that comes in: the same for all members."""
    return {key: value.numpy() for key, value in model_on(records_of(0)).start(turn).items()}


@dataclass(frozen=True)
class Member:
    """What a member has, commits to, does and shows. As it is, it is honest."""

    records: Records = field(default_factory=lambda: records_of(1))
    """What it shows an auditor."""
    committed: Records | None = None
    """What it committed to, if that is something else."""
    update: Update | None = None
    """What it sends instead of what comes out of its training in the first two rounds."""
    trains_on: Records | None = None
    others: Records = field(default_factory=lambda: records_of(2))
    """The records of another member."""

    def inputs(self, turn: int) -> RoundInputs:
        """What it says about a round."""
        return RoundInputs(
            client=CLIENT, position=0, slot=3, turn=turn, head=HEAD, amount=self.amount
        )

    @property
    def amount(self) -> int:
        """It says that it trains on all but ten of its records."""
        return len(self.tree_of) - 10

    @property
    def tree_of(self) -> Records:
        return self.records if self.committed is None else self.committed

    @property
    def tree(self) -> MerkleTree:
        return MerkleTree(self.tree_of, SECRET)

    @property
    def commitment(self) -> Commitment:
        code = software_of(find_task("softmax")).digest
        return commit(self.tree_of, SECRET, code)

    def sent(self, turn: int) -> Arrays:
        """Its update in a round."""
        if self.update is not None and turn <= CHEATED:
            return self.update(self, turn)
        model = model_on(self.records if self.trains_on is None else self.trains_on)
        return train_round(model, LOCAL, self.inputs(turn), incoming(turn))


class Premises:
    """A member after the slot: what the ledger has of it, and what it shows."""

    def __init__(self, member: Member) -> None:
        self.member, self.tree, self.commitment = member, member.tree, member.commitment
        self.updates = {turn: member.sent(turn) for turn in range(1, ROUNDS + 1)}
        self.model = model_on(member.records)
        self.theirs = keyed_digests(member.others, KEY)

    @property
    def trained(self) -> list[Trained]:
        """What a draw needs to know."""
        return [Trained(turn, self.member.amount) for turn in self.updates]

    def audit(self, draw: Draw, terms: AuditTerms) -> Examination:
        """Examine it."""
        turn = draw.turn
        inputs, update = self.member.inputs(turn), self.updates[turn]
        came, sent = digest(incoming(turn)), digest(update)
        stated = Stated(draw, self.commitment, inputs, came, sent)
        places = [place for place in drawn_records(stated) if place < len(self.member.records)]
        shown = Shown(
            model=self.model,
            local=LOCAL,
            secret=SECRET,
            opened=open_records(self.tree, self.member.records, places),
            round=TracedRound(
                **inputs.model_dump(),
                model=came,
                update=sent,
                software=software_of(find_task("softmax")),
            ),
            incoming=incoming(turn),
            update=update,
        )
        return examine(stated, shown, terms, key=KEY, others=[self.theirs])


def terms(level: int, **settings: object) -> AuditTerms:
    """What the terms say about audits."""
    given = {"probability": 0.3, "samples": OPENED, "near": 0.01} | settings
    return AuditTerms.model_validate({**given, "level": level, "auditors": AUDITORS})


# --- The cheats ----------------------------------------------------------------------------


def fewer(part: float) -> Update:
    """Train on so many fewer of its records than it says."""

    def update(member: Member, turn: int) -> Arrays:
        said = member.inputs(turn)
        kept = said.amount - max(1, round(part * said.amount))
        if kept == 0:
            return {name: array.copy() for name, array in incoming(turn).items()}
        less = said.model_copy(update={"amount": kept})
        return train_round(model_on(member.records), LOCAL, less, incoming(turn))

    return update


def old_update(member: Member, turn: int) -> Arrays:
    """Send what came out in the round before."""
    before = replace(member, update=None)
    return before.sent(turn + ROUNDS - 1 if turn == 1 else turn - 1)


def copied_with_noise(member: Member, turn: int) -> Arrays:
    """Take another member's update and add a little noise."""
    theirs = replace(member, records=member.others, update=None).sent(turn)
    rng = np.random.default_rng(turn)
    return {
        name: (array + rng.normal(scale=1e-3, size=array.shape)).astype(array.dtype)
        for name, array in theirs.items()
    }


def other_seed(member: Member, turn: int) -> Arrays:
    """Train on as many records, but draw them and their order by a seed of its own."""
    chosen = member.inputs(turn).model_copy(update={"head": OTHER_HEAD})
    return train_round(model_on(member.records), LOCAL, chosen, incoming(turn))


def chosen_order(member: Member, turn: int) -> Arrays:
    """Train on the right number of records in an order of its own: label after label."""
    order = np.argsort(member.records.labels, kind="stable")[: member.amount]
    model, after = model_on(member.records), incoming(turn)
    for n in range(0, len(order), LOCAL.batch):
        batch = order[n : n + LOCAL.batch]
        after = train_locally(model, GradientStep(LOCAL.rate), batch, after, Turn(3, turn, 0, 0))
    return after


def _doubled(near: float) -> Records:
    """Half as many records as it says, each of them twice; the second time almost the same."""
    half = records_of(1, RECORDS // 2)
    jitter = near * np.random.default_rng(5).normal(size=half.inputs.shape)
    inputs = np.concatenate([half.inputs, half.inputs + jitter]).astype(np.float32)
    return Records(inputs, np.concatenate([half.labels, half.labels]))


def _changed(part: float) -> Records:
    """Some of its records with other labels than it committed to."""
    records = records_of(1)
    labels = records.labels.copy()
    labels[: round(part * RECORDS)] = 1 - labels[: round(part * RECORDS)]
    return Records(records.inputs, labels)


def _with_holes(part: float) -> Records:
    """A part of its records made up on the spot, where it had committed to a random leaf."""
    real, made_up = records_of(1), records_of(9)
    holes = round(part * RECORDS)
    inputs = np.concatenate([made_up.inputs[:holes], real.inputs[holes:]])
    return Records(inputs, np.concatenate([made_up.labels[:holes], real.labels[holes:]]))


def _sharing(part: float) -> Records:
    """A part of its records are those of another member."""
    own, theirs = records_of(1), records_of(2)
    same = round(part * RECORDS)
    inputs = np.concatenate([theirs.inputs[:same], own.inputs[same:]])
    return Records(inputs, np.concatenate([theirs.labels[:same], own.labels[same:]]))


CHANGED = 0.2
"""The part of the records that is changed, or missing in the tree."""
CHEATS: Mapping[str, Member] = {
    "1 % fewer samples than said": Member(update=fewer(0.01)),
    "5 % fewer": Member(update=fewer(0.05)),
    "50 % fewer": Member(update=fewer(0.5)),
    "no training at all": Member(update=fewer(1.0)),
    "duplicated samples": Member(records=_doubled(0.0)),
    "nearly duplicated samples": Member(records=_doubled(1e-3)),
    "samples changed after commitment": Member(records=_changed(CHANGED), committed=records_of(1)),
    "an old update sent again": Member(update=old_update),
    "noise added to a copied update": Member(update=copied_with_noise),
    "another seed": Member(update=other_seed),
    "a chosen batch order": Member(update=chosen_order),
    "a Merkle tree with holes": Member(records=_with_holes(CHANGED), committed=records_of(1)),
    "records shared with another member": Member(records=_sharing(0.1)),
}
"""By what they do."""
IN_THE_DATA = {name for name, member in CHEATS.items() if member.update is None}
"""Cheats that are there in every round."""


def settlement_head(number: int) -> str:
    """The digest of an entry that settled a slot: one of many that could have been."""
    return sha256(f"settlement {number}".encode()).hexdigest()
