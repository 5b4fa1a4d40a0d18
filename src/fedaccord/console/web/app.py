"""The application that every face builds on: guarded, with its style and pages for errors."""

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from python_multipart.exceptions import FormParserError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path

import fedaccord
from fedaccord.console.web.guards import Guards, Limits
from fedaccord.console.web.pages import RELOAD, Pages, is_live
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.numbers import count
from fedaccord.protocol.mistakes import in_our_words

API = "/api/"
"""What is for programs is below this; errors there are JSON, and pages elsewhere."""
REFUSED, NOT_ALLOWED, LOGGED_OUT = 422, 405, 401
_NO_FORM = "The form that was sent is not whole, or not a form."
_TITLES = {
    400: "This request was not understood",
    401: "Please log in",
    403: "This is not yours to see or to change",
    404: "There is no such page",
    405: "This cannot be done here",
    409: "This cannot be done right now",
    410: "This link does not work any more",
    413: "This is too large",
    422: "Something in it is not right",
    429: "Too many attempts",
    500: "Something broke here",
    502: "The room did not do this",
    503: "The room cannot answer right now",
}


def create_app(
    title: str, pages: Pages, *, hosts: Sequence[str], limits: Limits | None = None
) -> FastAPI:
    """An application without routes of its own.

    `hosts` are the names by which browsers may call it, without ports. A request with another one
    is refused: a page elsewhere may have changed what its own name means (DNS rebinding).
    """
    app = FastAPI(
        title=title,
        version=fedaccord.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.pages = pages
    app.add_middleware(Guards, hosts=tuple(hosts), limits=limits or Limits(), tell=refusal)
    static = resources.files("fedaccord.console.web") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    app.add_exception_handler(HTTPException, told(lambda e: (e.status_code, [str(e.detail)])))
    app.add_exception_handler(
        InvalidInput, told(lambda e: (REFUSED, [str(one) for one in e.problems]))
    )
    app.add_exception_handler(FedaccordError, told(lambda e: (REFUSED, [str(e)])))
    app.add_exception_handler(
        RequestValidationError,
        told(lambda e: (REFUSED, [_malformed(one) for one in e.errors()])),
    )
    for broken_off in (FormParserError, ClientDisconnect):
        app.add_exception_handler(broken_off, told(lambda _: (400, [_NO_FORM])))
    return app


def _methods_at(request: Request) -> list[str]:
    """The methods of an address of the API, by all routes that it has."""
    found = set[str]()
    for path, item in request.app.openapi()["paths"].items():
        if compile_path(path)[0].match(request.url.path):
            found |= {method.upper() for method in item}
    return sorted(found)


def _place(path: Sequence[object]) -> str:
    """Which part of a request, such as `discount_factor`."""
    return ".".join(str(step) for step in path[1:]) or "the request"


def _malformed(mistake: Mapping[str, Any]) -> str:
    """What is wrong with one part of a request."""
    if mistake["type"] == "json_invalid":
        why, at = mistake["ctx"]["error"], mistake["loc"][-1]
        return f"the request is not JSON: {why} (after {count(at, 'character')})"
    return f"{_place(mistake['loc'])}: {in_our_words(mistake)}"


def told(
    read: Callable[..., tuple[int, list[str]]],
) -> Callable[[Request, Exception], Response]:
    """Says what is wrong: as JSON to programs, as a page to people."""

    def answer(request: Request, error: Exception) -> Response:
        status, found = read(error)
        headers = getattr(error, "headers", None)
        if status == NOT_ALLOWED and request.url.path.startswith(API):
            # Starlette names the methods of one route only
            headers = {"Allow": ", ".join(_methods_at(request))}
        return refusal(request, status, found, headers)

    return answer


def refusal(
    request: Request, status: int, problems: Sequence[str], headers: Mapping[str, str] | None = None
) -> Response:
    """What is wrong: as JSON to programs, as a page to people.

    Where htmx asks for a part of a page it gets a part; if its session has ended, the browser loads
    the whole page again.
    """
    # half of a surrogate pair, which JSON may contain, cannot be sent
    shown = [one.encode("utf-8", "backslashreplace").decode() for one in problems]
    if request.url.path.startswith(API):
        return JSONResponse({"problems": shown}, status, headers)
    live = is_live(request)
    if live and status == LOGGED_OUT:
        return Response(status_code=status, headers=dict(headers or {}) | RELOAD)
    pages: Pages = request.app.state.pages
    template = "error_part.html.j2" if live else "error.html.j2"
    title = _TITLES.get(status, "This did not work")
    return pages.show(request, template, status, headers, title=title, problems=shown)
