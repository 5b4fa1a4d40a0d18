"""The agreement, live: what is set on the left, what follows on the right.

Each state has an address. With scripts, only the result is fetched when something is set.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from fedaccord.agreement.certificate import Certificate
from fedaccord.console.web.pages import is_live
from fedaccord.console.workshop.answers import Answer, answer_for, ways_out
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.members_form import as_cell
from fedaccord.console.workshop.settings import Settings, named, read_settings, settings_of
from fedaccord.console.workshop.turns import Turns
from fedaccord.console.workshop.ways import Complete
from fedaccord.console.workshop.what_if import JOINING, has_states
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.game.money import amounts, money
from fedaccord.numbers import write
from fedaccord.plots.bars import contribution_bars, patience_bars
from fedaccord.report.agreement_page import look_of
from fedaccord.report.pages import LISTED
from fedaccord.summaries import agreement as about
from fedaccord.summaries import worth as about_worth
from fedaccord.summaries.alternatives import alternative_sentences
from fedaccord.summaries.audits import audit_sentences
from fedaccord.summaries.clients import choose_clients, client_rows, page_note
from fedaccord.summaries.closest import closest_to_slipping
from fedaccord.summaries.departures import by_loss, departure_sentences
from fedaccord.summaries.difference import Difference, difference_sentences
from fedaccord.summaries.inputs import breaking_sentences
from fedaccord.summaries.ranges import range_sentences
from fedaccord.summaries.words import in_unit

router = APIRouter(include_in_schema=False)

_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 24)
"""Slots of a punishment that can be chosen; any other may be in an address."""
_BESIDE = tuple(each for each in Settings.model_fields if each not in ("within", "as_stated"))
"""Fields that every page has, beside which it says what is wrong."""
_PICTURED = 12
"""Members in the picture of who is closest to slipping."""
_AT_ONCE = 100
"""With more members than these, what takes longer is looked for only if somebody asks."""
_turns = Turns()
"""Of looking for what takes longer: who moves a slider waits for the last state only."""


@router.get("/w/{packed}/design")
def design(request: Request, draft: Complete) -> Response:
    """The page, or only its result if htmx asks for that."""
    settings, problems = read_settings(request.query_params)
    live = is_live(request)
    values = _result(draft, settings, problems)
    if not live:
        values |= _form(settings, draft.consortium, request.query_params)
    page: Response = request.app.state.pages.show(
        request,
        "result.html.j2" if live else "design.html.j2",
        422 if values["problems"] or values["impossible"] else 200,
        draft=draft,
        settings=settings,
        current="design",
        named=named,
        wrong={each.field: each.message for each in (*values["problems"], *values["impossible"])},
        beside=_BESIDE,
        **values,
    )
    return page


@router.get("/w/{packed}/more")
def more(request: Request, draft: Complete) -> Response:
    """What takes longer to find."""
    settings = settings_of(request)
    answer = answer_for(draft, settings)
    with _turns.next() as newest:
        later = is_live(request) and not newest
        found = {"many": True} if later else _slow(answer, draft.consortium.size)
    page: Response = request.app.state.pages.show(
        request,
        "more_later.html.j2" if later else "more.html.j2",
        draft=draft,
        settings=settings,
        current="design",
        answer=answer,
        title="What else",
        unit=in_unit(answer.consortium),
        **found,
    )
    return page


@router.get("/w/{packed}/ways-out")
def what_would_help(request: Request, draft: Complete) -> Response:
    """If there is no agreement: what to change. Several are solved for it, so it comes later."""
    settings = settings_of(request)
    answer = answer_for(draft, settings)
    needed = not (answer.agreement.exists or about_worth.good_news(answer.agreement))
    page: Response = request.app.state.pages.show(
        request,
        "ways_out.html.j2",
        draft=draft,
        settings=settings,
        current="design",
        title="What would help",
        consortium=answer.consortium,
        needed=needed,
        exists_from=answer.exists_from if needed else None,
        ways_out=ways_out(draft, settings) if needed else (),
    )
    return page


def _form(settings: Settings, stated: Consortium, asked: Mapping[str, str]) -> dict[str, Any]:
    """What the form needs beside the settings; what is wrong in a field stays there."""

    def as_typed(field: str) -> str:
        read = getattr(settings, field)
        return asked.get(field, "") if read is None else as_cell(read)

    chosen = settings.punishment_slots
    own = {chosen} if isinstance(chosen, int) else set()
    return {
        "stated": stated,
        "as_typed": as_typed,
        "names": stated.names,
        "lengths": sorted({*_LENGTHS, *own}),
        "typical": round(float(stated.discount_factor.mean()), 2)
        if settings.discount_factor is None
        else settings.discount_factor,
    }


def _result(draft: Draft, settings: Settings, problems: list[Problem]) -> dict[str, Any]:
    """Everything about the result; only the problems if it cannot be.

    If what is supposed cannot be, the result is without that.
    """
    try:
        answer = answer_for(draft, settings)
        before = answer_for(draft, settings.base) if settings.asks_what_if else None
    except InvalidInput as error:
        if settings.asks_what_if:
            return _result(draft, settings.base, problems) | {"impossible": error.problems}
        said = [*problems, *error.problems]
        title = "This is not possible"
        return {"answer": None, "problems": said, "impossible": (), "title": title}
    certificate = answer.certificate
    chosen = choose_clients(certificate, LISTED)
    summary = about.summary(certificate, "member")
    return {
        "answer": answer,
        "problems": problems,
        "impossible": (),
        "consortium": answer.consortium,
        "states": has_states(draft),
        "many": answer.consortium.size > _AT_ONCE,
        "title": about.title(certificate),
        "verdict": about.verdict(certificate, "member") if answer.agreement.exists else summary,
        "summary": summary,
        "bars": contribution_bars(answer.agreement, chosen, "amounts-picture"),
        "rows": [
            (answer.situation.numbers[n], row)
            for n, row in zip(chosen, client_rows(certificate, chosen), strict=True)
        ],
        "table_note": page_note(certificate, len(chosen)),
        **_worth_part(answer),
        **_proof_part(certificate),
        "good_news": about_worth.good_news(answer.agreement),
        **_what_if_part(draft, before, answer),
    }


def _worth_part(answer: Answer) -> dict[str, Any]:
    """What the agreement is worth, and the colour that follows."""
    certificate, found = answer.certificate, answer.worth
    doubts = about.consequences(certificate, "member")
    edge = about_worth.knife_edge(certificate)
    good = about_worth.good_news(answer.agreement)
    year = found.saving_per_year
    currency = answer.consortium.currency
    sides = [found.equilibrium.value.mean(), found.agreed.value.mean()]
    return {
        "look": look_of(certificate, found, doubtful=bool(doubts or edge), good_news=good),
        "edge": edge,
        "consequences": doubts,
        "worth_sentences": about_worth.worth_sentences(found, "member")[1:],
        "totals": write([answer.agreement.equilibrium.total, answer.agreement.total]),
        "per_slot": amounts([found.saving_per_slot], currency)[0],
        "per_year": None if year is None else money(year, currency),
        "as_loss": found.measure == "loss",
        "measure_name": about_worth.capital(about_worth.measure_name(found.measure)),
        "measures": about_worth.written_measure(found.measure, sides),
    }


def _proof_part(certificate: Certificate) -> dict[str, Any]:
    """Who is closest to slipping, what audits do, what is proved and what is assumed."""
    closest = closest_to_slipping(certificate, _PICTURED)
    positions = [one.position for one in closest]
    exact = certificate.agreement.ranges is None
    return {
        "closest": closest,
        "patience_svg": patience_bars(certificate, positions, "patience-picture"),
        "audits": audit_sentences(certificate, "member", checks=exact),
        "proved": about.why(certificate, "member"),
        "assumptions": about.assumption_sentences(certificate, "member"),
    }


def _what_if_part(draft: Draft, before: Answer | None, answer: Answer) -> dict[str, Any]:
    """The difference to the state without the what-if."""
    if before is None:
        return {"difference": [], "difference_rows": [], "supposed": ""}
    difference = Difference(before.agreement, answer.agreement)
    return {
        "difference": difference_sentences(difference, "member"),
        "difference_rows": difference.rows(),
        "supposed": _supposed(answer.settings, draft.consortium.names),
    }


def _supposed(settings: Settings, names: tuple[str, ...]) -> str:
    """What is supposed, after "What if"."""
    said = []
    if settings.joins is not None:
        who = settings.joins_name or JOINING
        said.append(f"{who} joins, like {names[settings.joins - 1]}")
    for number, what in (
        (settings.without, "leaves"),
        (settings.doubles, "has twice the data"),
        (settings.impatient, "is half as patient"),
    ):
        if number is not None:
            said.append(f"{names[number - 1]} {what}")
    return " and ".join(said)


def _slow(answer: Answer, stated: int) -> dict[str, Any]:
    """Alternatives, ranges, departures, and what would break it.

    Of the members, so many are in the file: these have a link to what if they leave.
    """
    certificate, agreement = answer.certificate, answer.agreement
    others = answer.alternatives
    found = answer.departures
    leaving = []
    if found is not None:
        order = by_loss(found)
        costs = amounts(found.cost_to_others[order], answer.consortium.currency)
        columns = write(found.total_new[order]), costs
        for n, *texts in zip(order, *columns, strict=True):
            number = answer.situation.numbers[n]
            number = number if number <= stated else 0
            leaving.append((number, answer.consortium.names[n], *texts, found.holds_kept[n]))
    return {
        "alternatives": alternative_sentences(agreement, others, "member"),
        "ranges": range_sentences(certificate, others.as_stated, "member"),
        "departures": [] if found is None else departure_sentences(found),
        "leaving": leaving,
        "breaking": breaking_sentences(certificate, "member", found) if answer.proved else [],
    }
