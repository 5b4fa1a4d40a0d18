import numpy as np
import pytest

import fedaccord as fa
from tests.consortia import with_satiation


def test_the_path_starts_at_the_start_and_ends_at_the_equilibrium() -> None:
    consortium = with_satiation([5.0, 25.0, 60.0], 20.0)
    dynamics = fa.run_dynamics(consortium, [20.0, 20.0, 0.0])
    assert dynamics.path[0].tolist() == [20.0, 20.0, 0.0]
    assert (dynamics.path[-1] == dynamics.profile).all()
    assert dynamics.sweeps == len(dynamics.path) - 1
    # by hand: 1 stops, 2 keeps 20 of 25, 3 contributes 20; then 2 reduces to 5
    assert dynamics.path[1].tolist() == pytest.approx([0.0, 20.0, 20.0])
    assert dynamics.path[2].tolist() == pytest.approx([0.0, 5.0, 20.0])
    assert dynamics.total == pytest.approx(25.0, abs=1e-9)


def test_every_step_increases_the_potential() -> None:
    consortium = fa.paper_consortium(12, samples=70_000)
    path = fa.run_dynamics(consortium, seed=4).path
    potential = path @ consortium.satiation - 0.5 * path.sum(axis=-1) ** 2
    assert (np.diff(potential) >= -1e-12 * np.abs(potential[1:])).all()


def test_the_start_depends_on_the_seed() -> None:
    consortium = fa.paper_consortium(5, samples=100_000)
    first, again, other = (fa.run_dynamics(consortium, seed=n).path for n in (1, 1, 2))
    assert (first == again).all()
    assert (first[0] != other[0]).any()


def test_ties_converge_to_the_right_total() -> None:
    consortium = with_satiation([10.0, 10.0], 10.0)
    assert fa.run_dynamics(consortium, [4.0, 6.0]).profile.tolist() == pytest.approx([4.0, 6.0])
    assert fa.run_dynamics(consortium, [9.0, 9.0]).total == pytest.approx(10.0)


def test_too_few_sweeps_raise() -> None:
    """Nearly tied clients take over from each other in steps of the gap, 0.001 of 10 here."""
    consortium = with_satiation([10.0, 10.001], 10.0)
    with pytest.raises(fa.NotConverged, match=r"in 50 sweeps: .* by 0\.001$"):
        fa.run_dynamics(consortium, [10.0, 0.0], most_sweeps=50)


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        ([1.0, 2.0], "one number for each of 3"),
        ([1.0, 2.0, 30.0], r"start\[2\]: must be from 0 to 20, got 30"),
        ([-1.0, 2.0, 3.0], r"start\[0\]: must be from 0 to 20, got -1"),
    ],
)
def test_an_invalid_start_is_refused(start: list[float], problem: str) -> None:
    with pytest.raises(fa.InvalidInput, match=problem):
        fa.run_dynamics(with_satiation([5.0, 25.0, 60.0], 20.0), start)


def test_zero_sweeps_are_refused() -> None:
    with pytest.raises(fa.InvalidInput, match="most_sweeps"):
        fa.run_dynamics(fa.paper_consortium(3), most_sweeps=0)


def test_the_path_counts_samples_by_quality() -> None:
    consortium = fa.Consortium(
        valuation=[100.0, 100.0],
        cost_per_sample=1.0,
        samples=[10.0, 20.0],
        discount_factor=0.5,
        rounds=1,
        quality=[0.5, 3.0],
    )
    table = fa.run_dynamics(consortium, [4.0, 10.0]).to_frame("path")
    assert table["total"].iloc[0] == 0.5 * 4 + 3 * 10
    assert table["total"].iloc[-1] == pytest.approx(fa.solve_equilibrium(consortium).total)
