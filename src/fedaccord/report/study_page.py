"""The page of a case study, section by section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedaccord import plots
from fedaccord.agreement.worth import worth
from fedaccord.game.measured import fit_law
from fedaccord.report.document import (
    Commands,
    Document,
    Part,
    Picture,
    Points,
    Section,
    Slider,
    Table,
)
from fedaccord.summaries import agreement as about_agreement
from fedaccord.summaries import joining as about_joining
from fedaccord.summaries import study as about_study
from fedaccord.summaries import worth as about_worth
from fedaccord.summaries.audits import audit_sentences
from fedaccord.summaries.clients import client_rows
from fedaccord.summaries.match import account_of
from fedaccord.summaries.own_tests import own_levels, own_sentences
from fedaccord.summaries.ranges import range_cost_sentences

if TYPE_CHECKING:
    from fedaccord.membership.joining import Joining
    from fedaccord.studies.study import StudyResult


def study_document(result: StudyResult) -> Document:
    """What the study found, from the data to the money."""
    sections = [
        _section("The records", _records(result)),
        _section("Who should join", _joining(result)),
    ]
    if result.agreed is not None:
        sections.append(_section("How much better the model gets with more records", _law(result)))
    if result.certificate is not None:
        sections.append(_section("What they can agree on", _agreement(result)))
    if result.ranges is not None:
        sections.append(_section("If the numbers are off", _ranges(result)))
    if result.year is not None:
        sections.append(_section("A year under the agreement", _year(result)))
    if result.models is not None:
        sections.append(_section("What each member's model then reaches", _accuracy(result)))
    if result.worths:
        sections.append(_section("What it is worth in money", _money(result)))
    sections.append(_section("What is real here, and what is assumed", _assumed(result)))
    return Document(
        title=result.study.title,
        lead=about_study.lead(result),
        sections=tuple(sections),
        about="Case study",
    )


def _section(heading: str, parts: Iterator[Part]) -> Section:
    return Section(heading, tuple(parts))


def _records(result: StudyResult) -> Iterator[Part]:
    yield about_study.records_sentence(result)
    yield Table(about_study.RECORD_HEADINGS, tuple(about_study.record_rows(result)))
    yield from about_joining.data_notes(result.joining)


def _joining(result: StudyResult) -> Iterator[Part]:
    joining = result.joining
    yield about_study.slot_sentence(result)
    yield from about_joining.joining_sentences(joining)
    yield _prospects(joining, about_joining.INTERVAL_NOTE)
    yield Picture(
        f"{result.study.name}-joining",
        about_study.JOINING_CAPTION,
        plots.plot_joining(joining),
    )
    yield Table(
        about_joining.group_headings(joining),
        tuple(about_joining.group_rows(joining)),
        about_joining.group_note(joining),
    )
    yield Table(
        about_joining.WAY_HEADINGS,
        tuple(about_joining.way_rows(joining)),
        about_study.WAYS_NOTE,
    )
    yield from about_joining.held_out_sentences(joining)
    if result.warning is not None:
        yield from about_study.warning_sentences(result.warning)
        yield _prospects(result.warning)


def _prospects(joining: Joining, note: str = "") -> Table:
    _, *headings = about_joining.prospect_headings(joining)
    return Table(("Member", *headings), tuple(about_joining.prospect_rows(joining)), note)


def _law(result: StudyResult) -> Iterator[Part]:
    agreed = result.agreed
    assert agreed is not None
    yield about_study.curve_sentence(result)
    if agreed.certificate is None:
        yield from about_joining.agreement_sentences(agreed)
        return
    yield Picture(
        f"{result.study.name}-law", about_study.LAW_CAPTION, plots.plot_law(fit_law(agreed.curve))
    )


def _agreement(result: StudyResult) -> Iterator[Part]:
    agreed, certificate = result.agreed, result.certificate
    assert agreed is not None
    assert certificate is not None
    yield from about_joining.agreement_sentences(agreed)[:-1]
    yield about_agreement.summary(certificate, "member")
    yield about_agreement.verdict(certificate, "member")
    yield from about_worth.worth_sentences(worth(certificate), "member")
    if not certificate.agreement.exists:
        return
    yield about_study.STAKE_NOTE
    yield from about_agreement.consequences(certificate, "member")
    chosen = range(certificate.agreement.consortium.size)
    yield Table(
        about_study.CLIENT_HEADINGS,
        tuple(about_study.client_cells(row) for row in client_rows(certificate, chosen)),
    )
    yield Picture(
        f"{result.study.name}-contributions",
        about_study.CONTRIBUTIONS_CAPTION,
        plots.plot_contributions(certificate.agreement),
    )
    yield "Assumed, not proved:"
    yield Points(tuple(about_agreement.assumption_sentences(certificate, "member")))


def _ranges(result: StudyResult) -> Iterator[Part]:
    assert result.ranges is not None
    yield from range_cost_sentences(result.ranges, "member")
    yield Table(about_study.RANGE_HEADINGS, tuple(about_study.range_rows(result.ranges)))


def _year(result: StudyResult) -> Iterator[Part]:
    year = result.year
    assert year is not None
    yield about_study.audit_sentence(year)
    account = account_of(year.match)
    yield account.phases
    yield Points(tuple(account.slips))
    yield Picture(
        f"{result.study.name}-year", about_study.YEAR_CAPTION, plots.plot_totals(year.match)
    )
    yield from audit_sentences(result.certificate, "member") if result.certificate else ()


def _accuracy(result: StudyResult) -> Iterator[Part]:
    assert result.models is not None
    trial = result.models.trial
    table = own_levels(trial)
    yield from about_study.trained_sentences(result)
    yield Table(("Member", *table.headings), tuple((name, *cells) for name, cells in table.rows))
    yield from own_sentences(trial, "member")


def _money(result: StudyResult) -> Iterator[Part]:
    yield about_study.money_sentence(result)
    yield Slider(
        about_study.SLIDER_LABEL,
        Table(
            about_study.money_headings(result),
            tuple(about_study.money_rows(result)),
            about_study.MONEY_NOTE,
        ),
        start=about_study.as_assumed(),
    )


def _assumed(result: StudyResult) -> Iterator[Part]:
    yield from about_study.assumed_sentences(result)
    yield Commands((f"fedaccord study {result.study.name}",))
