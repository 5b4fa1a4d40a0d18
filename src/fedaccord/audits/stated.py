"""What the ledger says about a round that was drawn, for an audit to compare with."""

from dataclasses import dataclass

from fedaccord.audits.commitment import Commitment, RoundInputs, slot_order
from fedaccord.audits.draw import Draw


@dataclass(frozen=True)
class Stated:
    """What the ledger says about a drawn round."""

    draw: Draw
    commitment: Commitment
    inputs: RoundInputs
    model: str
    """The digest of the model that came in."""
    update: str


def drawn_records(stated: Stated) -> list[int]:
    """The positions in the committed data of the samples that were drawn."""
    inputs, count = stated.inputs, stated.commitment.records
    order = slot_order(inputs.head, inputs.slot, inputs.client, count)
    return [int(order[sample]) for sample in stated.draw.samples if sample < count]
