"""Solvers against brute force, for random laws of the class and few clients.

A solved agreement is compared in two ways: every client keeps to it, from the costs alone; and at
none of many larger totals (or levels) the most that each client keeps to adds up to the total.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.agreement import Objective, SolvedKind
from fedaccord.agreement.audits_needed import Needed
from fedaccord.agreement.batch import Batch, solve_batch
from fedaccord.agreement.bounds import (
    Bounds,
    bounds_at_all,
    is_rising,
    least_bounds,
    steepest,
)
from fedaccord.agreement.enforcement import ScaledGame, scale_one
from fedaccord.numbers import BoolArray, FloatArray
from tests.law_oracle import Enforcement, Games, random_games
from tests.laws import some_consortium, some_law

PUNISHMENTS = (
    fa.Reversion(),
    fa.Suspension(),
    fa.Reversion(3),
    fa.Suspension(None),
    fa.Suspension(2, or_reversion=True),
    fa.Suspension(2, model_keeps=0.3),
    fa.Suspension(1, fees_saved=True),
    fa.Suspension(3, model_keeps=0.2, fees_saved=True, or_reversion=True),
)

NEAR, FURTHER = (1e-7, 1e-5, 1e-3), tuple(np.linspace(0.02, 1.0, 11).tolist())
"""Larger totals that are tried: relative to the solved one, and parts of the way to all samples."""


def setting(seed: int, games: int, *, calm: bool = False) -> Games:
    """The games of a seed, with one punishment after the other."""
    drawn = random_games(
        seed,
        games,
        3 + seed % 3 if calm else 2 + seed % 4,
        personal=seed % 2 == 0,
        empty=seed % 7 == 0,
        calm=calm,
    )
    return replace(
        drawn,
        punishment=fa.Reversion() if calm else PUNISHMENTS[seed % 8],
        nobody_worse=seed % 5 == 0,
        margin=0.05 if seed % 3 == 0 else 0.0,
    )


def solve(games: Games, kind: SolvedKind = "individual") -> Batch:
    return solve_batch(
        valuation=games.ratio,
        cost_per_sample=1.0,
        samples=games.samples,
        discount_factor=games.patience,
        fees=games.fees,
        law=games.law(),
        kind=kind,
        punishment=games.punishment,
        nobody_worse=games.nobody_worse,
        margin=games.margin,
    )


def larger_totals(games: Games, batch: Batch) -> Iterator[FloatArray]:
    """Totals above the solved ones, as columns; above the equilibrium's where there is none."""
    everything = games.samples.sum(axis=1, keepdims=True)
    start = batch.equilibrium_total[:, np.newaxis]
    nothing = np.where(start > 0, start * (1.0 + 1e-6), 1e-6 * everything)
    low = np.where(batch.exists[:, np.newaxis], batch.total[:, np.newaxis], nothing)
    # what a client without patience gains just above its satiation point is of second order
    blind = (games.patience <= games.margin).any(axis=1, keepdims=True)
    for part in NEAR:
        yield np.minimum(low * (1.0 + np.where(blind, max(part, 1e-5), part)), everything)
    for part in FURTHER:
        yield low + part * (everything - low)


def broken(games: Games, batch: Batch, enforcement: Enforcement) -> BoolArray:
    """In which games somebody does not keep to what was solved."""
    total = batch.profile.sum(axis=1, keepdims=True)
    allowed = 10.0 * enforcement.noise + 1e-12 * batch.profile
    slips = enforcement.excess(batch.profile, total) > allowed
    wants_more = enforcement.eager(total * (1.0 + 1e-12)) & (batch.profile < games.samples)
    return np.asarray(batch.exists & (slips | wants_more).any(axis=1))


def check_equilibrium(games: Games, batch: Batch) -> None:
    """The total by halving, and nobody's best response from the costs is cheaper."""
    everything = games.samples.sum(axis=1)
    total = games.equilibrium_total()
    assert (np.abs(batch.equilibrium_total - total[:, 0]) <= 1e-12 * everything).all()
    np.testing.assert_allclose(
        batch.equilibrium_profile.sum(axis=1), total[:, 0], atol=1e-12 * everything.max()
    )
    others = total - batch.equilibrium_profile
    best = games.best_response(np.maximum(others, 0.0), games.samples)
    cost = batch.equilibrium_profile + games.ratio * games.loss(total)
    least = best + games.ratio * games.loss(np.maximum(others, 0.0) + best)
    assert (cost <= least + 1e-12 * (cost + games.samples)).all()


def check_individual(games: Games) -> Batch:
    batch = solve(games)
    check_equilibrium(games, batch)
    enforcement = Enforcement(games, batch.equilibrium_profile)
    assert not broken(games, batch, enforcement).any()
    for total in larger_totals(games, batch):
        above = (total > batch.total[:, np.newaxis] * (1.0 + 1e-8))[:, 0]
        more = enforcement.can_reach(total) & above
        if more.any():  # look again, with all digits
            assert not (enforcement.can_reach(total, 50) & above).any()
    return batch


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 20))]
)
def test_individual_agreements_of_500_random_laws(seed: int) -> None:
    check_individual(setting(seed, 500, calm=True))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_individual_agreements_of_large_clients_under_any_punishment(seed: int) -> None:
    check_individual(setting(seed, 30))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_individual_agreements_of_2_000_random_laws_of_large_clients(seed: int) -> None:
    check_individual(setting(seed, 100))


# --- Uniform agreements --------------------------------------------------------------------


def converted_by_hand(games: Games, batch: Batch) -> BoolArray:
    """Free riders from client l on: the first whose b_n times the number from it on is above 1."""
    worth = games.worth(batch.equilibrium_total[:, np.newaxis])
    free = batch.equilibrium_profile == 0
    result = np.zeros(free.shape, dtype=bool)
    for row in range(len(free)):
        order = [n for n in np.argsort(worth[row]) if free[row, n]]
        for rank, n in enumerate(order):
            if worth[row, n] * (len(order) - rank) > 1.0 + 1e-12:
                result[row, order[rank:]] = True
                break
    return result


def check_uniform(games: Games) -> None:
    batch = solve(games, "uniform")
    enforcement = Enforcement(games, batch.equilibrium_profile)
    converted = converted_by_hand(games, batch)
    assert not broken(games, batch, enforcement).any()
    assert batch.level is not None
    asked = np.where(
        converted, np.minimum(batch.level[:, np.newaxis], games.samples), batch.equilibrium_profile
    )
    some = batch.exists
    np.testing.assert_allclose(batch.profile[some], asked[some], rtol=1e-12)
    top = np.where(converted, games.samples, 0.0).max(axis=1, keepdims=True)
    low = np.where(some, batch.level, 0.0)[:, np.newaxis]
    for part in (1e-6, 1e-4, *np.linspace(0.01, 1.0, 60).tolist()):
        level = np.minimum(low * (1.0 + part), top) if part < 1e-3 else low + part * (top - low)
        profile = np.where(converted, np.minimum(level, games.samples), batch.equilibrium_profile)
        total = profile.sum(axis=1, keepdims=True)
        slack = 10.0 * enforcement.noise + 1e-9 * profile
        slips = (enforcement.excess(profile, total) > -slack).any(axis=1)
        above = (level > low * (1.0 + 1e-7)) & (total > 1.00001 * batch.equilibrium_total[:, None])
        assert (slips | ~above[:, 0]).all()


@pytest.mark.parametrize("seed", range(24))
def test_uniform_agreements(seed: int) -> None:
    check_uniform(setting(seed, 60, calm=seed % 3 == 0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_uniform_agreements_of_more_laws(seed: int) -> None:
    check_uniform(setting(seed, 100))


# --- One consortium at a time --------------------------------------------------------------


def total_cost(games: Games, profiles: FloatArray) -> FloatArray:
    """In units of the cost per sample, which is 1 for all here; one game, a profile per row."""
    total = profiles.sum(axis=-1, keepdims=True)
    return np.asarray((profiles + games.ratio * games.loss(total)).sum(axis=-1))


def grid_of(games: Games, steps: int) -> FloatArray:
    """Profiles of one game on a grid."""
    axes = [np.linspace(0.0, data, steps) for data in games.samples[0].tolist()]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


@pytest.mark.parametrize("seed", range(40))
def test_the_social_optimum_is_the_cheapest_profile(seed: int) -> None:
    games = setting(seed, 1)
    consortium = games.consortium(0)
    optimum = fa.solve_social_optimum(consortium)
    least = float(total_cost(games, optimum.profile[np.newaxis])[0])
    assert optimum.cost.sum() - games.fees.sum() == pytest.approx(least, rel=1e-12)
    steps = {2: 200, 3: 40, 4: 15, 5: 8}[consortium.size]
    assert total_cost(games, grid_of(games, steps)).min() >= least * (1.0 - 1e-12)
    rng = np.random.default_rng(seed)
    near = optimum.profile + 1e-3 * games.samples * rng.normal(size=(300, consortium.size))
    assert total_cost(games, np.clip(near, 0.0, games.samples)).min() >= least * (1.0 - 1e-12)


def enforceable(games: Games, equilibrium: FloatArray, profiles: FloatArray) -> FloatArray:
    """The profiles of one game that ask for more than the equilibrium and are kept to by all."""
    profiles = profiles[profiles.sum(axis=1) > equilibrium.sum() * (1.0 + 1e-5)]
    enforcement = Enforcement(games, equilibrium[np.newaxis])
    total = profiles.sum(axis=1, keepdims=True)
    slips = enforcement.excess(profiles, total) > enforcement.noise
    eager = enforcement.eager(total * (1.0 + 1e-12)) & (profiles < games.samples)
    return profiles[~(slips | eager).any(axis=1)]


@pytest.mark.parametrize("seed", range(16))
def test_no_enforceable_profile_is_better(seed: int) -> None:
    games = setting(4 * (seed // 2) + seed % 2, 1)
    consortium = games.consortium(0)
    agreement = fa.solve_agreement(
        consortium,
        objective="least total cost",
        punishment=games.punishment,
        nobody_worse=games.nobody_worse,
        margin=games.margin,
    )
    before = agreement.equilibrium
    grid = grid_of(games, {2: 120, 3: 24}[consortium.size])
    grid = enforceable(games, before.profile, grid)
    if not grid.size:
        return
    totals = grid.sum(axis=1, keepdims=True)
    costs = games.fees + grid + games.ratio * games.loss(totals)
    least = float(costs.sum(axis=1).min())
    assert agreement.cost.sum() <= least + 1e-9 * abs(least)


@pytest.mark.parametrize("seed", range(48))
def test_certificates_hold_and_fail_when_too_much_is_asked(seed: int) -> None:
    games = setting(seed, 1, calm=seed % 3 == 0)
    rng = np.random.default_rng(seed)
    quality = rng.choice([0.5, 1.0, 3.0], size=games.samples.shape[1]) if seed % 4 < 2 else 1.0
    consortium = games.consortium(0, quality)
    agreement = fa.solve_agreement(
        consortium,
        objective="most data",
        punishment=games.punishment,
        nobody_worse=games.nobody_worse,
    )
    certificate = fa.certify(agreement)
    assert certificate.holds, certificate
    enforcement = Enforcement(games, quality * agreement.equilibrium.profile[np.newaxis])
    total = np.array([[agreement.total]])
    asked = (quality * agreement.profile)[np.newaxis]
    at_most = enforcement.bounds(total, 50)
    bound = (at_most < games.samples * (1.0 - 1e-3)) & (asked > 0.999 * at_most) & (asked > 0)
    if not agreement.exists or games.nobody_worse:
        return
    for n in np.flatnonzero(bound[0]).tolist():
        # a little more of its own, and as much less of the others', so that the total stays
        change = np.zeros(consortium.size)
        change[n] = 1e-3 * asked[0, n]
        change -= np.where(np.arange(consortium.size) == n, 0.0, asked[0]) * (
            change[n] / (total.item() - asked[0, n])
        )
        profile = np.clip((asked[0] + change) / quality, 0.0, consortium.samples)
        more = fa.certify(fa.agreement_on(consortium, profile, games.punishment))
        assert not more.keeps[n]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_quality_is_the_same_game_in_other_units(seed: int) -> None:
    games = setting(seed, 1)
    rng = np.random.default_rng(seed)
    quality = 10.0 ** rng.uniform(-1.0, 1.0, games.samples.shape[1])
    plain, weighed = games.consortium(0), games.consortium(0, quality)
    options: dict[str, Any] = {"punishment": games.punishment, "nobody_worse": games.nobody_worse}
    asked: list[tuple[SolvedKind, Objective]] = [
        ("individual", "most data"),
        ("individual", "least total cost"),
        ("uniform", "most data"),
    ]
    for kind, objective in asked:
        one, other = (
            fa.solve_agreement(c, kind, objective=objective, margin=games.margin, **options)
            for c in (plain, weighed)
        )
        assert one.exists == other.exists
        assert other.total == pytest.approx(one.total, rel=1e-9)
        assert quality * other.profile == pytest.approx(one.profile, rel=1e-6, abs=1e-9)
        assert fa.certify(other).holds == fa.certify(one).holds


# --- What each client keeps to, given the total ---------------------------------------------

AUDITS = {
    "slips are seen": fa.Monitoring(),
    "one sample is checked": fa.Monitoring(audit=0.6, samples_checked=1),
    "three are": fa.Monitoring(samples_checked=3),
    "one is, and late": fa.Monitoring(samples_checked=1, seen_late=3),
}


def one_game(seed: int, audits: str, **options: Any) -> ScaledGame:
    rng = np.random.default_rng(seed)
    consortium = some_consortium(rng, some_law(rng), reach=(0.3, 1.0))
    options = {"punishment": PUNISHMENTS[seed % 8], "nobody_worse": seed % 5 == 0} | options
    return scale_one(fa.solve_equilibrium(consortium), 0.0, monitoring=AUDITS[audits], **options)


def totals_of(game: ScaledGame, number: int) -> FloatArray:
    """From a little above the equilibrium's up to all samples, as a column."""
    start, end = game.start.item(), float(game.samples.sum())
    return np.asarray(np.linspace(start + 0.01 * (end - start), end, number)[:, np.newaxis])


@pytest.mark.parametrize("audits", AUDITS)
@pytest.mark.parametrize("seed", range(8))
def test_a_client_keeps_to_its_bound_and_to_no_more(seed: int, audits: str) -> None:
    """By the condition itself, at parts of the bound, at it, and beyond it; and all at once."""
    game = one_game(seed, audits)
    totals = totals_of(game, 9)
    found = Bounds(game).at(totals)
    most = np.minimum(game.samples, totals)
    assert (found <= most).all()
    allowed = np.maximum(found, 0.0)
    for part in (0.2, 0.5, 0.9, 0.999_99):
        slips = game.slips(part * allowed, totals) & (found >= 0)
        assert not slips.any()
    more = np.minimum(1.001 * allowed + 1e-3, most)
    wants_it = game.satiation >= totals  # such a client gives all it has, unless it stays away
    beyond = (more > allowed) & ~wants_it
    assert (game.slips(more, totals) | ~beyond).all()
    nothing = found < 0  # even being asked for nothing, or all that it wants, is too much
    assert (game.slips(np.where(wants_it, most, 0.0), totals) == nothing).all()
    below = found < game.samples
    clear = ~nothing & (game.satiation < totals) & (np.abs(most - allowed) > 1e-6 * most)
    assert (Bounds(game).below_all(totals) == below)[clear].all()
    np.testing.assert_allclose(least_bounds(game, totals[3]), found[3:4], rtol=1e-14)
    both = replace(game.rows(np.array([0, 0])), patience=game.patience * np.array([[1.0], [0.9]]))
    expected = np.minimum(found, Bounds(both.rows(np.array([1]))).at(totals))
    np.testing.assert_allclose(bounds_at_all(both, totals[:, 0]), expected, rtol=1e-14)


@pytest.mark.parametrize("audits", ["slips are seen", "one sample is checked"])
@pytest.mark.parametrize("seed", range(8))
def test_how_fast_bounds_grow(seed: int, audits: str) -> None:
    """The slope of a bound by a small step, and what it is known not to exceed between totals."""
    game = one_game(seed, audits)
    bounds, totals = Bounds(game), totals_of(game, 12)
    step = 1e-6 * totals
    found, slope = bounds.with_slope(totals)
    before, after = bounds.at(totals - step), bounds.at(totals + step)
    with np.errstate(invalid="ignore"):
        left, right = (found - before) / step, (after - found) / step
    smooth = (found > 0) & (np.abs(left - right) <= 1e-4)
    np.testing.assert_allclose(slope[smooth], left[smooth], atol=2e-4)
    assert smooth.sum() > 10
    guessed, again = bounds.with_slope(totals, found * 0.7 + 1.0)
    np.testing.assert_allclose(guessed, found, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(again, slope, rtol=1e-6, atol=1e-9)
    for few, more in ((0, 1), (2, 7), (0, 11)):
        low, high = totals[few : few + 1], totals[more : more + 1]
        at_low, at_high = found[few : few + 1], found[more : more + 1]
        between = bounds.at(np.linspace(low[0], high[0], 30))
        assert (between <= bounds.between(low, high) * (1.0 + 1e-12) + 1e-9).all()
        np.testing.assert_allclose(bounds.between(low, low), at_low, rtol=1e-10, atol=1e-10)
        if game.steady and not game.nobody_worse:
            steep = steepest(bounds, low, at_low, high, at_high)
            assert (at_high - at_low <= steep * (high - low) * (1.0 + 1e-9) + 1e-9).all()
            near = steepest(bounds, low, at_low, low, at_low)
            assert (near <= np.minimum(game.pull * game.law.slope(low), 1.0)).all()
            free = smooth[few] & (at_low[0] < game.samples[0])
            if audits == "slips are seen":
                np.testing.assert_allclose(near[0][free], slope[few][free], atol=1e-9)
            assert (near[0][at_low[0] >= game.samples[0]] == 0).all()
    rising, steps = is_rising(game)[0], np.diff(np.minimum(found, game.samples), axis=0)
    if rising.any():
        assert steps[:, rising].min() >= -1e-9


def test_bounds_of_more_clients_than_are_computed_at_once() -> None:
    """The same five clients, four thousand times, under two laws."""
    game = one_game(3, "slips are seen", punishment=fa.Suspension(2), nobody_worse=False)
    totals = totals_of(game, 3)
    both = replace(game.rows(np.array([0, 0])), patience=game.patience * np.array([[1.0], [0.9]]))
    many = both.each(lambda values: np.tile(values, 4_000))
    expected = np.tile(bounds_at_all(both, totals[:, 0]), 4_000)
    np.testing.assert_allclose(bounds_at_all(many, totals[:, 0]), expected, rtol=1e-12)
    each = np.tile(least_bounds(both, totals[1]), 4_000)
    np.testing.assert_allclose(least_bounds(many, totals[1]), each, rtol=1e-12)


@pytest.mark.parametrize("punishment", [fa.Reversion(), fa.Suspension(2)], ids=str)
def test_whole_agreements_hold_under_every_law(punishment: Any) -> None:
    """And one sample more would be too much for somebody under some law."""
    found = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        law = some_law(rng)
        consortium = some_consortium(rng, law, clients=4, reach=(0.2, 0.7))
        laws = [replace(law, value=law.value * rng.uniform(0.5, 1.5)) for _ in range(3)]
        agreement = fa.solve_agreement(
            consortium,
            objective="most data",
            whole_samples=True,
            laws=laws,
            punishment=punishment,
        )
        proof = fa.certify(agreement)
        assert proof.holds
        if not agreement.exists:
            continue
        assert proof.under_laws is not None
        assert proof.under_laws.held == 3
        assert (agreement.profile == np.floor(agreement.profile)).all()
        total = np.array([[agreement.total + 1.0]])
        bounds = [
            least_bounds(
                scale_one(fa.solve_equilibrium(consortium.with_law(one)), 0.0, punishment), total
            )
            for one in (law, *laws)
        ]
        most = np.floor(np.min(bounds, axis=0) * (1 + 1e-12))
        assert most.sum() < total.item()
        found += bool((agreement.profile < consortium.samples).any())
    assert found > 0


@pytest.mark.parametrize("audits", AUDITS)
@pytest.mark.parametrize("seed", range(3))
def test_how_often_clients_must_be_audited(seed: int, audits: str) -> None:
    """Just often enough for a slip not to pay; and how that grows, by a small step."""
    game = one_game(seed, audits, punishment=fa.Suspension(2), nobody_worse=False)
    five = np.ones(5)
    needed = Needed(game, 2.0 * five, 0.3 * five, 0.9 * five, 0.05 * five)
    total = 0.8 * float(game.samples.sum())
    amount = 0.6 * game.samples[0]
    least, rise = needed.at(amount, total)
    x, everything = amount[np.newaxis], np.array([[total]])
    full = game.full_gain(x, everything)[0]
    lost = 2.0 * game.saving(x, everything)[0] - 0.3 * full
    gain = full if game.samples_checked is None else most_tempting_gain(game, x, everything)
    tempted = gain > 0
    pays = np.where(tempted & (lost > 0), gain / (0.9 * np.where(lost > 0, lost, 1.0)), 0.0)
    known = np.isfinite(least) & np.isfinite(rise)
    # the parts are tried on a grid
    np.testing.assert_allclose(least[known], 0.05 + pays[known], rtol=1e-6)
    step = 1e-5 * amount
    after, _ = needed.at(amount + step, total)
    before, _ = needed.at(amount - step, total)
    slope = ((after - before) / (2.0 * step))[known & tempted]
    np.testing.assert_allclose(rise[known & tempted], slope, rtol=1e-3)
    assert (known & tempted).any()


def most_tempting_gain(game: ScaledGame, amount: FloatArray, total: FloatArray) -> FloatArray:
    """Of all parts that may be left, what a slip gains over the chance that a check finds it."""
    parts = np.linspace(0.0, 1.0 - 1e-6, 20_001)[:, np.newaxis]
    less = (1.0 - parts) * amount
    gains = less - game.pull * game.law.fall(total - less, less)
    checked = game.samples_checked
    assert checked is not None
    return np.asarray((gains / (1.0 - parts**checked)).max(axis=0))
