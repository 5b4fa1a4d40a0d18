"""Who may use a member's page: whoever started it, and no other user or program of the machine.

The address that is opened has a code after #, which browsers never send. The first page posts it,
and gets a cookie. Nothing else answers without that cookie.

One limit remains: cookies know no ports. A browser sends this one to any other web server on
127.0.0.1 that it visits while the page runs, so another user of the machine who can lead the
member's browser to a server of its own gets it. docs/explanation/threats.md says so.
"""

import hmac
import secrets
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fedaccord.console.web.app import API
from fedaccord.console.web.pages import RELOAD, is_live
from fedaccord.console.web.rates import Rate

_OPEN = ("/static/",)
ENTER = "/enter"
router = APIRouter()


class Access:
    """The code of one run of the page, and the cookie that it is exchanged for."""

    def __init__(self) -> None:
        """Both are new each time."""
        self.code = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self.rate = Rate(attempts=20, seconds=60.0)

    def cookie_for(self, code: str) -> str | None:
        """The cookie, if the code is right."""
        right = hmac.compare_digest(code.encode("utf-8", "replace"), self.code.encode())
        return self._cookie if right else None

    def allows(self, request: HTTPConnection) -> bool:
        """Whether a request has the cookie."""
        given = request.cookies.get(cookie_name(request), "")
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._cookie.encode())


def cookie_name(request: HTTPConnection) -> str:
    """Cookies know no ports, and one machine may have the pages of two members."""
    return f"fedaccord-member-{request.url.port or 'page'}"


class Gate:
    """The middleware: without the cookie there is only the page that asks for the code."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        """`app` is everything behind the gate."""
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or ask for the code."""
        if scope["type"] != "http" or self._may_pass(scope):
            await self._app(scope, receive, send)
            return
        await _asked_for_code(scope)(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        path = scope["path"]
        if path.startswith(_OPEN) or (path == ENTER and scope["method"] == "POST"):
            return True
        return self._access.allows(HTTPConnection(scope))


def _asked_for_code(scope: Scope) -> Response:
    if scope["path"].startswith(API):
        return JSONResponse({"problems": ["this page is for whoever started it"]}, 401)
    request = Request(scope)
    if is_live(request):
        return Response(status_code=401, headers=RELOAD)
    response: Response = request.scope["app"].state.pages.show(
        request, "enter.html.j2", 401, title="Open your page"
    )
    return response


@router.post(ENTER, response_class=Response)
def enter(request: Request, code: Annotated[str, Form(max_length=200)] = "") -> Response:
    """Exchange the code for the cookie."""
    access: Access = request.app.state.access
    access.rate.check(request)
    cookie = access.cookie_for(code.strip().rpartition("#")[2])
    if cookie is None:
        raise HTTPException(403, "This is not the code of this page. It is new at each start.")
    response = RedirectResponse("/", 303)
    response.set_cookie(cookie_name(request), cookie, httponly=True, samesite="strict", path="/")
    return response
