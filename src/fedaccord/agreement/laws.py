"""Whether an agreement holds for every law that the loss may follow, from the cost function alone.

Contributing more than agreed pays under some laws for some clients. That is no slip; they are
counted apart.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.examined import Faced, examine, face
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import ARRAYS, Law
from fedaccord.game.law_rows import rows_of
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Record


@dataclass(frozen=True, eq=False, repr=False)
class HeldUnder(Record):
    """For each law (row) and client: whether it keeps to the agreement, and with what slack."""

    agreement: Agreement
    keeps: BoolArray
    slack: FloatArray
    """Its discount factor less the smallest one at which it would keep to the agreement."""
    gives_more: BoolArray
    """Whether it would contribute more than agreed, which helps everybody."""
    least_audit: FloatArray
    """The smallest probability of an audit that keeps it to the agreement; more than 1: none."""

    @cached_property
    def held(self) -> int:
        """Under how many laws everyone keeps to the agreement."""
        return int(self.keeps.all(axis=1).sum())

    @property
    def laws(self) -> int:
        """How many laws there are."""
        return len(self.keeps)

    @property
    def worst(self) -> tuple[int, int]:
        """The law, and the client, with the least slack."""
        law, client = divmod(int(np.argmin(self.slack)), self.slack.shape[1])
        return law, client

    def _facts(self) -> dict[str, Any]:
        law, client = self.worst
        return {
            "laws": self.laws,
            "held": self.held,
            "worst_law": law,
            "worst_client": self.agreement.consortium.names[client],
            "slack": self.slack[law, client],
            "would_give_more": int(self.gives_more.any(axis=0).sum()),
        }


def held_under(agreement: Agreement, laws: Law) -> HeldUnder:
    """Examine an agreement under each of the laws, which are rows (see `law_rows`)."""
    return HeldUnder(agreement, *examine(agreement, *_stacked(agreement.consortium, laws)))


def face_under(agreement: Agreement, laws: Law) -> Faced:
    """What each client weighs up under each of the laws, which are rows."""
    return face(agreement, *_stacked(agreement.consortium, laws))


def _stacked(consortium: Consortium, laws: Law) -> tuple[Consortium, tuple[int, int]]:
    """Every client once for each law, as one long consortium in which each has its own law.

    Also the numbers of laws and of clients.
    """
    laws = rows_of(laws)
    height, width = laws.value.shape[1], consortium.size
    arrays: dict[str, Any] = {
        name: np.repeat(getattr(laws, name)[:, :, 0], width, axis=1) for name in ARRAYS
    }
    law = Law(**arrays, floor=np.repeat(laws.floor[:, 0], width), kind="personal")
    columns = ("valuation", "cost_per_sample", "samples", "discount_factor", "communication_cost")
    tiled: dict[str, Any] = {
        name: np.tile(getattr(consortium, name), height) for name in (*columns, "quality")
    }
    fee = consortium.server_fee
    types = Consortium(**tiled, rounds=consortium.rounds, server_fee=fee, law=law)
    return types, (height, width)
