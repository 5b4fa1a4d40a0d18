"""The repeated game under laws beyond the paper's, laws per client, and samples of quality."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import (
    DeviateOnce,
    FreeRide,
    KeepAndPunish,
    Myopic,
    Selfish,
    find_tolerance,
    play,
)
from fedaccord.repeated.tolerance import _watch
from tests.laws import (
    LAWS,
    a_little_different,
    cost_by_hand,
    counted_by_quality,
    nobody_trains,
    some_consortium,
)
from tests.repeated.test_against_reference import both, compare

PUNISHMENTS: list[fa.Reversion | fa.Suspension] = [
    fa.Reversion(3),
    fa.Reversion(),
    fa.Suspension(2),
    fa.Suspension(model_keeps=0.4),
]


def agreements_with(name: str, seed: int) -> list[fa.Agreement]:
    """One law for all and one for each, with every punishment; all with qualities."""
    rng = np.random.default_rng([seed, len(name)])
    result = []
    for punishment in PUNISHMENTS:
        for laws in (LAWS[name], a_little_different(LAWS[name], 5, rng)):
            consortium = some_consortium(rng, laws, quality=True)
            asked = consortium.samples * rng.uniform(0.2, 0.9, 5)
            result.append(fa.agreement_on(consortium, asked, punishment))
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_matches_against_the_reference(name: str) -> None:
    strategies = [DeviateOnce(2), Myopic(), FreeRide(), KeepAndPunish(), Selfish()]
    for k, agreement in enumerate(agreements_with(name, 1)):
        turned = strategies[k % 5 :] + strategies[: k % 5]
        compare(*both(agreement, turned, 6, noise=0.02, dropout=0.2, tolerance=0.04, seed=k))


def shares_of(match: fa.Match, samples: Any) -> Any:
    assert match.contributions is not None
    return match.contributions / samples


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_quality_is_the_game_in_samples_of_quality_one(name: str) -> None:
    given: dict[str, Any] = {"client-1": DeviateOnce(2), "client-4": Myopic()}
    for agreement in agreements_with(name, 2):
        consortium, plain = agreement.consortium, counted_by_quality(agreement.consortium)
        asked = agreement.profile * consortium.quality
        same = fa.agreement_on(plain, np.minimum(asked, plain.samples), agreement.punishment)
        chance = {"noise": 0.03, "dropout": 0.1, "tolerance": 0.05}
        one = play(agreement, given, 8, **chance)  # type: ignore[arg-type]
        other = play(same, given, 8, **chance)  # type: ignore[arg-type]
        np.testing.assert_allclose(one.totals, other.totals, rtol=1e-12)
        np.testing.assert_allclose(
            shares_of(one, consortium.samples), shares_of(other, plain.samples), rtol=1e-9
        )
        np.testing.assert_allclose(one.discounted_cost, other.discounted_cost, rtol=1e-10)
    best, again = find_tolerance(agreement, 0.05), find_tolerance(same, 0.05)
    assert best.tolerance == pytest.approx(again.tolerance)
    np.testing.assert_allclose(best.cost, again.cost, rtol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_what_it_costs_that_others_are_out(name: str) -> None:
    """Added up client by client, each with its own law."""
    for agreement in agreements_with(name, 3)[4:]:  # under suspension
        consortium = agreement.consortium
        watch = _watch(agreement, 0.05, 1.0)
        seen = np.array([0.1, 0.02, 0.0, 0.3, 0.05])
        found = watch.others_out(agreement.profile, seen)
        fewest = min(
            float(q * x) for q, x in zip(consortium.quality, _alone(consortium), strict=True)
        )
        total = agreement.total
        for n in range(5):
            now = float(cost_by_hand(consortium, n, 0.0, total))
            lost = 0.0
            for m in range(5):
                if m != n:
                    rest = total - float(consortium.quality[m] * agreement.profile[m])
                    rest = max(rest, min(fewest, total))
                    weighed = seen[m] * float(watch.weight(consortium.discount_factor[[n]]).item())
                    more = float(cost_by_hand(consortium, n, 0.0, rest)) - now
                    lost += weighed / (1.0 + weighed) * more
            assert found[n] == pytest.approx(lost, rel=1e-9)


def _alone(consortium: fa.Consortium) -> list[float]:
    """What each trains on alone, by a grid."""
    amounts = []
    for n, own in enumerate(consortium.samples.tolist()):
        grid = np.linspace(0.0, own, 20_001)
        paid = cost_by_hand(consortium, n, grid, consortium.quality[n] * grid)
        amounts.append(float(grid[int(np.argmin(paid))]))
    return amounts


def test_a_match_from_an_empty_equilibrium() -> None:
    """A slip leads to slots without any data, whose loss is finite under this law."""
    agreement = fa.solve_agreement(nobody_trains(), "individual", punishment=fa.Reversion(3))
    assert agreement.exists
    assert agreement.equilibrium.total == 0.0
    match = play(agreement, {"client-3": DeviateOnce(2)}, 8)
    assert match.totals[2:5].tolist() == [0.0, 0.0, 0.0]
    assert match.totals[5] == pytest.approx(agreement.total)
    assert match.cost is not None
    np.testing.assert_allclose(match.cost[2], 50.0)
    assert np.isfinite(match.discounted_cost).all()
    assert match.discounted_cost[2] >= match.discounted_cost_if_kept[2] * (1 - 1e-9)
    suspended = fa.solve_agreement(nobody_trains(), "individual", punishment=fa.Suspension(2))
    match = play(suspended, {"client-3": DeviateOnce(2)}, 8)
    assert match.cost is not None
    np.testing.assert_allclose(match.cost[2, 2], 50.0)  # alone it does not train, either
    selfish = play(agreement, {name: Selfish() for name in agreement.consortium.names}, 3)
    np.testing.assert_allclose(selfish.totals, 0.0)
    np.testing.assert_allclose(selfish.discounted_cost, 250.0)
