"""The certificate compared with the definition: discounted sums of costs, slot by slot."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.enforcement import scale_one
from fedaccord.numbers import FloatArray
from tests.consortia import FEW, consortia, with_patience

SLOTS = st.sampled_from([None, 1, 2, 7])


def some_profile(consortium: fa.Consortium, shares: list[float]) -> FloatArray:
    return np.resize(np.array(shares), consortium.size) * consortium.samples


SHARES = st.lists(st.floats(0.01, 1.0) | st.just(1.0), min_size=1, max_size=8)


@given(consortia(FEW), SHARES)
def test_thresholds_match_the_closed_form(consortium: fa.Consortium, shares: list[float]) -> None:
    """The slip found by search is that of Lemma 1.

    A search finds the position of a smooth minimum to 1e-8 and its value to 1e-16, so the gain is
    accurate to about 1e-12 of the samples at stake; gains well above that are compared.
    """
    profile = some_profile(consortium, shares)
    certificate = fa.certify(fa.agreement_on(consortium, profile))
    game = scale_one(certificate.agreement.equilibrium)
    rows = profile[np.newaxis], np.array([[profile.sum()]])
    closed, gain = game.threshold(*rows)[0], game.gain(*rows)[0]
    clear = np.isfinite(closed) & np.isfinite(certificate.threshold) & (gain > 1e-4 * profile)
    np.testing.assert_allclose(certificate.threshold[clear], closed[clear], rtol=1e-6)
    # if one says that no patience is enough, so does the other, except for rounding at 1
    hopeless = np.isinf(certificate.threshold) & (gain > 1e-4 * profile)
    assert (closed[hopeless] > 1 - 1e-6).all()


@given(consortia(FEW, st.integers(0, 950).map(lambda n: n / 1000), extreme=False), SHARES, SLOTS)
def test_a_client_keeps_to_the_agreement_if_that_costs_least_in_the_long_run(
    consortium: fa.Consortium, shares: list[float], slots: int | None
) -> None:
    """Slip once, be punished for `slots` slots or for ever, go back; or contribute more for ever.

    900 slots at a discount factor of 0.95 omit 1e-20 of the cost. Clients that are indifferent to
    within a millionth of a slot's computation cost are left out. A client without any patience that
    would be better off punished counts as slipping: with the least patience it would slip.
    """
    profile = some_profile(consortium, shares)
    agreement = fa.agreement_on(consortium, profile, fa.Reversion(slots))
    certificate = fa.certify(agreement)
    alone, samples = agreement.equilibrium.profile, consortium.samples
    horizon = 900
    delta = consortium.discount_factor
    weights = delta ** np.arange(horizon)[:, np.newaxis]
    kept, punished = fa.cost(consortium, profile), fa.cost(consortium, alone)
    # a grid of 4000 amounts misses the best one by at most 1/8000 of the data: a second-order error
    shares_tried = np.linspace(0.0, 1.0, 4_001)[:, np.newaxis]
    slips, more = shares_tried * profile, profile + shares_tried * (samples - profile)
    slipped, raised = (
        fa.cost(consortium, amount, profile.sum() - profile + amount).min(axis=0)
        for amount in (slips, more)
    )
    path = np.where(np.arange(horizon)[:, np.newaxis] <= (slots or horizon), punished, kept)
    path[0] = slipped
    by_slipping = (weights * (path - kept)).sum(axis=0) * (1.0 - delta)
    difference = np.minimum(by_slipping, raised - kept)
    difference = np.where(delta == 0, np.minimum(difference, punished - kept), difference)
    clear = np.abs(difference) > 1e-6 * consortium.cost_per_sample * (profile + alone)
    assert (certificate.keeps == (difference >= 0))[clear].all()
    worst = np.where(certificate.keeps, -np.inf, certificate.threshold - delta)
    if not certificate.keeps.all():
        assert certificate.threshold[certificate.worst] > delta[certificate.worst]
        assert worst[certificate.worst] == pytest.approx(worst.max())


@given(consortia(FEW, extreme=False), SHARES, SLOTS)
def test_clients_switch_exactly_at_the_threshold(
    consortium: fa.Consortium, shares: list[float], slots: int | None
) -> None:
    profile = some_profile(consortium, shares)
    threshold = fa.certify(fa.agreement_on(consortium, profile, fa.Reversion(slots))).threshold
    finite = np.isfinite(threshold) & (threshold > 1e-3) & (threshold < 1 - 1e-3)
    assume(finite.any())
    for step, expected in ((-1e-3, False), (1e-3, True)):
        patience = np.where(finite, threshold + step, 0.5)
        patience = np.clip(patience, 0.0, 0.9999)
        asked = fa.agreement_on(with_patience(consortium, patience), profile, fa.Reversion(slots))
        assert (fa.certify(asked).keeps[finite] == expected).all()


@given(consortia())
def test_the_equilibrium_holds_at_any_discount_factor(consortium: fa.Consortium) -> None:
    equilibrium = fa.solve_equilibrium(consortium)
    certificate = fa.certify(fa.agreement_on(consortium, equilibrium.profile))
    assert certificate.holds
    assert (certificate.threshold == 0).all()
    assert certificate.smallest_discount_factor == 0.0


@given(consortia(FEW), SHARES, SLOTS)
def test_keeps_and_threshold_are_consistent(
    consortium: fa.Consortium, shares: list[float], slots: int | None
) -> None:
    """Up to the tolerance: a billionth of the cost of the samples in question."""
    profile = some_profile(consortium, shares)
    certificate = fa.certify(fa.agreement_on(consortium, profile, fa.Reversion(slots)))
    keeps, threshold, slack = certificate.keeps, certificate.threshold, certificate.slack
    assert not (keeps & np.isinf(threshold)).any()
    clear = np.abs(slack) > 1e-6
    assert (keeps == (slack >= 0))[clear].all()
    assert (certificate.deviation > profile)[certificate.gives_more].all()
    assert not keeps[certificate.gives_more].any()


@given(consortia(extreme=False), st.integers(0, 6))
def test_the_equilibrium_may_be_written_with_few_decimals(
    consortium: fa.Consortium, decimals: int
) -> None:
    """Clients that contribute nothing cannot contribute less."""
    profile = fa.solve_equilibrium(consortium).profile
    written = np.floor(profile * 10.0**decimals) / 10.0**decimals
    certificate = fa.certify(fa.agreement_on(consortium, written))
    nothing = (profile == 0) & (consortium.satiation < written.sum())
    assert certificate.keeps[nothing].all()
    assert (certificate.threshold[nothing] == 0).all()
