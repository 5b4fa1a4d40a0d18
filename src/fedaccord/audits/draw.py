"""Who is audited after a slot, which round, and which samples: drawn by the ledger's head.

The head is that of the slot's settlement. All contributions of the slot already stand in it, so
nobody can know the draw while training. Everyone who has the ledger computes the same draw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedaccord.audits.lots import Lots, digest_for
from fedaccord.audits.settings import AuditTerms


@dataclass(frozen=True)
class Trained:
    """A round in which a client trained."""

    turn: int
    amount: int
    """How many samples."""
    first: int = 0
    """The position of the first of them in the client's order of this slot."""


@dataclass(frozen=True)
class Draw:
    """One client's audit."""

    client: str
    slot: int
    turn: int
    samples: tuple[int, ...]
    """Which samples of that round are opened: positions in the client's order of the slot."""


def draw_audits(
    head: str, slot: int, trained: Mapping[str, Sequence[Trained]], terms: AuditTerms
) -> list[Draw]:
    """The audits of a slot; `head` is the digest of the entry that settled it.

    Whoever trained on nothing has nothing to show, and is not audited.

    >>> terms = AuditTerms(per_slot=1, samples=2, auditors={"Notary": "ed25519:" + "ab" * 32})
    >>> rounds = [Trained(1, 50), Trained(2, 50)]
    >>> draw_audits("cd" * 32, 1, {"A": rounds, "B": rounds}, terms)
    [Draw(client='B', slot=1, turn=1, samples=(16, 27))]
    """
    rounds = {
        client: kept
        for client, each in trained.items()
        if (kept := [one for one in each if one.amount > 0])
    }
    return [
        _draw(head, slot, client, rounds[client], terms.samples)
        for client in sorted(_chosen(head, slot, list(rounds), terms))
    ]


def _chosen(head: str, slot: int, clients: Sequence[str], terms: AuditTerms) -> list[str]:
    """Each with its own probability, or the first ones of an order that the head decides."""
    if terms.per_slot is not None:
        order = sorted(clients, key=lambda client: digest_for("audit order", [head, slot, client]))
        return order[: terms.per_slot]
    return [
        client
        for client in clients
        if Lots("audit of a client", [head, slot, client]).fraction() < terms.probability_of(client)
    ]


def _draw(head: str, slot: int, client: str, rounds: Sequence[Trained], samples: int) -> Draw:
    lots = Lots("audited round and samples", [head, slot, client])
    one = rounds[lots.below(len(rounds))]
    drawn = lots.distinct(samples, one.amount)
    return Draw(client, slot, one.turn, tuple(one.first + place for place in drawn))
