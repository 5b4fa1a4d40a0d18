from typing import Any

import numpy as np
import pytest

import fedaccord as fa


def test_ranks_ascend_from_one_and_ties_keep_their_order() -> None:
    assert fa.rank_clients([5.0, 9.0, 1.0, 5.0]).tolist() == [2, 4, 1, 3]


@pytest.mark.parametrize("clients", [1, 7, 100, 181, 200])
def test_algorithm_1_reproduces_the_equilibrium_of_the_papers_setting(clients: int) -> None:
    consortium = fa.paper_consortium(clients)
    ranks = fa.rank_clients(consortium.ratio)
    told = [
        fa.own_contribution(ratio, samples=10_000, rounds=50, rank=rank, clients=clients)
        for ratio, rank in zip(consortium.ratio.tolist(), ranks.tolist(), strict=True)
    ]
    np.testing.assert_allclose(told, fa.solve_equilibrium(consortium).profile, atol=1e-6)


@pytest.mark.parametrize("rank", [0, 4, -1])
def test_invalid_ranks_are_refused(rank: int) -> None:
    with pytest.raises(fa.InvalidInput, match=f"rank: must be from 1 to 3, got {rank}"):
        fa.own_contribution(5e9, samples=1, rounds=1, rank=rank, clients=3)


@pytest.mark.parametrize("own", [{"ratio": -1e9}, {"samples": 0.0}, {"rounds": 0}])
def test_invalid_numbers_are_refused(own: dict[str, Any]) -> None:
    fine: dict[str, Any] = {"ratio": 5e9, "samples": 1.0, "rounds": 1, "rank": 1, "clients": 3}
    with pytest.raises(fa.InvalidInput, match=next(iter(own))):
        fa.own_contribution(**(fine | own))


@pytest.mark.parametrize("ratios", [[1.0, 0.0], [1.0, -2.0], [1.0, float("nan")], [[1.0]]])
def test_invalid_ratios_are_refused(ratios: list[float]) -> None:
    with pytest.raises(fa.InvalidInput, match="ratios"):
        fa.rank_clients(ratios)
