"""A page for each member, with its own figures alone; as a file by itself, too."""

from datetime import date
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from fedaccord.console.workshop.answers import answer_for
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.settings import Settings, settings_of
from fedaccord.console.workshop.ways import Complete
from fedaccord.summaries.own_page import own_page

router = APIRouter(include_in_schema=False)


@router.get("/w/{packed}/member/{number}")
def member_page(request: Request, draft: Complete, number: int) -> Response:
    """The page of the member with this number, counted from 1 in the order of the file."""
    settings = settings_of(request)
    page: Response = request.app.state.pages.show(
        request,
        "member.html.j2",
        draft=draft,
        settings=settings,
        current="member",
        number=number,
        **_own(draft, settings, number),
    )
    return page


@router.get("/w/{packed}/member/{number}/sheet.html")
def member_sheet(request: Request, draft: Complete, number: int) -> Response:
    """The same sheet as a file: without links, and without the address, which has all numbers."""
    own = _own(draft, settings_of(request), number)
    page: Response = request.app.state.pages.show(
        request,
        "sheet_alone.html.j2",
        200,
        {"Content-Disposition": f'attachment; filename="member-{number}.html"'},
        today=date.today().isoformat(),
        **own,
    )
    return page


def _own(draft: Draft, settings: Settings, number: int) -> dict[str, Any]:
    """What a sheet says."""
    answer = answer_for(draft, settings)
    n = answer.situation.position(number)
    if n is None:
        raise HTTPException(404, f"there is no member number {number} in this consortium")
    own = own_page(answer.certificate, n)
    return {
        "title": own.name,
        "consortium": answer.consortium,
        "agreed": answer.agreement.exists,
        "own": own,
        "as_loss": answer.consortium.law.measure == "loss",
    }
