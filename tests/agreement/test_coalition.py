"""Groups that break away, for any law, against a search over groups and totals."""

import itertools

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.coalition import BETTER, Coalition, find_coalition
from fedaccord.game.law import Law
from tests.laws import (
    LAWS,
    a_little_different,
    cost_by_hand,
    counted_by_quality,
    loss_by_hand,
    nobody_trains,
    some_consortium,
    some_law,
)


def most_to_gain(agreement: fa.Agreement) -> tuple[float, float]:
    """The best group's total and gain in samples of quality 1: every group, on a grid of totals."""
    consortium = agreement.consortium
    before = consortium.total_of(agreement.profile)
    laws = [consortium.law.of(n) for n in range(consortium.size)]
    everything = consortium.total_of(consortium.samples)
    best = (0.0, -np.inf)
    for total in np.linspace(0.0, everything, 301)[1:].tolist():
        room = []
        for n, law in enumerate(laws):
            better = float(loss_by_hand(law, before) - loss_by_hand(law, total))
            asked = agreement.profile[n] + consortium.ratio[n] * better
            room.append(consortium.quality[n] * min(asked, consortium.samples[n]))
        for size in range(1, consortium.size + 1):
            for group in itertools.combinations(range(consortium.size), size):
                if min(room[n] for n in group) >= 0:
                    best = max(
                        best, (total, sum(room[n] for n in group) - total), key=lambda b: b[1]
                    )
    return best


def check(agreement: fa.Agreement, found: Coalition | None) -> None:
    """It is the group with the most to gain, and every member pays less."""
    consortium = agreement.consortium
    total, gain = most_to_gain(agreement)
    if found is None:
        assert gain <= BETTER * total
        return
    for n in np.flatnonzero(found.contributions).tolist():
        own = float(found.contributions[n])
        assert own <= consortium.samples[n]
        agreed = consortium.total_of(agreement.profile)
        before = float(cost_by_hand(consortium, n, agreement.profile[n], agreed))
        saved = before - float(cost_by_hand(consortium, n, own, found.total))
        assert saved > 0
        assert found.saving[n] == pytest.approx(saved, rel=1e-6, abs=1e-9 * abs(saved) + 1e-9)
    assert (found.saving[found.contributions == 0] == 0).all()
    if gain > 1e-6 * total:
        room = gained_in_samples(found, agreement)
        assert room >= gain * (1 - 1e-9)


def gained_in_samples(found: Coalition, agreement: fa.Agreement) -> float:
    """What all members gain, each in samples of quality 1 of its own."""
    consortium = agreement.consortium
    price = consortium.cost_per_sample / consortium.quality
    room = np.minimum(
        found.saving / price + consortium.quality * found.contributions,
        consortium.quality * consortium.samples,
    )
    return float(room[found.contributions > 0].sum()) - found.total


@pytest.mark.parametrize("quality", [False, True], ids=["alike", "quality"])
@pytest.mark.parametrize("name", LAWS)
def test_against_every_group(name: str, quality: bool) -> None:
    rng = np.random.default_rng([len(name), quality])
    for _ in range(3):
        consortium = some_consortium(rng, LAWS[name], clients=4, quality=quality)
        asked = consortium.samples * rng.uniform(0.0, 1.0, 4) * (rng.random(4) < 0.7)
        if asked.any():
            agreement = fa.agreement_on(consortium, asked)
            check(agreement, find_coalition(agreement))


@pytest.mark.slow
@pytest.mark.parametrize("quality", [False, True], ids=["alike", "quality"])
def test_against_every_group_with_a_law_for_each(quality: bool) -> None:
    rng = np.random.default_rng([7, quality])
    for _ in range(8):
        laws = [some_law(rng) for _ in range(4)]
        consortium = some_consortium(rng, laws, clients=4, quality=quality)
        asked = consortium.samples * rng.uniform(0.05, 1.0, 4)
        agreement = fa.agreement_on(consortium, asked)
        check(agreement, find_coalition(agreement))


def test_the_same_law_for_each_is_one_law_for_all() -> None:
    """Two algorithms: one sort, and edge by edge."""
    rng = np.random.default_rng(5)
    none = 0
    for law in LAWS.values():
        for _ in range(8):
            alike = some_consortium(rng, law, clients=6, quality=True)
            asked = alike.samples * rng.uniform(0.0, 1.0, 6)
            if rng.random() < 0.5:
                asked = fa.solve_social_optimum(alike).profile
            one = find_coalition(fa.agreement_on(alike, asked))
            other = find_coalition(fa.agreement_on(alike.with_law([law] * 6), asked))
            none += one is None
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                np.testing.assert_allclose(one.contributions, other.contributions, rtol=1e-5)
                assert one.saving.sum() == pytest.approx(other.saving.sum(), rel=1e-9)
    assert none > 3


def test_quality_is_the_game_in_samples_of_quality_one() -> None:
    rng = np.random.default_rng(6)
    for law in LAWS.values():
        for laws in (law, a_little_different(law, 5, rng)):
            consortium = some_consortium(rng, laws, quality=True)
            plain = counted_by_quality(consortium)
            asked = consortium.samples * rng.uniform(0.0, 1.0, 5)
            found = find_coalition(fa.agreement_on(consortium, asked))
            same = find_coalition(fa.agreement_on(plain, asked * consortium.quality))
            assert (found is None) == (same is None)
            if found is not None and same is not None:
                given = found.contributions * consortium.quality
                np.testing.assert_allclose(given, same.contributions, rtol=1e-9)
                np.testing.assert_allclose(found.saving, same.saving, rtol=1e-9)


def test_where_nobody_trains_all_together_do_better() -> None:
    consortium = nobody_trains()
    nothing = fa.agreement_on(consortium, np.zeros(10))
    found = find_coalition(nothing)
    assert found is not None
    # sum rho m(X) = E: 500 * 100 / (X + 100)^2 = 1
    assert found.total == pytest.approx(np.sqrt(50_000.0) - 100.0)
    assert len(found.members) == 10
    assert find_coalition(fa.agreement_on(consortium, found.contributions)) is None


def test_without_any_data_the_paper_loss_is_infinite_and_anything_is_better() -> None:
    consortium = fa.paper_consortium(clients=3)
    found = find_coalition(fa.agreement_on(consortium, np.zeros(3)))
    assert found is not None
    assert np.isinf(found.saving[found.contributions > 0]).all()


@pytest.mark.parametrize("name", LAWS)
def test_how_much_data_a_loss_takes(name: str) -> None:
    law = LAWS[name]
    totals = 10.0 ** np.linspace(-3, 9, 49)
    np.testing.assert_allclose(law.reach(law.loss(totals)), totals, rtol=1e-6)
    assert law.reach(law.floor) == np.inf
    assert law.reach(law.floor - 1.0) == np.inf
    assert law.reach(1e300) == pytest.approx(0.0, abs=1e-9)


def test_how_much_data_a_loss_takes_for_any_law() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        law = some_law(rng)
        totals = 10.0 ** rng.uniform(-1, 5, 20)
        above = law.loss(totals) - law.floor
        reached = law.reach(law.floor + above)
        np.testing.assert_allclose(law.loss(reached) - law.floor, above, rtol=1e-9)
    laws = [some_law(rng) for _ in range(3)]
    together = Law.personal(laws).reach([0.5, 0.6, 0.7])
    each = [float(law.reach(loss)) for law, loss in zip(laws, (0.5, 0.6, 0.7), strict=True)]
    np.testing.assert_allclose(together, each, rtol=1e-12)
