"""Self-contained HTML pages to send to the clients: an agreement, a match, a training.

The sentences, the choice of clients to list and the way numbers are written are here as well,
because the command line says the same things.
"""

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from types import SimpleNamespace
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

    from fedaccord.baselines.comparison import Entry, MechanismComparison
    from fedaccord.training.comparison import Comparison, Estimate, ProfileScore

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


def render_report(certificate: Certificate, comparison: "Comparison | None" = None) -> str:
    """The page about an agreement, and a training under it if there was one, as text."""
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
        comparison=comparison,
        **(_training(comparison) if comparison else {}),
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


def render_training(comparison: "Comparison") -> str:
    """The page about a training, as text."""
    return _fill(
        "training.html.j2",
        comparison=comparison,
        course=comparison.course,
        consortium=SimpleNamespace(name=comparison.consortium),
        title=training_title(comparison),
        **_training(comparison),
    )


def _training(comparison: "Comparison") -> dict[str, Any]:
    """What the part of a page about a training is filled with."""
    return {
        "setting": setting_sentence(comparison),
        "sentences": [gain_sentence(comparison, score) for score in comparison.scores[1:]],
        "percent": percent,
        "picture": _learning_picture(comparison),
    }


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


def training_title(comparison: "Comparison") -> str:
    """What was measured, in a few words."""
    first, *others = comparison.scores
    if not others:
        return f"{percent(first.accuracy)} test accuracy under {first.profile}"
    best = max(others, key=lambda score: score.accuracy_gain.mean)
    if not _sure(best.accuracy_gain):
        return "No difference in accuracy that chance would not make"
    more = "more" if best.accuracy_gain.mean > 0 else "less"
    points = abs(100 * best.accuracy_gain.mean)
    return f"{points:.2f} points {more} accuracy under {best.profile} than under {first.profile}"


def setting_sentence(comparison: "Comparison") -> str:
    """On what was trained, and how."""
    course = comparison.course
    data = course.model.dataset
    slots = count(len(comparison.runs[0].slots), "slot")
    scale = "" if course.scale == 1 else f"; one example stands for {1 / course.scale:,.4g} samples"
    return (
        f"Task {course.model.task.name} on {data.name} ({data.size:,} examples to train on), "
        f"{count(course.rounds, 'round')} in a slot, {slots}, "
        f"{count(comparison.seeds, 'seed')}{scale}"
    )


def gain_sentence(comparison: "Comparison", score: "ProfileScore") -> str:
    """A profile against the first one, and how sure that is."""
    first, gain = comparison.scores[0].profile, score.accuracy_gain
    points = f"{100 * gain.mean:+.2f} points"
    if gain.mean == 0 == gain.half_width:
        return f"{score.profile} against {first}: the same accuracy with every seed."
    if not np.isfinite(gain.half_width):
        return f"{score.profile} against {first}: {points} of accuracy, from a single seed."
    low, high = 100 * (gain.mean - gain.half_width), 100 * (gain.mean + gain.half_width)
    between = f"(95 % interval {low:+.2f} to {high:+.2f})"
    chance = "" if _sure(gain) else ", which may be chance"
    return f"{score.profile} against {first}: {points} of accuracy {between}{chance}."


def percent(estimate: "Estimate", signed: bool = False) -> str:
    """A part of 1 in per cent, with its interval (of a difference: in points)."""
    mean = f"{100 * estimate.mean:{'+' if signed else ''}.2f}"
    width = f" ± {100 * estimate.half_width:.2f}" if np.isfinite(estimate.half_width) else ""
    return f"{mean}{width}" if signed else f"{mean}{width} %"


def _sure(estimate: "Estimate") -> bool:
    """Whether the interval leaves out 0; of a single seed nobody can tell."""
    return abs(estimate.mean) > estimate.half_width


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


def _learning_picture(comparison: "Comparison") -> str:
    from fedaccord import plots

    return _svg(plots.plot_learning(comparison), "learning")


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


# --- Mechanisms ----------------------------------------------------------------------------


@dataclass(frozen=True)
class MechanismRow:
    """What is said about one mechanism, every number written out."""

    name: str
    contributors: str
    partial_contributors: str
    free_riders: str
    total: str
    total_cost: str
    paid: str
    worst_client: str
    worst_saving: str
    self_enforcing: str
    enforced_by: str
    private_information: str
    """Whether it survives that."""
    because: str
    accuracy: str


def render_comparison(comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]") -> str:
    """The page about mechanisms side by side, as text; `accuracy` is what was measured, if so."""
    from fedaccord import plots

    return _fill(
        "comparison.html.j2",
        comparison=comparison,
        consortium=comparison.consortium,
        title=f"{count(len(comparison.entries), 'mechanism')} side by side",
        summary=comparison_summary(comparison),
        rows=mechanism_rows(comparison, accuracy),
        measured=bool(accuracy),
        picture=_svg(plots.plot_mechanisms(comparison), "mechanisms"),
        discount_factors=_range(comparison.consortium.discount_factor),
    )


def comparison_summary(comparison: "MechanismComparison") -> str:
    """What clients do alone, and the most that holds by itself."""
    equilibrium = comparison.equilibrium
    alone = write([equilibrium.total])[0]
    start = (
        f"Left to themselves, {_of(equilibrium.free_riders, comparison.consortium.size)} "
        f"contribute nothing, and {alone} samples are trained on in a slot."
    )
    holding = [entry for entry in comparison.entries if entry.self_enforcing]
    if not holding:
        return f"{start} None of these mechanisms would hold by itself."
    most = max(holding, key=lambda entry: entry.outcome.total)
    if most.outcome.total <= equilibrium.total:
        return f"{start} Nothing here that holds by itself does better."
    return (
        f"{start} Of what holds by itself, {most.name} brings most: "
        f"{write([most.outcome.total])[0]} samples."
    )


_SHORT = 1e-6
"""Amounts that are all less are written with an exponent."""


def mechanism_rows(
    comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]"
) -> list[MechanismRow]:
    """What to say about each mechanism."""
    entries = comparison.entries
    columns = (
        write([entry.outcome.total for entry in entries]),
        write([entry.total_cost for entry in entries], digits=6),
        _write_some([entry.outcome.paid for entry in entries]),
        _write_some([entry.worst_saving for entry in entries]),
    )
    rows = zip(entries, *columns, strict=True)
    return [_mechanism_row(entry, accuracy.get(entry.name), *row) for entry, *row in rows]


def _write_some(values: Sequence[float]) -> list[str]:
    """Numbers of which many are nothing, and nothing plainly so; tiny ones without their zeros."""
    if 0 < max(map(abs, values)) < _SHORT:
        return [f"{value:.3g}" for value in values]
    return ["0" if value == 0 else text for value, text in zip(values, write(values), strict=True)]


def _mechanism_row(entry: "Entry", accuracy: "Estimate | None", *written: str) -> MechanismRow:
    outcome = entry.outcome
    total, cost, paid, saving = written
    survives = outcome.survives_private_information
    return MechanismRow(
        name=entry.name,
        contributors=f"{outcome.contributors:,}",
        partial_contributors=f"{outcome.partial_contributors:,}",
        free_riders=f"{outcome.free_riders:,}",
        total=total,
        total_cost=cost,
        paid=paid,
        worst_client=entry.worst_client or "everyone alike",
        worst_saving=saving,
        self_enforcing="yes" if entry.self_enforcing else "no",
        enforced_by=outcome.enforced_by,
        private_information={True: "yes", False: "no", None: "not said"}[survives],
        because=outcome.private_information,
        accuracy="" if accuracy is None else percent(accuracy),
    )
