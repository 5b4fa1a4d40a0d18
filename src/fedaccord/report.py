"""Self-contained HTML pages for a coordinator to send to the clients: an agreement, a match.

The sentences, the choice of clients to list and the way numbers are written are here as well,
because the command line says the same things.
"""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

import fedaccord
from fedaccord.agreement.certificate import Certificate
from fedaccord.game.arrays import FloatArray
from fedaccord.game.writing import count, patience, write
from fedaccord.play.account import Account, punishment
from fedaccord.play.match import Match

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LISTED = 300
"""Rows of the page's table; of a larger consortium it shows a choice."""
_SLIPS_SHOWN = 3
"""Clients that slipped with a picture of their own."""


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


@dataclass(frozen=True)
class DeviatorRow:
    """What is said about one client that slipped, every number written out."""

    name: str
    slots: str
    paid: str
    paid_if_kept: str
    lost: str


def render_report(certificate: Certificate) -> str:
    """The page, as text."""
    agreement = certificate.agreement
    return _fill(
        "report.html.j2",
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
    )


def render_account(account: Account) -> str:
    """The page about a match, as text."""
    match = account.match
    agreement = match.agreement
    return _fill(
        "account.html.j2",
        account=account,
        match=match,
        consortium=agreement.consortium,
        title=match_title(account),
        totals=write([match.totals.mean(), agreement.total, agreement.equilibrium.total]),
        false_alarm_cost=write([match.false_alarm_cost.sum()], digits=3)[0],
        rows=deviator_rows(match),
        listed=LISTED,
        pictures=_match_pictures(account),
        punishment=punishment(agreement),
        discount_factors=_range(agreement.consortium.discount_factor),
    )


def _fill(template: str, **values: Any) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fedaccord", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(
        version=fedaccord.__version__, write=write, count=count, patience=patience, **values
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


def match_title(account: Account) -> str:
    """The whole match in a few words."""
    match = account.match
    if not match.agreement.exists:
        return f"No {match.agreement.kind} agreement exists, so everyone acts alone"
    slipped = np.flatnonzero(match.slipped)
    played = count(match.slots, "slot")
    if slipped.size == 0:
        return f"{played} in which everyone kept to the agreement"
    if slipped.size > 1:
        return f"{count(slipped.size, 'client')} slipped in {played}"
    [deviator] = account.deviators
    lost = deviator.extra_for_ever
    return f"{deviator.client} slipped, and {'lost' if lost > 0 else 'gained'} by it"


def _of(part: int, size: int) -> str:
    """So many of the clients."""
    if part == size > 1:
        return f"all {size:,} clients"
    return f"{f'{part:,}' if part else 'none'} of {count(size, 'client')}"


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


def deviator_rows(match: Match) -> list[DeviatorRow]:
    """What to say about each client that slipped."""
    slipped = np.flatnonzero(match.slipped)
    slots = Counter[str | None]()
    for event in match.events:
        if event.kind == "deviation":
            slots[event.client] += int(event.lasted)
    paid, kept = match.discounted_cost[slipped], match.discounted_cost_if_kept[slipped]
    with np.errstate(invalid="ignore"):
        lost = write(paid - kept)
    costs = write(np.concatenate([paid, kept]), digits=6)
    names = [match.agreement.consortium.names[n] for n in slipped]
    columns = (names, costs[: paid.size], costs[paid.size :], lost)
    return [
        DeviatorRow(name, f"{slots[name]:,}", *row) for name, *row in zip(*columns, strict=True)
    ]


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


def _match_pictures(account: Account) -> list[tuple[tuple[str, str], str]]:
    """Each picture as SVG, with a caption in two parts."""
    from fedaccord import plots

    match, best = account.match, account.best_tolerance
    levels = "between what was agreed and what selfish clients do"
    figures = [
        (
            plots.plot_totals(match),
            "How much was trained on.",
            f"All samples of a slot{f', {levels}' if match.agreement.exists else ''}.",
        )
    ]
    if match.agreement.exists:
        events = "The phase of each slot, and events."
        figures.append((plots.plot_events(match), "What happened when.", events))
    for deviator in account.deviators[:_SLIPS_SHOWN]:
        first = f"From slot {deviator.slips[0].first:,} on, discounted to it."
        figures.append((plots.plot_slip(deviator), f"What slipping cost {deviator.client}.", first))
    if best is not None:
        figures.append(
            (
                plots.plot_tolerance(best, match.tolerance),
                "Which shortfall to put up with.",
                "A small tolerance makes false alarms, a large one lets clients give less.",
            )
        )
    return [
        ((short, more), _svg(figure, f"match{n}"))
        for n, (figure, short, more) in enumerate(figures)
    ]


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
