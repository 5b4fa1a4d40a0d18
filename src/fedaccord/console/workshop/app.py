"""The workshop as one application."""

from fastapi import FastAPI

from fedaccord.console.web.app import create_app
from fedaccord.console.web.pages import Pages
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


def create_workshop() -> FastAPI:
    """The application; it listens to this machine only, so it needs no accounts."""
    app = create_app("fedaccord workshop", Pages("fedaccord.console.workshop"), hosts=LOOPBACK)
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
