"""The whole evaluation: every statement of the paper with its verdict, figure by figure."""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fedaccord.agreement.solve import solve_agreement
from fedaccord.experiments import figures
from fedaccord.experiments.claims import Claim, found, with_reason, written
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.presets import (
    SYMBOLS,
    TrainingPreset,
    figure_titles,
    find_preset,
    own_titles,
    paper_setting,
    sweeps,
    unrounded_cost,
)
from fedaccord.experiments.standard import HOLDING, RULES, Verdict, fact
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import best_response, solve_equilibrium
from fedaccord.game.paper import paper_consortium
from fedaccord.report.pages import environment

_SIDE_BY_SIDE = ((100, 0.8), (181, 0.8), (200, 0.8), (100, 0.5))
"""Numbers of clients and discount factors for the table of both agreements."""
_EXAMPLE = "section3"
MECHANISMS_NOTE = (
    "Detection never errs here, as in the paper: it keeps the equilibrium's contributors, also "
    "the partial one if there is a critical client. Contract design is a reconstruction: the paper "
    "does not print its types, gamma or alpha, and ours were chosen so that 20 of 100 clients are "
    "served. Statements about contract design are also checked with 4 and 10 classes instead of 5, "
    "with gamma and alpha ten times as large and a tenth as large, and with a menu that buys parts "
    "of a client's data."
)
TRAINING_NOTE = (
    "The paper mentions FedAvg on MNIST but reports no accuracy. Here softmax regression is "
    "trained on MNIST by FedAvg, with one gradient step per client and round. Detection drops "
    "updates that contain nothing, so its model is the equilibrium's. Intervals are 95 % intervals "
    "over seeds. With as many images per client as in the paper, drawn from 60,000, nearly every "
    "image is trained on under any mechanism; with few images per client, more contributors mean "
    "more data. In the picture of the loss by rounds, points are shifted slightly from their G so "
    "that none hides another."
)


@dataclass(frozen=True)
class Section:
    """The claims about one figure."""

    name: str
    title: str
    claims: tuple[Claim, ...]

    @property
    def heading(self) -> str:
        """What it is called on the page: "Figure 4: data ratio, by the number of clients"."""
        if not self.name.startswith("fig"):
            return self.title
        return f"Figure {self.name.removeprefix('fig')}: {self.title[0].lower()}{self.title[1:]}"


def section_names() -> list[str]:
    """The example of section 3, and all figures."""
    return [_EXAMPLE, *figure_titles()]


def section_of(name: str, seed: int | None = None) -> Section:
    """What the paper says about a figure; `seed` replaces its own seed, if it has one."""
    if name == _EXAMPLE:
        title = "Section 3: an example with two equilibria, in a footnote"
        return Section(name, title, tuple(example_claims()))
    return Section(name, figure_titles()[name], tuple(figures.claims(find_preset(name, seed))))


def example_claims() -> list[Claim]:
    """The footnote in section 3: with h_1 = h_2 = 10 and D_1 = D_2 = 10 both are equilibria."""
    profiles = ((4.0, 6.0), (5.0, 5.0))
    consortium = Consortium(
        valuation=[200.0, 200.0], cost_per_sample=1.0, samples=10.0, rounds=10, discount_factor=0.8
    )
    answers = [best_response(consortium, np.array(profile[::-1])) for profile in profiles]
    apart = max(float(np.abs(a - p).max()) for a, p in zip(answers, profiles, strict=True))
    return [
        found(
            "Two clients with h = 10 and D = 10 each: (4, 6) and (5, 5) are both equilibria.",
            fact(apart < 1e-9, "each is the best response to itself"),
        )
    ]


def training_section(table: FigureData, preset: TrainingPreset) -> Section:
    """What was measured in training."""
    measured = figures.training_kind(preset).claims(table, preset)
    return Section(preset.name, preset.title, tuple(measured))


def summary(claims: Iterable[Claim]) -> str:
    """How many statements hold, on all values and on those that the paper is likely to show."""
    claims = list(claims)
    whole, likely = (
        _counted(getattr(claim, on) for claim in claims) for on in ("verdict", "likely")
    )
    told = f"Verdicts on {len(claims)} statements of the paper: {whole}."
    if likely == whole:
        return told
    return f"{told} On the values that its figures are likely to show: {likely}."


def _counted(verdicts: Iterable[Verdict]) -> str:
    """Two verdicts are always counted, the others only if there are any."""
    counts = Counter(verdicts)
    return ", ".join(
        f"{verdict} {counts[verdict]}"
        for verdict in get_args(Verdict)
        if counts[verdict] or verdict in ("holds", "does not hold")
    )


def side_by_side() -> list[dict[str, str]]:
    """Equilibrium, uniform and individual agreement in a few settings."""
    rows = []
    for clients, patience in _SIDE_BY_SIDE:
        alone = solve_equilibrium(paper_consortium(clients, discount_factor=patience))
        papers, ours = (solve_agreement(alone, kind) for kind in ("uniform", "individual"))
        none = "none"
        rows.append(
            {
                "N": f"{clients}",
                "δ": f"{patience}",
                "equilibrium": f"{alone.total:,.0f}",
                "equilibrium: free riders": f"{alone.free_riders}",
                "uniform": f"{papers.total:,.0f} (×{papers.ratio:.2f})" if papers.exists else none,
                "uniform: free riders": f"{papers.free_riders}",
                "individual": f"{ours.total:,.0f} (×{ours.ratio:.2f})",
                "individual: free riders": f"{ours.free_riders}",
            }
        )
    return rows


def ranges() -> list[dict[str, str]]:
    """The swept parameters, their ranges, and the reasons for these."""
    rows = []
    for parameter, sweep in sweeps().items():
        ends = f"{written(sweep['first'])} to {written(sweep['last'])}"
        row = {"parameter": SYMBOLS[parameter], "range": ends, "step": written(sweep["step"])}
        shown = {
            "likely from": written(sweep["likely_from"]),
            "why from there": sweep["likely_why"],
        }
        rows.append(row | {"why": sweep["why"]} | shown)
    return rows


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

    Figures of our own have a picture only.
    `notes` say what could not be trained, and why.
    """
    return _fill(
        "evaluation.html.j2",
        sections,
        trained,
        consortium={"name": "Enabling Long-Term Cooperation in Cross-Silo Federated Learning"},
        title="The paper's evaluation, recomputed",
        ours=own_titles(),
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
