"""Agreements exist just above the smallest discount factor, and none just below it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

import fedaccord as fa
from tests.consortia import FEW, consortia, with_patience, with_satiation

STEP = 1e-3
"""How far above and below we look. An agreement must add at least 1e-6 to the total, which it may
not do close to the edge; a thousandth above the edge it adds about that much more."""


def equal_data(consortium: fa.Consortium) -> fa.Consortium:
    data = np.full(consortium.size, float(consortium.samples.mean()))
    return with_satiation(consortium.satiation, data, rounds=consortium.rounds)


def check(consortium: fa.Consortium, **options: Any) -> None:
    least = fa.smallest_discount_factor(consortium, **options)

    def exists(patience: float) -> bool:
        return fa.solve_agreement(with_patience(consortium, patience), **options).exists

    if least is None:
        assert not exists(0.5)
        assert not exists(0.999)
        return
    # with a critical client an agreement adds as little as the square of the patience
    above = least + (STEP if least > 0 else 0.05)
    assume(above < 1.0)
    assert exists(above)
    if least > STEP:
        assert not exists(least - STEP)


@pytest.mark.slow
@given(consortia(FEW, extreme=False))
def test_individual(consortium: fa.Consortium) -> None:
    check(consortium, kind="individual")


@pytest.mark.slow
@pytest.mark.parametrize("first", ["paper", "feasible"])
@given(consortium=consortia(FEW, extreme=False))
def test_uniform_with_equal_data(first: str, consortium: fa.Consortium) -> None:
    check(equal_data(consortium), kind="uniform", first_converted=first)


@pytest.mark.parametrize("first", ["paper", "feasible"])
@given(consortium=consortia(FEW, extreme=False))
def test_uniform_with_any_data(first: str, consortium: fa.Consortium) -> None:
    check(consortium, kind="uniform", first_converted=first)


def test_a_client_with_few_samples_may_keep_only_to_high_levels() -> None:
    """Client 1 would need 0.5 for a low level; at a high one it contributes all it has."""
    consortium = with_satiation(
        (np.array([0.8, 1.8, 1.8, 1.8, 4.0]) / 2.0) ** (2 / 3), [0.01, 10, 10, 10, 1], 0.3
    )
    agreement = fa.solve_agreement(consortium, "uniform")
    assert agreement.exists
    assert agreement.first_converted == "client-1"
    assert fa.certify(agreement).holds
    least = fa.smallest_discount_factor(consortium, "uniform")
    assert least is not None
    assert least < 0.3
