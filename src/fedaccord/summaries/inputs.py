"""What an agreement was made from, and what would break it, for whoever has to sign it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.punishment import Suspension
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import patience, write
from fedaccord.summaries.words import Noun
from fedaccord.summaries.worth import measure_name


@dataclass(frozen=True)
class InputRow:
    """The numbers of one client, formatted."""

    name: str
    samples: str
    valuation: str
    point: str
    """What 0.01 of the measure is worth to it in a slot."""
    cost_per_sample: str
    communication_cost: str
    discount_factor: str
    quality: str


def input_rows(consortium: Consortium, chosen: Sequence[int]) -> list[InputRow]:
    """The rows of a table of what the chosen clients stated."""
    at = np.asarray(chosen)
    columns = (
        write(consortium.samples[at]),
        write(consortium.valuation[at]),
        write(consortium.valuation[at] / 100.0),
        write(consortium.cost_per_sample[at]),
        write(consortium.communication_cost[at]),
        [patience(value) for value in consortium.discount_factor[at]],
        write(consortium.quality[at]),
    )
    rows = zip(*columns, strict=True)
    return [InputRow(consortium.names[n], *row) for n, row in zip(chosen, rows, strict=True)]


def point_heading(consortium: Consortium) -> str:
    """What 0.01 of the measure is called."""
    if consortium.law.measure == "error":
        return "A percentage point"
    return f"0.01 of {measure_name(consortium.law.measure)}"


def breaking_sentences(certificate: Certificate, noun: Noun = "client") -> list[str]:
    """What the agreement cannot protect itself against: each has to be seen to by other means."""
    punishment = certificate.agreement.punishment
    said = [
        f"Untrue statements: a {noun} that states a lower valuation or a higher cost than it has "
        "is asked for less, and the others for more. Nothing in the agreement finds that out.",
        "Counts that nobody verifies: a slip that is not seen is not punished. Agree on who checks "
        "how many samples were trained on, and how.",
        "Another model, other rounds or other data than the law of the loss stands for: compare "
        "what each slot brings with what was predicted, and calculate anew when they part.",
        f"A {noun} that joins or leaves, or whose numbers change: the amounts are then no longer "
        "right for anybody.",
    ]
    if isinstance(punishment, Suspension):
        said.append(
            "A model that does not age: whoever is suspended goes on with the last one. The "
            "threat works only as far as an old model loses its worth."
        )
    return said
