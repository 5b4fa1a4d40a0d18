import numpy as np
import pytest

import fedaccord as fa
from tests.consortia import with_satiation


def test_properties_of_an_agreement() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(), "uniform")
    assert agreement.consortium is agreement.equilibrium.consortium
    assert agreement.total == pytest.approx(agreement.profile.sum())
    assert agreement.ratio == pytest.approx(agreement.total / agreement.equilibrium.total)
    assert agreement.free_riders_removed == 49 - 1
    expected = fa.cost(agreement.consortium, agreement.equilibrium.profile) - agreement.cost
    np.testing.assert_allclose(agreement.saving, expected, rtol=1e-12)
    assert (agreement.saving > 0).all()


def test_the_profile_is_read_only() -> None:
    for agreement in (
        fa.solve_agreement(fa.paper_consortium()),
        fa.agreement_on(fa.paper_consortium(3), [1.0, 2.0, 3.0]),
    ):
        with pytest.raises(ValueError, match="read-only"):
            agreement.profile[0] = 1.0


def test_an_agreement_on_any_profile() -> None:
    consortium = with_satiation([5.0, 25.0, 60.0], 20.0)
    agreement = fa.agreement_on(consortium, 20.0, punishment=fa.Reversion(3))
    assert agreement.profile.tolist() == [20.0, 20.0, 20.0]
    assert (agreement.kind, agreement.punishment.slots) == ("given", 3)
    assert agreement.equilibrium.total == pytest.approx(25.0)


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        ([1.0, 2.0], "profile: must have one number for each of 3 clients"),
        ([1.0, 2.0, 20.5], r"profile\[2\]: must be from 0 to 20, got 20.5"),
        ([1.0, float("nan"), 2.0], r"profile\[1\]: must be from 0 to 20, got nan"),
    ],
)
def test_invalid_profiles_are_refused(profile: list[float], problem: str) -> None:
    with pytest.raises(fa.InvalidInput, match=problem):
        fa.agreement_on(with_satiation([5.0, 25.0, 60.0], 20.0), profile)
