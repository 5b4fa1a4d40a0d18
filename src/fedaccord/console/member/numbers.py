"""A member's private numbers: read from a form as people write them, shown, and changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse, Response

from fedaccord.atomic import Changed
from fedaccord.console.member.home import NUMBER_FIELDS, Home, identified
from fedaccord.console.web.typed_numbers import typed_count, typed_number, typed_text
from fedaccord.errors import InvalidInput
from fedaccord.flower.client_file import read_client_file
from fedaccord.game.consortium import Client
from fedaccord.interviews.answers import missing_in, wrong_in
from fedaccord.interviews.estimates import brief
from fedaccord.interviews.interview import Interview, interview
from fedaccord.interviews.questions import BY_KEY, QUESTIONS, Question
from fedaccord.protocol.private import Private
from fedaccord.protocol.prospects import prospect_of
from fedaccord.protocol.terms import Terms
from fedaccord.summaries.prospects import LAW_NOTE, prospect_sentences, revealed_sentences

router = APIRouter()
_WRONG = 422

_Text = Annotated[str, Field(max_length=400)]


class NumberTexts(BaseModel):
    """What somebody wrote into the fields."""

    valuation: _Text = ""
    cost_per_sample: _Text = ""
    samples: _Text = ""
    discount_factor: _Text = ""
    communication_cost: _Text = "0"
    tells: bool = False
    """Whether the server also learns the discount factor."""
    seen: _Text = ""
    """What identifies the numbers that were there when the form was shown."""

    def of(self, field: str) -> str:
        """The text of a field."""
        return str(getattr(self, field))


@dataclass(frozen=True)
class NumberForm:
    """The form as it is shown, and what is wrong with each field."""

    texts: NumberTexts
    wrong: Mapping[str, str] = field(default_factory=dict)
    """By field; "" is about all of them."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where a number came from, if it came from the interview."""
    doubts: tuple[str, ...] = ()
    """What to look at again."""


FIELDS = {
    "valuation": (
        "Valuation",
        "What a loss of 1 costs you in one slot, in your currency: how much a useless model "
        "would cost.",
    ),
    "cost_per_sample": (
        "Cost per sample",
        "What it costs you to train on one more sample in a slot: machine, annotation, staff.",
    ),
    "samples": ("Samples", "How many examples you have to train on. A whole number."),
    "discount_factor": (
        "Discount factor",
        "What 1 saved in the next slot is worth to you today: 0.9 or 90 %, say.",
    ),
    "communication_cost": (
        "Communication cost",
        "What a slot costs you in any case, whatever you train on. Usually 0.",
    ),
}
"""Each field's label, and what to write into it."""


def form_of(private: Private) -> NumberForm:
    """The form filled in with numbers."""
    return NumberForm(_texts(private, tells=private.tells_discount_factor))


def _texts(numbers: Private | Client, *, tells: bool = False) -> NumberTexts:
    shown = {name: typed_text(getattr(numbers, name)) for name in NUMBER_FIELDS}
    return NumberTexts.model_validate(shown | {"tells": tells})


def read_form(name: str, texts: NumberTexts) -> Private | NumberForm:
    """The numbers in a form; or the form with what is wrong."""
    numbers: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for which in NUMBER_FIELDS:
        try:
            numbers[which] = _number(which, texts.of(which))
        except InvalidInput as error:
            wrong[which] = error.problems[0].message
    if wrong:
        return NumberForm(texts, wrong)
    given = {"name": name, "tell_discount_factor": texts.tells} | numbers
    try:
        return read_client_file(given).private
    except InvalidInput as error:
        found = {one.place if one.place in FIELDS else "": one.message for one in error.problems}
        return NumberForm(texts, found)


def _number(which: str, text: str) -> float | int:
    """One number as somebody wrote it."""
    if not text.strip() and which == "communication_cost":
        return 0.0
    return typed_count(text, which) if which == "samples" else typed_number(text, which)


# --- Pages ---------------------------------------------------------------------------------


@router.get("/numbers", response_class=Response)
def numbers(request: Request) -> Response:
    """The member's own numbers, and what leaves the machine."""
    home: Home = request.app.state.home
    if not home.exists:
        return RedirectResponse("/join", 303)
    return _page(request, form_of(home.file.private), saved="saved" in request.query_params)


_MEANWHILE = (
    "Nothing was saved: your numbers were changed meanwhile, on another page or in the file "
    "client.toml. Compare these with them; if you save these, they replace them."
)


@router.post("/numbers", response_class=Response)
def change(request: Request, texts: Annotated[NumberTexts, Form()]) -> Response:
    """Write other numbers into the member's file."""
    home: Home = request.app.state.home
    read = read_form(home.file.name, texts)
    if isinstance(read, NumberForm):
        return _page(request, read, status=_WRONG)
    try:
        home.change_numbers(read, texts.seen)
    except Changed:
        return _page(request, NumberForm(texts, {"": _MEANWHILE}), status=409)
    return RedirectResponse("/numbers?saved", 303)


def _page(
    request: Request, form: NumberForm, *, status: int = 200, saved: bool = False
) -> Response:
    home: Home = request.app.state.home
    private, terms = home.file.private, home.terms
    response: Response = request.app.state.pages.show(
        request,
        "numbers.html.j2",
        status,
        title="Your numbers",
        current="numbers",
        form=form,
        fields=FIELDS,
        can_tell=terms.reports == "ratio",
        seen=form.texts.seen if status == _WRONG else identified(private),
        saved=saved,
        revealed=revealed_sentences(private, terms),
        prospects=prospect_sentences(prospect_of(private, terms)),
        note=LAW_NOTE,
    )
    return response


# --- By the interview's questions ----------------------------------------------------------


@router.get("/interview", response_class=Response)
def questions(request: Request) -> Response:
    """The questions, all on one page."""
    return _questions(request, {}, {})


@router.post("/interview", response_class=Response)
async def answered(request: Request) -> Response:
    """What follows from the answers, filled into the form of numbers."""
    form = await request.form()
    given = {
        question.key: str(form[question.key]).strip()
        for question in asked()
        if str(form.get(question.key, "")).strip()
    }
    known = {"name": _name(request), "rounds": str(_terms(request).rounds)} | given
    wrong = {one.place: one.message for one in (*wrong_in(known), *missing_in(known))}
    if wrong:
        return _questions(request, given, wrong, status=422)
    result = interview(known)
    response: Response = request.app.state.pages.show(
        request,
        "interview_result.html.j2",
        title="Your numbers, from your answers",
        current="numbers" if _home(request).exists else "join",
        form=form_from(result),
        fields=FIELDS,
        can_tell=_terms(request).reports == "ratio",
        estimates=list(result.estimates.values()),
        brief=brief,
        assumed=[BY_KEY[key].assumed for key in BY_KEY if key in result.answers.assumed],
        action="/numbers" if _home(request).exists else "/join/make",
        seen=identified(_home(request).file.private) if _home(request).exists else "",
    )
    return response


def asked() -> list[Question]:
    """The questions that a person is asked; who it is, is known."""
    return [question for question in QUESTIONS if question.spoken and question.key != "name"]


def form_from(result: Interview) -> NumberForm:
    """The form filled in with what follows from an interview."""
    sources = {one.field: one.source for one in result.estimates.values()}
    return NumberForm(_texts(result.client), sources=sources, doubts=tuple(result.doubts))


def _questions(
    request: Request, given: Mapping[str, str], wrong: Mapping[str, str], status: int = 200
) -> Response:
    response: Response = request.app.state.pages.show(
        request,
        "interview.html.j2",
        status,
        title="Your numbers, question by question",
        current="numbers" if _home(request).exists else "join",
        questions=asked(),
        given=given,
        wrong=wrong,
    )
    return response


def _home(request: Request) -> Home:
    home: Home = request.app.state.home
    return home


def _terms(request: Request) -> Terms:
    """Of the directory, or of the invitation that it is about to be made from."""
    home = _home(request)
    return home.terms if home.exists else request.app.state.joining.needed.terms


def _name(request: Request) -> str:
    home = _home(request)
    return home.file.name if home.exists else str(request.app.state.joining.needed.client)
