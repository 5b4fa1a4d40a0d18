"""What is said about a slip: what it was, what followed, and what the client saved and lost."""

from math import inf, isfinite

import numpy as np

from fedaccord.numbers import write
from fedaccord.repeated.deviators import Slip
from fedaccord.repeated.match import Match
from fedaccord.repeated.strategies import DeviateOnce


def slip_sentence(match: Match, slip: Slip) -> str:
    """A slip, its punishment, and what the client saved and lost by it."""
    contributed, agreed = write([slip.contributed, slip.agreed])
    parts = [
        f"{'slot' if slip.first == slip.last else 'slots'} {span(slip.first, slip.last)}: "
        f"{slip.client} trained on {contributed} instead of {agreed}"
    ]
    if match.agreement.exists:
        parts.append(_punishment(match, slip))
    if isfinite(slip.saved) and isfinite(slip.lost):
        parts.append(_outcome(slip.saved, slip.lost))
    else:
        parts.append("nobody trained, so there is no model and the cost is infinite")
    return "; ".join(parts)


def no_slip_sentence(match: Match, n: int, planned: DeviateOnce) -> str:
    """That client n did not slip although it planned to, and why."""
    name = match.agreement.consortium.names[n]
    return f"slot {planned.slot:,}: {name} did not slip: {_why_not(match, n, planned)}"


def slipped(match: Match, name: str, slot: int) -> bool:
    """Whether a client slipped in a slot."""
    return any(
        event.kind == "deviation"
        and event.client == name
        and event.slot <= slot < event.slot + event.lasted
        for event in match.events
    )


def span(first: int, last: int) -> str:
    """One slot, or the first and the last of several."""
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def single(value: float) -> str:
    """A number that is not in a table, with three digits."""
    return write([value], digits=3)[0]


def _punishment(match: Match, slip: Slip) -> str:
    """The punishment that followed a slip."""
    if slip.last == match.slots:
        return "seen in the last slot played" if _seen(match, slip) else "unseen"
    for event in match.events:
        if event.kind == "punishment" and event.slot == slip.last + 1:
            until = slip.last + event.lasted
            return f"punishment {'for ever' if until == inf else f'until slot {until:,.0f}'}"
    return "no punishment followed"


def _seen(match: Match, slip: Slip) -> bool:
    assert match.observed is not None
    seen = match.observed[slip.last - 1, match.agreement.consortium.index(slip.client)]
    return bool(seen < slip.agreed * (1.0 - match.tolerance))


def _why_not(match: Match, n: int, planned: DeviateOnce) -> str:
    assert match.observed is not None
    assert match.client_punishing is not None
    assert match.contributions is not None
    if np.isnan(match.observed[planned.slot - 1, n]):
        return "it was absent"
    if not match.agreement.exists:
        return "there is no agreement to slip from"
    if match.client_punishing[planned.slot - 1, n]:
        return f"it was punishing then{_out_of_line(match, n, planned.slot)}"
    if planned.amount is not None:
        return "the amount is not less than agreed"
    if match.contributions[planned.slot - 1, n] > match.agreement.profile[n]:
        return "its best response is more than agreed, which is not a slip"
    return "its best response is what was agreed"


def _out_of_line(match: Match, n: int, slot: int) -> str:
    """What it trained on during a punishment if not its best response; nobody answers that."""
    assert match.contributions is not None
    trained_on = float(match.contributions[slot - 1, n])
    best = float(match.agreement.equilibrium.profile[n])
    if trained_on == best:
        return ""
    written, best_written = write([trained_on, best])
    return f", and trained on {written} although {best_written} is its best response"


def _outcome(saved: float, lost: float) -> str:
    now, later = single(abs(saved)), single(abs(lost))
    if saved >= 0:
        after = "lost nothing" if lost == 0 else f"lost {later}" if lost > 0 else f"{later} later"
        return f"it saved {now} and {after}"
    after = "" if lost == 0 else f" and {'' if lost > 0 else 'saved '}{later} later"
    return f"it lost {now}{after}"
