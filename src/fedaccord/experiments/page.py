"""The whole evaluation on a page: in Markdown for the docs, in HTML with all pictures in it."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

import fedaccord
from fedaccord.experiments.claims import Claim, Verdict, plain
from fedaccord.experiments.evaluation import (
    MECHANISMS_NOTE,
    TRAINING_NOTE,
    Section,
    ranges,
    side_by_side,
    summary,
)
from fedaccord.experiments.presets import find_preset, unrounded_cost
from fedaccord.experiments.shapes import GENERALLY

_BADGES: dict[Verdict, str] = {
    "holds": "yes",
    "holds within rounding": "nearly",
    "does not hold": "no",
}


def render_markdown(sections: Sequence[Section], trained: Sequence[Section] = ()) -> str:
    """The page for the documentation; `trained` is what was measured, if anything was."""
    setting = find_preset("fig3").setting
    return _fill(
        "evaluation.md.j2",
        sections,
        trained,
        setting=setting,
        cost=f"{setting.cost_per_sample * 1e8:g}e-8",
        unrounded=f"{unrounded_cost() * 1e8:g}e-8",
        generally=GENERALLY,
        plain=plain,
    )


def render_page(
    sections: Sequence[Section],
    trained: Sequence[Section],
    pictures: Mapping[str, bytes],
    notes: Sequence[str] = (),
) -> str:
    """The HTML page: each section with its picture (SVG, by its name) and its claims.

    `notes` say what could not be trained, and why.
    """
    return _fill(
        "evaluation.html.j2",
        sections,
        trained,
        version=fedaccord.__version__,
        consortium={"name": "Enabling Long-Term Cooperation in Cross-Silo Federated Learning"},
        title="The paper's evaluation, computed again",
        pictures={name: b64encode(svg).decode() for name, svg in pictures.items()},
        notes=notes,
        badges=_BADGES,
    )


def _fill(
    template: str, sections: Sequence[Section], trained: Sequence[Section], **values: Any
) -> str:
    loaders = [PackageLoader("fedaccord", folder) for folder in ("experiments", "report")]
    environment = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=template.endswith("html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"claim_row": _claim_row, "measured_row": _measured_row}
    return environment.get_template(template).render(
        sections=list(sections),
        trained=list(trained),
        summary=summary(claim for section in sections for claim in section.claims),
        side_by_side=side_by_side(),
        ranges=ranges(),
        mechanisms_note=MECHANISMS_NOTE,
        training_note=TRAINING_NOTE,
        **values,
    )


def _claim_row(claim: Claim) -> dict[str, str]:
    verdict = f"**{claim.verdict}**" if claim.verdict == "does not hold" else claim.verdict
    return {
        "statement": claim.statement,
        "paper": claim.paper,
        "ours": claim.ours,
        "verdict": f"{verdict}: {claim.why}" if claim.why else verdict,
    }


def _measured_row(claim: Claim) -> dict[str, str]:
    return {key: text for key, text in _claim_row(claim).items() if key != "paper"}
