"""Drafts for the pages about an agreement, which need every number."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.console.workshop.settings import read_settings


def complete_draft(request: Request, packed: str) -> Draft:
    """The draft of an address; if it is not complete, one is led to the table of members."""
    draft = unpack(packed)
    if not draft.is_complete:
        settings, _ = read_settings(request.query_params)
        raise HTTPException(303, headers={"Location": f"/w/{packed}/members{settings.query}"})
    return draft


Complete = Annotated[Draft, Depends(complete_draft)]
