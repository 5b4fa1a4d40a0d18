"""What is said about an agreement and its clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.agreement.certificate import Certificate
from fedaccord.numbers import FloatArray, count, patience, write

if TYPE_CHECKING:
    pass


LISTED = 300
"""Rows of the page's table; of a larger consortium it shows a choice."""


@dataclass(frozen=True)
class ClientRow:
    """What is said about one client, every number written out."""

    name: str
    samples: str
    alone: str
    agreed: str
    role: str
    saving: str
    threshold: str
    discount_factor: str
    keeps: bool
    deviation: str
    gain: str


def title(certificate: Certificate) -> str:
    """The whole answer in a few words."""
    agreement = certificate.agreement
    if not agreement.exists:
        return agreement.none_exists
    if not certificate.holds:
        return "This profile would not hold"
    return f"An agreement that holds, with {agreement.ratio:,.2f} times the data"


def summary(certificate: Certificate) -> str:
    """Who is it, what is agreed, what is gained."""
    agreement = certificate.agreement
    equilibrium, size = agreement.equilibrium, agreement.consortium.size
    before, after = write([equilibrium.total, agreement.total])
    riders = equilibrium.free_riders
    free_riding = (
        f"{so_many(riders, size)} would contribute nothing, and together" if riders else ""
    )
    alone = (
        f"Left to themselves, {free_riding or 'together'} "
        f"they would train on {before} samples in a slot."
    )
    if not agreement.exists:
        return f"{alone} {agreement.none_exists}: {agreement.reason}."
    asked = (
        f"Here {so_many(size - agreement.free_riders, size)} contribute, "
        f"and together they train on {after} samples, {agreement.ratio:,.2f} times as many."
    )
    if not certificate.holds:
        return f"{alone} {asked} But {_who_does_not_keep(certificate)}."
    better = int((agreement.saving > 0).sum())
    return f"{alone} {asked} {so_many(better, size).capitalize()} would pay less than alone."


def verdict(certificate: Certificate) -> str:
    """What the certificate says."""
    if not certificate.agreement.exists and certificate.holds:
        return "Without one everyone acts alone: that is the equilibrium, which holds by itself."
    if certificate.holds:
        worst = certificate.worst
        return (
            "Proved: no client gains by slipping, nor by leaving the punishment. "
            f"The one closest to it is {certificate.worst_client}, which needs a discount factor "
            f"of {patience(certificate.threshold[worst])} and has "
            f"{patience(certificate.agreement.consortium.discount_factor[worst])}."
        )
    if certificate.keeps.all():
        return "Refuted: a client would gain by leaving the punishment, so it deters nobody."
    return f"Refuted: {_who_does_not_keep(certificate)}, {certificate.worst_client} first of all."


def _who_does_not_keep(certificate: Certificate) -> str:
    """How many would slip, and how many would give more, which is no slip."""
    more = int(certificate.gives_more.sum())
    slipping = int((~certificate.keeps).sum()) - more
    size = certificate.agreement.consortium.size
    told = [f"{so_many(slipping, size)} would slip"] if slipping else []
    if more:
        told.append(f"{so_many(more, size)} would give more than agreed")
    return " and ".join(told)


def so_many(part: int, size: int) -> str:
    """So many of the clients."""
    if part == size > 1:
        return f"all {size:,} clients"
    return f"{f'{part:,}' if part else 'none'} of {count(size, 'client')}"


def written_range(values: FloatArray) -> str:
    """The least and the most of the clients' discount factors."""
    low, high = patience(values.min()), patience(values.max())
    return low if low == high else f"{low} to {high}"


def choose_clients(certificate: Certificate, most: int) -> list[int]:
    """Positions of the clients to list: all in their order, or `most` by ascending ratio.

    The choice is spread evenly, but has those that matter most: who would slip, the critical
    client, the first converted.
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


def client_rows(certificate: Certificate, chosen: Sequence[int]) -> list[ClientRow]:
    """What to say about the chosen clients."""
    agreement = certificate.agreement
    consortium = agreement.consortium
    at = np.asarray(chosen)
    columns = (
        write(consortium.samples[at]),
        write(agreement.equilibrium.profile[at]),
        write(agreement.profile[at]),
        [str(agreement.roles[n]) for n in chosen],
        write(agreement.saving[at]),
        [patience(value) for value in certificate.threshold[at]],
        [patience(value) for value in consortium.discount_factor[at]],
        certificate.keeps[at].tolist(),
        write(certificate.deviation[at]),
        write((certificate.cost_agreement - certificate.cost_deviation)[at]),
    )
    rows = zip(*columns, strict=True)
    return [ClientRow(consortium.names[n], *row) for n, row in zip(chosen, rows, strict=True)]
