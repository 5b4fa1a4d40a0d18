"""Agreements over ranges: the totals of our notes, half of the last printed digit apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.levels import Ladder, kept_by_all, largest_level_for_all
from fedaccord.agreement.over_ranges import held_over
from fedaccord.agreement.robust import Terms
from fedaccord.agreement.uniform import solve_uniform_rows
from fedaccord.summaries.agreement import verdict
from fedaccord.summaries.ranges import range_sentences
from tests.agreement.law_settings import MEASURED_LIKE, scaled
from tests.agreement.settings import HOSPITALS, SETTINGS

WIDTHS: tuple[dict[str, Any], ...] = ({"share": 0.1}, {"share": 0.3}, {"factor": 2}, {"factor": 10})
"""Ratios known to 10 %, to 30 %, half to double, a tenth to ten times."""


def total(consortium: fa.Consortium, punishment: Any = "reversion", **options: Any) -> float | None:
    """The largest total that holds over the ranges, proved; None: there is none."""
    agreement = fa.solve_agreement(
        consortium, objective="most data", punishment=punishment, **options
    )
    if not agreement.exists:
        return None
    proof = fa.certify(agreement)
    assert proof.holds
    assert proof.over_ranges is not None
    assert proof.over_ranges.holds
    return agreement.total


def check(found: float | None, expected: float | None) -> None:
    assert found == (None if expected is None else pytest.approx(expected, abs=0.51))


@pytest.mark.parametrize(
    ("clients", "patience", "totals"),
    [
        (100, 0.8, (991_737, 985_919, 966_986)),
        (181, 0.8, (1_797_286, 1_790_157, 1_768_472)),
        (200, 0.8, (1_986_253, 1_978_568, 1_956_186)),
        (100, 0.5, (984_400, 974_512, 941_305)),
        (181, 0.5, (1_786_949, 1_775_107, 1_739_577)),
        (200, 0.5, (1_975_341, 1_962_674, 1_925_974)),
        (100, 0.1, (897_905, 823_328, None)),
        (None, None, (102_133, None, None)),
    ],
)
def test_reversion(
    clients: int | None, patience: float | None, totals: tuple[float | None, ...]
) -> None:
    consortium = HOSPITALS
    if clients is not None and patience is not None:
        consortium = fa.paper_consortium(clients, discount_factor=patience)
    for width, expected in zip(WIDTHS, totals, strict=False):
        check(total(consortium.within(**width)), expected)


def test_reversion_of_other_widths() -> None:
    for share, expected in ((0.01, 109_865), (0.05, 106_252), (0.2, 90_061)):
        check(total(HOSPITALS.within(share)), expected)
    paper = fa.paper_consortium()
    assert total(paper.within(factor=4)) is None
    for lowest, expected in ((0.7, 990_261), (0.5, 984_400)):
        ranges = {"ratio": (0.9 * paper.ratio, 1.1 * paper.ratio)}
        check(total(paper.with_ranges(**ranges, discount_factor=(lowest, 0.8))), expected)


@pytest.mark.parametrize(
    ("clients", "patience", "totals"),
    [
        (100, 0.8, (992_536, 989_429, 982_935)),
        (181, 0.8, (1_798_334, 1_793_724, 1_785_333)),
        (200, 0.8, (1_987_205, 1_982_267, 1_973_305)),
        (100, 0.5, (985_621, 980_107, 969_735)),
        (None, None, (106_105, 95_516, 82_835)),
    ],
)
def test_reversion_to_what_was_observed(
    clients: int | None, patience: float | None, totals: tuple[float, ...]
) -> None:
    consortium = HOSPITALS
    if clients is not None and patience is not None:
        consortium = fa.paper_consortium(clients, discount_factor=patience)
    seen, ratio = fa.solve_equilibrium(consortium).profile, consortium.ratio
    for (low, high), expected in zip(((0.9, 1.1), (0.7, 1.3), (0.5, 2.0)), totals, strict=True):
        known = consortium.with_ranges(ratio=(low * ratio, high * ratio), observed=seen)
        check(total(known), expected)


@pytest.mark.parametrize("name", SETTINGS)
def test_under_suspension_half_to_double_costs_no_data(name: str) -> None:
    consortium = SETTINGS[name]
    for width in WIDTHS[:3]:
        assert total(consortium.within(**width), fa.Suspension(1)) == consortium.samples.sum()
    if name != "hospitals":
        assert total(consortium.within(factor=10), fa.Suspension(None)) == consortium.samples.sum()


def test_under_suspension_a_tenth_to_ten_times() -> None:
    check(total(HOSPITALS.within(factor=10), fa.Suspension(None)), 106_797)
    check(total(HOSPITALS.within(factor=10), fa.Suspension(1)), 60_578)
    hasty = fa.paper_consortium(discount_factor=0.1)
    for width, expected in zip(WIDTHS, (1_000_000, 1_000_000, 997_484, 973_158), strict=True):
        check(total(hasty.within(**width), fa.Suspension(None)), expected)


@pytest.mark.parametrize(
    ("name", "totals"), [("hospitals", (111_368, None)), ("N=100", (994_697, 989_975, 975_132))]
)
def test_that_nobody_is_worse_off_is_not_as_robust(
    name: str, totals: tuple[float | None, ...]
) -> None:
    for width, expected in zip(WIDTHS, totals, strict=False):
        consortium = SETTINGS[name].within(**width)
        check(total(consortium, fa.Suspension(None), nobody_worse=True), expected)


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("hospitals", (0.407, 0.216, 0.170)),
        ("N=100", (0.099, 0.054, 0.040)),
        pytest.param("N=181", (0.175, 0.095, 0.071), marks=pytest.mark.slow),
        pytest.param("N=200", (0.193, 0.105, 0.079), marks=pytest.mark.slow),
    ],
)
def test_how_far_all_ranges_could_be_widened(name: str, edges: tuple[float, ...]) -> None:
    """All data hold down to these ratios."""
    consortium = SETTINGS[name].within(0.01)
    assert consortium.ranges is not None
    for slots, edge in zip((1, 3, None), edges, strict=True):
        asked = fa.agreement_on(consortium, consortium.samples, fa.Suspension(slots))
        over = held_over(asked, consortium.ranges)
        assert 0.99 / over.widened_all == pytest.approx(edge, abs=0.0006)
    assert over.widened.min() == pytest.approx(over.widened_all, rel=1e-4)


@pytest.mark.slow
def test_whole_samples_and_objectives() -> None:
    consortium = HOSPITALS.within(0.1)
    for objective in ("most data", "least total cost", "fair share"):
        for whole in (False, True):
            options: Any = {"objective": objective, "whole_samples": whole, "margin": 0.01}
            agreement = fa.solve_agreement(consortium, **options)
            assert agreement.exists
            assert fa.certify(agreement).holds
            assert not whole or (agreement.profile == np.floor(agreement.profile)).all()


@pytest.mark.parametrize("width", [0.005, 0.02, 0.3])
def test_the_uniform_level_is_the_highest_of_all_that_are_kept(width: float) -> None:
    """Levels are tried from the top, a few at once: the first found must be the highest of all."""
    equilibrium = fa.solve_equilibrium(fa.paper_consortium().within(width))
    terms = Terms(equilibrium, 0.0, fa.Reversion(), False, True, fa.Monitoring())
    rows = solve_uniform_rows(terms.stated)
    ladder = Ladder.build(terms.stated, rows.converted, terms.stated.equilibrium)
    levels = np.linspace(0.0, rows.level.item(), 1_025)[1:]
    found = largest_level_for_all(ladder, terms.fitted, rows.level, whole=False).item()
    kept = levels[kept_by_all(ladder, terms.fitted, levels)]
    highest = kept[-1] if kept.size else 0.0
    assert highest <= found <= highest + levels[0]
    assert found < levels[-1]


def test_uniform_agreements_hold_over_ranges_too() -> None:
    exact = fa.solve_agreement(fa.paper_consortium(), "uniform")
    robust = fa.solve_agreement(fa.paper_consortium().within(0.05), "uniform")
    assert fa.certify(robust).holds
    assert robust.exists
    assert exact.level is not None
    assert robust.level is not None
    assert robust.level < exact.level
    assert robust.first_converted == exact.first_converted


def test_ranges_and_laws_together() -> None:
    law = MEASURED_LIKE.law
    others = [scaled(law, factor) for factor in (0.9, 1.1)]
    consortium = MEASURED_LIKE.within(0.2)
    agreement = fa.solve_agreement(consortium, punishment=fa.Suspension(1), laws=others)
    assert agreement.exists
    assert agreement.ranges is not None
    assert agreement.laws is not None
    assert fa.certify(agreement).holds
    only = fa.solve_agreement(consortium, punishment=fa.Suspension(1), laws=others, robust="law")
    assert only.ranges is None
    assert only.total >= agreement.total


def test_qualities_count_in_ranges() -> None:
    doubled = fa.Consortium(
        valuation=HOSPITALS.valuation,
        cost_per_sample=2.0 * HOSPITALS.cost_per_sample,
        samples=HOSPITALS.samples / 2.0,
        discount_factor=HOSPITALS.discount_factor,
        rounds=HOSPITALS.rounds,
        quality=2.0,
    )
    for punishment in ("reversion", fa.Suspension(1)):
        check(total(doubled.within(0.1), punishment), total(HOSPITALS.within(0.1), punishment))


def test_data_sizes_that_are_not_known() -> None:
    """What is asked for is what a client surely has, and the threat what it may have at most."""
    samples = HOSPITALS.samples
    consortium = HOSPITALS.with_ranges(samples=(0.9 * samples, 1.1 * samples))
    for punishment, lost in ((fa.Suspension(1), 0.1), (fa.Reversion(), 0.3)):
        agreement = fa.solve_agreement(consortium, objective="most data", punishment=punishment)
        assert agreement.exists
        assert fa.certify(agreement).holds
        assert (agreement.profile <= 0.9 * samples * (1 + 1e-12)).all()
        exact = fa.solve_agreement(HOSPITALS, objective="most data", punishment=punishment)
        assert (1 - lost) * exact.total <= agreement.total <= exact.total


def test_the_middle_of_the_ranges_is_not_safe() -> None:
    """The agreement for the stated numbers fails for somebody in the box."""
    consortium = HOSPITALS.within(0.1)
    stated = fa.solve_agreement(consortium, robust=False)
    proof = fa.certify(stated)
    assert proof.holds  # for the numbers as stated, for which it was made
    assert proof.over_ranges is not None
    assert not proof.over_ranges.holds
    assert proof.over_ranges.broken > 0


def test_a_client_that_may_have_too_few_samples_is_named() -> None:
    """Riverside is asked for 18,000 samples and may have as few as 15,000."""
    samples = np.stack([HOSPITALS.samples, HOSPITALS.samples])
    samples[0, 3] = 15_000
    consortium = HOSPITALS.with_ranges(samples=samples)
    profile = HOSPITALS.samples.copy()
    for amount, holds in ((15_000.0, True), (15_000.0 * (1 + 1e-8), False), (18_000.0, False)):
        profile[3] = amount
        asked = replace(
            fa.agreement_on(consortium, profile, "suspension"), ranges=consortium.ranges
        )
        proof = fa.certify(asked)
        over = proof.over_ranges
        assert over is not None
        assert proof.keeps.all()
        assert (proof.holds, over.holds) == (holds, holds)
        assert over.short.tolist() == [not holds and n == 3 for n in range(6)]
        assert (over.broken == 0) == holds
        assert (over.widened_all > 1, bool(np.isfinite(over.least_audit[3]))) == (holds, holds)
    assert "Riverside first of all" in verdict(proof)
    assert range_sentences(proof) == [
        "It does not hold for every combination of numbers within the ranges: Riverside is asked "
        "for 18,000 samples and may have only 15,000."
    ]
    solved = fa.solve_agreement(consortium, punishment="suspension")
    assert solved.profile[3] <= 15_000
    assert fa.certify(solved).holds


def test_conditions_hold_throughout_the_ranges() -> None:
    """An old model worth 21.8 % is too much if the numbers are known to 30 % only."""
    wide = fa.solve_agreement(HOSPITALS.within(0.3), punishment="suspension")
    exact = fa.solve_agreement(HOSPITALS, punishment="suspension")
    assert (wide.profile == exact.profile).all()
    margins, stated = fa.certify(wide).margins, fa.certify(exact).margins
    assert round(stated.model_keeps, 3) == 0.219
    for field in ("model_keeps", "worth_alone", "fees", "delay"):
        assert getattr(margins, field) < getattr(stated, field)
    for kept, holds in ((0.15, False), (0.1401, False), (0.14, True)):
        milder = replace(wide, punishment=fa.Suspension(model_keeps=kept))
        assert fa.certify(milder).holds == holds
    said = " ".join(fa.certify(wide).assumptions)
    assert "no more than 14 % of the agreed data" in said
    assert "if that took" not in said
    for late, holds in ((1, True), (2, False)):
        seen = replace(wide, monitoring=fa.Monitoring(seen_late=late))
        assert fa.certify(seen).holds == holds


def test_why_there_is_none() -> None:
    agreement = fa.solve_agreement(HOSPITALS.within(0.3))
    assert not agreement.exists
    assert agreement.reason is not None
    assert "within the ranges" in agreement.reason
    assert fa.certify(agreement).holds
    bored = HOSPITALS.with_ranges(discount_factor=(0.0, 0.99 * HOSPITALS.discount_factor + 0.01))
    assert fa.solve_agreement(bored).reason is not None


def test_what_ranges_cost() -> None:
    costs = fa.range_costs(HOSPITALS.within(0.1), widths=("10 %", "x2"))
    assert costs.total[1:] == pytest.approx([102_133, np.nan], abs=0.51, nan_ok=True)
    assert costs.find_out_first == HOSPITALS.index("St Mary")
    assert costs.total_if_known.max() == pytest.approx(106_105, abs=0.51)
    known = fa.range_costs(HOSPITALS, punishment=fa.Suspension(1))
    assert known.find_out_first is None  # 30 % cost nothing under suspension
    assert known.consortium.ranges is not None


def test_wrong_ranges_get_one_sentence() -> None:
    ratio = HOSPITALS.ratio
    for pairs, words in (
        ({"ratio": (2 * ratio, ratio)}, "must go from low to high"),
        ({"valuation": (-1, HOSPITALS.valuation)}, "must be more than 0, got -1"),
        ({"valuation": (np.nan, HOSPITALS.valuation)}, "must be more than 0, got nan"),
        ({"valuation": 3.0}, "must be a pair"),
        ({"quality": (1, 2)}, "there are no ranges of quality"),
        ({"discount_factor": (0.1, 0.2)}, "must be within its range 0.1 to 0.2"),
        ({"ratio": (ratio, ratio), "valuation": (1, 2)}, "stands for those of valuation"),
        ({"observed": np.zeros(6)}, "no ratio within its range explains"),
        ({"observed": 10 * HOSPITALS.samples}, "must be from 0 to"),
        ({"observed": [1, 2]}, "one number for each of 6 clients"),
    ):
        with pytest.raises(fa.InvalidInput, match=words):
            HOSPITALS.with_ranges(**pairs)
    for wrong in ({}, {"share": 1.0}, {"share": 0.1, "factor": 2}, {"factor": 0.5}):
        with pytest.raises(fa.InvalidInput, match="within"):
            HOSPITALS.within(**wrong)


def test_what_was_observed_counts_by_quality() -> None:
    """Half the samples of quality 2 are the same game."""
    samples = HOSPITALS.samples
    halves = fa.Consortium(
        valuation=HOSPITALS.valuation,
        cost_per_sample=2.0 * HOSPITALS.cost_per_sample,
        samples=0.5 * samples,
        discount_factor=HOSPITALS.discount_factor,
        communication_cost=HOSPITALS.communication_cost,
        server_fee=HOSPITALS.server_fee,
        rounds=HOSPITALS.rounds,
        quality=2.0,
    )
    found: list[Any] = []
    for consortium in (HOSPITALS, halves):
        seen = fa.solve_equilibrium(consortium).profile
        observed = consortium.within(0.1).with_ranges(observed=seen)
        assert observed.ranges is not None
        agreement = fa.solve_agreement(observed, objective="most data")
        assert agreement.exists
        assert fa.certify(agreement).holds
        found.append(agreement.total)
        over = held_over(fa.agreement_on(observed, 0.9 * consortium.samples), observed.ranges)
        found.append([over.slack, over.least_audit, over.widened, over.widened_all])
    assert found[0] == pytest.approx(found[2], rel=1e-6)
    for one, other in zip(found[1], found[3], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_total_below_that_of_an_equilibrium_of_the_box_does_not_hold() -> None:
    """Whoever would give more breaks nothing, so that the total alone decides."""
    seen = fa.solve_equilibrium(HOSPITALS).profile
    observed = HOSPITALS.within(0.1).with_ranges(observed=seen)
    assert observed.ranges is not None
    same, less = (
        held_over(fa.agreement_on(observed, part * seen), observed.ranges) for part in (1.0, 0.999)
    )
    assert same.keeps.all()
    assert not less.keeps.any()
