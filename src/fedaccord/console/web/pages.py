"""Pages from templates, with what every template may use."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse

from fedaccord.report.directions import isolate
from fedaccord.report.pages import environment


class WayBack(NamedTuple):
    """A link that leads away from a page about a mistake."""

    address: str
    label: str


TO_START = WayBack("/", "Back to the start")


class Pages:
    """Fills the templates of one face, which build on those of `web`."""

    def __init__(self, package: str, **shared: Any) -> None:
        """`package` has a folder `templates`; `shared` are values for all of its pages.

        Pages about mistakes use two of them: `in_words`, which makes a message one for people who
        see a page, and `way_back`, which finds where a request can go on.
        """
        self._filling = environment(package, "fedaccord.console.web")
        self._filling.globals |= {"in_words": str, "way_back": lambda _: TO_START} | shared
        self._filling.filters["apart"] = apart

    def text(self, template: str, **values: Any) -> str:
        """A page or a part of one, as text."""
        return isolate(self._filling.get_template(template).render(**values))

    def show(
        self,
        request: Request,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        /,
        **values: Any,
    ) -> HTMLResponse:
        """A page as an answer. `live` says in the template whether htmx asks for a part of it."""
        content = self.text(template, request=request, live=is_live(request), **values)
        return HTMLResponse(content, status, dict(headers or {}))


RELOAD = {"HX-Refresh": "true"}
"""Has htmx load the whole page again."""


def is_live(request: HTTPConnection) -> bool:
    """Whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true"


def apart(names: Iterable[str]) -> Markup:
    """Names in a sentence, of which none turns around what stands beside it.

    >>> print(apart(["A & B", "C"]))
    <bdi>A &amp; B</bdi>, <bdi>C</bdi>
    """
    return Markup(", ").join(Markup("<bdi>{}</bdi>").format(name) for name in names)


_STYLE = re.compile(r' style="([^"]*)"')
_SHEET = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)


def without_styles(svg: str) -> str:
    """A picture of matplotlib's with attributes instead of styles, which our pages do not allow.

    >>> without_styles('<path style="fill: #fff; stroke-width: 2"/>')
    '<path fill="#fff" stroke-width="2"/>'
    """
    return _STYLE.sub(_attributes, _SHEET.sub("", svg))


def _attributes(found: re.Match[str]) -> str:
    pairs = [part.split(":", 1) for part in found[1].split(";") if ":" in part]
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)
