"""What a member commits to when it reports: its records, its code, and a seed it does not choose.

The root of a Merkle tree fixes the records. The seed of everything random (which records are
trained on, in which order, dropout) follows from a head of the ledger that comes after all
commitments, so a round of training is a function of what was committed to, the contribution and the
incoming model.
"""

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fedaccord.audits.lots import digest_for
from fedaccord.audits.merkle import MerkleTree
from fedaccord.audits.records import Records
from fedaccord.data.partition import Indices

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

_ORDER = 0
"""The round whose seed decides which records are trained on in a slot; rounds count from 1."""


class Commitment(BaseModel):
    """What a member is bound to for a slot."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    root: Digest
    """Of the Merkle tree of its records."""
    records: int = Field(ge=1)
    code: Digest
    """Of the program that it trains with (`Software`)."""


class RoundInputs(BaseModel):
    """What a member's part of a round depends on, besides its records and the incoming model."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    client: str
    position: int = Field(ge=0)
    """The client's position among all."""
    slot: int = Field(ge=1)
    turn: int = Field(ge=1)
    head: Digest
    """Of the ledger, from which the seeds of this slot follow."""
    first: int = Field(default=0, ge=0)
    """Where its samples begin in its order of the slot."""
    amount: int = Field(ge=1)


def commit(records: Records, secret: bytes, code: str) -> Commitment:
    """The commitment to these records; the secret makes the salts."""
    tree = MerkleTree(records, secret)
    return Commitment(root=tree.root, records=len(tree), code=code)


def training_seed(head: str, slot: int, turn: int, client: str) -> int:
    """The seed of a client's round, from the head of the ledger (its digest)."""
    return int(digest_for("training seed", [head, slot, turn, client]), 16)


def slot_order(head: str, slot: int, client: str, records: int) -> Indices:
    """The order of a client's records in a slot: with x samples it trains on the first x."""
    seed = training_seed(head, slot, _ORDER, client)
    return np.random.default_rng(seed).permutation(records)
