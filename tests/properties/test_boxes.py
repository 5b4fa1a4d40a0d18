"""Random boxes: no type within the ranges breaks a robust agreement, and a wider range does."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.worst_corners import at_corners
from fedaccord.game.filling import fill
from fedaccord.game.law import Law
from fedaccord.game.law_rows import stacked
from fedaccord.game.ranges import RANGED
from fedaccord.game.selfish import corners
from fedaccord.numbers import FloatArray
from tests.laws import some_consortium, some_law

CLOSE = 1e-7
"""A slack this small (in discount factors) means that the client is at its bound."""


def a_box(rng: np.random.Generator, *, few: bool) -> fa.Consortium:
    """A random consortium, each of whose numbers may be a range.

    Few clients are large parts of the total, which takes the solver longer; under other laws, too.
    """
    size = int(rng.integers(2, 8) if few else rng.integers(15, 25))
    numbers: dict[str, FloatArray] = {
        "valuation": rng.lognormal(0.0, 0.6, size) * (2e4 if few else 8e4),
        "cost_per_sample": rng.uniform(0.5, 2.0, size) if few else np.ones(size),
        "samples": rng.uniform(50, 3_000, size) if few else rng.uniform(20, 80, size),
        "discount_factor": rng.uniform(0.3, 0.95, size),
    }
    width = rng.choice([0.02, 0.1, 0.3, 0.6])
    chosen = ["valuation", *(field for field in RANGED[1:] if few and rng.random() < 0.4)]
    ranges = {
        field: (
            numbers[field] * (1.0 - width * rng.random(size)),
            numbers[field] * (1.0 + width * rng.random(size)),
        )
        for field in chosen
    }
    if "discount_factor" in ranges:
        ranges["discount_factor"] = ranges["discount_factor"][0], numbers["discount_factor"]
    law = some_law(rng) if few and rng.random() < 0.3 else None
    fields: dict[str, Any] = {**numbers, "rounds": 50, "law": law, "ranges": ranges}
    return fa.Consortium(**fields)


def some_types(consortium: fa.Consortium, rng: np.random.Generator) -> fa.Consortium:
    """Numbers within the ranges: a corner, or a mixture of corners."""
    assert consortium.ranges is not None
    drawn: dict[str, Any] = {}
    for field in RANGED:
        low, high = getattr(consortium.ranges, field)
        part = rng.random(low.size)
        if rng.random() < 0.7:
            part = np.round(part)
        drawn[field] = np.clip(low + part * (high - low), low, high)
    return fa.Consortium(**drawn, rounds=consortium.rounds, law=consortium.law)


def check_box(seed: int, *, types: int = 3) -> tuple[int, int]:
    """Check one box: whether there was an agreement, and whether somebody was at its bound."""
    rng = np.random.default_rng(seed)
    consortium = a_box(rng, few=seed % 8 == 0)
    assert consortium.ranges is not None
    slots = (None, 1, 3)[rng.integers(3)]
    punishment = fa.Suspension(slots) if rng.random() < 0.5 else fa.Reversion(slots)
    agreement = fa.solve_agreement(consortium, objective="most data", punishment=punishment)
    if not agreement.exists:
        return 0, 0
    for _ in range(types):
        true = fa.agreement_on(some_types(consortium, rng), agreement.profile, punishment)
        proof = fa.certify(true)
        assert (proof.keeps | proof.gives_more).all()
    ones = np.ones((1, consortium.size))
    found = at_corners(agreement, consortium.ranges, None, ones, ones)
    assert found.keeps.all()
    closest = int(np.argmin(found.slack[0]))
    if found.slack[0, closest] > CLOSE or agreement.profile[closest] == 0:
        return 1, 0
    wider = ones.copy()
    wider[0, closest] = 1.01
    assert not at_corners(agreement, consortium.ranges, None, wider, ones).keeps.all()
    return 1, 1


@pytest.mark.slow
def test_no_type_breaks_a_robust_agreement() -> None:
    found = np.array([check_box(seed) for seed in range(64)]).sum(axis=0)
    assert found[0] > 50
    assert found[1] > 20


def _check_some(first: int) -> tuple[int, int]:
    found = np.array([check_box(seed, types=1) for seed in range(first, first + 500)])
    agreements, at_bound = found.sum(axis=0).tolist()
    return agreements, at_bound


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_no_type_breaks_any_of_2_000(block: int) -> None:
    """With range(40) they are 20,000, which takes a quarter of an hour."""
    agreements, at_bound = _check_some(1_000 + 500 * block)
    assert agreements > 380
    assert at_bound > 120


@pytest.mark.parametrize("seed", range(60))
def test_the_corner_in_closed_form(seed: int) -> None:
    """What each client gives with the others at their highest, against one equilibrium each."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    consortium = fa.Consortium(
        valuation=np.round(rng.uniform(1, 6, size)) * 1e4
        if seed % 2
        else rng.uniform(1, 6, size) * 1e4,
        cost_per_sample=1.0,
        samples=np.round(rng.uniform(1, 4, size)) * 200,
        discount_factor=0.8,
        rounds=50,
    )
    low, high = consortium.satiation * rng.uniform(0.5, 1.0, size), consortium.satiation
    pair = np.stack([consortium.samples, consortium.samples])
    scale, shape = consortium.law.split()
    pull = (consortium.ratio * scale)[np.newaxis]
    found = corners(low[np.newaxis], high[np.newaxis], pair, pull, shape)
    for n in range(size):
        ratio = consortium.ratio.copy()
        ratio[n] *= (low[n] / high[n]) ** 1.5
        there = fa.solve_equilibrium(
            fa.Consortium(
                valuation=ratio,
                cost_per_sample=1.0,
                samples=consortium.samples,
                discount_factor=0.8,
                rounds=50,
            )
        )
        assert found.total[0, n] == pytest.approx(there.total, rel=1e-9)
        assert found.own[0, n] == pytest.approx(there.profile[n], abs=1e-6)
    assert found.largest.item() == pytest.approx(fa.solve_equilibrium(consortium).total)


@pytest.mark.parametrize("seed", range(12))
def test_the_corner_of_data_sizes_that_are_not_known(seed: int) -> None:
    """Under two laws at once: of all sizes that a client may have, its corner costs it least."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    laws = [Law.power(1.0, 0.5), Law.power(3.0, 0.8, shift=30.0)]
    samples = np.sort(rng.uniform(50.0, 1_000.0, (2, size)), axis=0)
    high = np.median(samples[1].cumsum()) * rng.uniform(0.3, 2.0, (2, size))
    low = high * rng.uniform(0.5, 1.0, (2, size))
    slopes = [law.slope(low[row]) for row, law in enumerate(laws)]
    pull = 1.0 / np.array(slopes)
    found = corners(low, high, samples, pull, stacked(laws))
    for row, law in enumerate(laws):
        everyone = fill(high[row : row + 1], samples[1:])
        assert found.largest[row, 0] == pytest.approx(everyone.total.item())
        for n in range(size):
            points = np.where(np.arange(size) == n, low[row], high[row])
            own, total = found.own[row, n], found.total[row, n]
            sizes = np.append(
                np.linspace(samples[0, n], samples[1, n], 200), np.clip(own, *samples[:, n])
            )
            given, totals = np.empty(201), np.empty(201)
            for k, has in enumerate(sizes.tolist()):
                there = fill(
                    points[np.newaxis], np.where(np.arange(size) == n, has, samples[1])[np.newaxis]
                )
                given[k], totals[k] = there.profile[0, n], there.total.item()
            costs = given + pull[row, n] * law.loss(totals)
            assert (given[-1], totals[-1]) == (pytest.approx(own, abs=1e-6), pytest.approx(total))
            assert costs[-1] <= costs.min() * (1.0 + 1e-12)


def one_corner(consortium: fa.Consortium, n: int, samples: float) -> tuple[fa.Consortium, float]:
    """Client n at its lowest with so many samples, the others at their highest; its cost there."""
    ranges = consortium.ranges
    assert ranges is not None
    mine = np.arange(consortium.size) == n
    low, high = consortium.ratio_range
    price = np.where(mine, ranges.cost_per_sample[1], ranges.cost_per_sample[0])
    types = fa.Consortium(
        valuation=np.where(mine, low, high) * price,
        cost_per_sample=price,
        samples=np.where(mine, samples, ranges.samples[1]),
        discount_factor=ranges.discount_factor[0],
        rounds=consortium.rounds,
        law=consortium.law,
        quality=consortium.quality,
    )
    return types, float(fa.solve_equilibrium(types).cost[n])


@pytest.mark.parametrize("seed", range(8))
def test_every_client_at_its_worst_corner_one_by_one(seed: int) -> None:
    """Each corner as a consortium of its own, with the certificate that it has there."""
    rng = np.random.default_rng(seed)
    law, size = some_law(rng), 2 + seed % 2
    plain = some_consortium(rng, law, clients=size, quality=True, reach=(0.3, 0.9))
    apart = 1.0 + rng.uniform(0.02, 0.2, (4, size))
    consortium = plain.with_ranges(
        valuation=(plain.valuation / apart[0], plain.valuation * apart[1]),
        cost_per_sample=(plain.cost_per_sample / apart[2], plain.cost_per_sample * apart[3]),
        samples=(0.9 * plain.samples, 1.2 * plain.samples),
        discount_factor=(0.95 * plain.discount_factor, plain.discount_factor),
    )
    ranges, ones = consortium.ranges, np.ones((1, size))
    assert ranges is not None
    kept, everyone = 0, fa.solve_equilibrium(one_corner(consortium, -1, 0.0)[0])
    for n in range(size):
        sizes = np.linspace(ranges.samples[0, n], ranges.samples[1, n], 33).tolist()
        tried = [one_corner(consortium, n, has) for has in sizes]
        cheapest = min(tried, key=lambda one: one[1])[0]
        for part in (0.6, 1.0):
            profile = part * ranges.samples[0]
            for punishment, types in (
                (fa.Reversion(), cheapest),
                (fa.Suspension(2), tried[-1][0]),
            ):
                agreement = fa.agreement_on(consortium, profile, punishment)
                found = at_corners(agreement, ranges, None, ones, ones)
                proof = fa.certify(fa.agreement_on(types, profile, punishment))
                reverts = punishment == fa.Reversion()
                enough = consortium.total_of(profile) >= everyone.total or not reverts
                kept += found.keeps[0, n]
                if not proof.gives_more[n]:
                    assert found.keeps[0, n] == (proof.keeps[n] and enough)
                    slack = ranges.discount_factor[0, n] - min(proof.threshold[n], 1.0)
                    assert found.slack[0, n] == pytest.approx(slack, abs=1e-6)
                    audit = min(proof.audit_probability[n], 1.0)  # more: none
                    assert min(found.least_audit[0, n], 1.0) == pytest.approx(audit, 1e-5)
    assert kept > 0


@pytest.mark.parametrize("seed", range(4))
def test_nobody_would_give_more_than_at_the_equilibrium(seed: int) -> None:
    """Whoever is at its satiation point would gain by more only as far as rounding goes."""
    rng = np.random.default_rng(seed)
    plain = some_consortium(rng, some_law(rng), clients=6, reach=(0.3, 0.9))
    delta = plain.discount_factor
    consortium = plain.with_ranges(discount_factor=(0.9 * delta, delta))
    assert consortium.ranges is not None
    alone, ones = fa.solve_equilibrium(consortium), np.ones((1, 6))
    for part in (1.0, 1.0 - 1e-12):
        agreement = fa.agreement_on(consortium, part * alone.profile)
        assert not at_corners(agreement, consortium.ranges, None, ones, ones).gives_more.any()
    less = fa.agreement_on(consortium, 0.9 * alone.profile)
    assert at_corners(less, consortium.ranges, None, ones, ones).gives_more.any()
