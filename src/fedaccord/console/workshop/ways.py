"""Ways between the pages about a draft, which keep what is set."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.console.workshop.settings import AS_USUAL, Settings, read_settings

_SEE_OTHER = 303


def to_page(draft: Draft, page: str, settings: Settings = AS_USUAL, told: str = "") -> Response:
    """Lead to a page about a draft, with what is set and perhaps something to tell there."""
    return RedirectResponse(_address(draft.packed, page, settings, told), _SEE_OTHER)


def _address(packed: str, page: str, settings: Settings, told: str = "") -> str:
    asked = "&".join(filter(None, (settings.query.removeprefix("?"), told)))
    return f"/w/{packed}/{page}{'?' if asked else ''}{asked}"


def complete_draft(request: Request, packed: str) -> Draft:
    """The draft of an address; if it is not complete, one is led to the table of members."""
    draft = unpack(packed)
    if not draft.is_complete:
        settings, _ = read_settings(request.query_params)
        raise HTTPException(_SEE_OTHER, headers={"Location": _address(packed, "members", settings)})
    return draft


Complete = Annotated[Draft, Depends(complete_draft)]
"""A draft for the pages about an agreement, which need every number."""
