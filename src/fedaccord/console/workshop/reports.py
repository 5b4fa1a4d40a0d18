"""What one takes away: the page to print and sign, the amounts as CSV, and JSON for programs."""

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import HTMLResponse, Response

from fedaccord.console.workshop.answers import Answer, answer_for
from fedaccord.console.workshop.draft import LARGEST, Draft
from fedaccord.console.workshop.settings import Settings, settings_of
from fedaccord.console.workshop.ways import Complete
from fedaccord.console.workshop.what_if import has_states
from fedaccord.errors import InvalidInput
from fedaccord.files.provenance import Note, Provenance, provenance_of_text
from fedaccord.files.reading import csv_text
from fedaccord.report.agreement_page import Origin, render_report

router = APIRouter()

_NAME = "consortium.toml"
_ALONE = "sandbox allow-modals; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The page stands alone, so its style is inside it, which our pages do not allow. Shown here it is
in a sandbox of its own: it can run no script, load nothing, and has none of our pages' rights."""


@router.get("/w/{packed}/print", include_in_schema=False)
def printed(request: Request, draft: Complete) -> Response:
    """The page as it will be printed."""
    return HTMLResponse(_report(request, draft), headers={"Content-Security-Policy": _ALONE})


@router.get("/w/{packed}/report.html", include_in_schema=False)
def report(request: Request, draft: Complete) -> Response:
    """The same page as a file."""
    return HTMLResponse(_report(request, draft), headers=_file("agreement.html"))


@router.get("/w/{packed}/profile.csv", include_in_schema=False)
def profile(request: Request, draft: Complete) -> Response:
    """The amounts, which `fedaccord certify` reads."""
    agreement = answer_for(draft, settings_of(request)).agreement
    rows = zip(agreement.consortium.names, agreement.profile.tolist(), strict=True)
    text = csv_text(["name", "contribution"], rows)
    data = text.encode("utf-8-sig")  # a spreadsheet then reads it as UTF-8
    return Response(data, media_type="text/csv; charset=utf-8", headers=_file("profile.csv"))


def _file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _report(request: Request, draft: Draft) -> str:
    answer = answer_for(draft, settings_of(request))
    known = provenance_of_text(draft.text, _NAME)
    provenance = Provenance(known.sources, (*_set_here(answer), *known.notes))
    origin = Origin(date.today().isoformat(), provenance)
    return render_report(answer.certificate, answer.alternatives, origin=origin)


def _set_here(answer: Answer) -> list[Note]:
    """What is not as in the file, because it was set on the page."""
    names, settings = answer.consortium.names, answer.settings
    said = []
    for field in ("discount_factor", "within", "as_stated"):
        value = getattr(settings, field)
        if value not in (None, False, 0.0):
            said.append(Note("", field, str(value), "set in the workshop, not in the file"))
    for field in ("without", "doubles", "impatient", "joins"):
        if (number := getattr(settings, field)) is not None:
            n = answer.situation.position(number)
            who = f"member {number}" if n is None else names[n]
            said.append(Note("", field, who, "a what-if of the workshop, not in the file"))
    return said


# --- For programs --------------------------------------------------------------------------------


class Asked(BaseModel):
    """A consortium, and what is to be agreed on."""

    model_config = ConfigDict(extra="forbid", strict=True)
    consortium: str = Field(max_length=LARGEST, description="A consortium file, as TOML text.")
    settings: Settings = Settings()


class Solution(BaseModel):
    """What `fedaccord solve --format json` prints; docs/reference/json.md has every field."""

    consortium: dict[str, Any]
    equilibrium: dict[str, Any]
    agreement: dict[str, Any]
    certificate: dict[str, Any]
    coalition: dict[str, Any] | None
    law: dict[str, Any]
    worth: dict[str, Any]
    social_optimum: dict[str, Any]
    alternatives: list[dict[str, Any]]
    sentences: dict[str, list[str]]


class Problems(BaseModel):
    """What is wrong with a request, a sentence each."""

    problems: list[str]


@router.post(
    "/api/solve",
    responses={status: {"model": Problems} for status in (400, 403, 413, 422)},
    tags=["agreement"],
)
def solve(asked: Annotated[Asked, Body()]) -> Solution:
    """Solve an agreement and prove it: the same numbers as the page and the command line."""
    draft = Draft(asked.consortium)
    answer = answer_for(draft, asked.settings)
    if has_states(draft):
        raise InvalidInput("are not solved here; leave them out", field="states")
    return Solution(**answer.record)
