"""The repeated game in one call against a loop that asks each client in every slot."""

import random
from collections.abc import Callable, Iterator
from math import inf, sqrt

import numpy as np

import fedaccord as fa
from benchmarks.consortia import random_consortium
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster
from fedaccord.repeated import DeviateOnce, Match, play

CLIENTS, SLOTS = 1_000, 10_000
LOOPED = 100
"""How many slots the loop plays; the time for all is extrapolated."""
NOISE, TOLERANCE = 0.01, 0.07
SLIP = 40
"""The slot in which the first client slips."""


def run() -> Iterator[Row]:
    consortium = random_consortium(4, CLIENTS)
    agreement = fa.solve_agreement(consortium, margin=0.05, punishment=fa.Reversion(10))
    yield _compare(agreement, 0.0, "", target=50.0)
    yield _compare(agreement, NOISE, f", misread by {NOISE:.0%}", target=None)


def _compare(agreement: fa.Agreement, noise: float, how: str, target: float | None) -> Row:
    def in_one_call(slots: int) -> Match:
        slip = {agreement.consortium.names[0]: DeviateOnce(SLIP, amount=0.0)}
        return play(agreement, slip, slots, noise=noise, tolerance=TOLERANCE, history=False)

    ours, theirs = race(
        Contestant(lambda _: in_one_call(SLOTS)),
        Contestant(lambda _: ask_each_client(agreement, LOOPED, noise)),
        repeats=3,
    )
    return faster(
        "play",
        f"{CLIENTS:,} clients for {SLOTS:,} slots{how}",
        "a loop that asks each client in every slot",
        ours,
        theirs.extrapolated(LOOPED / SLOTS),
        target=target,
        note=f"the loop played {LOOPED} slots, extrapolated; discounted costs of those differ by "
        f"{_apart(in_one_call(LOOPED), agreement, noise):.0e} at most",
    )


def _apart(match: Match, agreement: fa.Agreement, noise: float) -> float:
    """The relative difference of the two on the slots that both played."""
    delta = agreement.consortium.discount_factor
    ours = match.discounted_cost - delta**LOOPED * match.cost_after
    return float(np.abs(ours / ask_each_client(agreement, LOOPED, noise) - 1.0).max())


Ask = Callable[[int, bool], float]
"""What a client contributes, given the slot and whether it is punishing."""


def ask_each_client(agreement: fa.Agreement, slots: int, noise: float) -> list[float]:
    """The match in plain Python: the discounted cost of each client in the slots played."""
    consortium = agreement.consortium
    agreed = agreement.profile.tolist()
    alone = agreement.equilibrium.profile.tolist()
    clients = [keep_and_punish(*amounts) for amounts in zip(agreed, alone, strict=True)]
    clients[0] = deviate_once(clients[0])
    least = [amount * (1.0 - TOLERANCE) for amount in agreed]
    traits = list(
        zip(
            consortium.valuation.tolist(),
            consortium.cost_per_sample.tolist(),
            consortium.communication_cost.tolist(),
            consortium.discount_factor.tolist(),
            strict=True,
        )
    )
    punishment = inf if agreement.punishment.slots is None else agreement.punishment.slots
    rounds, fee, gauss = consortium.rounds, consortium.server_fee, random.Random(0).gauss
    discounted, weights = [0.0] * len(clients), [1.0] * len(clients)
    punished_until: float = 0
    for slot in range(1, slots + 1):
        punishing = slot <= punished_until
        profile = [ask(slot, punishing) for ask in clients]
        total = sum(profile)
        loss = 1.0 / sqrt(total * rounds) + 1.0 / rounds
        for n, (valuation, cost_per_sample, communication, delta) in enumerate(traits):
            cost = valuation * loss + cost_per_sample * profile[n] + communication + fee
            discounted[n] += weights[n] * cost
            weights[n] *= delta
        seen = [x * (1.0 + gauss(0.0, noise)) for x in profile] if noise else profile
        slipped = any(x < y for x, y in zip(seen, least, strict=True))
        if slipped and not punishing:
            punished_until = slot + punishment
    return discounted


def keep_and_punish(agreed: float, alone: float) -> Ask:
    def ask(slot: int, punishing: bool) -> float:  # noqa: ARG001  other strategies use the slot
        return alone if punishing else agreed

    return ask


def deviate_once(otherwise: Ask) -> Ask:
    def ask(slot: int, punishing: bool) -> float:
        return 0.0 if slot == SLIP else otherwise(slot, punishing)

    return ask
