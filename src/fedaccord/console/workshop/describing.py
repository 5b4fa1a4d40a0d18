"""Describing a consortium: where to begin, and the table of members that is edited in place."""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from fedaccord.console.web.problems import as_sentence
from fedaccord.console.workshop import clients_api
from fedaccord.console.workshop.answered_form import answered
from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.console.workshop.filled_form import FormRead, read_form, review, surely
from fedaccord.console.workshop.law_fields import LAW_FIELDS, REACHED, law_now
from fedaccord.console.workshop.members_form import (
    BASIC,
    COLUMNS,
    MORE,
    MOST_MEMBERS,
    SHARED,
    Form,
    FormRow,
    form_of,
    hint_of,
)
from fedaccord.console.workshop.settings import AS_USUAL, Settings, read_settings
from fedaccord.console.workshop.sources import sources_of
from fedaccord.console.workshop.uploads import (
    LARGEST,
    Unclear,
    chosen_columns,
    read_upload,
)
from fedaccord.console.workshop.ways import to_page
from fedaccord.console.workshop.written_table import Written, with_written
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import example_text, unknown_keys
from fedaccord.files.questions import CHOICES, UNKNOWN, UNUSUAL, YES
from fedaccord.files.table_text import without_keys
from fedaccord.numbers import count

router = APIRouter()
router.include_router(clients_api.router)

REFUSED = 422
_BLANK = """\
name = "Our consortium"
rounds = 50               # rounds of federated averaging in one slot
discount_factor = 0.9     # what 1 saved in the next slot is worth now: 0 or more, below 1
"""
_CELL = re.compile(r"r(\d{1,6})-(\w+)")
_COLUMN = re.compile(r"column-(\d{1,3})")
_ANSWERED = ("design", "compare", "train")
"""Pages about an agreement, for which the table has to be complete."""
_NEXT = (*_ANSWERED, "interview", "consortium.toml", "members.csv")
"""Where one can go on to from the table, which is saved first."""
_ROWS_ON_A_NEW_PAGE = 3
_REMEMBERED = 50

_notes: OrderedDict[str, tuple[str, ...]] = OrderedDict()
"""How tables were read that became a draft, by its text."""


# --- What was sent -------------------------------------------------------------------------


@dataclass(frozen=True)
class Sent:
    """A form that was sent, and the file in it."""

    fields: Mapping[str, str]
    file: bytes = b""
    filename: str = ""

    def text(self, name: str) -> str:
        """What a field says; empty without it."""
        return self.fields.get(name, "")


async def sent_form(request: Request) -> Sent:
    """The fields of a form; a table of many members has more than FastAPI reads by itself."""
    most = MOST_MEMBERS * (len(COLUMNS) + 3)
    async with request.form(max_files=1, max_fields=most, max_part_size=LARGEST) as form:
        fields = {key: value for key, value in form.multi_items() if isinstance(value, str)}
        file = next((each for each in form.values() if isinstance(each, UploadFile)), None)
        if file is None:
            return Sent(fields)
        return Sent(fields, await file.read(LARGEST + 1), file.filename or "")


Typed = Annotated[Sent, Depends(sent_form)]


# --- Where to begin ------------------------------------------------------------------------


@router.get("/", response_class=Response, include_in_schema=False)
def start(request: Request) -> Response:
    """Where to begin."""
    return _start(request, "", [], 200)


@router.post("/new", response_class=Response, include_in_schema=False)
def new(request: Request, sent: Typed) -> Response:
    """A draft from the example, a paste, a file, names, or nothing."""
    way = sent.text("way")
    try:
        return _begun(request, way, sent)
    except InvalidInput as error:
        called = sent.filename if way == "upload" else ""
        problems = [_sentence(str(each), called) for each in error.problems]
        return _start(request, way, problems, REFUSED, sent.text("text"))


def _sentence(problem: str, called: str) -> str:
    """What is wrong with what somebody gave, as a sentence about it; a file keeps its name."""
    if problem.split(maxsplit=1)[0] in ("is", "has", "cannot", "names"):
        return f"{called or 'The table'} {problem}."
    return f"{called}: {problem}." if called else f"{problem[:1].upper()}{problem[1:]}."


def _begun(request: Request, way: str, sent: Sent) -> Response:
    if way == "example":
        return to_page(Draft(example_text()), "members")
    if way == "empty":
        return to_page(Draft(_BLANK), "members")
    if way == "columns":
        chosen = {
            int(found[1]): value
            for key, value in sent.fields.items()
            if (found := _COLUMN.fullmatch(key))
        }
        headings = sent.text("headings") == "yes"
        given: str | Written | Unclear = chosen_columns(
            sent.text("table"), chosen, headings=headings
        )
    elif way == "upload":
        if not sent.file and not sent.filename:
            raise InvalidInput("choose a file first")
        given = read_upload(sent.file, sent.filename)
    else:
        given = read_upload(sent.text("text"))
    return _taken(request, Draft(_BLANK), given)


def _taken(
    request: Request,
    draft: Draft,
    given: str | Written | Unclear,
    settings: Settings = AS_USUAL,
) -> Response:
    """The page that follows what somebody gave."""
    if isinstance(given, Unclear):
        return _show(
            request,
            "columns.html.j2",
            200,
            title="Which column is which?",
            table=given,
            as_sentence=as_sentence,
        )
    if isinstance(given, str):
        form_of(Draft(given))  # refuses what is no consortium file at all
        return to_page(Draft(given), "members")
    read = with_written(draft, given)
    assert read.draft is not None
    if read.problems or read.others:
        return _members(request, read.draft, read, status=REFUSED)
    _remember(read.draft, read.notes)
    return to_page(read.draft, "members", settings)


def _remember(draft: Draft, notes: Sequence[str]) -> None:
    if notes:
        _notes[draft.text] = tuple(notes)
        while len(_notes) > _REMEMBERED:
            _notes.popitem(last=False)


def _start(
    request: Request, way: str, problems: Sequence[str], status: int, text: str = ""
) -> Response:
    return _show(
        request,
        "start.html.j2",
        status,
        title="Workshop",
        way=way,
        problems=problems,
        text=text,
    )


def _show(request: Request, template: str, status: int, **values: Any) -> Response:
    response: Response = request.app.state.pages.show(request, template, status, **values)
    return response


# --- The table -----------------------------------------------------------------------------


@router.get("/w/{packed}/members", response_class=Response, include_in_schema=False)
def members(request: Request, packed: str, saved: str = "", put_in: str = "") -> Response:
    """The table of members; `put_in` is the number of one that the interview was about."""
    draft = unpack(packed)
    read = replace(review(draft), notes=_notes.get(draft.text, ()))
    told = ""
    if put_in.isdecimal() and 1 <= int(put_in[:6]) <= len(read.form.rows):
        told = read.form.rows[int(put_in[:6]) - 1].text("name")
    return _members(request, draft, read, saved=saved == "yes" or bool(told), interviewed=told)


@router.post("/w/{packed}/members", response_class=Response, include_in_schema=False)
def change(request: Request, packed: str, sent: Typed) -> Response:
    """The table as it was changed, at an address of its own; or again, with what is wrong."""
    draft, action = unpack(packed), sent.text("action")
    if sent.text(f"answer-{UNKNOWN}") == YES:
        draft = Draft(without_keys(draft.text, unknown_keys(draft.data)))
    if sure := [each.key for each in UNUSUAL if sent.text(f"answer-{each.key}") == YES]:
        draft = surely(draft, sure)
    form = _form(sent, len(form_of(draft).rows))
    if len(form.rows) > MOST_MEMBERS:
        raise InvalidInput(f"the table of the page takes at most {MOST_MEMBERS:,} members")
    if action == "add":
        rows = [*form.rows, FormRow()]
        return _again(request, draft, Form(form.shared, rows), sent)
    if removed := re.fullmatch(r"remove-(\d{1,6})", action):
        rows = [row for n, row in enumerate(form.rows) if n != int(removed[1])]
        return _again(request, draft, Form(form.shared, rows), sent)
    answers = {
        key: sent.text(f"answer-{key}")
        for key in CHOICES
        if sent.text(f"answer-{key}") in CHOICES[key]
    }
    pasted = sent.text("text").strip()
    form = answered(draft, form, answers) if answers else form
    read = read_form(draft, form, may_be_empty=bool(pasted))
    if read.draft is None:
        return _members(request, draft, read, status=REFUSED, sent=sent)
    _remember(read.draft, read.notes)
    settings = _still_set(request, draft, read.form)
    if pasted:
        return _pasted(request, read.draft, pasted, sent, settings)
    if action in _NEXT and (action not in _ANSWERED or read.draft.is_complete):
        return to_page(read.draft, action, settings)
    return to_page(read.draft, "members", settings, "saved=yes")


def _still_set(request: Request, draft: Draft, form: Form) -> Settings:
    """The settings; without any what-if if a member is gone, after which others have its number."""
    settings, _ = read_settings(request.query_params)
    left = [row for row in form.rows if row.was is not None]
    return settings if len(left) == len(form_of(draft).rows) else settings.base


def _pasted(request: Request, draft: Draft, text: str, sent: Sent, settings: Settings) -> Response:
    """The draft with a table that was pasted below it."""
    try:
        given = read_upload(text, complete=False)
        if not isinstance(given, Written):
            raise InvalidInput("its first row must name the columns, as the table above does")
        return _taken(request, draft, given, settings)
    except InvalidInput as error:
        others = [_sentence(str(each), "The pasted table") for each in error.problems]
        read = FormRead(form_of(draft), None, {}, others)
        return _members(request, draft, read, status=REFUSED, sent=sent)


def _again(request: Request, draft: Draft, form: Form, sent: Sent) -> Response:
    """The form with a row more or less; nothing else was looked at."""
    return _members(request, draft, FormRead(form, None, {}), sent=sent)


def _form(sent: Sent, size: int) -> Form:
    """The form that was sent for a draft of so many members."""
    rows: dict[int, dict[str, str]] = {}
    left = set(map(str, range(size)))
    for key, value in sent.fields.items():
        if found := _CELL.fullmatch(key):
            rows.setdefault(int(found[1]), {})[found[2]] = value
    form = []
    for _, cells in sorted(rows.items()):
        was = cells.pop("was", "")
        form.append(FormRow(int(was) if was in left else None, cells))
        left.discard(was)
    return Form({each: sent.text(each) for each in (*SHARED, *LAW_FIELDS)}, form)


def _members(
    request: Request,
    draft: Draft,
    read: FormRead,
    *,
    status: int = 200,
    sent: Sent | None = None,
    saved: bool = False,
    interviewed: str = "",
) -> Response:
    data = draft.data
    clients = data.get("clients", [])
    rows = [*read.form.rows] or [FormRow() for _ in range(_ROWS_ON_A_NEW_PAGE)]
    missing = _missing(Form(read.form.shared, rows), clients)
    return _show(
        request,
        "members.html.j2",
        status,
        title=str(data.get("name") or "Members"),
        draft=draft,
        current="members",
        settings=read_settings(request.query_params)[0],
        read=read,
        rows=rows,
        columns=COLUMNS,
        basic=BASIC,
        more=any(row.text(each) for row in rows for each in MORE)
        or any(place.field in MORE for place in read.problems)
        or bool(sent and sent.text("more")),
        hints={
            (n, each): hint_of(clients[row.was], each)
            for n, row in enumerate(rows)
            if row.was is not None
            for each in COLUMNS
        },
        law_now=law_now(draft),
        reached=REACHED,
        asks_law="law" in request.query_params or any(map(read.form.shared.get, LAW_FIELDS[1:])),
        missing=missing,
        still=_still(missing, rows),
        changing=bool({"states", "transitions"} & data.keys()),
        pasted=sent.text("text") if sent else "",
        saved=saved,
        interviewed=interviewed,
        sources=sources_of(draft),
        unsaved=sent is not None or status == REFUSED,
    )


def _missing(form: Form, clients: Sequence[Mapping[str, Any]]) -> set[tuple[int, str]]:
    """The cells that have to be filled in before there is an agreement."""
    without = not form.shared.get("discount_factor", "").strip()
    needed = (*BASIC, "discount_factor") if without else BASIC
    return {
        (n, each)
        for n, row in enumerate(form.rows)
        for each in needed
        if not row.text(each) and not (row.was is not None and hint_of(clients[row.was], each))
    }


def _still(missing: set[tuple[int, str]], rows: Sequence[FormRow]) -> str:
    """What to say about a table that is not complete."""
    if all(row.is_blank for row in rows):
        return ""
    left = len([n for n, _ in missing if not rows[n].is_blank])
    if not left:
        return ""
    are = "is" if left == 1 else "are"
    return f"{count(left, 'cell')} {are} still empty; the agreement follows when all are there."
