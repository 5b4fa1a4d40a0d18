"""Every mechanism under laws beyond the paper's: against brute force, and against each other."""

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.game.law import Law
from fedaccord.game.social_optimum import solve_social_optimum
from fedaccord.mechanisms.clock import (
    Clock,
    FairExchange,
    SerialClock,
    _stops_of,
    best_shares,
    exchanged,
    overstaying_fails,
    serial_shares,
)
from fedaccord.mechanisms.contract.contract import Contract
from fedaccord.mechanisms.simple import MECHANISMS, Agreed
from fedaccord.mechanisms.stopping import levels
from fedaccord.mechanisms.tiers import best_level
from fedaccord.mechanisms.transfers import Transfers, common_patience
from fedaccord.mechanisms.verdict import judge
from fedaccord.numbers import FloatArray
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

EVERY_LAW = pytest.mark.parametrize("name", LAWS)


def consortia_with(name: str, seed: int, count: int = 4) -> list[fa.Consortium]:
    """Some with one law for all, some with one for each; half of them with qualities."""
    rng = np.random.default_rng([seed, len(name)])
    result = []
    for k in range(count):
        law = LAWS[name] if k % 4 < 2 else a_little_different(LAWS[name], 5, rng)
        result.append(some_consortium(rng, law, quality=k % 2 == 1))
    return result


def laws_of(consortium: fa.Consortium) -> list[Law]:
    return [consortium.law.of(n) for n in range(consortium.size)]


@EVERY_LAW
def test_each_client_stops_the_clock_where_it_pays_least(name: str) -> None:
    for consortium in consortia_with(name, 1):
        stops = best_shares(consortium)
        everything = consortium.total_of(consortium.samples)
        shares = np.linspace(0.0, 1.0, 4001)[1:]
        for n, own in enumerate(consortium.samples.tolist()):
            costs = cost_by_hand(consortium, n, shares * own, shares * everything)
            assert abs(stops[n] - shares[int(np.argmin(costs))]) <= 1 / 4000 + 1e-12
            stopped = cost_by_hand(consortium, n, stops[n] * own, stops[n] * everything)
            assert stopped <= costs.min() * (1 + 1e-12)


def rising_by_hand(
    consortium: fa.Consortium, weights: FloatArray, highest: FloatArray, steps: int = 40_000
) -> FloatArray:
    """The level at which each client stops, if levels rise in many small steps."""
    laws = laws_of(consortium)
    level, reached = 0.0, 0.0
    levels: dict[int, float] = {}
    step = float(highest.max()) / steps
    price = consortium.cost_per_sample / consortium.quality
    while len(levels) < consortium.size:
        active = [n for n in range(consortium.size) if n not in levels]
        adds = float(weights[active].sum())
        out = [
            n
            for n in active
            if level >= highest[n] - 1e-12
            or price[n] * weights[n]
            >= consortium.valuation[n] * float(laws[n].slope(max(reached, 1e-300))) * adds
        ]
        if out:
            levels[out[0]] = min(level, float(highest[out[0]]))
        else:
            level, reached = level + step, reached + step * adds
    return np.array([levels[n] for n in range(consortium.size)])


@pytest.mark.slow
@EVERY_LAW
def test_serial_clock_and_fair_exchange_stop_by_stop(name: str) -> None:
    for consortium in consortia_with(name, 2):
        worth, ones = consortium.quality * consortium.samples, np.ones(consortium.size)
        slow = rising_by_hand(consortium, worth, ones, 2000)
        np.testing.assert_allclose(serial_shares(consortium), slow, atol=1e-2)
        slow = rising_by_hand(consortium, ones, worth, 2000)
        given = exchanged(consortium) * consortium.quality
        np.testing.assert_allclose(given, slow, atol=1e-2 * worth.max())


@EVERY_LAW
def test_one_law_for_all_and_the_same_for_each_give_the_same_levels(name: str) -> None:
    """Two algorithms: by sorting, and by looking at all clients after each stop."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        consortium = some_consortium(rng, LAWS[name], clients=9, quality=True)
        quality, ones = consortium.quality, np.ones(9)
        worth, pull = quality * consortium.samples, quality * consortium.ratio
        [slow] = levels(consortium.law, pull[None], worth[None], ones[None])
        np.testing.assert_allclose(serial_shares(consortium), slow, rtol=1e-9)
        [slow] = levels(consortium.law, pull[None], ones[None], worth[None])
        given = exchanged(consortium) * consortium.quality
        np.testing.assert_allclose(given, slow, rtol=1e-9)


@pytest.mark.slow
def test_tiers_are_an_equilibrium_of_one_slot_under_any_law() -> None:
    rng = np.random.default_rng(4)
    for _ in range(12):
        laws = [some_law(rng) for _ in range(4)]
        for law in (laws, laws[0]):
            consortium = some_consortium(rng, law, clients=4, quality=True)
            for mechanism in (SerialClock(), FairExchange()):
                outcome = mechanism.outcome(consortium)
                assert judge(outcome).in_one_slot
                assert outcome.worse_than_alone == 0


@EVERY_LAW
def test_the_best_level_against_a_grid(name: str) -> None:
    rng = np.random.default_rng(5)
    for consortium in consortia_with(name, 5):
        given = consortium.samples * rng.uniform(0.0, 1.0, consortium.size)
        weights = rng.uniform(0.5, 2.0, consortium.size)
        best, gain = best_level(consortium, given, weights)
        for n in range(consortium.size):

            def paid(
                amount: FloatArray,
                n: int = n,
                c: fa.Consortium = consortium,
                given: FloatArray = given,
                weights: FloatArray = weights,
            ) -> FloatArray:
                others = np.where(np.arange(c.size) == n, np.inf, given)
                cut = np.minimum(others, weights * amount[:, np.newaxis] / weights[n])
                return cost_by_hand(c, n, amount, (c.quality * cut).sum(axis=1))

            now = paid(given[[n]]).item()
            amounts = np.linspace(0.0, consortium.samples[n], 301)[1:]
            by_grid = max(now - float(paid(amounts).min()), 0.0)
            scale = consortium.cost_per_sample[n] * consortium.samples[n]
            assert gain[n] >= by_grid - 1e-9 * scale
            assert now - paid(best[[n]]).item() == pytest.approx(gain[n], abs=1e-7 * scale)


@EVERY_LAW
def test_the_slip_that_transfers_must_deter_against_a_grid(name: str) -> None:
    for consortium in consortia_with(name, 6):
        optimum, equilibrium = solve_social_optimum(consortium), fa.solve_equilibrium(consortium)
        least = np.empty(consortium.size)
        for n in range(consortium.size):
            others = optimum.total - consortium.quality[n] * optimum.profile[n]
            slips = np.linspace(0.0, optimum.profile[n], 1001)
            totals = others + consortium.quality[n] * slips
            least[n] = cost_by_hand(consortium, n, slips, totals).min()
        stake = float((equilibrium.cost - least).sum())
        by_grid = float((optimum.cost - least).sum()) / stake if stake > 0 else 0.0
        assert common_patience(consortium) == pytest.approx(by_grid, abs=2e-3)
        payments = Transfers().outcome(consortium).payments
        assert payments.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(payments).max() + 1e-12)


@EVERY_LAW
def test_overstaying_against_a_grid(name: str) -> None:
    for consortium in consortia_with(name, 7):
        stops = best_shares(consortium)
        everything, share = consortium.total_of(consortium.samples), float(stops.min())
        gains = []
        for n in range(consortium.size):
            own, q = consortium.samples[n], consortium.quality[n]
            ends = min(*np.delete(stops, n).tolist(), 1.0)
            others = ends * (everything - q * own)
            slips, apart = np.linspace(0.0, ends * own, 2001), np.linspace(0.0, own, 2001)
            slipped = cost_by_hand(consortium, n, slips, others + q * slips).min()
            alone = cost_by_hand(consortium, n, apart, q * apart).min()
            agreed = float(cost_by_hand(consortium, n, share * own, share * everything))
            gain = agreed - slipped
            lost = consortium.discount_factor[n] * (alone - agreed)  # for one slot
            gains.append(min(gain - lost, gain) / agreed)
        if max(gains) > 1e-3:
            assert not overstaying_fails(consortium, stops)
        if max(gains) < -1e-3:
            assert overstaying_fails(consortium, stops)


SOLVED_BY_QUALITY = [name for name in MECHANISMS if name != "detection"]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", SOLVED_BY_QUALITY)
def test_quality_is_the_game_in_samples_of_quality_one(mechanism: str) -> None:
    rng = np.random.default_rng(8)
    for name, law in LAWS.items():
        for laws in (law, a_little_different(law, 5, rng)):
            consortium = some_consortium(rng, laws, quality=True)
            outcome = MECHANISMS[mechanism].outcome(consortium)
            same = MECHANISMS[mechanism].outcome(counted_by_quality(consortium))
            scale = consortium.total_of(consortium.samples)
            given = outcome.contributions * consortium.quality
            np.testing.assert_allclose(given, same.contributions, atol=1e-8 * scale, err_msg=name)
            np.testing.assert_allclose(outcome.access, same.access, rtol=1e-8)
            np.testing.assert_allclose(outcome.cost, same.cost, rtol=1e-8)
            np.testing.assert_allclose(outcome.payments, same.payments, rtol=1e-6, atol=1e-6)
            if not isinstance(MECHANISMS[mechanism], Agreed):
                assert outcome.roles == same.roles
            assert outcome.models == same.models
            assert judge(outcome).keeps.tolist() == judge(same).keeps.tolist()


@pytest.mark.parametrize("information", ["complete", "weak", "strong"])
def test_a_server_buys_by_quality(information: str) -> None:
    rng = np.random.default_rng(9)
    law = LAWS["measured"]
    consortium = some_consortium(rng, law, quality=True)
    contract = Contract(information=information, menu="graded", delay_price=0.0)  # type: ignore[arg-type]
    outcome, same = (contract.outcome(c) for c in (consortium, counted_by_quality(consortium)))
    given = outcome.contributions * consortium.quality
    np.testing.assert_allclose(given, same.contributions, rtol=1e-9)
    np.testing.assert_allclose(outcome.payments, same.payments, rtol=1e-9)


def test_with_a_law_for_each_client_the_server_has_the_mean_of_them() -> None:
    rng = np.random.default_rng(10)
    laws = a_little_different(LAWS["measured"], 5, rng)
    model = Contract().design(some_consortium(rng, laws)).model
    for total in (0.0, 50.0, 2000.0):
        mean = np.mean([loss_by_hand(law, total) for law in laws])
        assert float(model.law.loss(total)) == pytest.approx(mean)


@pytest.mark.slow
def test_every_mechanism_where_nobody_trains() -> None:
    """A first sample is worth half its price to one client: at the equilibrium nobody trains."""
    consortium = nobody_trains()
    comparison = fa.compare(consortium)
    assert comparison.equilibrium.total == 0.0
    assert comparison["equilibrium"].self_enforcing
    assert comparison["equilibrium"].total_cost == pytest.approx(500.0)
    for name in ("uniform", "individual"):
        assert comparison[name].outcome.total == pytest.approx(302.685, abs=5e-4)
        assert comparison[name].self_enforcing
    best = np.sqrt(50_000.0) - 100.0  # 500 * 100 / (X + 100)^2 = 1
    assert comparison["social optimum"].outcome.total == pytest.approx(best)
    assert comparison["transfers"].outcome.total == pytest.approx(best)
    for name in ("clock", "serial clock", "fair exchange"):  # 50 * 100 / (X + 100)^2 = 1 / 10
        assert comparison[name].outcome.total == pytest.approx(best)
        assert comparison[name].self_enforcing
    assert comparison.price_of_anarchy == pytest.approx(500.0 / (50_000 / (best + 100) + best))
    assert comparison["detection"].outcome.free_riders == 10


def test_where_one_client_wants_no_data_at_all_the_clock_does_not_start() -> None:
    law = Law.power(100.0, 1.0, 100.0)
    consortium = fa.Consortium(
        valuation=[0.1, 50.0, 50.0],
        cost_per_sample=1.0,
        samples=[100.0, 100.0, 100.0],
        rounds=50,
        discount_factor=0.8,
        law=law,
    )
    outcome = Clock().outcome(consortium)
    assert outcome.total == 0.0
    assert outcome.notes[0].startswith("client-1 stops the clock at 0.0 %")
    serial = SerialClock().outcome(consortium)
    assert serial.contributions[0] == 0.0
    assert serial.access[0] == 0.0
    assert (serial.contributions[1:] > 0).all() or serial.total == 0.0


def test_one_stop_in_plain_python_is_that_of_the_law() -> None:
    """Terms without weight and extreme ratios included."""
    rng = np.random.default_rng(11)
    laws = [some_law(rng) for _ in range(100)]
    laws.append(Law.of_weights([3.0, 0.0, 5.0], [40.0, 0.0, 3.0], [0.5, 1.0, 2.0]))
    ratios = np.append(10.0 ** rng.uniform(-6, 12, 40), [1e-300, 1e200, 1e307])
    for law in laws:
        if len(law.terms) > 1:
            stop = _stops_of(law, ratios)
            for k in (1, 7):
                found = [stop(n, k) for n in range(ratios.size)]
                np.testing.assert_allclose(found, law.stop(ratios * k), rtol=1e-12)
