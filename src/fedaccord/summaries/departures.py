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
    """Whose departure costs the others most, and least; or saves them something."""
    currency, costs = found.consortium.currency, found.cost_to_others
    ends = costs.max(), costs.min()
    most, least = (
        (float(np.sign(cost)) if _is_something(text) else 0.0, money(text, currency))
        for cost, text in zip(ends, amounts(np.abs(ends), currency), strict=True)
    )
    if most == least:
        return [f"Any departure {_effect(*most)}{' a slot together' if most[0] else ''}."]
    if most[0] <= 0:
        return [
            "The others would miss nobody: after a new agreement the departure of "
            f"{found.least_missed} {_effect(*least)} a slot together, and that of "
            f"{found.most_missed} {_effect(*most)}."
        ]
    said = (
        f"The others would miss {found.most_missed} most: its departure costs them {most[1]} a "
        "slot together, after a new agreement. They would "
    )
    if least[0] > 0:
        return [f"{said}miss {found.least_missed} least: {least[1]}."]
    return [f"{said}not miss {found.least_missed}: its departure {_effect(*least, 'them')}."]


def _is_something(amount: str) -> bool:
    """Whether an amount is written as more than 0."""
    return bool(amount.strip("0.,"))


def _effect(sign: float, amount: str, others: str = "the others") -> str:
    """What a departure does to the others: it costs them an amount, or saves them one."""
    if sign == 0:
        return f"costs {others} nothing"
    return f"{'costs' if sign > 0 else 'saves'} {others} {amount}"


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
    each = "" if len(gone) == 1 else "any one of "
    return [f"Without {each}{listed(gone)} the others find no agreement that is better than none."]


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
