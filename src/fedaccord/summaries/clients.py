"""The table of clients under an agreement, and what is written under it and under the pictures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.worth import Worth
from fedaccord.game.money import amounts
from fedaccord.numbers import patience, write
from fedaccord.summaries.worth import written_measure


@dataclass(frozen=True)
class ClientRow:
    """What a table says about one client, every number formatted."""

    name: str
    samples: str
    selfish: str
    """What it trains on without an agreement, at the equilibrium."""
    agreed: str
    role: str
    saving: str
    """Against the equilibrium."""
    lost: str
    """What a slot of the punishment costs it."""
    threshold: str
    discount_factor: str
    keeps: bool
    deviation: str
    gain: str


CLIENT_NOTE = (
    "Samples without, samples agreed: what a client trains on in a slot without an agreement, and "
    "under it. Saving: against what it pays without one. Patience: a discount factor; required is "
    "the smallest with which the client keeps to the agreement."
)
"""What the columns of the table of clients mean."""


MORE_NOTE = (
    "Contributing more than agreed is not a slip: whoever does so gains by it in every slot, and "
    "loses nothing."
)
"""What to say when somebody would contribute more than agreed."""


@dataclass(frozen=True)
class WorthRow:
    """What an agreement is worth to one client, every number formatted."""

    name: str
    alone: str
    """The measure (accuracy, ...) of its model if it trains alone."""
    without: str
    agreed: str
    saving: str
    band: str
    """Of the saving; empty if the law was not measured."""
    per_year: str
    """Empty if the length of a slot is not known."""
    share: str
    """Of what is at stake for it."""
    verdict: str


def worth_rows(worth: Worth, chosen: Sequence[int]) -> list[WorthRow]:
    """The rows of a table about what an agreement is worth, for the chosen clients."""
    at, none = np.asarray(chosen), [""] * len(chosen)
    saving, slots = worth.saving, worth.slots_per_year
    currency = worth.agreement.consortium.currency
    bands = none
    if saving.low is not None and saving.high is not None:
        ends = [amounts(end[at], currency) for end in (saving.low, saving.high)]
        bands = [f"{low} to {high}" for low, high in zip(*ends, strict=True)]
    sides = (worth.alone, worth.equilibrium, worth.agreed)
    columns = (
        *(written_measure(worth.measure, side.value[at]) for side in sides),
        amounts(saving.value[at], currency),
        bands,
        none if slots is None else amounts(slots * saving.value[at], currency),
        [f"{100 * share:.1f} %" for share in worth.saving_shares[at]],
        none if worth.verdicts is None else [worth.verdicts[n] for n in chosen],
    )
    names = worth.agreement.consortium.names
    rows = zip(*columns, strict=True)
    return [WorthRow(names[n], *row) for n, row in zip(chosen, rows, strict=True)]


def page_note(certificate: Certificate, listed: int) -> str:
    """What the table of members on a page shows, and what its columns mean."""
    size = certificate.agreement.consortium.size
    said = []
    if listed < size:
        said.append(
            f"{listed:,} of {size:,} members, spread evenly from the smallest to the largest "
            "ratio of valuation to cost per sample, including those that matter most; "
            f"{size - listed:,} are left out."
        )
    said.append("Amounts are samples in every slot.")
    if certificate.agreement.exists:
        said.append(
            "Savings are against what the member pays without an agreement, in "
            f"{certificate.agreement.consortium.currency or 'the unit of the valuations'}."
        )
    said.append(
        "Patience is a discount factor: what a saving in the next slot is worth to the member now."
    )
    return " ".join(said)


def captions(agreement: Agreement) -> dict[str, tuple[str, str]]:
    """A heading and an explanation for each picture of the agreement."""
    contributions = (
        "Filled: under the agreement. Outlined: without one."
        if agreement.exists
        else "Without an agreement."
    )
    return {
        "contributions": ("What each member trains on.", contributions),
        "costs": (
            "What a slot costs each member.",
            "The unavoidable part is left out: it is the same in both cases.",
        ),
        "thresholds": (
            "How patient each member must be.",
            "An agreement holds where the discount factor is at or above the threshold.",
        ),
    }


def choose_clients(certificate: Certificate, most: int) -> list[int]:
    """Positions of the clients to list: all in their order, or at most `most` by ascending ratio.

    The choice is spread evenly and includes those that matter most: who would slip, the
    critical client, the first converted.
    """
    agreement = certificate.agreement
    size = agreement.consortium.size
    if size <= most:
        return list(range(size))
    slipping = np.flatnonzero(~certificate.keeps)
    worst_first = slipping[np.argsort(certificate.slack[slipping], kind="stable")]
    chosen = {certificate.worst, *agreement.equilibrium.critical[:1]}
    if agreement.first_converted is not None:
        chosen.add(agreement.consortium.index(agreement.first_converted))
    chosen.update(worst_first[: most // 2].tolist())
    order = np.argsort(agreement.consortium.ratio, kind="stable")
    evenly = np.linspace(0, size - 1, most - len(chosen)).round().astype(np.int64)
    chosen.update(order[evenly].tolist())
    return [n for n in order.tolist() if n in chosen]


def _required(threshold: float) -> str:
    """A threshold in a table; an infinite one is a patience that nobody has."""
    return patience(threshold) if np.isfinite(threshold) else "above 1"


def client_rows(certificate: Certificate, chosen: Sequence[int]) -> list[ClientRow]:
    """The rows of a table for the chosen clients."""
    agreement = certificate.agreement
    consortium = agreement.consortium
    at = np.asarray(chosen)
    gain = certificate.cost_agreement - certificate.cost_deviation
    columns = (
        write(consortium.samples[at]),
        write(agreement.equilibrium.profile[at]),
        write(agreement.profile[at]),
        [str(agreement.roles[n]) for n in chosen],
        amounts(agreement.saving[at], consortium.currency),
        amounts(certificate.saving[at], consortium.currency),
        [_required(value) for value in certificate.threshold[at]],
        [patience(value) for value in consortium.discount_factor[at]],
        certificate.keeps[at].tolist(),
        write(certificate.deviation[at]),
        amounts(gain[at], consortium.currency),
    )
    rows = zip(*columns, strict=True)
    return [ClientRow(consortium.names[n], *row) for n, row in zip(chosen, rows, strict=True)]
