from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.agreement import FirstConverted
from fedaccord.agreement.levels import _last_fine
from fedaccord.numbers import BoolArray, FloatArray
from tests.consortia import permuted, with_satiation
from tests.oracles import enforceable, excess


def scan(consortium: fa.Consortium, first: int, count: int = 20_000) -> tuple[float, BoolArray]:
    """Algorithm 2 as in the paper: the largest level of a grid at which all conditions hold."""
    alone = fa.solve_equilibrium(consortium).profile
    converted = (alone == 0) & (consortium.ratio >= consortium.ratio[first])
    levels = np.linspace(0.0, consortium.samples[converted].max(), count + 1)[1:]
    profiles = np.where(converted, np.minimum(levels[:, np.newaxis], consortium.samples), alone)
    holds = enforceable(consortium, profiles, alone, 1e-13)
    return float(levels[holds].max(initial=0.0)), holds


def big(patience: float) -> fa.Consortium:
    """One large contributor, with h just above its samples, and many free riders."""
    return with_satiation([26.5, *[24.0] * 30], [25.0, *[8.0] * 30], [patience, *[0.63] * 30])


PATIENCE = np.linspace(0.3, 0.5, 11).tolist()


def test_contributors_thresholds_are_not_monotone_in_the_level() -> None:
    """They rise and fall again: an agreement may hold at a level but not at a lower one."""
    consortium = big(0.4)
    alone = fa.solve_equilibrium(consortium).profile
    profiles = [np.where(alone == 0, level, alone) for level in np.linspace(0.01, 8.0, 60)]
    certificates = [fa.certify(fa.agreement_on(consortium, profile)) for profile in profiles]
    thresholds = np.array([certificate.threshold[0] for certificate in certificates])
    peak = int(thresholds.argmax())
    assert 0 < peak < 59
    assert thresholds[-1] < thresholds[peak] - 0.01
    assert thresholds[0] < thresholds[peak] - 0.01


@pytest.mark.parametrize("patience", PATIENCE)
def test_the_largest_level_is_found_above_levels_that_a_contributor_rules_out(
    patience: float,
) -> None:
    agreement = fa.solve_agreement(big(patience), "uniform")
    assert agreement.first_converted == "client-2"
    best, _ = scan(big(patience), 1)
    assert agreement.level is not None
    assert best <= agreement.level <= best + 8.0 / 20_000
    assert fa.certify(agreement).holds


def test_gaps_between_levels_do_occur() -> None:
    """Otherwise the test above would be vacuous."""
    scans = [scan(big(patience), 1, 2_000)[1].astype(int) for patience in PATIENCE]
    assert sum((np.diff(holds) > 0).any() for holds in scans) >= 2


@pytest.mark.parametrize(("above", "first"), [(1.001, "client-1"), (0.999, "client-2")])
def test_client_l_is_the_first_whose_ratio_exceeds_its_b(above: float, first: str) -> None:
    """B_1 = 2 sqrt(G S^3) / R, with S = 25 and R = 4 here."""
    satiation = (above * 25.0**1.5 / 4) ** (2 / 3)
    consortium = with_satiation([satiation, 20.0, 22.0, 24.0, 30.0], 25.0, 0.95)
    agreement = fa.solve_agreement(consortium, "uniform")
    assert agreement.equilibrium.total == 25.0
    assert agreement.first_converted == first


def test_client_l_may_gain_again_beyond_its_own_samples() -> None:
    """Others contribute more at levels where it has no samples left."""
    consortium = with_satiation(
        (np.array([0.8, 1.8, 1.8, 4.0]) / 2.0) ** (2 / 3), [0.15, 10.0, 10.0, 1.0], 0.95
    )
    agreement = fa.solve_agreement(consortium, "uniform")
    best, _ = scan(consortium, 0)
    assert best == pytest.approx(0.607, abs=0.001)
    assert agreement.level is not None
    assert best <= agreement.level <= best + 10.0 / 20_000
    assert agreement.largest_level is not None
    assert agreement.largest_level >= agreement.level


@pytest.mark.slow
def test_random_games_match_an_exhaustive_scan() -> None:
    """800 games of 2 to 11 clients, unequal in everything: no level above the solver's holds."""
    rng = np.random.default_rng(2024)
    found = 0
    for _ in range(800):
        size = int(rng.integers(2, 12))
        data = 10.0 ** rng.uniform(0, rng.choice([0.0, 0.5, 2.0]), size)
        eager = int(rng.integers(1, size))
        level = data[:eager].sum()
        satiation = level * rng.uniform(0.6, 1.0, size)
        satiation[:eager] = level * rng.uniform(1.0, 1.6, eager)
        patience = rng.uniform(0, 1, size) if rng.random() < 0.5 else np.full(size, rng.random())
        consortium = with_satiation(satiation, data, patience)
        agreement = fa.solve_agreement(consortium, "uniform")
        if agreement.first_converted is None:
            continue
        best, _ = scan(consortium, consortium.index(agreement.first_converted), 1_500)
        found += agreement.exists
        assert agreement.level is not None
        if agreement.exists:
            assert agreement.level >= best * (1 - 1e-12)
            alone = agreement.equilibrium.profile
            over = excess(consortium, agreement.profile[np.newaxis], alone)
            assert (over <= 1e-12 * (agreement.profile + alone)).all()
        else:  # no agreement: it would add less than 1e-6 of the total
            gave = (agreement.equilibrium.profile == 0) * np.minimum(best, data)
            assert gave.sum() <= 2e-6 * agreement.equilibrium.total
    assert found > 200


def test_whole_samples_round_the_level_down() -> None:
    real = fa.solve_agreement(fa.paper_consortium(), "uniform")
    whole = fa.solve_agreement(fa.paper_consortium(), "uniform", whole_samples=True)
    assert real.level is not None
    assert whole.level == np.floor(real.level)
    assert (whole.profile == np.floor(whole.profile)).all()


def test_from_the_first_feasible_client() -> None:
    """Below 0.5106 the paper's client l is not feasible, but later ones are."""
    consortium = fa.paper_consortium(discount_factor=0.5)
    paper = fa.solve_agreement(consortium, "uniform")
    feasible = fa.solve_agreement(consortium, "uniform", first_converted="feasible")
    assert not paper.exists
    assert feasible.exists
    assert feasible.first_converted == "client-3"
    assert fa.certify(feasible).holds


def carried_along() -> fa.Consortium:
    """a and b have so few samples that they gain only at high levels."""
    return fa.Consortium(
        valuation=[379, 432, 1024, 1736, 2000],
        cost_per_sample=1,
        samples=[2, 6, 18, 46, 150],
        rounds=1,
        discount_factor=0.92,
        names=list("abcde"),
    )


def test_the_first_feasible_client_may_hold_only_at_high_levels() -> None:
    agreement = fa.solve_agreement(carried_along(), "uniform", first_converted="feasible")
    assert agreement.exists
    assert agreement.first_converted == "a"
    assert agreement.level == pytest.approx(35.466, abs=1e-3)
    assert agreement.ratio == pytest.approx(1.6147, abs=1e-4)
    assert fa.certify(agreement).holds
    least = fa.smallest_discount_factor(carried_along(), "uniform", first_converted="feasible")
    assert least is not None
    assert least < 0.92
    paper = fa.solve_agreement(carried_along(), "uniform")
    assert paper.reason is not None
    assert "; converting a and above works (first converted: feasible)" in paper.reason


@pytest.mark.parametrize("first", ["paper", "feasible"])
def test_a_whole_level_is_found_where_levels_near_0_fail(first: FirstConverted) -> None:
    """Rounded down, the others contribute less than S, so at a low level the total is below it."""
    consortium = fa.Consortium(
        valuation=[2679, 2150, 1296, 1242, 2314],
        cost_per_sample=1,
        samples=[84, 182, 272, 14, 200],
        rounds=1,
        discount_factor=0.7,
    )
    agreement = fa.solve_agreement(consortium, "uniform", whole_samples=True, first_converted=first)
    assert agreement.exists
    assert (agreement.level, agreement.total) == (13, 149)
    assert fa.certify(agreement).holds


def small_game(seed: int) -> fa.Consortium:
    """Up to eight clients, unequal in everything, some of which train at the equilibrium."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 9))
    data = np.ceil(10.0 ** rng.uniform(0.5, rng.choice([0.5, 1.0, 2.0]), size))
    eager = int(rng.integers(1, max(2, size // 2)))
    level = data[:eager].sum()
    satiation = level * rng.uniform(0.6, 1.0, size)
    satiation[:eager] = level * rng.uniform(1.0, 1.6, eager)
    patience = rng.uniform(0.3, 1.0, size) if seed % 2 else np.full(size, rng.uniform(0.5, 1.0))
    return with_satiation(satiation, data, patience)


def at_levels(consortium: fa.Consortium, first: int, levels: Any, *, whole: bool) -> FloatArray:
    """The profiles if the free riders from one on train on each level, or on all they have."""
    alone = fa.solve_equilibrium(consortium).profile
    converted = (alone == 0) & (consortium.ratio >= consortium.ratio[first])
    each = np.asarray(levels, dtype=np.float64)[:, np.newaxis]
    kept = np.floor(alone) if whole else alone
    return np.where(converted, np.minimum(each, consortium.samples), kept)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("first", ["paper", "feasible"])
@pytest.mark.parametrize("seed", range(25))
def test_small_games_match_a_plain_scan(seed: int, first: FirstConverted, whole: bool) -> None:
    """Of all levels, for each client that may be the first converted one."""
    consortium = small_game(seed)
    start = fa.solve_equilibrium(consortium)
    free = np.flatnonzero(start.profile == 0)
    free = free[np.argsort(consortium.ratio[free])]
    top = float(consortium.samples[free].max(initial=1.0))
    levels = np.arange(1.0, top + 1.0) if whole else np.linspace(0.0, top, 1_001)[1:]
    best: dict[str, float] = {}
    for n in free.tolist():
        profiles = at_levels(consortium, n, levels, whole=whole)
        holds = enforceable(consortium, profiles, start.profile, 1e-13)
        holds &= profiles.sum(axis=1) > start.total * (1 + 1e-6)
        best[consortium.names[n]] = float(levels[holds].max(initial=0.0))
    found = fa.solve_agreement(consortium, "uniform", first_converted=first, whole_samples=whole)
    if first == "paper":
        # by Theorem 3, r_n > B_n = 2 sqrt(G S^3) / (R - n + 1)
        least = 2 * np.sqrt(consortium.rounds * start.total**3) / np.arange(free.size, 0, -1)
        gains = free[consortium.ratio[free] > least]
        assert found.first_converted == (consortium.names[gains[0]] if gains.size else None)
    elif works := [name for name in best if best[name] > 0]:
        assert found.first_converted in list(best)[: list(best).index(works[0]) + 1]
    assert fa.certify(found).holds
    if not found.exists:
        assert first == "paper" or found.first_converted is None
        assert best.get(str(found.first_converted), 0.0) == 0.0
        return
    assert found.level is not None
    n = consortium.index(str(found.first_converted))
    [profile] = at_levels(consortium, n, [found.level], whole=whole)
    np.testing.assert_allclose(found.profile, profile, rtol=1e-12)
    if whole:
        assert found.level == best[consortium.names[n]]
    else:
        assert found.level >= best[consortium.names[n]] * (1 - 1e-12)
        [more] = at_levels(consortium, n, [found.level * (1 + 1e-6)], whole=whole)
        assert (more == profile).all() or not enforceable(
            consortium, more[np.newaxis], start.profile, 1e-13
        )


@pytest.mark.parametrize("seed", range(25))
def test_the_largest_level_at_which_the_first_client_gains(seed: int) -> None:
    """By its cost at many levels; that of others does not matter."""
    consortium = small_game(seed)
    agreement = fa.solve_agreement(consortium, "uniform")
    if agreement.first_converted is None:
        return  # nobody gains
    n = consortium.index(agreement.first_converted)
    free = agreement.equilibrium.profile == 0
    converted = free & (consortium.ratio >= consortium.ratio[n])
    levels = np.linspace(0.0, consortium.samples[converted].max(), 2_001)[1:]
    profiles = at_levels(consortium, n, levels, whole=False)
    cost = np.array([fa.cost(consortium, profile)[n] for profile in profiles])
    gains = levels[cost < agreement.equilibrium.cost[n]]
    assert agreement.largest_level is not None
    assert gains[-1] * (1 - 1e-9) <= agreement.largest_level <= gains[-1] + 1.001 * levels[0]


@pytest.mark.parametrize("steep", [1e-9, 0.5, 1.0, 40.0])
def test_the_last_level_that_is_fine(steep: float) -> None:
    """In far fewer steps than halving would take where the excess is nearly straight."""
    asked: list[float] = []

    def excess(level: FloatArray) -> FloatArray:
        asked.append(level.item())
        return np.asarray(np.expm1(steep * (level - root)))

    low, high = np.array([[0.0]]), np.array([[3.0]])
    for root in (0.3, 1.0, 2.999):
        asked.clear()
        found = _last_fine(excess, low, high).item()
        assert root * (1 - 1e-13) <= found <= root * (1 + 1e-15)
        assert len(asked) <= (25 if steep <= 1.0 else 200)
    root = 3.5
    assert _last_fine(excess, low, high) == high


@pytest.mark.parametrize(
    ("patience", "first"),
    [([0.5, 0.3, 0.3], "client-2"), ([0.5, 0.0, 0.3], "client-3"), ([0.5, 0.0, 0.0], None)],
)
def test_under_suspension_any_patience_will_do_but_none(
    patience: list[float], first: str | None
) -> None:
    """Whoever would be alone loses far more than it gains by a little; if later slots matter."""
    consortium = with_satiation([20.0, 10.0, 12.0], 20.0, patience)
    agreement = fa.solve_agreement(
        consortium,
        "uniform",
        objective="most data",
        punishment="suspension",
        first_converted="feasible",
    )
    assert agreement.first_converted == first
    assert agreement.exists == (first is not None)


@pytest.mark.parametrize("first", ["paper", "feasible"])
@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_the_clients_does_not_matter(seed: int, first: FirstConverted) -> None:
    """Neither for the agreement nor for the patience that it takes."""
    consortium = small_game(2 * seed)  # all are as patient
    found = []
    up = np.argsort(consortium.ratio)
    for order in (up, up[::-1], np.roll(up, 1), np.arange(consortium.size)):
        same = permuted(consortium, order)
        agreement = fa.solve_agreement(same, "uniform", first_converted=first)
        least = fa.smallest_discount_factor(same, "uniform", first_converted=first)
        found.append((agreement.total, -1.0 if least is None else least))
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-12)
