"""What is said about who should join: whoever loses is told first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.game.money import money
from fedaccord.numbers import count
from fedaccord.summaries.words import in_unit, listed

if TYPE_CHECKING:
    from fedaccord.membership.agreeing import GroupAgreement
    from fedaccord.membership.joining import Joining, Prospect
    from fedaccord.training.comparison import Estimate

_SAME = 0.02
"""The part of a loss by which another may differ and still be called about the same."""
SHOWN_GROUPS = 6
"""Groups in a table, besides those that are asked for."""


def joining_sentences(joining: Joining) -> list[str]:
    """Who loses, who gains, what is within noise, and which group to form."""
    return [
        *_losers(joining),
        *_others(joining),
        recommendation(joining),
        *_doubts(joining),
        *_tests_that_say_nothing(joining),
        *_not_judged_by_own_cases(joining),
        way_sentence(joining),
        *_plain_sentences(joining),
    ]


def _losers(joining: Joining) -> Iterator[str]:
    """A sentence for each client that is worse off with everyone, beyond noise; the worst first."""
    test = "on its own test" if joining.own_tests else "on the common test"
    for prospect in sorted(joining.prospects, key=lambda one: one.gain.mean):
        if prospect.verdict == "loses":
            yield (
                f"{prospect.name} loses by joining everyone: "
                f"{level(joining, prospect.together)} {test}, "
                f"{level(joining, prospect.alone)} alone ({gain(joining, prospect.gain)})."
            )


def _others(joining: Joining) -> Iterator[str]:
    gaining = [one for one in joining.prospects if one.verdict == "gains"]
    if gaining:
        said = [f"{one.name} ({gain(joining, one.gain)})" for one in gaining]
        verb = "gains" if len(gaining) == 1 else "gain"
        yield f"With everyone, {listed(said, 10)} {verb}."
    unclear = [one for one in joining.prospects if one.verdict == "unclear"]
    if unclear:
        said = [f"{one.name} ({gain(joining, one.gain)})" for one in unclear]
        own = "its" if len(unclear) == 1 else "their"
        why = "" if any(_doubts(joining)) else f": {_how_tested(joining, unclear)}"
        better = f"whether everyone's model is better than {own} own{why}"
        yield f"For {listed(said, 10)} it is unclear {better}."


def _how_tested(joining: Joining, unclear: Sequence[Prospect]) -> str:
    """How large the tests are of those for whom something is unclear."""
    smallest = min(unclear, key=lambda one: one.tested)
    test = f"the smallest of their tests, {smallest.name}'s,"
    if not joining.own_tests:
        test = "the common test"
    elif len(unclear) == 1:
        test = "its test"
    return f"{test} has {count(smallest.tested, 'record')}"


def short_recommendation(joining: Joining) -> str:
    """Which group should train together, if any, and whether that is sure; without numbers."""
    group = joining.recommended
    if group is None:
        return f"These {len(joining.names)} should not train together in this way."
    unsure, who = joining.unsure_of(group), _who(joining, group)
    if not unsure:
        return f"{who} should train together: each of them gains."
    gains = f"{listed(unsure, 10)} {'gains' if len(unsure) == 1 else 'gain'}"
    if len(unsure) == len(joining.members_of(group)):
        gains = "any of them gains"
    return f"{who} could train together: nobody clearly loses, but it is unclear whether {gains}."


def recommendation(joining: Joining) -> str:
    """Which group should train together, if any; what everyone's brings each has been said."""
    group = joining.recommended
    if group is None:
        return (
            f"These {len(joining.names)} should not train together in this way: in every group "
            "somebody is likely to lose, or would rather leave."
        )
    sure = (
        "should train together"
        if joining.surely_recommended
        else "could train together, since nobody clearly loses"
    )
    gains = "" if group == joining.everyone else f": {_gains_in(joining, group)}"
    return (
        f"{_who(joining, group)} {sure}{gains}. If each trains on all its records, no smaller "
        "group of them is better for all of its members, beyond noise."
    )


def _who(joining: Joining, group: int) -> str:
    return "All of them" if group == joining.everyone else listed(joining.members_of(group), 10)


def _gains_in(joining: Joining, group: int) -> str:
    """What each member of a group gains."""
    gains = [
        f"{name} {gain(joining, joining.gain(joining.names.index(name), group))}"
        for name in joining.members_of(group)
    ]
    return f"{listed(gains, 10)} against training alone"


def _doubts(joining: Joining) -> Iterator[str]:
    """Who may not gain in a group that is not everyone's, and why that is unclear."""
    group = joining.recommended
    if group in (None, joining.everyone) or joining.surely_recommended:
        return
    unsure = joining.unsure_of(group)
    tests = [one for one in joining.prospects if one.name in unsure]
    verb = "gains" if len(unsure) == 1 else "gain"
    yield (
        f"It is unclear whether {listed(unsure, 10)} then {verb}: {_how_tested(joining, tests)}."
    )


_ALL_POSSIBLE = "the intervals cover all that is possible"


def _tests_that_say_nothing(joining: Joining) -> Iterator[str]:
    """Whose test leaves everything possible."""
    names = [one.name for one in joining.prospects if one.says_nothing]
    if not names:
        return
    if not joining.own_tests:
        yield f"The common test says nothing: {_ALL_POSSIBLE}."
    elif len(names) == 1:
        yield f"{names[0]}'s test says nothing: {_ALL_POSSIBLE}."
    else:
        yield f"The tests of {listed(names, 10)} say nothing: {_ALL_POSSIBLE}."


def _not_judged_by_own_cases(joining: Joining) -> Iterator[str]:
    if not joining.own_tests:
        yield (
            "Nobody was judged by its own cases: there is only a common test, and a model that is "
            "better on it may be worse for a client whose cases are unlike the others'."
        )


def way_sentence(joining: Joining) -> str:
    """How they train, and how that was chosen."""
    ways, seeds = joining.ways, count(len(joining.scores.seeds), "seed")
    if len(ways.tried) == 1:
        return f"Trained by {ways.together}; {seeds}."
    same = ways.alone == ways.together
    alone = "" if same else f"; alone by {ways.alone}"
    return (
        f"Trained by {ways.together}{alone}; {seeds}. {'This is' if same else 'These are'} "
        f"the best of {len(ways.tried)} ways by the loss in cross-validation on training records; "
        "the tests had no part in the choice."
    )


def _plain_sentences(joining: Joining) -> Iterator[str]:
    """What plain FedAvg would have led to, if another way was better."""
    plain = joining.plain
    if plain is None:
        return
    how = f"With plain FedAvg (rate {plain.ways.together.local.rate:g})"
    best = plain.recommended
    if best is None:
        everyone = _gains_in(plain, plain.everyone)
        yield f"{how} these {len(plain.names)} should not train together: with everyone {everyone}."
        return
    verb, gains = "should" if plain.surely_recommended else "could", _gains_in(plain, best)
    if best == plain.everyone:
        yield f"{how} all of them {verb} train together, too: {gains}."
    else:
        yield (
            f"{how} the largest group that {verb} train together is "
            f"{listed(plain.members_of(best), 10)}: {gains}. {_why_not_everyone(plain)}"
        )


def _why_not_everyone(joining: Joining) -> str:
    """Why it is not everyone who should train together."""
    everyone = joining.everyone
    losers = joining.likely_losers(everyone)
    if losers:
        said = [f"{name} ({_lost(joining, joining.names.index(name))})" for name in losers]
        are = "is" if len(losers) == 1 else "are"
        return f"With everyone, {listed(said, 10)} {are} likely to lose."
    if joining.stability.surely_unstable[everyone]:
        return f"With everyone, {_who_would_leave(joining, everyone)}."
    return "Everyone together would gain nothing in all."


def _lost(joining: Joining, client: int) -> str:
    """What it loses with everyone: in the measure, or in money if only fees make it lose."""
    prospect = joining.prospects[client]
    if prospect.gain.mean < 0 or prospect.saving is None or joining.consortium is None:
        return gain(joining, prospect.gain)
    return f"{money(_saved(prospect.saving), joining.consortium.currency)} in a slot, fees paid"


def held_out_sentences(joining: Joining) -> Iterator[str]:
    """For whom the loss on records held out from training is lower together, and for whom alone.

    The means over clients that the table of ways shows may be those of one of them.
    """
    ways = joining.ways
    if len(ways.tried) == 1:
        return
    losses = zip(
        joining.names, ways.best_together.each_together, ways.best_alone.each_alone, strict=True
    )
    found: dict[str, list[str]] = {"lower together": [], "lower alone": [], "about the same": []}
    for name, together, alone in losses:
        written = f"{name} ({together:.3f} together, {alone:.3f} alone)"
        found[_compared(together, alone)].append(written)
    said = [f"{how} for {listed(who, 10)}" for how, who in found.items() if who]
    yield f"On records held out, by the ways chosen, the loss is {'; '.join(said)}."
    if found["lower alone"] and joining.recommended is not None:
        yield (
            f"Who should join is judged by {joining.setting.task.measure.name} on the tests, not "
            "by this loss."
        )
    yield from _one_class_sentences(joining)


def _compared(together: float, alone: float) -> str:
    if abs(together - alone) <= _SAME * max(together, alone):
        return "about the same"
    return "lower together" if together < alone else "lower alone"


def _one_class_sentences(joining: Joining) -> Iterator[str]:
    """Why the loss alone is low for clients with a single class."""
    data = joining.setting.partition.dataset
    if data.survival:
        return
    held = joining.setting.partition.draw(1)
    single = [
        name
        for name, own in zip(joining.names, held, strict=True)
        if len(set(data.labels[own].tolist())) == 1
    ]
    if single:
        verb, its = ("has", "its") if len(single) == 1 else ("have", "their")
        yield (
            f"{listed(single, 10)} {verb} only one class to train on. A model that always predicts "
            f"this class is right about all of {its} held-out records, so that {its} loss alone is "
            "almost 0 and lowers the mean; about other cases that says nothing."
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


def group_comment(found: GroupAgreement) -> str:
    """What the consortium file of a group says about its law."""
    curve = found.curve
    return (
        f"Law measured with the records of {listed(found.members, 10)}: {len(curve.sizes)} sizes "
        f"from {curve.smallest:,.0f} to {curve.largest:,.0f} samples, "
        f"{count(len(curve.seeds), 'seed')} each."
    )


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
    return f" ± {width:,.{decimals}f}" if np.isfinite(width) else ""


INTERVAL_NOTE = (
    "±: a 95 % interval that covers other seeds and other test records. It does not cover other "
    "records to train with."
)


def group_note(joining: Joining) -> str:
    """What the table of groups shows, and what groups are compared by."""
    said = (
        "A group holds together if no smaller group of its members, and none of them alone, would "
        "be better off without the rest. Yes and no mean beyond noise."
    )
    if joining.consortium is None:
        return said
    unit = joining.consortium.currency
    money = f"in {unit} a slot" if unit else "by cost"
    return (
        f"{said} Groups, and what is best for each, are compared {money}: what fewer errors save, "
        "less fees."
    )


def data_notes(joining: Joining) -> list[str]:
    """What to know about the records before numbers are believed."""
    return [f"Note: {note}." for note in joining.notes]


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
        *([] if joining.consortium is None else [f"Saved a slot{in_unit(joining.consortium)}"]),
        "Loss falls by",
        "Best for it",
    )


def prospect_rows(joining: Joining) -> list[tuple[str, ...]]:
    """A row for each client: what it reaches on its own test, and where it would do best."""
    return [_row(joining, n) for n in range(len(joining.names))]


def _row(joining: Joining, n: int) -> tuple[str, ...]:
    one = joining.prospects[n]
    level_of, gain_of = level(joining, one.alone), gain(joining, one.gain)
    return (
        one.name,
        f"{one.records:,}",
        f"{one.tested:,}",
        *(_bare(text) for text in (level_of, level(joining, one.together), gain_of)),
        *([] if one.saving is None else [_saved(one.saving)]),
        f"{one.loss_gain.mean + 0.0:.3f}{_give_or_take(one.loss_gain.half_width, 3)}",
        _best_for(joining, n),
    )


def _best_for(joining: Joining, n: int) -> str:
    """The group that is best for a client, and whether it is as well off alone."""
    group = joining.stability.best(n)
    others = [name for name in joining.members_of(group) if name != joining.names[n]]
    if not others:
        return "alone"
    best = "everyone" if group == joining.everyone else f"with {listed(others)}"
    return f"{best}, or alone" if 1 << n in joining.stability.best_groups(n) else best


def _saved(saving: Estimate) -> str:
    return f"{saving.mean + 0.0:+,.0f}{_give_or_take(saving.half_width, 0)}"


def _bare(text: str) -> str:
    """Without the unit, which the heading has."""
    return text.replace(" %", "").replace(" points", "")


def group_headings(joining: Joining) -> tuple[str, ...]:
    """Over the columns of `group_rows`."""
    consortium = joining.consortium
    gains = "Each gains" if consortium is None else f"Each saves a slot{in_unit(consortium)}"
    return ("Group", f"{gains}, against alone", "Holds together")


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
    gains = [f"{name} {_gained(joining, joining.names.index(name), group)}" for name in members]
    return ("everyone" if everyone else listed(members), "; ".join(gains), _holds(joining, group))


def _gained(joining: Joining, client: int, group: int) -> str:
    """In the unit that groups are compared by."""
    saving = joining.saving(client, group)
    if saving is not None:
        return _saved(saving)
    return _bare(gain(joining, joining.gain(client, group)))


def _holds(joining: Joining, group: int) -> str:
    found = joining.stability
    if found.surely_stable[group]:
        return "yes"
    if not found.surely_unstable[group]:
        return "unclear"
    return f"no: {_who_would_leave(joining, group)}"


def _who_would_leave(joining: Joining, group: int) -> str:
    """The largest part of a group that is better off without the rest, beyond noise."""
    leaving = [
        joining.members_of(int(one)) for one in joining.stability.blocking(group, surely=True)
    ]
    most = max(leaving, key=lambda names: (len(names), names))
    alone = "would rather train alone" if len(most) == 1 else "would rather be by themselves"
    return f"{listed(most)} {alone}"


WAY_HEADINGS = ("Way", "Loss together", "Loss alone")
"""On records held out from training."""


def way_rows(joining: Joining) -> list[tuple[str, ...]]:
    """Each way that was tried, with its loss on records held out from training."""
    return [
        (str(each.way), f"{each.together:.4f}", f"{each.alone:.4f}") for each in joining.ways.tried
    ]
