"""Mechanisms side by side: what else could be done about free riders."""

from functools import lru_cache

from fastapi import APIRouter, Request
from starlette.responses import Response

from fedaccord import plots
from fedaccord.console.web.pages import without_styles
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.settings import Settings, settings_of
from fedaccord.console.workshop.ways import Complete
from fedaccord.console.workshop.what_if import situation
from fedaccord.mechanisms.comparison import MechanismComparison, compare
from fedaccord.report.pages import as_svg
from fedaccord.summaries import mechanisms as said

router = APIRouter(include_in_schema=False)


@router.get("/w/{packed}/compare")
def compare_page(request: Request, draft: Complete) -> Response:
    """The page about mechanisms."""
    settings = settings_of(request)
    comparison, picture = _compared(draft, settings)
    page: Response = request.app.state.pages.show(
        request,
        "compare.html.j2",
        draft=draft,
        settings=settings,
        current="compare",
        title="Mechanisms side by side",
        consortium=comparison.consortium,
        summary=said.comparison_summary(comparison, "member"),
        rows=said.mechanism_rows(comparison, noun="member"),
        headings=said.amount_headings(comparison, "member"),
        caption=said.mechanisms_caption(comparison),
        said=said,
        picture=picture,
    )
    return page


@lru_cache(maxsize=16)
def _compared(draft: Draft, settings: Settings) -> tuple[MechanismComparison, str]:
    """The comparison, and its picture."""
    comparison = compare(situation(draft, settings).consortium)
    svg = as_svg(plots.plot_mechanisms(comparison, noun="member"), "mechanisms")
    return comparison, without_styles(svg)
