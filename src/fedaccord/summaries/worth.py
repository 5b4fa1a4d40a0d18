"""What is said about an agreement's worth, about the law that it rests on, and what to ask."""

from collections.abc import Iterator, Sequence

import numpy as np

from fedaccord.agreement.agreement import USUAL_MARGIN, Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.worth import (
    LEAST_SHARE,
    LEAST_SHARE_OF_A_MEMBER,
    Banded,
    Worth,
)
from fedaccord.game.alone import alone_cost
from fedaccord.game.consortium import Consortium
from fedaccord.game.measured import Evidence
from fedaccord.game.money import amounts, coffee, fortune, money
from fedaccord.game.next_measurement import next_measurement
from fedaccord.numbers import BoolArray, FloatArray, count, write
from fedaccord.summaries.words import Noun, ends_of, listed, names_of

_SHOWN_AS = {"error": "accuracy", "1 - AUC": "AUC", "1 - concordance": "concordance"}
"""What people call 1 minus a measure."""
_INDIFFERENT = 5e-4
"""Slack that is printed as none: thresholds have three decimals."""


# --- The measure -----------------------------------------------------------------------------


def measure_name(measure: str) -> str:
    """What people call the measure: accuracy rather than error."""
    return _SHOWN_AS.get(measure, measure)


def written_measure(measure: str, values: Sequence[float] | FloatArray) -> list[str]:
    """Values of the measure, as people say them.

    >>> written_measure("error", [0.0831]), written_measure("loss", [0.02263])
    (['91.69 %'], ['0.02263'])
    """
    array = np.asarray(values, dtype=np.float64)
    if measure == "error":
        return [f"{100 * (1 - value):.2f} %" for value in array]
    return [f"{value:.4f}" for value in 1 - array] if measure in _SHOWN_AS else write(array)


def _with_band(measure: str, banded: Banded) -> str:
    value, band = banded.together(np.mean)
    text = written_measure(measure, [value])[0]
    if band is None:
        return text
    low, high = written_measure(measure, sorted(band, reverse=measure in _SHOWN_AS))
    return f"{text} ({low.removesuffix(' %')} to {high.removesuffix(' %')})"


def written_gain(measure: str, gains: Sequence[float]) -> list[str]:
    """How much lower the measure gets, in points of accuracy or in its own unit."""
    if measure == "error":
        return [f"{100 * gain:.2f}" for gain in gains]
    return [f"{gain:.4f}" for gain in gains] if measure in _SHOWN_AS else write(gains, digits=3)


def measure_sentence(worth: Worth) -> str:
    """The measure alone, without an agreement and under it."""
    measure = worth.measure
    sides = [_with_band(measure, side) for side in (worth.alone, worth.equilibrium, worth.agreed)]
    on_average = " on average" if worth.agreement.consortium.size > 1 else ""
    said = (
        f"{capital(measure_name(measure))}, by the law: {sides[0]} alone{on_average}, "
        f"{sides[1]} without an agreement"
    )
    if not worth.agreement.exists:
        return f"{said}."
    return f"{said}, {sides[2]} as agreed: {_gain(worth)}."


def _gain(worth: Worth) -> str:
    gain, band = worth.gain.together(np.mean)
    word = "lower" if worth.measure not in _SHOWN_AS else "higher"
    unit = " points" if worth.measure == "error" else ""
    text, *ends = written_gain(worth.measure, [gain, *(band or [])])
    between = f" ({ends[0]} to {ends[1]})" if ends else ""
    return f"{text}{unit} {word}{between}"


# --- What it is worth ------------------------------------------------------------------------


def worth_sentences(worth: Worth, noun: Noun = "client") -> list[str]:
    """The measure, the verdict with its reasons, and for whom it is different."""
    said = [measure_sentence(worth)]
    if worth.verdict is None:
        return said
    said.append(verdict_sentence(worth, noun))
    if worth.agreement.consortium.size > 1:
        said += [*_who_saves_little(worth), *_who_saves_nothing(worth)]
    return [*said, *_who_may_lose(worth), *_who_might_stay_out(worth)]


def verdict_sentence(worth: Worth, noun: Noun = "client") -> str:
    """The verdict for all, with what is saved and the limit that decides."""
    assert worth.verdict is not None
    head = capital(worth.verdict)
    if worth.verdict == "not worth it":
        currency, more = worth.agreement.consortium.currency, -worth.saving_per_slot
        lost = f"costs {money(more, currency)} more in a slot" if more else "saves nothing"
        return f"{head}: to all {noun}s together it {lost}."
    share = f"{100 * worth.saving_share:.3g} % of what is at stake for them"
    reasons = " and ".join(_too_little(worth, noun))
    little = f" That is {reasons}." if reasons else ""
    return f"{head}: all {noun}s together save {_saved(worth)}, {share}.{little}{_unsure(worth)}"


def _saved(worth: Worth) -> str:
    """The saving of all in a slot and a year, with its band."""
    currency = worth.agreement.consortium.currency
    saved, band = worth.saving.together(np.sum)
    text, *ends = amounts([saved, *(band or [])], currency)
    between = f" ({ends[0]} to {ends[1]})" if ends else ""
    said = f"{money(text, currency)} in a slot{between}"
    if worth.saving_per_year is None:
        return said
    return f"{said}, {money(worth.saving_per_year, currency)} a year"


def _too_little(worth: Worth, noun: Noun) -> Iterator[str]:
    """Which limits the saving of all does not reach."""
    if worth.saving_share < LEAST_SHARE:
        yield f"less than {100 * LEAST_SHARE:g} %, which a wrong guess of the inputs could explain"
    least, size = worth.least_per_year, worth.agreement.consortium.size
    if least is not None and (worth.saving_per_year or 0.0) < size * least:
        in_all = _about(worth, size * least)
        yield f"less in a year than a day of paperwork for each {noun} costs, {in_all} in all"


def _about(worth: Worth, amount: float) -> str:
    """A round amount of money."""
    return f"about {money(amount, worth.agreement.consortium.currency)}"


def _unsure(worth: Worth) -> str:
    """That all together may not save anything."""
    if worth.sure_for_all:
        return ""
    happens = "lose" if worth.may_lose_together else "gain nothing"
    return f" By some of the laws that fit the measurements they would {happens}."


def _who_saves_little(worth: Worth) -> Iterator[str]:
    """For whom it is hardly worth signing, and which limits its saving does not reach."""
    # who pays more is named with the reason why it would accept
    saves = worth.gains & ~worth.agreement.worse_than_equilibrium
    share, year = worth.small_shares, worth.small_amounts
    for small, cheap in ((True, True), (True, False), (False, True)):
        chosen = saves & (share == small) & (year == cheap)
        if chosen.any():
            yield _saves_little(worth, chosen, small=small, cheap=cheap)


def _saves_little(worth: Worth, chosen: BoolArray, *, small: bool, cheap: bool) -> str:
    """That some clients save little; `small` beside what is at stake, `cheap` beside paperwork."""
    who, least = names_of(worth.agreement, chosen), worth.least_per_year
    one = len(who) == 1
    saved = ends_of(worth.saving.value[chosen], worth.agreement.consortium.currency)
    stake = f"less than {100 * LEAST_SHARE_OF_A_MEMBER:g} % of what is at stake for"
    limits = [f"{stake} {'it' if one else 'each of them'}"] if small else []
    if cheap and least is not None:
        limits.append(f"less in a year than a day of paperwork costs ({_about(worth, least)})")
    return (
        f"Hardly worth signing for {listed(who)}: {'it saves' if one else 'they save'} {saved} in "
        f"a slot{'' if one else ' each'}, {' and '.join(limits)}."
    )


def _who_saves_nothing(worth: Worth) -> Iterator[str]:
    """Who saves nothing, but does not pay more either."""
    chosen = ~worth.gains & ~worth.agreement.worse_than_equilibrium
    if chosen.any():
        who = listed(names_of(worth.agreement, chosen))
        yield f"Not worth it to {who}, who would save nothing."


def _who_may_lose(worth: Worth) -> Iterator[str]:
    """Who is not sure to gain: by some of the laws in the band it saves nothing, or pays more."""
    if worth.agreement.consortium.size == 1:
        return  # that has been said of all
    unsure = worth.gains & ~worth.sure
    ends = (("lose", "more than", worth.may_lose), ("gain nothing", "as much as", ~worth.may_lose))
    for happens, pays, some in ends:
        if (unsure & some).any():
            who = names_of(worth.agreement, unsure & some)
            yield (
                f"{listed(who)} may {happens}: by some of the laws that fit the measurements "
                f"{'it' if len(who) == 1 else 'they'} would pay {pays} without an agreement."
            )


def _who_might_stay_out(worth: Worth) -> Iterator[str]:
    """Who would save its fees by staying out."""
    outside = worth.better_outside
    if outside.any():
        yield _outside(worth.agreement, outside)


def _outside(agreement: Agreement, outside: BoolArray) -> str:
    who, consortium = names_of(agreement, outside), agreement.consortium
    alone = alone_cost(consortium, fees=False)[outside]
    here, there = (
        money(text, consortium.currency)
        for text in amounts(
            [float(agreement.cost[outside].sum()), float(alone.sum())], consortium.currency
        )
    )
    would = "would it" if len(who) == 1 else "would they"
    return (
        f"{listed(who)} would pay less outside, without fees: {there} in a slot instead of {here}. "
        f"Why {would} take part?"
    )


def good_news(agreement: Agreement) -> bool:
    """Whether there is nothing to agree on because everyone trains on all it has anyway."""
    everything = agreement.equilibrium.profile == agreement.consortium.samples
    return not agreement.exists and bool(everything.all())


# --- Close calls -----------------------------------------------------------------------------


def knife_edge(certificate: Certificate) -> str:
    """Who is exactly indifferent between keeping to the agreement and slipping, if anybody is."""
    agreement = certificate.agreement
    if not (agreement.exists and certificate.holds):
        return ""
    slack = certificate.slack
    if agreement.robust and certificate.under_laws is not None:
        slack = np.minimum(slack, certificate.under_laws.slack.min(axis=0))
    edge = (slack < _INDIFFERENT) & (agreement.profile > 0)
    if not edge.any():
        return ""
    who = names_of(agreement, edge)
    verb = "is" if len(who) == 1 else "are"
    return (
        f"Knife-edge: {listed(who)} {verb} exactly indifferent between keeping to it and slipping. "
        f"A margin of {USUAL_MARGIN:g} would leave room for a little less patience than stated."
    )


def cheaper_sentence(agreement: Agreement, cheapest: Agreement | None) -> str:
    """That an agreement on less data would cost less, and by how much; empty if none would."""
    if cheapest is None or not cheapest.exists or not agreement.exists:
        return ""
    saved = float(agreement.cost.sum() - cheapest.cost.sum())
    if saved <= 1e-9 * abs(float(cheapest.cost.sum())) or cheapest.total >= agreement.total:
        return ""
    less, more = write([cheapest.total, agreement.total])
    currency = agreement.consortium.currency
    saving = float(agreement.saving.sum())
    better, here = amounts([float(cheapest.saving.sum()), abs(saving)], currency)
    dearer = f"costs {money(here, currency)} more than none"
    return (
        f"Recommended instead: the agreement of least total cost, on {less} samples instead of "
        f"{more}; it saves {money(better, currency)} in a slot in all, "
        f"this one {here if saving >= 0 else dearer}."
    )


def questions(consortium: Consortium) -> list[str]:
    """Valuations that are possible but unlikely, if the currency is known."""
    least, most = coffee(consortium.currency), fortune(consortium.currency)
    if least is None or most is None:
        return []
    points = consortium.valuation / 100.0
    what = {"error": "A percentage point of accuracy"}.get(
        consortium.law.measure, f"0.01 of {measure_name(consortium.law.measure)}"
    )
    said = []
    for chosen, ask in (
        (points < least, "less than a coffee: is a better model worth so little?"),
        (points > most, "a fortune: could the organisation mean that much?"),
    ):
        if chosen.any():
            worths = amounts(points[chosen], consortium.currency)
            first = consortium.names[int(np.argmax(chosen))]
            others = int(chosen.sum()) - 1
            to = first if not others else f"{first} (and {count(others, 'other')} likewise)"
            worth = money(worths[0], consortium.currency)
            said.append(f"{what} is said to be worth {worth} in a slot to {to}, {ask}")
    return said


# --- The law ---------------------------------------------------------------------------------


def law_sentences(
    certificate: Certificate, worth: Worth, for_the_fit: Agreement | None = None
) -> list[str]:
    """What is known of the law, where it is used, and for how many laws the agreement holds.

    `for_the_fit` is the agreement that was made for the fitted law alone.
    """
    law = certificate.agreement.consortium.law
    evidence = law.evidence
    if evidence is None:
        return [_assumed(certificate.agreement.consortium)]
    said = [_measured(evidence)]
    said += [f"Do not rely on it yet: {objection}." for objection in evidence.objections]
    said.append(_range(worth, evidence))
    said += _held(certificate)
    said += filter(None, [uncertainty_sentence(certificate.agreement, for_the_fit)])
    before, after = certificate.agreement.equilibrium.total, certificate.agreement.total
    if 0 < before < after:
        consortium = certificate.agreement.consortium
        most = consortium.total_of(consortium.samples)
        said.append(next_measurement(law, before, after, most=most).sentence)
    return said


def _assumed(consortium: Consortium) -> str:
    kinds = {
        "paper": "The law of the loss is the paper's, 1/sqrt(X G) + 1/G",
        "power": "The law of the loss is a power law",
        "personal": "Each has a law of the loss of its own",
    }
    kind = kinds.get(consortium.law.kind, "The law of the loss is given by its terms")
    if consortium.law.kind == "personal":
        return f"{kind}; how uncertain these are is not taken into account, and there are no bands."
    return f"{kind}: it is assumed, and was not measured on this model, so there are no bands."


def _measured(evidence: Evidence) -> str:
    seeds, examples = count(evidence.seeds, "seed"), evidence.examples
    tested = f", {count(examples, 'test example')}" if examples else ""
    fits = f"chi^2 is {evidence.chi2:.2g} per degree of freedom"
    known = fits if np.isfinite(evidence.chi2) else "how well it fits is not known"
    return (
        f"The law of the loss was measured: {evidence.curve.measure} at "
        f"{count(evidence.sizes, 'size')}, {seeds}{tested}; {known}."
    )


def _range(worth: Worth, evidence: Evidence) -> str:
    low, high = evidence.range
    first, last = worth.range_used
    used = f"It was measured from {low:,.0f} to {high:,.0f} samples and is used "
    used += f"from {first:,.0f} to {last:,.0f}" if first < last else f"at {last:,.0f}"
    if worth.beyond is None:
        return f"{used}."
    outside = "beyond" if last > high * 1.01 else "below"
    return f"{used}, {outside} what was measured: there it is a guess."


def _held(certificate: Certificate) -> list[str]:
    """For how many resampled laws, and fresh ones, the agreement holds."""
    under, fresh = certificate.under_laws, certificate.under_fresh_laws
    if under is None or fresh is None:
        return []
    law, client = under.worst
    name = certificate.agreement.consortium.names[client]
    said = [
        f"It holds for {under.held:,} of {under.laws:,} resampled laws, least slack "
        f"{under.slack[law, client]:.3f} ({name}, law {law + 1:,}), and for {fresh.held:,} of "
        f"{fresh.laws:,} fresh ones."
    ]
    more = int(under.gives_more.any(axis=0).sum())
    if more:
        would = "client would train" if more == 1 else "clients would train"
        said.append(f"Under some of them {more:,} {would} on more than agreed, which helps all.")
    return said


def uncertainty_sentence(agreement: Agreement, for_the_fit: Agreement | None) -> str:
    """What it costs in data to hold for all laws and not for the fitted one alone."""
    if for_the_fit is None or not for_the_fit.exists:
        return ""
    fitted = write([for_the_fit.total])[0]
    if not agreement.exists:
        return f"For the fitted law alone there would be an agreement on {fitted} samples."
    lost = for_the_fit.total - agreement.total
    if lost <= 1e-6 * for_the_fit.total:
        return "To hold for all of them costs no data: for the fitted law alone it is the same."
    return (
        f"To hold for all of them costs {write([lost])[0]} samples in a slot: for the fitted law "
        f"alone it would be on {fitted}, {100 * lost / agreement.total:.2g} % more."
    )


def capital(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]
