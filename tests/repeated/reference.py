"""A slow reference of the repeated game, straight from the definitions, for tests to compare with.

One slot after another, one client after another, in plain Python. After the last slot the game
goes on, with nobody absent or misread, for so many slots that what is left out is less than
rounding; `play` must get the same from its closed forms. Nothing here calls `play` or asks a
strategy: what each of them does is written down again.
"""

from dataclasses import dataclass, field
from functools import cache
from math import inf, sqrt
from typing import Any

import numpy as np

import fedaccord as fa
from fedaccord.repeated import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    GrimTrigger,
    KeepAndPunish,
    Loyal,
    Myopic,
    Selfish,
)

HORIZON = 500
"""Slots played past the last one: with discount factors up to 0.9 what follows weighs 1e-22."""


def shading(view: Any) -> Any:
    """A custom strategy: a little less than agreed, in every slot."""
    return 0.97 * view.agreed


@dataclass
class Seat:
    """A client of the repeated game, and its counter: until when it punishes, or is out."""

    strategy: Any
    length: float
    until: float = 0
    undeserved: bool = False


@dataclass
class Record:
    """What happened."""

    contributions: list[list[float]] = field(default_factory=list)
    observed: list[list[float]] = field(default_factory=list)
    punishing: list[list[bool]] = field(default_factory=list)
    suspended: list[list[bool]] = field(default_factory=list)
    cost: list[list[float]] = field(default_factory=list)
    discounted_cost: list[float] = field(default_factory=list)
    cost_after: list[float] = field(default_factory=list)
    false_alarm_cost: list[float] = field(default_factory=list)
    missed_deviation_cost: list[float] = field(default_factory=list)
    false_alarms: int = 0
    deviations: int = 0
    missed_deviations: int = 0
    absences: int = 0
    slipped: list[bool] = field(default_factory=list)


@cache
def terms_of(consortium: fa.Consortium, n: int) -> tuple[float, list[tuple[float, ...]]]:
    """The floor and the terms (value, unit, shift, exponent) of the law of client n."""
    law = consortium.law.of(n)
    columns = (law.value, law.unit, law.shift, law.exponent)
    return float(law.floor), list(zip(*(column.tolist() for column in columns), strict=True))


def loss_of(consortium: fa.Consortium, n: int, total: float) -> float:
    """A(X) for client n."""
    floor, terms = terms_of(consortium, n)
    if total == 0 and any(shift == 0 for _, _, shift, _ in terms):
        return inf
    return floor + float(sum(v * (u / (total + s)) ** p for v, u, s, p in terms))


def stage_cost(consortium: fa.Consortium, n: int, own: float, total: float) -> float:
    """F_n (eq. 5)."""
    loss = loss_of(consortium, n, total)
    return float(
        consortium.valuation[n] * loss
        + consortium.cost_per_sample[n] * own
        + consortium.communication_cost[n]
        + consortium.server_fee
    )


def best_response(consortium: fa.Consortium, n: int, others: float) -> float:
    """Lemma 1: where the derivative of F_n is 0, or as close to that as possible."""
    wanted = float(consortium.satiation[n])
    if consortium.law.kind == "paper":
        ratio = consortium.quality[n] * consortium.valuation[n] / consortium.cost_per_sample[n]
        wanted = (ratio / (2.0 * sqrt(consortium.rounds))) ** (2.0 / 3.0)
    missing = wanted - others if wanted - others > 1e-12 * wanted else 0.0
    return float(min(missing / consortium.quality[n], consortium.samples[n]))


def counted(consortium: fa.Consortium, amounts: list[float]) -> float:
    """X: the sum of all amounts, by their quality."""
    return sum(float(q) * x for q, x in zip(consortium.quality, amounts, strict=True))


def suspends(agreement: fa.Agreement) -> bool:
    """Whether a slip leads to a suspension; without an agreement there is nothing to slip from."""
    return isinstance(agreement.punishment, fa.Suspension) and agreement.exists


def cost_alone(agreement: fa.Agreement, n: int) -> float:
    """What a slot of suspension costs client n: on its own, or with an old model."""
    consortium, terms = agreement.consortium, agreement.punishment
    assert isinstance(terms, fa.Suspension)
    own = best_response(consortium, n, 0.0)
    paid = stage_cost(consortium, n, own, float(consortium.quality[n]) * own)
    if terms.model_keeps > 0:
        old = terms.model_keeps * counted(consortium, agreement.profile.tolist())
        paid = min(paid, stage_cost(consortium, n, 0.0, old))
    if terms.fees_saved:
        paid -= float(consortium.communication_cost[n]) + consortium.server_fee
    return paid


def costs(
    agreement: fa.Agreement, away: list[bool], kept: float, meant: list[float], out: list[bool]
) -> list[float]:
    """What a slot costs each client; `kept` is the total behind the model of the slot before."""
    gone = [out[n] or away[n] for n in range(len(meant))]
    profile = [0.0 if gone[n] else meant[n] for n in range(len(meant))]
    total = counted(agreement.consortium, profile)
    if suspends(agreement):
        no_model = [gone[n] or total == 0 for n in range(len(meant))]
        return [
            cost_alone(agreement, n)
            if no_model[n]
            else stage_cost(agreement.consortium, n, profile[n], total)
            for n in range(len(meant))
        ]
    total = total if total > 0 or sum(meant) == 0 else kept
    return [stage_cost(agreement.consortium, n, x, total) for n, x in enumerate(profile)]


def length_of(strategy: Any, agreement: fa.Agreement) -> float:
    """For how many slots a client with this strategy punishes."""
    if isinstance(strategy, DeviateOnce):
        return length_of(strategy.otherwise, agreement)
    if isinstance(strategy, GrimTrigger):
        return inf
    if isinstance(strategy, Forgiving):
        return strategy.slots
    return inf if agreement.punishment.slots is None else agreement.punishment.slots


def amount(
    strategy: Any,
    agreement: fa.Agreement,
    slot: int,
    n: int,
    *,
    punishing: bool,
    out: list[bool],
    last: list[float] | None,
) -> float:
    """What a client intends to contribute, from the definition of each strategy."""
    consortium = agreement.consortium
    others = [m for m in range(consortium.size) if m != n and not out[m]]
    quality = consortium.quality
    agreed, equilibrium = float(agreement.profile[n]), float(agreement.equilibrium.profile[n])
    match strategy:
        case DeviateOnce() if slot == strategy.slot:
            if strategy.amount is not None:
                return strategy.amount
            agreed_by_others = sum(float(quality[m] * agreement.profile[m]) for m in others)
            return equilibrium if punishing else best_response(consortium, n, agreed_by_others)
        case DeviateOnce():
            usual = strategy.otherwise
            return amount(usual, agreement, slot, n, punishing=punishing, out=out, last=last)
        case KeepAndPunish():  # GrimTrigger and Forgiving differ in how long
            return equilibrium if punishing else agreed
        case Selfish():
            return equilibrium
        case FreeRide():
            return 0.0
        case Loyal():
            return agreed
        case Myopic():
            if last is None:
                return agreed
            return best_response(consortium, n, sum(float(quality[m]) * last[m] for m in others))
        case _:
            return 0.97 * agreed


def can_say(strategy: Any) -> bool:
    """Whether its next contribution follows from the phase alone."""
    if isinstance(strategy, DeviateOnce):
        return can_say(strategy.otherwise)
    return isinstance(strategy, KeepAndPunish | Selfish | FreeRide | Loyal)


def play_slowly(
    agreement: fa.Agreement,
    strategies: list[Any],
    slots: int,
    *,
    errors: Any,
    absent: Any,
    tolerance: float,
) -> Record:
    """The match, and HORIZON more slots."""
    consortium, size = agreement.consortium, agreement.consortium.size
    suspension = suspends(agreement)
    delta = [float(value) for value in consortium.discount_factor]
    agreed = [float(value) for value in agreement.profile]
    seats = [Seat(s, length_of(s, agreement)) for s in strategies]
    record = Record(slipped=[False] * size)
    totals = {name: [0.0] * size for name in ("all", "false", "missed", "after")}
    last: list[float] | None = None
    answers = list(agreed)
    last_total = agreement.equilibrium.total
    for slot in range(1, slots + HORIZON + 1):
        played = slot <= slots
        away = [bool(played and absent[slot - 1][n]) for n in range(size)]
        running = [slot <= seat.until for seat in seats]
        punishing, out = ([False] * size, running) if suspension else (running, [False] * size)
        answers = [
            amount(seat.strategy, agreement, slot, n, punishing=punishing[n], out=out, last=last)
            if played or can_say(seat.strategy)
            else answers[n]
            for n, seat in enumerate(seats)
        ]
        meant = [0.0 if out[n] else answers[n] for n in range(size)]
        gone = [away[n] or out[n] for n in range(size)]
        gave = [0.0 if gone[n] else meant[n] for n in range(size)]
        seen = [gave[n] * (1.0 + (errors[slot - 1][n] if played else 0.0)) for n in range(size)]
        seen = [max(x, 0.0) for x in seen]
        last = [0.0 if gone[n] else seen[n] for n in range(size)]
        short = [
            not gone[n] and seen[n] < agreed[n] * (1.0 - tolerance - 1e-9) for n in range(size)
        ]
        really = [not gone[n] and gave[n] < agreed[n] * (1.0 - 1e-9) for n in range(size)]
        slips = [really[n] and not punishing[n] for n in range(size)]
        alarm = any(short) and not all(punishing)
        unseen = [slips[n] and not (alarm and short[n]) for n in range(size)]

        state = (agreement, away, last_total)
        paid = costs(*state, meant, out)
        if suspension:
            spared = [out[n] and seats[n].undeserved for n in range(size)]
        else:
            blame = [seat.undeserved for seat, now in zip(seats, punishing, strict=True) if now]
            spared = [bool(blame) and all(blame)] * size
        if_agreed = costs(
            *state,
            [agreed[n] if spared[n] else meant[n] for n in range(size)],
            [out[n] and not spared[n] for n in range(size)],
        )
        would = [agreed[n] if unseen[n] else meant[n] for n in range(size)]
        if_seen = costs(*state, would, out)
        for n in range(size):
            weight = delta[n] ** (slot - 1)
            if weight > 0:
                totals["all"][n] += weight * paid[n]
                if any(spared):
                    totals["false"][n] += weight * (paid[n] - if_agreed[n])
                if any(unseen):
                    totals["missed"][n] += weight * (paid[n] - if_seen[n])
            if not played and delta[n] ** (slot - slots - 1) > 0:
                totals["after"][n] += delta[n] ** (slot - slots - 1) * paid[n]
        if played:
            record.contributions.append(gave)
            record.observed.append([np.nan if gone[n] else seen[n] for n in range(size)])
            record.punishing.append(punishing)
            record.suspended.append(out)
            record.cost.append(paid)
            record.absences += sum(away[n] and not out[n] for n in range(size))
            record.deviations += sum(slips)
            record.missed_deviations += sum(unseen)
            record.slipped = [a or b for a, b in zip(record.slipped, slips, strict=True)]
        if sum(gave) > 0:
            last_total = counted(consortium, gave)
        if not alarm:
            continue
        nobody_slipped = not any(a and b for a, b in zip(short, really, strict=True))
        falsely = [
            short[n] and (not really[n] if suspension else nobody_slipped) for n in range(size)
        ]
        if played:
            record.false_alarms += sum(falsely) if suspension else any(falsely)
        for n, seat in enumerate(seats):
            if short[n] if suspension else not punishing[n]:
                seat.until = slot + seat.length
                seat.undeserved = falsely[n] if suspension else nobody_slipped
    record.discounted_cost, record.cost_after = totals["all"], totals["after"]
    record.false_alarm_cost, record.missed_deviation_cost = totals["false"], totals["missed"]
    return record
