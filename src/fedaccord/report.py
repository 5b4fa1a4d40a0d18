"""One self-contained HTML page about an agreement, for a coordinator to send to the clients.

The sentences, the choice of clients to list and the way numbers are written are here as well,
because the command line says the same things.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

import fedaccord
from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.game.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def render_report(certificate: Certificate) -> str:
    """The page, as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    agreement = certificate.agreement
    environment = Environment(
        loader=PackageLoader("fedaccord", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        version=fedaccord.__version__,
        certificate=certificate,
        agreement=agreement,
        consortium=agreement.consortium,
        title=title(certificate),
        summary=summary(certificate),
        verdict=verdict(certificate),
        totals=write([agreement.equilibrium.total, agreement.total]),
        costs=write([agreement.equilibrium.cost.sum(), agreement.cost.sum()], digits=6),
        rows=client_rows(certificate, choose_clients(certificate, LISTED)),
        pictures=_pictures(certificate),
        punishment=punishment(agreement),
        discount_factors=_range(agreement.consortium.discount_factor),
        write=write,
        count=count,
        patience=patience,
    )


# --- Sentences -----------------------------------------------------------------------------


def title(certificate: Certificate) -> str:
    """The whole answer in a few words."""
    agreement = certificate.agreement
    if not agreement.exists:
        return f"No {agreement.kind} agreement exists"
    if not certificate.holds:
        return "This profile would not hold"
    return f"An agreement that holds, with {agreement.ratio:,.2f} times the data"


def summary(certificate: Certificate) -> str:
    """Who is it, what is agreed, what is gained."""
    agreement = certificate.agreement
    equilibrium, size = agreement.equilibrium, agreement.consortium.size
    before, after = write([equilibrium.total, agreement.total])
    riders = equilibrium.free_riders
    free_riding = f"{_of(riders, size)} would contribute nothing, and together" if riders else ""
    alone = (
        f"Left to themselves, {free_riding or 'together'} "
        f"they would train on {before} samples in a slot."
    )
    if not agreement.exists:
        return f"{alone} There is no agreement to better that: {agreement.reason}."
    asked = (
        f"Here {_of(size - agreement.free_riders, size)} contribute, "
        f"and together they train on {after} samples, {agreement.ratio:,.2f} times as many."
    )
    if not certificate.holds:
        slipping = int((~certificate.keeps).sum())
        return f"{alone} {asked} But {_of(slipping, size)} would rather slip than keep to it."
    better = int((agreement.saving > 0).sum())
    return f"{alone} {asked} {_of(better, size).capitalize()} would pay less than alone."


def verdict(certificate: Certificate) -> str:
    """What the certificate says."""
    if not certificate.agreement.exists:
        return "What is left is the equilibrium, which holds by itself."
    if certificate.holds:
        worst = certificate.worst
        return (
            "Proved: no client gains by slipping, nor by leaving the punishment. "
            f"The one closest to it is {certificate.worst_client}, which needs a discount factor "
            f"of {patience(certificate.threshold[worst])} and has "
            f"{patience(certificate.agreement.consortium.discount_factor[worst])}."
        )
    slipping = int((~certificate.keeps).sum())
    if slipping == 0:
        return "Refuted: a client would gain by leaving the punishment, so it deters nobody."
    size = certificate.agreement.consortium.size
    return f"Refuted: {_of(slipping, size)} would slip, {certificate.worst_client} first of all."


def punishment(agreement: Agreement) -> str:
    """How long a slip is punished."""
    slots = agreement.punishment_slots
    return "for ever" if slots is None else f"for {count(slots, 'slot')}"


def _of(part: int, size: int) -> str:
    """So many of the clients."""
    if part == size > 1:
        return f"all {size:,} clients"
    return f"{f'{part:,}' if part else 'none'} of {count(size, 'client')}"


# --- Numbers -------------------------------------------------------------------------------


def count(number: int, noun: str) -> str:
    """A number of things: "1 client", "6 clients"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def write(values: Sequence[float] | FloatArray, digits: int = 4) -> list[str]:
    """Numbers that stand together, with as many decimals as the largest needs for `digits`.

    Whole numbers have none.

    >>> write([50396.84, 110814.2]), write([0.0199, 0.00021])
    (['50,397', '110,814'], ['0.01990', '0.00021'])
    """
    array = np.asarray(values, dtype=np.float64)
    largest = float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
    whole = largest == 0 or bool((array == np.round(array)).all())
    decimals = 0 if whole else max(0, digits - 1 - int(np.floor(np.log10(largest))))
    # adding 0 turns a negative zero into a plain one
    return [f"{round(v, decimals) + 0.0:,.{decimals}f}" if np.isfinite(v) else "–" for v in array]


def patience(value: float) -> str:
    """A discount factor or a threshold; infinite means that none is enough."""
    return f"{value:.3f}" if np.isfinite(value) else "none is enough"


def _range(values: FloatArray) -> str:
    low, high = patience(values.min()), patience(values.max())
    return low if low == high else f"{low} to {high}"


# --- Clients -------------------------------------------------------------------------------


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


# --- Pictures ------------------------------------------------------------------------------


def _pictures(certificate: Certificate) -> list[tuple[str, str]]:
    """Each picture as SVG, with what it shows."""
    from fedaccord import plots

    figures = (
        (plots.plot_contributions(certificate.agreement), "contributions"),
        (plots.plot_costs(certificate.agreement), "costs"),
        (plots.plot_thresholds(certificate), "thresholds"),
    )
    return [(name, _svg(figure, name)) for figure, name in figures]


def _svg(figure: "Figure", name: str) -> str:
    """A figure to put into a page: its size left to the page, its names free of the others'."""
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # a letter that matplotlib's own font lacks is the reader's browser's to find
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = re.sub(r"<metadata>.*?</metadata>", "", text.getvalue(), count=1, flags=re.DOTALL)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    return re.sub(r' id="[a-zA-Z0-9.]+_\d+"', "", svg)
