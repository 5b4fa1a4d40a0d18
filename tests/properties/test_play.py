"""The certificate and `play` agree on who gains by deviating from a profile."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.numbers import FloatArray
from fedaccord.repeated import DeviateOnce, play
from fedaccord.repeated.strategies import AnyStrategy, Steady, View
from tests.consortia import consortia

PATIENCE = st.integers(0, 95).map(lambda n: n / 100)


class Give(Steady):
    """The same amount in every slot."""

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def contribution(self, view: View) -> FloatArray:
        return np.full_like(view.agreed, self.amount)


def deviations(agreement: fa.Agreement, n: int) -> list[AnyStrategy]:
    """Slips of many sizes in one slot, and larger contributions for ever."""
    asked, samples = float(agreement.profile[n]), float(agreement.consortium.samples[n])
    best = min(float(fa.certify(agreement).deviation[n]), samples)
    less = [share * asked for share in (0.0, 0.25, 0.5, 0.75, 1 - 1e-6)]
    more = [asked + share * (samples - asked) for share in (1e-6, 0.25, 0.5)]
    more.append(samples)
    slips = [DeviateOnce(1, amount) for amount in {*less, best} if amount < asked]
    return [*slips, *(Give(amount) for amount in {*more, best} if amount > asked)]


@pytest.mark.slow
@given(
    consortium=consortia(st.integers(2, 4), PATIENCE, extreme=False),
    shares=st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0]), min_size=4, max_size=4),
    slots=st.sampled_from([None, 1, 4]),
)
@settings(max_examples=40)
def test_clients_that_gain_by_the_certificate_gain_in_play(
    consortium: fa.Consortium, shares: list[float], slots: int | None
) -> None:
    """Clients that are indifferent to within a millionth of a slot's cost are left out.

    A client without patience that would be better off punished gains nothing by slipping; the
    certificate still rejects it, because it would gain with the least patience.
    """
    profile = np.array(shares[: consortium.size]) * consortium.samples
    profile[0] = max(profile[0], 0.1 * consortium.samples[0])  # somebody contributes
    agreement = fa.agreement_on(consortium, profile, fa.Reversion(slots))
    certificate = fa.certify(agreement)
    kept = play(agreement, slots=6, history=False).discounted_cost
    for n, name in enumerate(consortium.names):
        delta = consortium.discount_factor[n]
        gains = [
            (kept - play(agreement, {name: way}, 6, history=False).discounted_cost)[n]
            for way in deviations(agreement, n)
        ]
        most = max(gains, default=0.0) * (1 - delta)
        better_off_punished = profile[n] > 0 and certificate.cost_equilibrium[n] < kept[n] * (
            1 - delta
        )
        if delta == 0 and better_off_punished:
            continue
        bill = consortium.cost_per_sample[n] * (profile[n] + consortium.samples[n])
        if abs(most) > 1e-5 * bill:
            assert certificate.keeps[n] == (most < 0)
        elif certificate.keeps[n]:
            assert most <= 1e-5 * bill
