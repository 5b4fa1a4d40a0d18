"""Truthful rules that our notes weigh and that fedaccord does not offer: votes on a path, and VCG.

Computed here from the cost function, so that what is said against them can be checked.
"""

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.game.social_optimum import solve_social_optimum
from fedaccord.numbers import FloatArray
from tests.agreement.settings import HOSPITALS

PAPER = {clients: fa.paper_consortium(clients) for clients in (100, 181, 200)}


def pull(consortium: fa.Consortium) -> FloatArray:
    return np.asarray(consortium.ratio / np.sqrt(consortium.rounds))


def vote(consortium: fa.Consortium, weights: FloatArray) -> float:
    """Everyone says how far to go on x*_n + min(D_n - x*_n, w_n t); the smallest vote counts.

    Where a client's cost is least on the path is found by ternary search: it is convex until the
    client gives all it has, and only falls from there on.
    """
    start = fa.solve_equilibrium(consortium).profile
    room = consortium.samples - start

    def total(t: FloatArray) -> FloatArray:
        return np.asarray(start.sum() + np.minimum(room, weights * t[:, np.newaxis]).sum(axis=1))

    voting = np.flatnonzero(weights > 0)
    own = pull(consortium)[voting], room[voting], weights[voting]
    last = room[voting] / weights[voting]
    low, high = np.zeros(voting.size), last.copy()
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        costs = [own[0] / np.sqrt(total(t)) + np.minimum(own[1], own[2] * t) for t in (left, right)]
        falls = costs[1] < costs[0]
        low, high = np.where(falls, left, low), np.where(falls, high, right)
    votes = np.where(low >= last * (1 - 1e-9), np.inf, low)
    return float(total(np.array([min(votes.min(), last.max())]))[0])


def from_client(consortium: fa.Consortium, first: int) -> float:
    """One level for all free riders from a client on, in ascending order of ratios."""
    free = fa.solve_equilibrium(consortium).profile == 0
    return vote(consortium, (free & (np.arange(consortium.size) >= first)).astype(np.float64))


@pytest.mark.parametrize(
    ("clients", "from_l", "best", "first", "by_value"),
    [
        (100, 780_213, 975_063, 3, 925_000),
        (181, 962_273, 1_760_000, 6, 1_650_000),
        (200, 984_144, 1_946_035, 6, 1_820_000),
    ],
)
def test_votes_on_a_path(
    clients: int, from_l: float, best: float, first: int, by_value: float
) -> None:
    consortium = PAPER[clients]
    assert from_client(consortium, 1) == pytest.approx(from_l, abs=0.51)
    totals = [from_client(consortium, n) for n in range(10)]
    assert max(totals) == pytest.approx(best, abs=0.51)
    assert int(np.argmax(totals)) == first - 1
    assert vote(consortium, pull(consortium)) == pytest.approx(by_value, abs=0.51)


def test_votes_of_the_hospitals() -> None:
    assert vote(HOSPITALS, pull(HOSPITALS)) == pytest.approx(96_026, abs=0.51)


def test_with_data_as_weights_the_answer_is_the_equilibrium() -> None:
    consortium = PAPER[100]
    total = fa.solve_equilibrium(consortium).total
    assert vote(consortium, consortium.samples) == pytest.approx(total, rel=1e-9)


def without(consortium: fa.Consortium, n: int) -> fa.Consortium:
    keep = np.arange(consortium.size) != n
    return fa.Consortium(
        valuation=consortium.valuation[keep],
        cost_per_sample=consortium.cost_per_sample[keep],
        samples=consortium.samples[keep],
        discount_factor=consortium.discount_factor[keep],
        communication_cost=consortium.communication_cost[keep],
        rounds=consortium.rounds,
        server_fee=consortium.server_fee,
    )


@pytest.mark.parametrize(
    ("consortium", "paid", "saved", "tolerance"),
    [(PAPER[100], 0.356, 0.286, 5e-4), (HOSPITALS, 705, 480, 0.5)],
)
def test_clarke_payments_are_more_than_the_optimum_saves(
    consortium: fa.Consortium, paid: float, saved: float, tolerance: float
) -> None:
    """What each client adds to the others' welfare would have to come from outside."""
    optimum = solve_social_optimum(consortium)
    total = sum(
        solve_social_optimum(without(consortium, n)).cost.sum() - (optimum.cost.sum() - own)
        for n, own in enumerate(optimum.cost.tolist())
    )
    gained = fa.solve_equilibrium(consortium).cost.sum() - optimum.cost.sum()
    assert total == pytest.approx(paid, abs=tolerance)
    assert gained == pytest.approx(saved, abs=tolerance)
