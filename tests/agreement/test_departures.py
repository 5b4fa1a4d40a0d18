"""What if this one leaves? Against solving and certifying each consortium by itself."""

import numpy as np
import pytest
from hypothesis import given, settings

import fedaccord as fa
from fedaccord.agreement.punishment import PunishmentName
from fedaccord.game.alone import alone_cost
from fedaccord.game.changing import some_members
from tests.changing import HOSPITALS
from tests.consortia import FEW, consortia


@pytest.mark.parametrize("punishment", ["reversion", "suspension"])
def test_each_departure_is_the_consortium_of_the_others(punishment: PunishmentName) -> None:
    found = fa.departures(HOSPITALS, punishment=punishment, margin=0.01)
    agreement = fa.solve_agreement(HOSPITALS, punishment=punishment, margin=0.01)
    np.testing.assert_allclose(found.agreement.profile, agreement.profile)
    for n in range(HOSPITALS.size):
        stay = np.arange(HOSPITALS.size) != n
        others = some_members(HOSPITALS, stay)
        kept = fa.agreement_on(others, agreement.profile[stay], punishment)
        certificate = fa.certify(kept)
        assert found.holds_kept[n] == (certificate.keeps | certificate.gives_more).all()
        assert found.total_kept[n] == pytest.approx(kept.total)
        np.testing.assert_allclose(found.saving_kept[n, stay], alone_cost(others) - kept.cost)
        new = fa.solve_agreement(others, punishment=punishment, margin=0.01)
        assert found.total_new[n] == pytest.approx(new.total)
        np.testing.assert_allclose(found.saving_new[n, stay], alone_cost(others) - new.cost)
        assert np.isnan(found.saving_new[n, n])


@pytest.mark.slow
@settings(max_examples=6)
@given(consortium=consortia(FEW, extreme=False))
def test_one_batch_is_many_solutions(consortium: fa.Consortium) -> None:
    found = fa.departures(consortium)
    for n in range(consortium.size):
        one = fa.solve_agreement(some_members(consortium, np.arange(consortium.size) != n))
        assert found.exists[n] == one.exists
        assert found.total_new[n] == pytest.approx(one.total, rel=1e-9)


def test_qualities_and_ranges_are_kept() -> None:
    quality = [1.0, 0.5, 1.0, 2.0, 1.0, 1.0]
    weighed = HOSPITALS._with(quality=quality)
    stay = np.arange(6) != 3
    found = fa.departures(weighed, punishment="suspension")
    new = fa.solve_agreement(some_members(weighed, stay), punishment="suspension")
    assert found.total_new[3] == pytest.approx(new.total)
    robust = fa.departures(HOSPITALS.within(0.1), punishment="suspension")
    assert robust.total_new.shape == (6,)


def test_the_record() -> None:
    found = fa.departures(HOSPITALS)
    assert (found.most_missed, found.least_missed) == ("University Hospital", "Lakeside Clinic")
    assert found.indispensable == []
    record = found.to_dict()
    first = record["departures"][0]
    assert first["slips"] == ["Lakeside Clinic"]
    assert [row["name"] for row in first["clients"]] == list(HOSPITALS.names[1:])
    lost = sum(row["saving"] - row["saving_new"] for row in first["clients"])
    assert first["cost_to_others"] == pytest.approx(lost)


def test_somebody_may_be_indispensable() -> None:
    """Without the second client the first is alone."""
    two = fa.departures(fa.paper_consortium(clients=2, samples=1_000_000), punishment="suspension")
    assert two.indispensable == ["client-1", "client-2"]


def test_the_only_client_cannot_leave() -> None:
    with pytest.raises(fa.InvalidInput, match="nobody is left"):
        fa.departures(fa.paper_consortium(clients=1))
