"""Mechanisms in which clients say when to stop: the clock, the serial clock and fair exchange.

A level rises from 0, and every client that is still in trains on that much. Samples count by their
quality: client n has q_n D_n of them, each of which costs it E_n / q_n. In units of that, it pays
a_n A_n(Y) + y_n, with a_n = q_n rho_n / E_n and its law A_n; stop(a) is the total at which the
slope of the law is 1 / a, so that stop(a_n) is its satiation point h_n. With the paper's law
stop(a k) is stop(a) k^(2/3).

*Clock* (Moulin 1994): the level is a share phi of everyone's data W = sum of q_n D_n, and the first
client to stop, stops all. The cost a_n A_n(phi W) + phi q_n D_n has a single minimum, at

    phi_n = stop(a_n W / (q_n D_n)) / W, or 1 if that is more,

so the clock ends at the lowest phi_n, and no client gains by stopping anywhere else. To be held by
suspension it needs little patience: with the paper's law a weight of 0.415 is enough for every
client that would train on less than the clock's total alone. One that would train on more may be
better off alone.

*Serial clock*: who stops keeps its share and gets a model trained on what everyone has given so
far; the others go on. With W_in the data of those still in, another step costs q_n D_n and adds
W_in samples, so a client stops when Y >= stop(a_n W_in / (q_n D_n)), or at 1. With one law for all,
those with the smallest rho_n / (E_n D_n) stop first: one sort.

*Fair exchange* (Hakim, Papadimitriou, Yannakakis 2026): the same with levels in samples. A client
stops at its last sample, or when Y >= stop(a_n k) with k clients still in.

With a law for each client, who stops next depends on who is still in, and is found by looking at
all of them; `stopping` has the formulas for many consortia at once. Under a law that is finite
without data a client may stop before its first sample.

>>> from fedaccord.game.paper import paper_consortium
>>> consortium = paper_consortium()
>>> [round(m.outcome(consortium).total) for m in (Clock(), SerialClock(), FairExchange())]
[801738, 998017, 998017]
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from fedaccord.agreement.punishment import Suspension
from fedaccord.agreement.weight import effective_discount_factor
from fedaccord.game.alone import alone_cost
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.law import Law
from fedaccord.mechanisms import stopping
from fedaccord.mechanisms.mechanism import ROUNDING, Outcome, outcome_of
from fedaccord.numbers import FloatArray, count, write

SUSPENSION = Suspension()
_NO_MORE = "More than that share does not count, so nobody can make up for whoever stopped."
_STAGES = (
    "Each model continues the training of the one below it; it is assumed to be as good as if all "
    "its samples had been used from the start."
)
_SETTLED = 4e-15
"""Relative: a step of Newton's method below this is rounding."""
_LISTED = 4
"""The largest number of tiers that a note lists."""


@dataclass(frozen=True)
class Clock:
    """The same share of everyone's data, up to where the first client stops; held by suspension."""

    name: str = "clock"

    def outcome(self, consortium: Consortium) -> Outcome:
        """The share at which the clock stops, from everyone."""
        stops = best_shares(consortium)
        share = float(stops.min())
        honest = overstaying_fails(consortium, stops)
        first = consortium.names[int(np.argmin(stops))]
        stopped = (
            f"{first} stops the clock at {100 * share:.1f} % of everyone's data."
            if share < 1.0
            else "Nobody stops the clock: everyone trains on all its data."
        )
        return outcome_of(
            consortium,
            share * consortium.samples,
            enforced_by=str(SUSPENSION),
            punishment=SUSPENSION,
            more_counts=False,
            truthful=honest,
            truthful_reason=(
                "obviously so: to stay in pays until the client's best share, and not after it"
                if honest
                else "a client that is not patient enough gains by staying in and then slipping"
            ),
            verified="data sizes",
            notes=(f"{stopped} {_NO_MORE}",),
        )


@dataclass(frozen=True)
class SerialClock:
    """Shares rise, and who stops gets the model of that moment; the others go on."""

    name: str = "serial clock"

    def outcome(self, consortium: Consortium) -> Outcome:
        """The share at which each client stops, and its model."""
        return _in_tiers(
            consortium,
            serial_shares(consortium) * consortium.samples,
            weights=consortium.samples,
            reason="obviously so: to stay in pays exactly as long as the next step does",
            verified="data sizes",
        )


@dataclass(frozen=True)
class FairExchange:
    """A client gets from each other client as many samples as it gives, if that one gives them."""

    name: str = "fair exchange"

    def outcome(self, consortium: Consortium) -> Outcome:
        """The level of each client, and its model."""
        return _in_tiers(
            consortium,
            exchanged(consortium),
            weights=1.0 / consortium.quality,
            reason="to stay in pays exactly as long as the next sample does",
            verified="nothing",
        )


def _in_tiers(
    consortium: Consortium,
    contributions: FloatArray,
    *,
    weights: FloatArray,
    reason: str,
    verified: str,
) -> Outcome:
    """An outcome in which a lesser model in the same slot is what keeps clients to their levels."""
    outcome = outcome_of(
        consortium,
        contributions,
        enforced_by="self-interest: whoever trains on less gets a worse model",
        tier_weights=weights,
        truthful=True,
        truthful_reason=reason,
        verified=verified,
    )
    stages = () if outcome.models == 1 else (_STAGES,)
    return outcome.with_notes(_tiers_note(outcome), *stages)


def _tiers_note(outcome: Outcome) -> str:
    """How many models there are, and what they are trained on."""
    if outcome.models == 1:
        return "Everyone gets the same model."
    ascending = np.sort(outcome.access)
    if outcome.models > _LISTED:
        low, high = write(ascending[[0, -1]])
        return f"There are {outcome.models:,} models, trained on {low} to {high} samples."
    tier = np.append(0, (np.diff(ascending) > ROUNDING * ascending[1:]).cumsum())
    sizes, trained_on = np.bincount(tier), write(ascending[np.unique(tier, return_index=True)[1]])
    listed = ", ".join(
        f"on {samples} for {count(int(size), 'client')}"
        for size, samples in zip(sizes, trained_on, strict=True)
    )
    return f"There are {outcome.models} models, trained {listed}."


def best_shares(consortium: Consortium) -> FloatArray:
    """phi_n: the share of everyone's data at which each client would stop the clock."""
    return np.asarray(stopping.clock_shares(consortium.law, *_one_row(consortium))[0])


def overstaying_fails(
    consortium: Consortium, stops: FloatArray, punishment: Suspension = SUSPENSION
) -> bool:
    """Whether no client gains by staying in longer than it wants to, and then slipping once.

    If client n stays in, the clock ends at the others' lowest share. The best slip there must not
    save it more, against what it pays when it stops, than the suspension that follows costs it.
    """
    samples, quality = consortium.samples, consortium.quality
    share = stops.min()
    agreed = cost(consortium, share * samples)
    lowest, second = np.partition(np.append(stops, 1.0), 1)[:2]
    without = np.where(stops == lowest, second, lowest)
    others = without * (consortium.total_of(samples) - quality * samples)
    slip = np.clip((consortium.satiation - others) / quality, 0.0, without * samples)
    slipped = cost(consortium, slip, others + quality * slip)
    delta = effective_discount_factor(consortium.discount_factor, punishment.slots)
    gain, lost = agreed - slipped, alone_cost(consortium) - agreed
    useless = (1.0 - delta) * gain - delta * lost <= ROUNDING * agreed
    return bool((useless | (gain <= ROUNDING * agreed)).all())


def serial_shares(consortium: Consortium) -> FloatArray:
    """The share at which each client leaves the serial clock."""
    return np.asarray(stopping.serial_shares(consortium.law, *_one_row(consortium))[0])


def _one_row(consortium: Consortium) -> tuple[FloatArray, FloatArray]:
    """What `stopping` takes: everyone's pull and worth, as a single row."""
    quality = consortium.quality
    pull, worth = quality * consortium.ratio, quality * consortium.samples
    return pull[np.newaxis], worth[np.newaxis]


def exchanged(consortium: Consortium) -> FloatArray:
    """What each client gives under fair exchange, stop by stop.

    The next to stop is the client with the least data or the one with the lowest a_n among those
    still in. Both orders are sorted once, so each stop takes a constant time. In plain Python this
    is quicker for one consortium than the same for many in `stopping`.
    """
    [pull], [worth] = _one_row(consortium)
    if consortium.law.is_personal:
        [amounts] = stopping.exchanged(consortium.law, pull[None], worth[None])
        return consortium.in_samples(amounts)
    enough = _stops_of(consortium.law, pull)
    samples = worth.tolist()
    by_data, by_pull = np.argsort(worth).tolist(), np.argsort(pull).tolist()
    given: list[float | None] = [None] * consortium.size
    least = lowest = 0
    level = reached = 0.0
    for left in range(consortium.size, 0, -1):
        while given[by_data[least]] is not None:
            least += 1
        while given[by_pull[lowest]] is not None:
            lowest += 1
        client = by_data[least]
        rise = samples[client] - level
        sooner = max(enough(by_pull[lowest], left) - reached, 0.0) / left
        if sooner < rise:
            client, rise = by_pull[lowest], sooner
        level = min(level + rise, samples[client])
        reached += rise * left
        given[client] = level
    return consortium.in_samples(np.array(given, dtype=np.float64))


def _stops_of(law: Law, pull: FloatArray) -> Callable[[int, int], float]:
    """stop(a_n k) as a function of the client n and k; with one term it is known from stop(a_n)."""
    if len(law.terms) > 1:
        pulls = pull.tolist()
        terms = [tuple(map(float, term[1:])) for term in law.terms if term.value > 0]
        return lambda client, number: _stop_of_sum(terms, pulls[client] * number)
    [term] = law.terms
    power, shift = 1.0 / (1.0 + float(term.exponent)), float(term.shift)
    bases = (term.stop(pull) + shift).tolist()
    return lambda client, number: max(float(bases[client]) * number**power - shift, 0.0)


def _stop_of_sum(terms: list[tuple[float, ...]], worth: float) -> float:
    """`Law.stop` for one number: in plain Python, which is quicker for many calls one by one."""
    point = 0.0
    for value, unit, shift, exponent in terms:  # where this term alone would stop
        power = 1.0 / (exponent + 1.0)
        steepest = float((value * exponent / unit) ** power * worth**power)
        point = max(point, unit * steepest - shift)
    while True:
        steep = curved = 0.0
        for value, unit, shift, exponent in terms:
            at = point + shift
            slope = value * exponent * (unit / at) ** exponent / at
            steep, curved = steep + slope, curved + slope * (exponent + 1.0) / at
        if not (steep * worth > 1.0 and curved > 0.0):  # it is there, or beyond all numbers
            return point
        step = log(steep * worth) * steep / curved
        if step <= _SETTLED * point:
            return point
        point += step
