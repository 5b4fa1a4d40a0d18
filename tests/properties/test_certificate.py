"""The certificate against the definition: discounted sums of costs, slot by slot."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.enforcement import scale_one
from fedaccord.game.arrays import FloatArray
from tests.consortia import FEW, consortia, with_patience

SLOTS = st.sampled_from([None, 1, 2, 7])


def some_profile(consortium: fa.Consortium, shares: list[float]) -> FloatArray:
    return np.resize(np.array(shares), consortium.size) * consortium.samples


SHARES = st.lists(st.floats(0.01, 1.0) | st.just(1.0), min_size=1, max_size=8)


@given(consortia(FEW), SHARES)
def test_thresholds_are_the_closed_form(consortium: fa.Consortium, shares: list[float]) -> None:
    """The slip that is searched for is Lemma 1's.

    A search finds a smooth minimum to 1e-8 of its place and 1e-16 of its depth, so the gain is
    known to about 1e-12 of the samples at stake; gains well above that are compared.
    """
    profile = some_profile(consortium, shares)
    certificate = fa.certify(fa.agreement_on(consortium, profile))
    game = scale_one(certificate.agreement.equilibrium)
    rows = profile[np.newaxis], np.array([[profile.sum()]])
    closed, gain = game.threshold(*rows)[0], game.gain(*rows)[0]
    clear = np.isfinite(closed) & np.isfinite(certificate.threshold) & (gain > 1e-4 * profile)
    np.testing.assert_allclose(certificate.threshold[clear], closed[clear], rtol=1e-6)
    # where one says no patience is enough, so does the other, but for rounding at 1
    hopeless = np.isinf(certificate.threshold) & (gain > 1e-4 * profile)
    assert (closed[hopeless] > 1 - 1e-6).all()


@given(consortia(FEW, st.integers(0, 950).map(lambda n: n / 1000), extreme=False), SHARES, SLOTS)
def test_keeping_is_what_costs_least_in_the_long_run(
    consortium: fa.Consortium, shares: list[float], slots: int | None
) -> None:
    """Slip once, be punished for `slots` slots or for ever, go back: add up the bill.

    900 slots at a discount of 0.95 leave 1e-20 of it out. Clients who are within a millionth
    of a slot's computation cost of being indifferent are left out.
    """
    profile = some_profile(consortium, shares)
    agreement = fa.agreement_on(consortium, profile, slots)
    certificate = fa.certify(agreement)
    alone = agreement.equilibrium.profile
    horizon = 900
    delta = consortium.discount_factor
    weights = delta ** np.arange(horizon)[:, np.newaxis]
    kept, punished = fa.cost(consortium, profile), fa.cost(consortium, alone)
    slips = np.linspace(0.0, 1.0, 4_001)[:, np.newaxis] * consortium.samples
    after_slip = profile.sum() - profile + slips
    slipped = fa.cost(consortium, slips, after_slip).min(axis=0)
    path = np.where(np.arange(horizon)[:, np.newaxis] <= (slots or horizon), punished, kept)
    path[0] = slipped
    difference = (weights * (path - kept)).sum(axis=0) * (1.0 - delta)
    scale = consortium.cost_per_sample * (profile + alone)
    # a grid of 4000 slips misses the best one by at most 1/8000 of the data: second order
    clear = np.abs(difference) > 1e-6 * scale
    assert (certificate.keeps == (difference >= 0))[clear].all()
    worst = np.where(certificate.keeps, -np.inf, certificate.threshold - delta)
    if not certificate.keeps.all():
        assert certificate.threshold[certificate.worst] > delta[certificate.worst]
        assert worst[certificate.worst] == pytest.approx(worst.max())


@given(consortia(FEW, extreme=False), SHARES, SLOTS)
def test_a_threshold_is_where_minds_change(
    consortium: fa.Consortium, shares: list[float], slots: int | None
) -> None:
    profile = some_profile(consortium, shares)
    threshold = fa.certify(fa.agreement_on(consortium, profile, slots)).threshold
    finite = np.isfinite(threshold) & (threshold > 1e-3) & (threshold < 1 - 1e-3)
    assume(finite.any())
    for step, expected in ((-1e-3, False), (1e-3, True)):
        patience = np.where(finite, threshold + step, 0.5)
        patience = np.clip(patience, 0.0, 0.9999)
        asked = fa.agreement_on(with_patience(consortium, patience), profile, slots)
        assert (fa.certify(asked).keeps[finite] == expected).all()


@given(consortia())
def test_the_equilibrium_holds_whatever_the_patience(consortium: fa.Consortium) -> None:
    equilibrium = fa.solve_equilibrium(consortium)
    certificate = fa.certify(fa.agreement_on(consortium, equilibrium.profile))
    assert certificate.holds
    assert (certificate.threshold == 0).all()
    assert certificate.smallest_discount_factor == 0.0
