from typing import Any

import numpy as np
import pytest

import fedaccord as fa

FINE: dict[str, Any] = {
    "valuation": np.arange(1.0, 101.0),
    "cost_per_sample": 0.985e-8,
    "samples": 10_000.0,
    "rounds": [[50], [100]],
    "discount_factor": 0.8,
}


def solve(**changed: Any) -> fa.Batch:
    return fa.solve_batch(**(FINE | changed))


@pytest.mark.parametrize("kind", ["individual", "uniform"])
def test_rows_are_consortia(kind: Any) -> None:
    batch = solve(kind=kind)
    assert batch.profile.shape == (2, 100)
    for n, rounds in enumerate((50, 100)):
        one = fa.solve_agreement(fa.paper_consortium(rounds=rounds), kind)
        assert batch.total[n] == pytest.approx(one.total, rel=1e-12)
        assert batch.ratio[n] == pytest.approx(one.ratio, rel=1e-12)
        assert batch.equilibrium_free_riders[n] == one.equilibrium.free_riders
        assert np.flatnonzero(batch.critical[n]).tolist() == list(one.equilibrium.critical)
    assert (batch.level is None) == (kind == "individual")
    assert (batch.first_converted is None) == (kind == "individual")


def test_without_an_agreement_the_row_holds_the_equilibrium() -> None:
    batch = solve(kind="uniform", discount_factor=[[0.5], [0.8]], rounds=50)
    assert batch.exists.tolist() == [False, True]
    assert batch.total[0] == batch.equilibrium_total[0]
    assert (batch.profile[0] == batch.equilibrium_profile[0]).all()
    assert batch.level is not None
    assert batch.level[0] == 0.0


def test_one_consortium_is_one_row() -> None:
    assert solve(rounds=50).total.shape == (1,)


def test_from_the_first_feasible_client() -> None:
    batch = solve(kind="uniform", discount_factor=0.5, rounds=50, first_converted="feasible")
    assert batch.exists.tolist() == [True]
    assert batch.first_converted is not None
    assert batch.first_converted.tolist() == [2]


WRONG = [
    ({"valuation": [[1.0, -2.0]]}, r"valuation\[0, 1\]: must be more than 0 and finite, got -2"),
    ({"samples": np.inf}, r"samples\[0, 0\]: must be more than 0 and finite, got inf"),
    ({"discount_factor": 1.0}, r"discount_factor\[0, 0\]: must be from 0 to less than 1"),
    ({"rounds": [[0]]}, r"rounds\[0, 0\]: must be more than 0"),
    ({"rounds": [[50], [0.37]]}, r"rounds\[1, 0\]: must be a whole number, 1 or more, got 0.37"),
    ({"rounds": 1e20}, r"rounds\[0, 0\]: must be 9,007,199,254,740,992 or less"),
    ({"rounds": np.arange(1, 101)}, "rounds: must be one number per consortium, as a column"),
    ({"samples": np.ones(7)}, "broadcast to consortia x clients"),
    ({"punishment": "exile"}, "punishment: must be one of"),
    ({"kind": "unanimous"}, "kind: must be one of"),
    ({"first_converted": "me"}, "first_converted: must be one of"),
    ({"valuation": "many"}, "takes numbers"),
    ({"valuation": np.ones((2, 2, 2))}, "consortia x clients"),
    ({"valuation": np.ones((1, 0))}, "consortia x clients"),
]


@pytest.mark.parametrize(("changed", "problem"), WRONG)
def test_invalid_input_is_refused(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(fa.InvalidInput, match=problem):
        solve(**changed)
