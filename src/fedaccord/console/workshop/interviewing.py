"""The interview: what people know about their organisation becomes a member's numbers.

The answers are a part of the address, like everything else in the workshop, so that an interview
can be sent to somebody who knows the rest. Putting the member into the consortium leads to a new
address, that of the file with the member in it.
"""

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Form, Query, Request
from pydantic import BaseModel, create_model
from starlette.responses import Response

from fedaccord.console.workshop import interview_api
from fedaccord.console.workshop.draft import unpack
from fedaccord.console.workshop.questionnaire import NEW, Questionnaire
from fedaccord.console.workshop.settings import read_settings
from fedaccord.console.workshop.ways import to_page
from fedaccord.errors import InvalidInput, Problem
from fedaccord.interviews.questions import BY_KEY

router = APIRouter()
router.include_router(interview_api.router)

_REFUSED = 422
_TEXT: Any = (str, "")

if TYPE_CHECKING:
    Answered = BaseModel
else:
    Answered = create_model(
        "Answered", who=(str, NEW), ranges=(str, ""), **dict.fromkeys(BY_KEY, _TEXT)
    )
    """The form: whose numbers these are, whether the file gets ranges, and all answers."""


@router.get("/w/{packed}/interview", response_class=Response, include_in_schema=False)
def ask(request: Request, packed: str, answered: Annotated[Answered, Query()]) -> Response:
    """The questions that are needed, and what follows from the answers so far."""
    return _shown(request, _questionnaire(packed, answered))


@router.post("/w/{packed}/interview", response_class=Response, include_in_schema=False)
def put_into_consortium(
    request: Request, packed: str, answered: Annotated[Answered, Form()]
) -> Response:
    """The consortium with this member in it, or what is still wrong."""
    asked = _questionnaire(packed, answered, final=True)
    try:
        changed = asked.put_in()
    except InvalidInput as error:
        here = {problem.field for problem in asked.problems}
        others = [problem for problem in error.problems if problem.field not in here]
        return _shown(request, asked, others, _REFUSED)
    settings, _ = read_settings(request.query_params)
    return to_page(changed, "members", settings, f"put_in={asked.number}")


def _questionnaire(packed: str, answered: Answered, *, final: bool = False) -> Questionnaire:
    form = answered.model_dump()
    who, ranges = form.pop("who"), form.pop("ranges")
    return Questionnaire(unpack(packed), form, who, ranges == "yes", final)


def _shown(
    request: Request,
    asked: Questionnaire,
    others: list[Problem] | None = None,
    status: int = 200,
) -> Response:
    settings, _ = read_settings(request.query_params)
    response: Response = request.app.state.pages.show(
        request,
        "interview.html.j2",
        status,
        title="Interview",
        current="interview",
        draft=asked.draft,
        form=asked,
        others=[str(problem) for problem in others or []],
        settings=settings,
        passed_on=parse_qsl(settings.query.removeprefix("?")),
    )
    return response
