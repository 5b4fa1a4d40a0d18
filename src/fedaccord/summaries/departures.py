"""What is said about departures: who would be missed, by whom, and what still holds."""

import numpy as np

from fedaccord.agreement.departures import Departures
from fedaccord.game.money import amounts, money
from fedaccord.numbers import count, write
from fedaccord.summaries.match import some
from fedaccord.summaries.words import listed


def departure_sentences(found: Departures) -> list[str]:
    """What is agreed now, who would be missed, what still holds, and who cannot be replaced."""
    agreement, names = found.agreement, found.consortium.names
    if not agreement.exists:
        return [
            "There is no agreement to lose: everyone plays the equilibrium, "
            f"{write([agreement.total])[0]} samples in a slot.",
            *_missed(found),
        ]
    kept = int(found.holds_kept.sum())
    return [
        f"Together they train on {write([agreement.total])[0]} samples in a slot, with "
        f"{agreement.punishment}.",
        *_missed(found),
        _what_holds(kept, len(names)),
        *some(_who_slips(found), "groups that would slip"),
        *_indispensable(found),
        *_better_alone(found),
    ]


def _missed(found: Departures) -> list[str]:
    """Whose departure costs the others most, and least."""
    currency, costs = found.consortium.currency, found.cost_to_others
    most, least = amounts([costs.max(), costs.min()], currency)
    if most == least:
        return [f"Any departure costs the others {money(most, currency)} a slot together."]
    return [
        f"The others would miss {found.most_missed} most: its departure costs them "
        f"{money(most, currency)} a slot together, after a new agreement. They would miss "
        f"{found.least_missed} least: {money(least, currency)}."
    ]


def _what_holds(kept: int, size: int) -> str:
    if kept == size:
        return "Whoever leaves, the others' amounts still hold: they need not agree again."
    if kept == 0:
        return "Whoever leaves, the others' amounts no longer hold: they must agree again."
    return (
        f"After {count(kept, 'departure')} of {size:,} the others' amounts still hold; after the "
        "rest they must agree again."
    )


def _who_slips(found: Departures) -> list[str]:
    """Who would slip from its amount after whose departure."""
    names, after = found.consortium.names, dict[tuple[str, ...], list[str]]()
    for n in np.flatnonzero(~found.holds_kept).tolist():
        after.setdefault(tuple(found.slipping(n)), []).append(names[n])
    return [
        f"{listed(who)} would slip if {gone[0]} left."
        if len(gone) == 1
        else f"{listed(who)} would slip if any one of these left: {listed(gone)}."
        for who, gone in after.items()
    ]


def _indispensable(found: Departures) -> list[str]:
    gone = found.indispensable
    if not gone:
        return ["Nobody is indispensable: without any one of them the others find an agreement."]
    return [f"Without {listed(gone)} the others find no agreement that is better than none."]


def _better_alone(found: Departures) -> list[str]:
    """Who would rather be alone after whose departure."""
    told = []
    for n, row in enumerate(found.saving_new):
        who = [found.consortium.names[m] for m in np.flatnonzero(row < 0).tolist()]
        if who:
            them = listed(who)
            told.append(f"If {found.consortium.names[n]} leaves, {them} would be better off alone.")
    return some(told, "departures after which somebody would be better off alone")


def by_loss(found: Departures) -> list[int]:
    """The clients' positions, the most missed first."""
    return [int(n) for n in np.argsort(-found.cost_to_others, kind="stable")]
