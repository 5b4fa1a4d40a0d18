"""What an agreement was made from, and what would break it, for whoever has to sign it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.departures import Departures
from fedaccord.agreement.punishment import Suspension
from fedaccord.game.consortium import Consortium
from fedaccord.game.money import amounts, prices
from fedaccord.numbers import FloatArray, patience, write
from fedaccord.summaries.words import Noun, listed, names_of
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
        _written(consortium, "samples", at),
        _written(consortium, "valuation", at),
        _written(consortium, "valuation", at, part=0.01),
        _written(consortium, "cost_per_sample", at),
        amounts(consortium.communication_cost[at], consortium.currency),
        _written(consortium, "discount_factor", at),
        write(consortium.quality[at]),
    )
    rows = zip(*columns, strict=True)
    return [InputRow(consortium.names[n], *row) for n, row in zip(chosen, rows, strict=True)]


def _written(
    consortium: Consortium, field: str, at: npt.NDArray[np.int64], part: float = 1.0
) -> list[str]:
    """The numbers of a field, as ranges where they are not known exactly."""

    def text(values: FloatArray) -> list[str]:
        if field == "discount_factor":
            return [patience(value) for value in values]
        if field == "samples":
            return write(values)
        return prices(values * part, consortium.currency)

    if consortium.ranges is None:
        return text(getattr(consortium, field)[at])
    ends = [text(end[at]) for end in getattr(consortium.ranges, field)]
    return [low if low == high else f"{low} to {high}" for low, high in zip(*ends, strict=True)]


def point_heading(consortium: Consortium) -> str:
    """What 0.01 of the measure is called."""
    if consortium.law.measure == "error":
        return "A percentage point"
    return f"0.01 of {measure_name(consortium.law.measure)}"


def breaking_sentences(
    certificate: Certificate, noun: Noun = "client", departures: Departures | None = None
) -> list[str]:
    """What the agreement cannot protect itself against: each has to be seen to by other means.

    Where it is known what each one's `departures` lead to, that is said.
    """
    agreement, punishment = certificate.agreement, certificate.agreement.punishment
    lies = (
        f"Untrue statements: a {noun} that states a lower valuation or a higher cost than it has "
        "is asked for less, and the others for more. Nothing in the agreement finds that out. "
        "Amounts that follow from ranges which everyone knows cannot be gamed in this way."
    )
    if agreement.ranges is not None:
        lies = (
            "Untrue ranges: numbers outside those that are stated here. Within them it makes no "
            f"difference what a {noun} states, as long as the ranges do not come from itself."
        )
    unseen = (
        "Counts that nobody verifies: a slip that is not seen is not punished. Agree on who checks "
        "how many samples were trained on, and how."
    )
    if not agreement.monitoring.is_certain:
        unseen = (
            f"Audits that are not carried out, that a {noun} can foresee, or that do not tell "
            "whether a sample was trained on: fewer slips are then seen than calculated."
        )
    said = [
        lies,
        unseen,
        "Another model, other rounds or other data than the law of the loss stands for: compare "
        "what each slot brings with what was predicted, and calculate again if the two differ.",
        *_changes(agreement, noun, departures),
    ]
    if isinstance(punishment, Suspension):
        said.append(
            f"A model that does not age: a suspended {noun} can go on using the last one. The "
            "threat works only as far as an old model loses its value."
        )
    return said


def _changes(agreement: Agreement, noun: Noun, departures: Departures | None) -> list[str]:
    """Members and numbers that the agreement was not made for, and departures that break it."""
    moves = "joins or leaves" if departures is None else "joins"
    change = "change" if agreement.ranges is None else "are no longer within the ranges"
    said = [
        f"A {noun} that {moves}, or whose numbers {change}: nothing was proved for that, so "
        "calculate again whether the amounts still hold."
    ]
    if departures is not None and not departures.holds_kept.all():
        who = names_of(agreement, ~departures.holds_kept)
        each = "any one of these leaves" if len(who) > 1 else "this one leaves"
        said.append(f"If {each}, the others' amounts no longer hold: {listed(who, most=20)}.")
    return said
