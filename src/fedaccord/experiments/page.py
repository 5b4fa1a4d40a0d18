"""The whole evaluation on one page: Markdown for the docs, or HTML with all pictures."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from fedaccord.experiments.claims import Claim, with_reason, written
from fedaccord.experiments.evaluation import (
    MECHANISMS_NOTE,
    TRAINING_NOTE,
    Section,
    ranges,
    side_by_side,
    summary,
)
from fedaccord.experiments.presets import paper_setting, unrounded_cost
from fedaccord.experiments.standard import HOLDING, RULES, Verdict
from fedaccord.report.page import environment


def _badge(verdict: Verdict) -> str:
    """The class that colours it on the page."""
    return {"does not hold": "no"}.get(verdict, "yes" if verdict in HOLDING else "open")


def render_markdown(sections: Sequence[Section], trained: Sequence[Section] = ()) -> str:
    """The page for the documentation; `trained` has what was measured in training, if anything."""
    setting = paper_setting()
    return _fill(
        "evaluation.md.j2",
        sections,
        trained,
        setting=setting,
        cost=f"{setting.cost_per_sample * 1e8:g}e-8",
        unrounded=f"{unrounded_cost() * 1e8:g}e-8",
        plain=written,
    )


def render_page(
    sections: Sequence[Section],
    trained: Sequence[Section],
    pictures: Mapping[str, bytes],
    notes: Sequence[str] = (),
) -> str:
    """The HTML page: each section with its picture (SVG, by section name) and its claims.

    `notes` say what could not be trained, and why.
    """
    return _fill(
        "evaluation.html.j2",
        sections,
        trained,
        consortium={"name": "Enabling Long-Term Cooperation in Cross-Silo Federated Learning"},
        title="The paper's evaluation, recomputed",
        pictures={name: b64encode(svg).decode() for name, svg in pictures.items()},
        notes=notes,
        badge=_badge,
    )


def _fill(
    template: str, sections: Sequence[Section], trained: Sequence[Section], **values: Any
) -> str:
    filling = environment("fedaccord.experiments")
    filling.filters |= {"claim_row": _claim_row, "measured_row": _measured_row}
    return filling.get_template(template).render(
        sections=list(sections),
        trained=list(trained),
        summary=summary(claim for section in sections for claim in section.claims),
        side_by_side=side_by_side(),
        ranges=ranges(),
        mechanisms_note=MECHANISMS_NOTE,
        training_note=TRAINING_NOTE,
        rules=RULES,
        **values,
    )


def _claim_row(claim: Claim) -> dict[str, str]:
    verdict, likely = (
        f"**{one}**" if one == "does not hold" else one for one in (claim.verdict, claim.likely)
    )
    return {
        "statement": claim.statement,
        "paper": claim.paper,
        "ours": claim.ours,
        "verdict": with_reason(verdict, claim.why),
        "within the paper's likely range": with_reason(likely, claim.likely_ours),
    }


def _measured_row(claim: Claim) -> dict[str, str]:
    row = _claim_row(claim)
    return {key: row[key] for key in ("statement", "ours", "verdict")}
