"""The workshop as one application."""

import re

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fedaccord.console.web.app import API, REFUSED, create_app, refusal
from fedaccord.console.web.pages import TO_START, Pages, WayBack
from fedaccord.console.web.serving import LOOPBACK
from fedaccord.console.workshop import (
    comparing,
    describing,
    designing,
    downloads,
    interviewing,
    member_pages,
    reports,
    training,
)
from fedaccord.console.workshop.draft import unpack
from fedaccord.console.workshop.members_form import form_of
from fedaccord.console.workshop.settings import named, read_settings
from fedaccord.console.workshop.wording import in_words
from fedaccord.errors import InvalidInput

_ABOUT_DRAFT = re.compile(r"^/w/([^/]+)/")


def create_workshop() -> FastAPI:
    """The application; it listens to this machine only, so it needs no accounts."""
    pages = Pages("fedaccord.console.workshop", in_words=in_words, way_back=way_back)
    app = create_app("fedaccord workshop", pages, hosts=LOOPBACK)
    app.add_exception_handler(InvalidInput, _refused)
    for part in (
        describing,
        interviewing,
        designing,
        member_pages,
        comparing,
        reports,
        training,
        downloads,
    ):
        app.include_router(part.router)
    return app


def _refused(request: Request, error: Exception) -> Response:
    """What is wrong; a page calls settings what they are called on the page where they are set."""
    assert isinstance(error, InvalidInput)
    for_programs = request.url.path.startswith(API)
    found = [str(each if for_programs else named(each)) for each in error.problems]
    return refusal(request, REFUSED, found)


def way_back(request: Request) -> WayBack:
    """From a page that says what went wrong to the members it is about, if these can be shown."""
    packed = next(iter(_ABOUT_DRAFT.findall(request.url.path)), "")
    try:
        form_of(unpack(packed))
    except (HTTPException, InvalidInput):
        return TO_START
    settings, _ = read_settings(request.query_params)
    return WayBack(f"/w/{packed}/members{settings.query}", "Back to the members")
