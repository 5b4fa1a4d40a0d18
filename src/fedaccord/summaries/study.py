"""What is said on the page of a case study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.agreement.worth import worth as worth_of
from fedaccord.game.money import amounts, money
from fedaccord.numbers import count, write
from fedaccord.studies.study import MULTIPLES
from fedaccord.summaries.joining import level, short_recommendation
from fedaccord.summaries.ranges import known_in_words
from fedaccord.summaries.words import in_unit, listed
from fedaccord.summaries.worth import measure_name, written_measure
from fedaccord.training.estimates import Estimate

if TYPE_CHECKING:
    from fedaccord.agreement.range_costs import RangeCosts
    from fedaccord.agreement.worth import Worth
    from fedaccord.membership.agreeing import GroupAgreement
    from fedaccord.membership.joining import Joining
    from fedaccord.studies.study import StudyResult, Year
    from fedaccord.summaries.clients import ClientRow

_LEADS = {
    "four-hospitals": (
        "Cleveland, Hungary, Switzerland and Long Beach each have records of patients whose hearts "
        "were examined, and want to predict who is ill. Should they train one model together, and "
        "what could they agree on?"
    ),
    "six-regions": (
        "Hospitals in six regions have followed patients with breast cancer for years, and want to "
        "predict whose risk is highest. Should they train one model together, and what could they "
        "agree on?"
    ),
}
_SOURCES = {
    "four-hospitals": (
        "The records are those of the UCI Heart Disease data (Janosi, Steinbrunn, Pfisterer, "
        "Detrano, 1988; CC BY 4.0), prepared as in the benchmark FLamby with one difference: "
        "features are normalised by the means and standard deviations of everyone's training "
        "records. The hospitals can compute these together without showing anyone a record."
    ),
    "six-regions": (
        "The records are clinical data of TCGA-BRCA (open access at the GDC), prepared and split "
        "as in the benchmark FLamby; the age is normalised by everyone's training records. What is "
        "predicted is which of two patients dies first; the measure is the concordance, the share "
        "of pairs that are ranked correctly."
    ),
}
_TOOK = {"four-hospitals": "half a minute", "six-regions": "a minute"}
"""Measured, pictures included: 31 and 61 seconds."""
JOINING_CAPTION = (
    "What each member reaches alone and with everyone, on its own test.",
    "Whiskers are 95 % intervals. The gain has an interval of its own, since both models are "
    "judged by the same records.",
)
LAW_CAPTION = (
    "What the models get wrong, by the records that all members together train on.",
    "Every point is one training. The line is the law that the agreement is calculated with, and "
    "the band shows 90 % of the laws that fit as well.",
)
CONTRIBUTIONS_CAPTION = (
    "How many records each member trains on in a slot, without an agreement and under it.",
    "",
)
YEAR_CAPTION = ("What is trained on in each slot of the year.", "")
WAYS_NOTE = (
    "The loss on records held out from training, the mean over members: five parts of everyone's "
    "training records are held out in turn. Test records are not used."
)
RECORD_HEADINGS = ("Member", "To train with", "To test with", "Of these")
CLIENT_HEADINGS = (
    "Member",
    "Records it has",
    "Without an agreement",
    "Agreed",
    "Saved per slot",
    "Patience required",
    "Patience it has",
    "Role",
)
RANGE_HEADINGS = ("Ratios of valuation to cost known to", "Records agreed", "Saved by all per slot")
SLIDER_LABEL = "If an error costs everyone this many times what is assumed"
STAKE_NOTE = (
    "What is at stake for a member is the part of its cost that more or less data can change."
)
MONEY_NOTE = (
    "Each row is a calculation of its own, in which the best fit of the law is taken for certain."
)


def lead(result: StudyResult) -> str:
    """The question, and the answer in short."""
    said = [_LEADS[result.study.name], short_recommendation(result.joining)]
    if result.agreed is not None:
        said.append(_agreed_in_short(result.agreed))
    return " ".join(said)


def _agreed_in_short(agreed: GroupAgreement) -> str:
    """Whether there is an agreement, what it is worth, and whether a group would leave it."""
    certificate = agreed.certificate
    if certificate is None or not certificate.agreement.exists:
        return "There is nothing that they could agree on."
    on = " if the best fit to the measurements is right" if agreed.for_the_fit else ""
    verdict = worth_of(certificate).verdict
    assert verdict is not None
    but = "and it is" if verdict == "worth signing" else "but it is"
    said = f"There is an agreement that everyone would keep to{on}, {but} {verdict}"
    if agreed.coalition is None:
        return f"{said}."
    leaving = agreed.coalition.members
    who = "all of them" if len(leaving) == len(agreed.members) else listed(leaving, 10)
    how = "under another one" if len(leaving) == len(agreed.members) else "on their own"
    return f"{said}, {'but' if verdict == 'worth signing' else 'and'} {who} would do better {how}."


# --- Records -------------------------------------------------------------------------------


def records_sentence(result: StudyResult) -> str:
    """Where the records come from, and how many there are."""
    data = result.partition.dataset
    tested = len(data.test_labels)
    share = 100 * tested / (data.size + tested)
    return (
        f"{_SOURCES[result.study.name]} There are {data.size + tested:,} records with "
        f"{data.shape[0]} features; about {share:.0f} % of each member's are kept for its own test."
    )


def slot_sentence(result: StudyResult) -> str:
    """What is counted in slots."""
    return (
        "Savings are for a slot, which is one training of "
        f"{result.consortium.rounds:g} rounds; here a slot is {result.consortium.slot} long."
    )


def record_rows(result: StudyResult) -> Iterator[tuple[str, ...]]:
    """A row for each member."""
    partition, data = result.partition, result.partition.dataset
    held = [data.labels[own] for own in partition.draw(1)]
    tests = [data.test_labels[own] for own in partition.tests]
    what = "died" if data.survival else "ill"
    for name, labels, tested in zip(partition.names, held, tests, strict=True):
        yield (
            name,
            f"{len(labels):,}",
            f"{len(tested):,}",
            f"{int((labels > 0).sum()):,} and {int((tested > 0).sum()):,} {what}",
        )


# --- Joining and the law -------------------------------------------------------------------


def warning_sentences(warning: Joining) -> Iterator[str]:
    """What goes wrong if each normalises by its own records."""
    worse = [one for one in warning.prospects if one.gain.mean < 0]
    names = listed([one.name for one in worse]) if worse else "nobody"
    verb = "do" if len(worse) > 1 else "does"
    within = worse and all(one.verdict == "unclear" for one in worse)
    yield (
        "How records are prepared matters, too. If each member normalises by its own training "
        "records, as in FLamby, everyone's mean becomes 0. That hides how the members differ, "
        "above all how many of their patients are ill, and a shared model has only one intercept "
        f"for all of them. With {warning.ways.together}, the best way for such records, "
        f"{names} {verb} worse with everyone than alone"
        f"{', although within noise' if within else ''}:"
    )


def curve_sentence(result: StudyResult) -> str:
    """What was measured, from the fewest records to all."""
    assert result.agreed is not None
    curve = result.agreed.curve
    first, last = (
        level(result.joining, Estimate(1.0 - float(value), np.nan)) for value in curve.mean[[0, -1]]
    )
    return (
        f"{listed(result.agreed.members, 10)} trained by {result.joining.ways.together} on "
        f"more and more of their records, {count(len(curve.seeds), 'time')} at each of "
        f"{curve.sizes.size} sizes. The mean {result.joining.setting.task.measure.name} is {first} "
        f"with {curve.sizes[0]:,.0f} records and {last} with {curve.sizes[-1]:,.0f}."
    )


# --- The agreement -------------------------------------------------------------------------


def client_cells(row: ClientRow) -> tuple[str, ...]:
    """The cells of a member under `CLIENT_HEADINGS`."""
    return (
        row.name,
        row.samples,
        row.selfish,
        row.agreed,
        row.saving,
        row.threshold,
        row.discount_factor,
        row.role,
    )


def range_rows(costs: RangeCosts) -> Iterator[tuple[str, ...]]:
    """What is agreed on, by how well numbers are known."""
    saved = amounts(
        [float(a.saving.sum()) if a.exists else np.nan for a in costs.by_width],
        costs.consortium.currency,
    )
    for label, total, amount in zip(costs.labels, write(costs.total), saved, strict=True):
        yield (known_in_words(label), "none" if total == "–" else total, amount)


def audit_sentence(year: Year) -> str:
    """How often members are audited, and who is made to slip."""
    agreement = year.match.agreement
    audits = agreement.monitoring.audits(agreement.consortium)
    always = audits.min() == 1
    often = "in every slot" if always else f"with probability {audits.max():.2g}"
    drawn = "" if always else " (the random audits were drawn such that one does)"
    return (
        f"This year is simulated. Whoever is audited with probability {year.least_audit:.2g} in "
        f"each slot keeps to the agreement; here everyone is audited {often}. In slot "
        f"{_slip(year)} {_slipper(year)} is made to train on less than agreed, and an audit "
        f"finds it{drawn}."
    )


def _slip(year: Year) -> int:
    return next(event.slot for event in year.match.events if event.kind == "deviation")


def _slipper(year: Year) -> str:
    return str(next(event.client for event in year.match.events if event.kind == "deviation"))


def trained_sentences(result: StudyResult) -> Iterator[str]:
    """What was trained, on which records, and who had none to fine-tune with."""
    models, ways = result.models, result.joining.ways
    assert models is not None
    yield (
        f"One slot, trained {count(models.trial.seeds, 'time')}: alone, without an agreement (the "
        "equilibrium), as agreed, and with everyone's records in one place. Alone is as under "
        f'"Who should join": everyone trains on all its records, by {ways.alone}, even if fewer '
        f"would pay. All others train by {ways.together}."
    )
    anyway = models.fine_tuned_anyway
    if anyway:
        reached = [f"{name} {level(result.joining, found)}" for name, found in anyway.items()]
        one = len(anyway) == 1
        yield (
            "Fine-tuning uses the records that a member trains on in the slot, since each costs "
            f"something. Without an agreement {listed(list(anyway), 10)} "
            f"{'trains' if one else 'train'} on none, so that the table shows the shared model for "
            f"{'it' if one else 'them'}. With all records that {'it has' if one else 'they have'}, "
            f"fine-tuning would lead to {listed(reached, 10)} there: what the agreement gains "
            f"{'it' if one else 'them'} must be compared with that."
        )


# --- Money ---------------------------------------------------------------------------------


def money_sentence(result: StudyResult) -> str:
    """What is assumed, and what follows."""
    consortium = result.consortium
    low, high = consortium.valuation.min(), consortium.valuation.max()
    point = [money(f"{value / 100:,.2f}", consortium.currency) for value in (low, high)]
    record = money(f"{consortium.cost_per_sample.mean():,.2f}", consortium.currency)
    what = "a point of accuracy" if result.study.task != "cox" else "0.01 of concordance"
    return (
        f"Assumed: {what} is worth {point[0]} to {point[1]} to a member in a slot of "
        f"{consortium.slot}, and a record costs {record} in each. The first of these is the least "
        "certain, so it is varied here."
    )


def money_headings(result: StudyResult) -> tuple[str, ...]:
    """Over the columns of `money_rows`."""
    measure = measure_name(result.worths[0].measure).capitalize()
    unit = in_unit(result.consortium)
    return (
        "Times",
        "Records without",
        "Records agreed",
        f"{measure} without",
        f"{measure} agreed",
        f"All save a year{unit}",
        f"Least for one{unit}",
        "Verdict",
    )


def money_rows(result: StudyResult) -> Iterator[tuple[str, ...]]:
    """A row for each multiple of the valuations."""
    for times, worth in zip(MULTIPLES, result.worths, strict=True):
        yield _money_row(times, worth)


def _money_row(times: float, worth: Worth) -> tuple[str, ...]:
    agreement = worth.agreement
    before, after = agreement.equilibrium.total, agreement.total
    levels = written_measure(
        worth.measure, [worth.equilibrium.value.mean(), worth.agreed.value.mean()]
    )
    slots = worth.slots_per_year or 1.0
    verdict = worth.verdict or "nothing to agree on"
    return (
        f"{times:g}",
        *write([before, after]),
        *levels,
        *write([slots * worth.saving_per_slot, slots * float(worth.saving.value.min())], digits=3),
        verdict,
    )


def as_assumed() -> int:
    """The row with the valuations as they are assumed."""
    return MULTIPLES.index(1.0)


def assumed_sentences(result: StudyResult) -> Iterator[str]:
    """What is real, what is assumed, and how to make the page again."""
    yield (
        "The records, the tests and all trainings are real, and so is the law measured with them: "
        "the command below trains everything again and writes this page, which took "
        f"{_TOOK[result.study.name]} on two cores. How many patients members "
        "see, what errors and records cost them, and how patient they are is assumed; "
        f"{result.study.file.name} has the calculation behind each number. Nobody asked these "
        "hospitals."
    )
    yield (
        "Intervals cover other seeds and other test records, not other records to train with. "
        "A gain within noise may be no gain at all."
    )
