"""Punishments that end: the shortest that enforces an agreement, and agreements for a length."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.enforcement import scale_one
from fedaccord.agreement.weight import effective_discount_factor
from fedaccord.files.consortium import example_consortium
from tests.consortia import FEW, consortia, with_patience

PATIENCE = st.floats(0.3, 0.97)


def enforced(agreement: fa.Agreement, slots: int | None) -> bool:
    return fa.certify(replace(agreement, punishment=fa.Reversion(slots))).holds


@pytest.mark.slow
@given(
    consortium=consortia(FEW, PATIENCE, extreme=False),
    margin=st.sampled_from([0.01, 0.05, 0.2]),
)
@settings(max_examples=30)
def test_it_is_the_fewest_slots_that_the_certificate_accepts(
    consortium: fa.Consortium, margin: float
) -> None:
    agreement = fa.solve_agreement(consortium, margin=margin)
    shortest = fa.shortest_punishment(agreement)
    counted = next((slots for slots in range(1, 400) if enforced(agreement, slots)), None)
    if shortest is None or shortest >= 400:
        assert counted is None
    else:
        assert shortest == counted


@given(
    consortium=consortia(FEW, PATIENCE, extreme=False),
    parts=st.lists(st.floats(0.0, 1.0), min_size=8, max_size=8),
)
def test_shortest_punishment_of_any_profile(consortium: fa.Consortium, parts: list[float]) -> None:
    profile = consortium.samples * parts[: consortium.size]
    assume(profile.any())
    agreement = fa.agreement_on(consortium, profile)
    shortest = fa.shortest_punishment(agreement)
    if shortest is None:
        assert not any(enforced(agreement, slots) for slots in (1, 2, 5, 10, 20))
    else:
        assert enforced(agreement, shortest)
        assert shortest == 1 or not enforced(agreement, shortest - 1)


def test_none_if_not_even_a_punishment_without_end_is_enough() -> None:
    consortium = with_patience(fa.paper_consortium(20, cost_per_sample=4e-8), 0.1)
    agreement = fa.agreement_on(consortium, consortium.samples)
    assert not fa.certify(agreement).holds
    assert fa.shortest_punishment(agreement) is None


def test_none_if_only_a_punishment_without_end_is_enough() -> None:
    """With the most data and no margin, someone is indifferent, so every slot is needed."""
    for kind in ("individual", "uniform"):
        agreement = fa.solve_agreement(fa.paper_consortium(), kind)
        assert fa.certify(agreement).holds
        assert fa.shortest_punishment(agreement) is None
        assert not enforced(agreement, 20)


def test_nothing_to_enforce_takes_one_slot() -> None:
    consortium = fa.paper_consortium(20)
    alone = fa.agreement_on(consortium, fa.solve_equilibrium(consortium).profile)
    assert fa.shortest_punishment(alone) == 1


def test_a_profile_of_zeros() -> None:
    assert fa.shortest_punishment(fa.agreement_on(fa.paper_consortium(5), np.zeros(5))) is None


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8, 13, 30, 60])
@pytest.mark.parametrize("kind", ["individual", "uniform"])
def test_an_agreement_solved_for_a_length_needs_exactly_that_length(kind: Any, slots: int) -> None:
    """The largest agreement for T slots leaves no slack: T slots enforce it, T - 1 do not.

    (From 60 slots of 0.8 on, what the last one adds is less than the certificate looks at.)
    """
    agreement = fa.solve_agreement(fa.paper_consortium(), kind, punishment=fa.Reversion(slots))
    if not agreement.exists:
        assert slots <= 2
        return
    assert fa.certify(agreement).holds
    assert fa.shortest_punishment(agreement) == slots


@pytest.mark.slow
@given(
    consortium=consortia(FEW, st.floats(0.2, 0.9), extreme=False),
    lengths=st.lists(st.integers(1, 12), min_size=2, max_size=2, unique=True),
)
@settings(max_examples=15)
def test_longer_punishments_enforce_more(consortium: fa.Consortium, lengths: list[int]) -> None:
    totals = []
    for slots in [*sorted(lengths), 500, None]:
        agreement = fa.solve_agreement(consortium, punishment=fa.Reversion(slots))
        assert fa.certify(agreement).holds
        totals.append(agreement.total)
    assert all(b >= a * (1.0 - 1e-6) for a, b in pairwise(totals))
    assert totals[-2] == pytest.approx(totals[-1], rel=1e-6)  # 500 slots are as good as for ever


@pytest.mark.parametrize("delta", [0.0, 0.1, 0.8, 0.999, 1.0 - 1e-12])
@pytest.mark.parametrize("slots", [1, 2, 7, 1_000])
def test_the_effective_discount_factor(delta: float, slots: int) -> None:
    """A punishment without end at this factor weighs as much as T slots: delta + ... + delta^T."""
    effective = float(effective_discount_factor(delta, slots))
    weighs = sum(delta**k for k in range(1, slots + 1))
    assert effective / (1.0 - effective) == pytest.approx(weighs, rel=1e-9)
    assert effective <= delta + 1e-15


def test_the_threshold_of_a_length_is_the_root_of_its_polynomial() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(), margin=0.1)
    certificate = fa.certify(replace(agreement, punishment=fa.Reversion(6)))
    gain = certificate.cost_agreement - certificate.cost_deviation
    saving = certificate.cost_equilibrium - certificate.cost_agreement
    tempted = certificate.threshold > 0
    threshold = certificate.threshold[tempted]
    weighs = sum(threshold**k for k in range(1, 7))
    np.testing.assert_allclose(weighs, (gain / saving)[tempted], rtol=1e-6)
    assert (certificate.threshold >= fa.certify(agreement).threshold - 1e-12).all()


def test_the_punishment_itself_is_an_equilibrium() -> None:
    """Nobody gains by leaving it, whatever its length; the certificate checks that."""
    agreement = fa.solve_agreement(fa.paper_consortium(), punishment=fa.Reversion(6))
    assert fa.certify(agreement).punishment_holds.all()
    wrong = replace(agreement.equilibrium, profile=0.9 * agreement.equilibrium.profile)
    assert not fa.certify(replace(agreement, equilibrium=wrong)).punishment_holds.all()


@pytest.mark.parametrize("delta", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("margin", [1e-9, 1e-8, 1e-6])
def test_with_hardly_any_slack_the_formula_still_holds(delta: float, margin: float) -> None:
    """The certificate accepts a few slots less, within its tolerance, but the answer is exact."""
    agreement = fa.solve_agreement(fa.paper_consortium(discount_factor=delta), margin=margin)
    game = scale_one(agreement.equilibrium)
    rows = agreement.profile[np.newaxis], np.array([[agreement.total]])
    gain, saving = game.gain(*rows), game.saving(*rows)
    tempted = gain > 1e-9 * agreement.profile
    spare = 1.0 - (gain / saving)[tempted] * (1.0 - delta) / delta
    shortest = fa.shortest_punishment(agreement)
    assert shortest == np.ceil((np.log(spare) / np.log(delta)).max())
    assert enforced(agreement, shortest)


def test_the_shortest_punishment_of_an_agreement_for_many_laws() -> None:
    """It holds under all of them, and one slot less does not do."""
    hospitals = example_consortium()
    laws = [replace(hospitals.law, value=factor * hospitals.law.value) for factor in (0.8, 1.25)]
    agreement = fa.solve_agreement(hospitals, laws=laws, margin=0.05)
    slots = fa.shortest_punishment(agreement)
    assert slots is not None

    def holds(length: int) -> bool:
        return fa.certify(replace(agreement, punishment=fa.Reversion(length))).holds

    assert holds(slots)
    assert not holds(slots - 1)
    fitted = fa.shortest_punishment(replace(agreement, laws=None))
    assert fitted is not None
    assert fitted <= slots
