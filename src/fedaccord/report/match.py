"""What is said about a match and those who slipped, and its page."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from fedaccord.game.writing import count, write
from fedaccord.play.account import Account, punishment
from fedaccord.play.match import Match
from fedaccord.report.agreement import LISTED, written_range
from fedaccord.report.page import as_svg, fill

_SLIPS_SHOWN = 3
"""Clients that slipped with a picture of their own."""


@dataclass(frozen=True)
class DeviatorRow:
    """What is said about one client that slipped, every number written out."""

    name: str
    slots: str
    paid: str
    paid_if_kept: str
    lost: str


def render_account(account: Account) -> str:
    """The page about a match, as text."""
    match = account.match
    agreement = match.agreement
    return fill(
        "account.html.j2",
        account=account,
        match=match,
        consortium=agreement.consortium,
        title=match_title(account),
        totals=write([match.totals.mean(), agreement.total, agreement.equilibrium.total]),
        false_alarm_cost=write([match.false_alarm_cost.sum()], digits=3)[0],
        rows=deviator_rows(match),
        listed=LISTED,
        pictures=_match_pictures(account),
        punishment=punishment(agreement),
        discount_factors=written_range(agreement.consortium.discount_factor),
    )


def match_title(account: Account) -> str:
    """The whole match in a few words."""
    match = account.match
    if not match.agreement.exists:
        return f"{match.agreement.none_exists}, so everyone acts alone"
    slipped = np.flatnonzero(match.slipped)
    played = count(match.slots, "slot")
    if slipped.size == 0:
        return f"{played} in which everyone kept to the agreement"
    if slipped.size > 1:
        return f"{count(slipped.size, 'client')} slipped in {played}"
    [deviator] = account.deviators
    lost = deviator.extra_for_ever
    return f"{deviator.client} slipped, and {'lost' if lost > 0 else 'gained'} by it"


def deviator_rows(match: Match) -> list[DeviatorRow]:
    """What to say about each client that slipped."""
    slipped = np.flatnonzero(match.slipped)
    slots = Counter[str | None]()
    for event in match.events:
        if event.kind == "deviation":
            slots[event.client] += int(event.lasted)
    paid, kept = match.discounted_cost[slipped], match.discounted_cost_if_kept[slipped]
    with np.errstate(invalid="ignore"):
        lost = write(paid - kept)
    costs = write(np.concatenate([paid, kept]), digits=6)
    names = [match.agreement.consortium.names[n] for n in slipped]
    columns = (names, costs[: paid.size], costs[paid.size :], lost)
    return [
        DeviatorRow(name, f"{slots[name]:,}", *row) for name, *row in zip(*columns, strict=True)
    ]


def _match_pictures(account: Account) -> list[tuple[tuple[str, str], str]]:
    """Each picture as SVG, with a caption in two parts."""
    from fedaccord import plots

    match, best = account.match, account.best_tolerance
    levels = "between what was agreed and what selfish clients do"
    figures = [
        (
            plots.plot_totals(match),
            "How much was trained on.",
            f"All samples of a slot{f', {levels}' if match.agreement.exists else ''}.",
        )
    ]
    if match.agreement.exists:
        events = "The phase of each slot, and events."
        figures.append((plots.plot_events(match), "What happened when.", events))
    for deviator in account.deviators[:_SLIPS_SHOWN]:
        first = f"From slot {deviator.slips[0].first:,} on, discounted to it."
        figures.append((plots.plot_slip(deviator), f"What slipping cost {deviator.client}.", first))
    if best is not None:
        figures.append(
            (
                plots.plot_tolerance(best, match.tolerance),
                "Which shortfall to put up with.",
                "A small tolerance makes false alarms, a large one lets clients give less.",
            )
        )
    return [
        ((short, more), as_svg(figure, f"match{n}"))
        for n, (figure, short, more) in enumerate(figures)
    ]
