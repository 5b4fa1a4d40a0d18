"""The consortium file and the table of members, to keep."""

import csv
import io
import re
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response

from fedaccord.checks import is_number
from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.console.workshop.members_form import BASIC, COLUMNS, as_cell, form_of
from fedaccord.errors import InvalidInput
from fedaccord.files.clients import CPU_FIELDS
from fedaccord.files.reading import guarded

router = APIRouter()

_UNUSABLE = re.compile(r'[\\/:*?"<>|]')
_LONGEST = 80
"""Characters of a file's name."""


@router.get("/w/{packed}/consortium.toml", response_class=Response, include_in_schema=False)
def consortium_file(packed: str) -> Response:
    """The text of the file, exactly."""
    draft = unpack(packed)
    return Response(
        draft.text,
        media_type="application/toml; charset=utf-8",
        headers=attachment(str(draft.data.get("name", "")), "consortium", "toml"),
    )


@router.get("/w/{packed}/members.csv", response_class=Response, include_in_schema=False)
def members_file(packed: str) -> Response:
    """The table of members for a spreadsheet, which reads it as UTF-8."""
    draft = unpack(packed)
    return Response(
        members_csv(draft).encode("utf-8-sig"),
        media_type="text/csv; charset=utf-8",
        headers=attachment(str(draft.data.get("name", "")), "members", "csv"),
    )


def members_csv(draft: Draft) -> str:
    """The members as CSV, which can be pasted or uploaded again."""
    clients = draft.data.get("clients", [])
    form = form_of(draft)
    worked_out = _worked_out(draft)
    used = [each for each in COLUMNS if each in BASIC or any(map(form_cell(each), form.rows))]
    machines = [each for each in CPU_FIELDS if any("cpu" in client for client in clients)]
    if machines:
        worked_out.pop("cost_per_sample", None)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*used, *machines])
    for n, client in enumerate(clients):
        figures = client.get("cpu")
        cells = [_cell(client, each, worked_out, n) for each in used]
        if machines:
            cells += [figures.get(m, "") if isinstance(figures, dict) else "" for m in machines]
        writer.writerow([guarded(_as_number(cell)) for cell in cells])
    return text.getvalue()


def form_cell(column: str) -> Any:
    """Whether a row of a form says anything in a column."""
    return lambda row: bool(row.text(column))


def _cell(client: dict[str, Any], column: str, worked_out: dict[str, Any], n: int) -> Any:
    given = client.get(column)
    if is_number(given):
        return given
    text = as_cell(given)
    return text or (worked_out[column][n] if column in worked_out else "")


def _as_number(cell: Any) -> Any:
    """A number without a needless `.0`."""
    if isinstance(cell, str) or not float(cell).is_integer():
        return cell if isinstance(cell, str) else float(cell)
    return int(cell)


def _worked_out(draft: Draft) -> dict[str, Any]:
    """Numbers that the file says in another way (a ratio, a class), if it is right."""
    try:
        found = draft.consortium
    except InvalidInput:
        return {}
    return {each: getattr(found, each) for each in ("valuation", "cost_per_sample", "samples")}


def attachment(name: str, otherwise: str, ending: str) -> dict[str, str]:
    """The header that makes a browser keep an answer as a file called like the consortium.

    >>> print(attachment("Brüste/6", "consortium", "toml")["Content-Disposition"])
    attachment; filename="consortium.toml"; filename*=UTF-8''Br%C3%BCste%206.toml
    """
    printable = "".join(c if c.isprintable() else " " for c in name)
    called = " ".join(_UNUSABLE.sub(" ", printable).split())[:_LONGEST].strip(". ") or otherwise
    return {
        "Content-Disposition": f'attachment; filename="{otherwise}.{ending}"; '
        f"filename*=UTF-8''{quote(f'{called}.{ending}', safe='')}"
    }
