"""What every request passes: the right host, the same origin, a limited size; and every answer.

An error that nobody expected is answered here, too, or its page would be without the headers.

Changes are accepted only from the page's own origin (`Origin` and `Sec-Fetch-Site`, which browsers
set and pages cannot), so that no page elsewhere can change anything in a visitor's name. Programs
send neither header, and have no cookie that somebody else could misuse.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEGABYTE = 1024 * 1024
_READING = ("GET", "HEAD", "OPTIONS")
_LENGTH = re.compile(r"[0-9]{1,18}")

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing from elsewhere, nothing inline, no frames."""

_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with less, browsers say that a form has no origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class Limits:
    """How large a request may be, in bytes."""

    body: int = 8 * MEGABYTE
    secure: bool = False
    """Whether the page is reached by TLS only, which browsers are told to remember."""


_BROKEN = "It is not your fault. What happened is in this program's log."

Tell = Callable[[Request, int, Sequence[str]], Response]
"""Says to a request why it is refused: a status and reasons."""


class Guards:
    """The middleware around an application."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], limits: Limits, tell: Tell) -> None:
        """`hosts` are the accepted names, without ports; `tell` explains refusals."""
        self._app, self._hosts, self._limits = app, frozenset(hosts), limits
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        answered = False

        async def send_guarded(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                self._add_headers(scope, MutableHeaders(scope=message))
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, send_guarded)
            return
        try:
            await self._app(scope, Counted(receive, self._limits.body), send_guarded)
        except Exception:
            if not answered:
                await self._tell(Request(scope), 500, [_BROKEN])(scope, receive, send_guarded)
            raise  # the server writes it into its log

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            return _refused(
                scope, 400, f"this page is not at {host or 'an address without a name'}"
            )
        if scope["method"] not in _READING and not self._from_own(headers, host):
            return _refused(scope, 403, "this change came from another page")
        if declared_length(headers) > self._limits.body:
            most = f"{self._limits.body // MEGABYTE} megabytes"
            return self._tell(Request(scope), 413, [f"no more than {most} are taken at once"])
        return None

    def _from_own(self, headers: Headers, host: str) -> bool:
        """Whether a change comes from a page of this host, or from a program.

        A page that is reached by TLS is not the same as one at the same name without: whoever is
        between can change that one.
        """
        site = headers.get("sec-fetch-site")
        if site is not None and site not in ("same-origin", "none"):
            return False
        scheme = "https" if self._limits.secure else "http"
        return headers.get("origin") in (None, f"{scheme}://{host}")

    def _add_headers(self, scope: Scope, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        still = scope["path"].startswith("/static/")
        headers.setdefault("Cache-Control", "no-cache" if still else "no-store")
        if self._limits.secure:
            headers.setdefault("Strict-Transport-Security", "max-age=31536000")


class Counted:
    """A request's body, which ends with an error if it is larger than it may be."""

    def __init__(self, receive: Receive, most: int) -> None:
        """`most` bytes are passed on."""
        self._receive, self._left = receive, most

    async def __call__(self) -> Message:
        """The next part, or the end of the connection."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            return {"type": "http.disconnect"}
        return message


def declared_length(headers: Headers) -> float:
    """The bytes that a request says it has; infinitely many if it says something else."""
    length = headers.get("content-length", "0")
    return int(length) if _LENGTH.fullmatch(length) else math.inf


def host_name(host: str) -> str:
    """The name in a Host header, without the port; empty if the header is malformed.

    >>> host_name("127.0.0.1:8321"), host_name("[::1]:8321"), host_name("room.example")
    ('127.0.0.1', '::1', 'room.example')
    >>> host_name("room.example:99999")
    ''
    """
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises if it is not one
    except ValueError:
        return ""
    return parts.hostname or ""


def _refused(scope: Scope, status: int, reason: str) -> Response:
    if scope["path"].startswith("/api/"):
        return JSONResponse({"problems": [reason]}, status)
    return PlainTextResponse(f"Refused: {reason}.\n", status)
