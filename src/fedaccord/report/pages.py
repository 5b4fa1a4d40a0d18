"""Self-contained HTML pages: a match, a training, mechanisms side by side."""

import re
import warnings
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import fedaccord
from fedaccord import plots
from fedaccord.numbers import count, patience, write
from fedaccord.report.directions import isolate
from fedaccord.summaries import agreement as about_agreement
from fedaccord.summaries import mechanisms as about_mechanisms
from fedaccord.summaries.match import (
    COST_NOTE,
    PICTURED,
    Account,
    deviator_rows,
    match_captions,
    match_title,
    share_punished,
)
from fedaccord.summaries.own_tests import (
    own_gains,
    own_gains_note,
    own_levels,
    own_levels_note,
    own_sentences,
)
from fedaccord.summaries.prediction import (
    PREDICTED_NOTE,
    gain_sentences,
    predicted_heading,
    predicted_level,
)
from fedaccord.summaries.training import (
    alone_note,
    label_skew,
    learning_caption,
    scores_note,
    setting_sentence,
    training_notes,
    training_title,
    written_score,
)

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

    from fedaccord.mechanisms.comparison import MechanismComparison
    from fedaccord.trials.trial import Trial


def environment(*packages: str) -> "Environment":
    """What fills the templates of these packages, which may build on those of this one.

    Each package keeps its templates in its folder `templates`. Only HTML is escaped: a page in
    Markdown is text.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    filling = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "fedaccord.report")]),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filling.globals |= {
        "version": fedaccord.__version__,
        "write": write,
        "count": count,
        "patience": patience,
    }
    return filling


def fill(template: str, **values: Any) -> str:
    """A page, as text."""
    return isolate(environment().get_template(template).render(**values))


def as_svg(figure: "Figure", name: str) -> str:
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


LISTED = 300
"""Rows of a table on a page; of a larger consortium it shows a selection."""


def with_captions(
    figures: "dict[str, Figure]", captions: dict[str, tuple[str, str]]
) -> list[tuple[tuple[str, str], str]]:
    """Each caption with its picture as SVG."""
    return [
        (captions[name], as_svg(figure, f"picture{n}"))
        for n, (name, figure) in enumerate(figures.items())
    ]


def render_account(account: Account) -> str:
    """The page about a match, as text."""
    account = replace(account, noun="member")
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
        table_note=COST_NOTE.replace("client", "member"),
        pictures=_match_pictures(account),
        share_punished=share_punished(match),
        discount_factors=about_agreement.written_range(agreement.consortium.discount_factor),
    )


def _match_pictures(account: Account) -> list[tuple[tuple[str, str], str]]:
    """Each caption with its picture as SVG."""
    match, best = account.match, account.best_tolerance
    figures = {"totals": plots.plot_totals(match)}
    if match.agreement.exists:
        figures["events"] = plots.plot_events(match)
    for deviator in account.deviators[:PICTURED]:
        figures[f"slip of {deviator.client}"] = plots.plot_slip(deviator)
    if best is not None:
        figures["tolerance"] = plots.plot_tolerance(best, match.tolerance)
    return with_captions(figures, match_captions(account))


def render_training(comparison: "Trial") -> str:
    """The page about a training, as text."""
    return fill(
        "training.html.j2",
        comparison=comparison,
        course=comparison.course,
        consortium=SimpleNamespace(name=comparison.consortium),
        title=training_title(comparison),
        skew=label_skew(comparison),
        notes=training_notes(comparison),
        **training_part(comparison),
    )


def training_part(comparison: "Trial") -> dict[str, Any]:
    """The values for the part of a page about a training."""
    note = f" {PREDICTED_NOTE}" if comparison.predictions else ""
    return {
        "setting": setting_sentence(comparison),
        "sentences": gain_sentences(comparison),
        "measure": comparison.measure,
        "written_score": written_score,
        "predicted": {one.profile: predicted_level(one) for one in comparison.predictions},
        "predicted_heading": [predicted_heading(one) for one in comparison.predictions[:1]],
        "scores_note": scores_note(comparison) + note,
        "alone_note": alone_note(comparison),
        "listed": LISTED,
        "caption": learning_caption(comparison),
        "picture": as_svg(plots.plot_learning(comparison), "learning"),
        **_own_part(comparison),
    }


def _own_part(comparison: "Trial") -> dict[str, Any]:
    """The values for the part about members' own tests; no tables if there are none."""
    tables = [
        (own_levels(comparison), own_levels_note(comparison)),
        (own_gains(comparison), own_gains_note(comparison)),
    ]
    own = [(table, note) for table, note in tables if table.rows]
    return {
        "own_tables": own,
        "own_sentences": own_sentences(comparison, "member"),
        "own_picture": as_svg(plots.plot_own_tests(comparison), "own") if own else "",
    }


def render_comparison(comparison: "MechanismComparison", trial: "Trial | None" = None) -> str:
    """The page about mechanisms side by side, as text; with a trial, how good their models are."""
    own: dict[str, Any] = {"own_tables": []} if trial is None else _own_part(trial)
    return fill(
        "comparison.html.j2",
        comparison=comparison,
        consortium=comparison.consortium,
        title=f"{count(len(comparison.entries), 'mechanism')} side by side",
        summary=about_mechanisms.comparison_summary(comparison, "member"),
        rows=about_mechanisms.mechanism_rows(comparison, trial),
        measure="accuracy" if trial is None else trial.measure,
        said=about_mechanisms,
        measured=trial is not None,
        setting="" if trial is None else setting_sentence(trial),
        listed=LISTED,
        **own,
        caption=about_mechanisms.mechanisms_caption(comparison),
        picture=as_svg(plots.plot_mechanisms(comparison), "mechanisms"),
        discount_factors=about_agreement.written_range(comparison.consortium.discount_factor),
    )
