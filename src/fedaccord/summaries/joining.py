"""What is said about who should join: whoever loses is told first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.numbers import count
from fedaccord.summaries.words import listed

if TYPE_CHECKING:
    from fedaccord.membership.agreeing import GroupAgreement
    from fedaccord.membership.joining import Joining, Prospect
    from fedaccord.training.comparison import Estimate

SHOWN_GROUPS = 6
"""Groups in a table, besides those that are asked for."""


def joining_sentences(joining: Joining) -> list[str]:
    """Who loses, who gains, what is within noise, and which group to form."""
    return [
        *_losers(joining),
        *_others(joining),
        recommendation(joining),
        *_doubts(joining),
        way_sentence(joining),
    ]


def _losers(joining: Joining) -> Iterator[str]:
    """A sentence for each client that is worse off with everyone, beyond noise; the worst first."""
    for prospect in sorted(joining.prospects, key=lambda one: one.gain.mean):
        if prospect.verdict == "loses":
            yield (
                f"{prospect.name} loses by joining everyone: "
                f"{level(joining, prospect.together)} on its own test, "
                f"{level(joining, prospect.alone)} alone ({gain(joining, prospect.gain)})."
            )


def _others(joining: Joining) -> Iterator[str]:
    gaining = [one for one in joining.prospects if one.verdict == "gains"]
    if gaining:
        said = [f"{one.name} ({gain(joining, one.gain)})" for one in gaining]
        verb = "gains" if len(gaining) == 1 else "gain"
        yield f"With everyone, {listed(said)} {verb}."
    unclear = [one for one in joining.prospects if one.verdict == "unclear"]
    if unclear:
        said = [f"{one.name} ({gain(joining, one.gain)})" for one in unclear]
        own = "its" if len(unclear) == 1 else "their"
        yield f"For {listed(said)} it is unclear whether everyone's model is better than {own} own."


def recommendation(joining: Joining) -> str:
    """Which group should train together, if any."""
    group = joining.recommended
    if group is None:
        return (
            f"These {len(joining.names)} should not train together in this way: in every group "
            "somebody is likely to lose, or would rather leave."
        )
    members = joining.members_of(group)
    gains = [
        f"{name} {gain(joining, joining.gain(joining.names.index(name), group))}"
        for name in members
    ]
    who = "All of them" if len(members) == len(joining.names) else listed(members)
    sure = (
        "should train together"
        if joining.surely_recommended
        else "could train together, since nobody clearly loses"
    )
    return (
        f"{who} {sure}: {listed(gains, 10)} against training alone. No smaller group of them is "
        "better for all of its members, beyond noise."
    )


def _doubts(joining: Joining) -> Iterator[str]:
    """What would have to be known to be sure."""
    group = joining.recommended
    if group is None or joining.surely_recommended:
        return
    unsure = joining.unsure_of(group)
    tests = [one for one in joining.prospects if one.name in unsure]
    smallest = min(tests, key=lambda one: one.tested)
    one = len(unsure) == 1
    test = "its test" if one else f"the smallest of their tests, {smallest.name}'s,"
    yield (
        f"It is unclear whether {listed(unsure, 10)} then {'gains' if one else 'gain'}: {test} has "
        f"{count(smallest.tested, 'record')}."
    )


def way_sentence(joining: Joining) -> str:
    """How they train, and how that was chosen."""
    ways, seeds = joining.ways, count(len(joining.scores.seeds), "seed")
    if len(ways.tried) == 1:
        return f"Trained by {ways.together.name}, {seeds}."
    same = ways.alone == ways.together
    alone = "" if same else f", and alone by {ways.alone.name}"
    return (
        f"Trained by {ways.together.name}{alone}, {seeds}. {'This is' if same else 'These are'} "
        f"the best of {len(ways.tried)} ways by the loss in cross-validation on training records; "
        "the tests had no part in the choice."
    )


def agreement_sentences(found: GroupAgreement) -> list[str]:
    """Whether there is a law for the group to agree by, and how sure it is."""
    who = listed(found.members, 10)
    if found.certificate is None:
        return [f"No agreement can be worked out for {who}: {found.reason}"]
    said = f"What {who} can agree on, by the law measured on their records:"
    if not found.for_the_fit:
        return [said]
    under = found.certificate.under_laws
    held = "" if under is None else f", and holds for {under.held:,} of {under.laws:,} that fit"
    return [
        "No agreement holds for every law that fits the measurements. This one is for the best fit "
        f"alone{held}: measure more before you rely on it.",
        said,
    ]


# --- Numbers -------------------------------------------------------------------------------


def level(joining: Joining, estimate: Estimate) -> str:
    """A measure, as people say it: in per cent if it is accuracy."""
    value, width = estimate.mean, estimate.half_width
    if _in_percent(joining):
        return f"{100 * value:.1f} %{_give_or_take(100 * width, 1)}"
    return f"{value:.3f}{_give_or_take(width, 3)}"


def gain(joining: Joining, estimate: Estimate) -> str:
    """A difference of measures, in points of accuracy or in the measure's own unit."""
    value, width = estimate.mean, estimate.half_width
    if _in_percent(joining):
        return f"{100 * value + 0.0:+.1f} points{_give_or_take(100 * width, 1)}"
    return f"{value + 0.0:+.3f}{_give_or_take(width, 3)}"


def _in_percent(joining: Joining) -> bool:
    return joining.setting.task.measure.name == "accuracy"


def _give_or_take(width: float, decimals: int) -> str:
    return f" ± {width:.{decimals}f}" if np.isfinite(width) else ""


NOTES = (
    "±: a 95 % interval that covers other seeds and other test records. It does not cover other "
    "records to train with.",
    "A group holds together if no smaller group of its members, and none of them alone, would be "
    "better off without the rest. Yes and no mean beyond noise.",
)


# --- Tables --------------------------------------------------------------------------------


def prospect_headings(joining: Joining) -> tuple[str, ...]:
    """Over the columns of `prospect_rows`."""
    percent, points = (", %", ", points") if _in_percent(joining) else ("", "")
    return (
        "Client",
        "Records",
        "Tested on",
        f"Alone{percent}",
        f"With everyone{percent}",
        f"Gain{points}",
        "Loss falls by",
        "Best for it",
    )


def prospect_rows(joining: Joining) -> list[tuple[str, ...]]:
    """A row for each client: what it reaches on its own test, and where it would do best."""
    return [_row(joining, prospect) for prospect in joining.prospects]


def _row(joining: Joining, one: Prospect) -> tuple[str, ...]:
    others = [name for name in one.best_group if name != one.name]
    everyone = len(one.best_group) == len(joining.names)
    best = "everyone" if everyone else f"with {listed(others)}" if others else "alone"
    level_of, gain_of = level(joining, one.alone), gain(joining, one.gain)
    return (
        one.name,
        f"{one.records:,}",
        f"{one.tested:,}",
        *(_bare(text) for text in (level_of, level(joining, one.together), gain_of)),
        f"{one.loss_gain.mean + 0.0:.3f}{_give_or_take(one.loss_gain.half_width, 3)}",
        best,
    )


def _bare(text: str) -> str:
    """Without the unit, which the heading has."""
    return text.replace(" %", "").replace(" points", "")


GROUP_HEADINGS = ("Group", "Each gains, against alone", "Holds together")


def group_rows(joining: Joining) -> list[tuple[str, ...]]:
    """The groups of more than one with the most to gain, everyone's among them."""
    found = joining.stability
    larger = np.flatnonzero(found.members.sum(axis=1) > 1)
    total = np.nansum(found.gain[larger], axis=1)
    best = larger[np.argsort(-total, kind="stable")][:SHOWN_GROUPS].tolist()
    shown = best if joining.everyone in best else [*best[:-1], joining.everyone]
    return [_group_row(joining, int(group)) for group in shown]


def _group_row(joining: Joining, group: int) -> tuple[str, ...]:
    members = joining.members_of(group)
    everyone = len(members) == len(joining.names)
    gains = [
        _bare(f"{name} {gain(joining, joining.gain(joining.names.index(name), group))}")
        for name in members
    ]
    return ("everyone" if everyone else listed(members), "; ".join(gains), _holds(joining, group))


def _holds(joining: Joining, group: int) -> str:
    found = joining.stability
    if found.surely_stable[group]:
        return "yes"
    if not found.surely_unstable[group]:
        return "unclear"
    leaving = [joining.members_of(int(one)) for one in found.blocking(group, surely=True)]
    most = max(leaving, key=lambda names: (len(names), names))
    alone = "would rather train alone" if len(most) == 1 else "would rather be by themselves"
    return f"no: {listed(most)} {alone}"


WAY_HEADINGS = ("Way", "Loss together", "Loss alone")
"""On records held out from training."""


def way_rows(joining: Joining) -> list[tuple[str, ...]]:
    """Each way that was tried, with its loss on records held out from training."""
    return [
        (str(each.way), f"{each.together:.4f}", f"{each.alone:.4f}") for each in joining.ways.tried
    ]
