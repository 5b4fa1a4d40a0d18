"""The page about an agreement. It stands alone, so that it can be read and signed without us."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedaccord import plots
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.worth import Worth, worth
from fedaccord.files.provenance import Provenance
from fedaccord.game.money import amounts, money
from fedaccord.numbers import write
from fedaccord.report.pages import LISTED, fill, training_part, with_captions
from fedaccord.summaries import agreement as about_agreement
from fedaccord.summaries import clients as about_clients
from fedaccord.summaries import inputs as about_inputs
from fedaccord.summaries import worth as about_worth
from fedaccord.summaries.alternatives import Alternatives, alternative_sentences
from fedaccord.summaries.audits import audit_sentences
from fedaccord.summaries.ranges import range_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedaccord.trials.trial import Trial

SIGNED = 60
"""Members with a line for their signature; more would sign elsewhere."""


@dataclass(frozen=True)
class Origin:
    """When a page was made, and from what."""

    date: str = ""
    provenance: Provenance | None = None


def render_report(
    certificate: Certificate,
    alternatives: Alternatives | None = None,
    comparison: "Trial | None" = None,
    origin: Origin | None = None,
    *,
    template: str = "report.html.j2",
    parts: "Mapping[str, Any] | None" = None,
) -> str:
    """The page about an agreement, and a training under it if there was one, as text.

    `alternatives` are other agreements to mention. A template that extends the report's gets its
    own values from `parts`.
    """
    agreement = certificate.agreement
    others = alternatives or Alternatives()
    chosen = about_clients.choose_clients(certificate, LISTED)
    return fill(
        template,
        certificate=certificate,
        agreement=agreement,
        consortium=agreement.consortium,
        title=about_agreement.title(certificate),
        summary=about_agreement.summary(certificate, "member"),
        verdict=about_agreement.verdict(certificate, "member"),
        why=about_agreement.why(certificate, "member"),
        kind=about_agreement.kind_in_words(agreement),
        totals=write([agreement.equilibrium.total, agreement.total]),
        costs=amounts(
            [agreement.equilibrium.cost.sum(), agreement.cost.sum()],
            agreement.consortium.currency,
            digits=6,
        ),
        rows=about_clients.client_rows(certificate, chosen),
        table_note=about_clients.page_note(certificate, len(chosen)),
        more_note=about_clients.MORE_NOTE,
        pictures=_pictures(certificate),
        assumptions=about_agreement.assumption_sentences(certificate, "member"),
        breaking=about_inputs.breaking_sentences(certificate, "member"),
        punishment=agreement.punishment,
        discount_factors=about_agreement.written_range(agreement.consortium.discount_factor),
        comparison=comparison,
        **_worth_part(certificate, worth(certificate), others, chosen),
        **_inputs_part(certificate, chosen, origin or Origin()),
        **(training_part(comparison) if comparison else {}),
        **(parts or {}),
    )


def _worth_part(
    certificate: Certificate,
    found: Worth,
    alternatives: Alternatives,
    chosen: list[int],
) -> dict[str, Any]:
    """What the agreement is worth, and what speaks against it."""
    agreement = certificate.agreement
    doubts = about_agreement.consequences(certificate, "member")
    others = alternative_sentences(agreement, alternatives, "member")
    edge = about_worth.knife_edge(certificate)
    good = about_worth.good_news(agreement)
    return {
        "worth": found,
        "edge": edge,
        "consequences": doubts + others,
        "look": look_of(certificate, found, doubtful=bool(doubts or edge), good_news=good),
        "worth_sentences": about_worth.worth_sentences(found, "member"),
        "nobody_trains": about_agreement.nobody_trains(agreement),
        "measure_name": about_worth.capital(about_worth.measure_name(found.measure)),
        "measures": about_worth.written_measure(
            found.measure, [found.equilibrium.value.mean(), found.agreed.value.mean()]
        ),
        "per_slot": amounts([found.saving_per_slot], agreement.consortium.currency)[0],
        "per_year": None
        if found.saving_per_year is None
        else money(found.saving_per_year, agreement.consortium.currency),
        "worth_rows": about_clients.worth_rows(found, chosen),
        "audit_sentences": audit_sentences(certificate, "member"),
        "range_sentences": range_sentences(certificate, alternatives.as_stated, "member"),
        "law_sentences": [
            sentence.replace("client", "member")
            for sentence in about_worth.law_sentences(certificate, found, alternatives.for_the_fit)
        ],
    }


def look_of(certificate: Certificate, found: Worth, *, doubtful: bool, good_news: bool) -> str:
    """The colours of the verdict: green only if it is worth signing for everybody."""
    if good_news:
        return "holds"
    if not certificate.agreement.exists:
        return "plain"
    if not certificate.holds:
        return "fails"
    return "holds" if found.good_for_all and not doubtful else "holds doubtful"


def _inputs_part(certificate: Certificate, chosen: list[int], origin: Origin) -> dict[str, Any]:
    """What the agreement was made from."""
    consortium = certificate.agreement.consortium
    provenance = origin.provenance
    return {
        "origin": origin,
        "sources": provenance.sources if provenance else (),
        "notes": provenance.notes[:LISTED] if provenance else (),
        "input_rows": about_inputs.input_rows(consortium, chosen),
        "point_heading": about_inputs.point_heading(consortium),
        "questions": about_worth.questions(consortium),
        "signing": consortium.names if consortium.size <= SIGNED else (),
    }


def _pictures(certificate: Certificate) -> list[tuple[tuple[str, str], str]]:
    """Each caption with its picture as SVG; without an agreement there is only one."""
    agreement = certificate.agreement
    figures = {"contributions": plots.plot_contributions(agreement)}
    if agreement.exists:
        figures["costs"] = plots.plot_costs(agreement)
        figures["thresholds"] = plots.plot_thresholds(certificate)
    return with_captions(figures, about_clients.captions(agreement))
