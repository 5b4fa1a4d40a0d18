"""A slow reference of the repeated game, straight from the definitions, for tests to compare with.

One slot after another, one client after another, in plain Python. After the last slot the game
goes on, with nobody absent or misread, for so many slots that what is left out is less than
rounding; `play` must get the same from its closed forms. Nothing here calls `play` or asks a
strategy: what each of them does is written down again.
"""

from dataclasses import dataclass, field
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
    """A client of the repeated game, and its phase."""

    strategy: Any
    length: float
    punished_until: float = 0
    undeserved: bool = False


@dataclass
class Record:
    """What happened."""

    contributions: list[list[float]] = field(default_factory=list)
    observed: list[list[float]] = field(default_factory=list)
    punishing: list[list[bool]] = field(default_factory=list)
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


def stage_cost(consortium: fa.Consortium, n: int, own: float, total: float) -> float:
    """F_n (eq. 5)."""
    loss = inf if total == 0 else 1.0 / sqrt(total * consortium.rounds) + 1.0 / consortium.rounds
    return float(
        consortium.valuation[n] * loss
        + consortium.cost_per_sample[n] * own
        + consortium.communication_cost[n]
        + consortium.server_fee
    )


def best_response(consortium: fa.Consortium, n: int, others: float) -> float:
    """Lemma 1: where the derivative of F_n is 0, or as close to that as possible."""
    ratio = consortium.valuation[n] / consortium.cost_per_sample[n]
    wanted = (ratio / (2.0 * sqrt(consortium.rounds))) ** (2.0 / 3.0)
    missing = wanted - others if wanted - others > 1e-12 * wanted else 0.0
    return float(min(missing, consortium.samples[n]))


def length_of(strategy: Any, agreement: fa.Agreement) -> float:
    """For how many slots a client with this strategy punishes."""
    if isinstance(strategy, DeviateOnce):
        return length_of(strategy.otherwise, agreement)
    if isinstance(strategy, GrimTrigger):
        return inf
    if isinstance(strategy, Forgiving):
        return strategy.slots
    return inf if agreement.punishment_slots is None else agreement.punishment_slots


def amount(
    strategy: Any,
    agreement: fa.Agreement,
    slot: int,
    n: int,
    *,
    punishing: bool,
    last: list[float] | None,
) -> float:
    """What a client intends to contribute, from the definition of each strategy."""
    consortium = agreement.consortium
    agreed, alone = float(agreement.profile[n]), float(agreement.equilibrium.profile[n])
    match strategy:
        case DeviateOnce() if slot == strategy.slot:
            if strategy.amount is not None:
                return strategy.amount
            others = sum(float(x) for m, x in enumerate(agreement.profile) if m != n)
            return alone if punishing else best_response(consortium, n, others)
        case DeviateOnce():
            return amount(strategy.otherwise, agreement, slot, n, punishing=punishing, last=last)
        case KeepAndPunish():  # GrimTrigger and Forgiving differ in how long
            return alone if punishing else agreed
        case Selfish():
            return alone
        case FreeRide():
            return 0.0
        case Loyal():
            return agreed
        case Myopic():
            if last is None:
                return agreed
            return best_response(consortium, n, sum(x for m, x in enumerate(last) if m != n))
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
    delta = [float(value) for value in consortium.discount_factor]
    agreed = [float(value) for value in agreement.profile]
    seats = [Seat(s, length_of(s, agreement)) for s in strategies]
    record = Record(slipped=[False] * size)
    totals = {name: [0.0] * size for name in ("all", "false", "missed", "after")}
    last: list[float] | None = None
    meant = list(agreed)
    last_total = agreement.equilibrium.total
    for slot in range(1, slots + HORIZON + 1):
        played = slot <= slots
        away = [bool(played and absent[slot - 1][n]) for n in range(size)]
        punishing = [slot <= seat.punished_until for seat in seats]
        meant = [
            amount(seat.strategy, agreement, slot, n, punishing=punishing[n], last=last)
            if played or can_say(seat.strategy)
            else meant[n]
            for n, seat in enumerate(seats)
        ]
        gave = [0.0 if away[n] else meant[n] for n in range(size)]
        seen = [gave[n] * (1.0 + (errors[slot - 1][n] if played else 0.0)) for n in range(size)]
        seen = [max(x, 0.0) for x in seen]
        last = [0.0 if away[n] else seen[n] for n in range(size)]
        short = [
            not away[n] and seen[n] < agreed[n] * (1.0 - tolerance - 1e-9) for n in range(size)
        ]
        really = [not away[n] and gave[n] < agreed[n] * (1.0 - 1e-9) for n in range(size)]
        slips = [really[n] and not punishing[n] for n in range(size)]
        alarm = any(short) and not all(punishing)
        unseen = [slips[n] and not (alarm and short[n]) for n in range(size)]

        def costs(
            profile: list[float], meant: list[float], kept: float = last_total
        ) -> list[float]:
            total = sum(profile) if sum(profile) > 0 or sum(meant) == 0 else kept
            return [stage_cost(consortium, n, profile[n], total) for n in range(size)]

        paid = costs(gave, meant)
        blame = [seat.undeserved for seat, now in zip(seats, punishing, strict=True) if now]
        if_agreed = costs([0.0 if away[n] else agreed[n] for n in range(size)], agreed)
        would = [agreed[n] if unseen[n] else meant[n] for n in range(size)]
        if_seen = costs([0.0 if away[n] else would[n] for n in range(size)], would)
        for n in range(size):
            weight = delta[n] ** (slot - 1)
            if weight > 0:
                totals["all"][n] += weight * paid[n]
                if blame and all(blame):
                    totals["false"][n] += weight * (paid[n] - if_agreed[n])
                if any(unseen):
                    totals["missed"][n] += weight * (paid[n] - if_seen[n])
            if not played and delta[n] ** (slot - slots - 1) > 0:
                totals["after"][n] += delta[n] ** (slot - slots - 1) * paid[n]
        if played:
            record.contributions.append(gave)
            record.observed.append([np.nan if away[n] else seen[n] for n in range(size)])
            record.punishing.append(punishing)
            record.cost.append(paid)
            record.absences += sum(away)
            record.deviations += sum(slips)
            record.missed_deviations += sum(unseen)
            record.slipped = [a or b for a, b in zip(record.slipped, slips, strict=True)]
        if sum(gave) > 0:
            last_total = sum(gave)
        if alarm:
            undeserved = not any(a and b for a, b in zip(short, really, strict=True))
            record.false_alarms += undeserved and played
            for n, seat in enumerate(seats):
                if not punishing[n]:
                    seat.punished_until, seat.undeserved = slot + seat.length, undeserved
    record.discounted_cost, record.cost_after = totals["all"], totals["after"]
    record.false_alarm_cost, record.missed_deviation_cost = totals["false"], totals["missed"]
    return record
