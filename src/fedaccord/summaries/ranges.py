"""What is said about ranges: that an agreement holds throughout, how far, and what that costs."""

from __future__ import annotations

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.over_ranges import HeldOver
from fedaccord.agreement.range_costs import RangeCosts
from fedaccord.game.money import money
from fedaccord.numbers import at_most, patience, write
from fedaccord.summaries.words import Noun, listed

_NEXT_TO_NOTHING = 1e-3
"""Ranges that can be widened by less than this part cannot be widened."""
_LISTED = 10
"""Clients that are named one by one."""


def range_sentences(
    certificate: Certificate, as_stated: Agreement | None = None, noun: Noun = "client"
) -> list[str]:
    """Whether the agreement holds throughout the ranges, how far they go, and what they cost.

    `as_stated` is the agreement for the numbers exactly as stated. Nothing without ranges.
    """
    agreement, over = certificate.agreement, certificate.over_ranges
    if agreement.ranges is None and over is None:
        return []
    said = []
    if over is not None and over.holds:
        said = [_throughout(over), _closest(over)]
        if not np.isnan(over.widened_all):  # of very many clients it is not known
            said += [_room(over), *_room_of_each(over, noun)]
    elif over is not None:
        throughout = "It does not hold for every combination of numbers within the ranges"
        said = [f"{throughout}: {_refuted(over)}."]
    cost = cost_sentence(agreement, as_stated)
    return said + ([cost] if cost else [])


def _refuted(over: HeldOver) -> str:
    """Who is asked for more samples than it may have, and otherwise who would slip."""
    agreement, fewest = over.agreement, over.ranges.samples[0]
    names = agreement.consortium.names
    lacking = [
        f"{names[n]} is asked for {write([agreement.profile[n]])[0]} samples and may have only "
        f"{write([fewest[n]])[0]}"
        for n in np.flatnonzero(over.short).tolist()
    ]
    if lacking:
        return listed(lacking)
    name = names[over.worst]
    return f"{name} would slip if its ratio of valuation to cost were {_of_stated(over)}"


def _throughout(over: HeldOver) -> str:
    return (
        "It holds for every combination of numbers within the ranges: each was examined at the "
        f"numbers that tempt it most, and {over.searched:,} combinations were drawn at random. "
        "What it saves is calculated with the likely numbers."
    )


def _closest(over: HeldOver) -> str:
    agreement, corner = over.agreement, over.corner
    name = agreement.consortium.names[over.worst]
    others = " and the others' at their highest" if corner["others"] == "highest" else ""
    least = max(corner["discount_factor"] - over.slack[over.worst], 0.0)
    return (
        f"Closest to slipping is {name} with its ratio of valuation to cost at its lowest, "
        f"{_of_stated(over)}{others}: it needs a discount factor of at least {patience(least)} "
        f"and has at least {patience(corner['discount_factor'])}."
    )


def _of_stated(over: HeldOver) -> str:
    """The lowest ratio of the closest client against the stated one."""
    stated = over.agreement.consortium.ratio[over.worst]
    return f"{100 * over.corner['ratio'] / stated:.3g} % of what is stated"


def _room(over: HeldOver) -> str:
    """By how much all ranges could be wider together."""
    together = over.widened_all
    if np.isinf(together):
        return "However wide the ranges of the ratios are, it would hold."
    if together > 1.0 + _NEXT_TO_NOTHING:
        return (
            "All ratios could be off by a further factor of "
            f"{at_most(together, '{:.3g}'.format)}, up and down, before somebody slips."
        )
    return "All together the ranges of the ratios could not be wider."


def _room_of_each(over: HeldOver, noun: Noun) -> list[str]:
    """By how much each range could be wider by itself; of many, how many could be."""
    if np.isinf(over.widened).all():
        return []
    if over.widened.size > _LISTED:
        wider = int((over.widened > 1.0 + _NEXT_TO_NOTHING).sum())
        of = f"{wider:,} of {over.widened.size:,} {noun}s"
        return [f"By itself, the range of {of} could be wider."]
    names = over.agreement.consortium.names
    factors = ["any" if np.isinf(each) else at_most(each, "{:.3g}".format) for each in over.widened]
    each = ", ".join(f"{name} {factor}" for name, factor in zip(names, factors, strict=True))
    return [f"One by one, by these factors: {each}."]


def cost_sentence(agreement: Agreement, as_stated: Agreement | None) -> str:
    """What it costs in data to hold throughout the ranges."""
    if as_stated is None or not as_stated.exists:
        return ""
    exact = write([as_stated.total])[0]
    if not agreement.exists:
        return f"If the numbers were exactly as stated, there would be one on {exact} samples."
    lost = as_stated.total - agreement.total
    if lost <= 1e-6 * as_stated.total:
        return "The ranges cost no data: if the numbers were exact, it would be the same total."
    return (
        f"The ranges cost {write([lost])[0]} samples in a slot: if the numbers were exactly as "
        f"stated, it would be on {exact}. `fedaccord ranges` says whose to find out first."
    )


def known_in_words(label: str) -> str:
    """What is known, for a width of `RangeCosts`.

    >>> known_in_words("exact"), known_in_words("30 %"), known_in_words("x2"), known_in_words("x5")
    ('exactly', '± 30 %', 'half to double', 'a fifth to 5 times')
    """
    if label == "exact":
        return "exactly"
    if not label.startswith("x"):
        return f"± {label}"
    parts = {"2": "half to double", "3": "a third to 3 times", "5": "a fifth to 5 times"}
    return parts.get(label[1:], f"1/{label[1:]} to {label[1:]} times")


def range_cost_sentences(costs: RangeCosts, noun: Noun = "client") -> list[str]:
    """What ranges cost in all, and whose numbers to find out first."""
    said = []
    names, currency = costs.consortium.names, costs.consortium.currency
    exists = [agreement.exists for agreement in costs.by_width]
    if exists[0] and not all(exists):
        first = known_in_words(costs.labels[exists.index(False)])
        said.append(f"With ratios known only to {first} there is no agreement at all.")
    first_client = costs.find_out_first
    if not costs.here.exists and first_client is None:
        return [*said, f"Finding out one {noun}'s numbers would not make an agreement possible."]
    if first_client is None:
        return [*said, "Nobody needs to find out more: exact numbers would bring no more data."]
    total = write([costs.total_if_known[first_client]])[0]
    gained = costs.saving_if_known[first_client] - (
        float(costs.here.saving.sum()) if costs.here.exists else 0.0
    )
    saved = money(abs(gained), currency)
    more = "more" if gained >= 0 else "less"
    said.append(
        f"Find out the numbers of {names[first_client]} first: if they were known exactly, the "
        f"agreement would be on {total} samples, and all together would save {saved} {more}."
    )
    return said
