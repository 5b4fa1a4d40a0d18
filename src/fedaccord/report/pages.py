"""The pages: an agreement, a match, a training, mechanisms side by side."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fedaccord.agreement.certificate import Certificate
from fedaccord.numbers import count, write
from fedaccord.report.page import as_svg, fill
from fedaccord.summaries.agreement import (
    LISTED,
    choose_clients,
    client_rows,
    summary,
    title,
    verdict,
    written_range,
)
from fedaccord.summaries.match import _SLIPS_SHOWN, Account, deviator_rows, match_title, punishment
from fedaccord.summaries.mechanisms import comparison_summary, mechanism_rows
from fedaccord.summaries.training import (
    _skew,
    gain_sentence,
    percent,
    setting_sentence,
    training_notes,
    training_title,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedaccord.mechanisms.compare import MechanismComparison
    from fedaccord.training.comparison import Comparison, Estimate
    from fedaccord.trials.trial import Trial


def render_report(certificate: Certificate, comparison: "Comparison | None" = None) -> str:
    """The page about an agreement, and a training under it if there was one, as text."""
    agreement = certificate.agreement
    return fill(
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
        discount_factors=written_range(agreement.consortium.discount_factor),
        comparison=comparison,
        **(training_part(comparison) if comparison else {}),
    )


def _pictures(certificate: Certificate) -> list[tuple[str, str]]:
    """Each picture as SVG, with what it shows: without an agreement there is one only."""
    from fedaccord import plots

    figures = [(plots.plot_contributions(certificate.agreement), "contributions")]
    if certificate.agreement.exists:
        figures.append((plots.plot_costs(certificate.agreement), "costs"))
        figures.append((plots.plot_thresholds(certificate), "thresholds"))
    return [(name, as_svg(figure, name)) for figure, name in figures]


def render_account(account: Account) -> str:
    """The page about a match, as text."""
    match = account.match
    agreement = match.agreement
    return fill(
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
        discount_factors=written_range(agreement.consortium.discount_factor),
    )


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
        ((short, more), as_svg(figure, f"match{n}"))
        for n, (figure, short, more) in enumerate(figures)
    ]


def render_training(comparison: "Trial") -> str:
    """The page about a training, as text."""
    return fill(
        "training.html.j2",
        comparison=comparison,
        course=comparison.course,
        consortium=SimpleNamespace(name=comparison.consortium),
        title=training_title(comparison),
        skew=_skew(comparison),
        notes=training_notes(comparison),
        **training_part(comparison),
    )


def training_part(comparison: "Comparison") -> dict[str, Any]:
    """What the part of a page about a training is filled with."""
    return {
        "setting": setting_sentence(comparison),
        "sentences": [gain_sentence(comparison, score) for score in comparison.scores[1:]],
        "percent": percent,
        "picture": _learning_picture(comparison),
    }


def _learning_picture(comparison: "Comparison") -> str:
    from fedaccord import plots

    return as_svg(plots.plot_learning(comparison), "learning")


def render_comparison(comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]") -> str:
    """The page about mechanisms side by side, as text; `accuracy` is what was measured, if so."""
    from fedaccord import plots

    return fill(
        "comparison.html.j2",
        comparison=comparison,
        consortium=comparison.consortium,
        title=f"{count(len(comparison.entries), 'mechanism')} side by side",
        summary=comparison_summary(comparison),
        rows=mechanism_rows(comparison, accuracy),
        measured=bool(accuracy),
        picture=as_svg(plots.plot_mechanisms(comparison), "mechanisms"),
        discount_factors=written_range(comparison.consortium.discount_factor),
    )
