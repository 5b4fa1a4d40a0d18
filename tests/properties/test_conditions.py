"""Every condition that a certificate prints: it holds just inside, and not just beyond.

Over random consortia with stated numbers, ranges, many laws, and both, and under each punishment.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray
from tests.laws import a_little_different, loss_by_hand, some_consortium, some_law

INSIDE, BEYOND = 1.0 - 1e-6, 1.0 + 1e-3
"""Of a condition: certificates tolerate a billionth of costs, which flat laws make more of it."""
LARGEST = 1e9
"""Beyond this a margin is no limit."""
SUSPENSIONS = [
    fa.Suspension(1),
    fa.Suspension(3),
    fa.Suspension(None),
    fa.Suspension(2, fees_saved=True),
    fa.Suspension(None, model_keeps=0.01),
]
PUNISHMENTS = st.sampled_from([*SUSPENSIONS, fa.Reversion(), fa.Reversion(3)])
KNOWN = ("as stated", "ranges", "laws", "ranges and laws")


def agreed(seed: int, known: str, punishment: Any) -> Agreement:
    """An agreement that was made for what is known: numbers as stated, ranges, laws, or both."""
    rng = np.random.default_rng(seed)
    law = some_law(rng)
    consortium = some_consortium(rng, law, clients=int(rng.integers(2, 5)), reach=(0.3, 2.0))
    if "ranges" in known:
        width = float(rng.choice([0.02, 0.1, 0.2]))
        consortium = consortium.with_ranges(
            valuation=(consortium.valuation * (1.0 - width), consortium.valuation * (1.0 + width)),
            cost_per_sample=(
                consortium.cost_per_sample * (1.0 - width),
                consortium.cost_per_sample,
            ),
            samples=(consortium.samples, consortium.samples * (1.0 + width)),
        )
    others = a_little_different(law, 3, rng) if "laws" in known else None
    agreement = fa.solve_agreement(
        consortium, objective="least total cost", punishment=punishment, laws=others, margin=0.05
    )
    assume(agreement.exists)
    return agreement


def holds(agreement: Agreement, **changes: Any) -> bool:
    return fa.certify(replace(agreement, **changes)).holds


def charged(agreement: Agreement, fees: float) -> Agreement:
    """The same if a suspended client saved that much in a slot besides what it saves already."""
    consortium, punishment = agreement.consortium, agreement.punishment
    assert isinstance(punishment, fa.Suspension)
    paid = consortium.communication_cost if punishment.fees_saved else 0.0
    dearer = consortium._with(communication_cost=np.full(consortium.size, fees) + paid)
    return replace(
        agreement,
        equilibrium=replace(agreement.equilibrium, consortium=dearer),
        punishment=replace(punishment, fees_saved=True),
    )


@pytest.mark.slow
@pytest.mark.parametrize("known", KNOWN)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SUSPENSIONS))
@settings(max_examples=12)
def test_conditions_of_suspension(known: str, seed: int, punishment: Any) -> None:
    agreement = agreed(seed, known, punishment)
    check_conditions(fa.certify(agreement), agreement)


def check_conditions(proof: Certificate, agreement: Agreement) -> None:
    """What an old model, fees and own samples may be worth, and how late a slip may be seen."""
    assert proof.holds
    margins, punishment = proof.margins, agreement.punishment
    assert isinstance(punishment, fa.Suspension)
    if margins.model_keeps > 2.0 / LARGEST:
        kept = replace(punishment, model_keeps=margins.model_keeps * INSIDE)
        assert holds(agreement, punishment=kept)
        if margins.model_keeps * BEYOND <= 1.0:
            kept = replace(punishment, model_keeps=margins.model_keeps * BEYOND)
            assert not holds(agreement, punishment=kept)
    if margins.fees > 0:
        assert fa.certify(charged(agreement, margins.fees * INSIDE)).holds
        assert not fa.certify(charged(agreement, margins.fees * BEYOND)).holds
    check_delay(proof, agreement)
    if 1.0 < margins.worth_alone < LARGEST / 2:
        assert kept_if_worth(agreement, margins.worth_alone * INSIDE)
        assert not kept_if_worth(agreement, margins.worth_alone * BEYOND)


def check_delay(proof: Certificate, agreement: Agreement) -> None:
    for delay, kept in ((proof.margins.delay, True), (proof.margins.delay + 1, False)):
        if delay < 1_000:
            assert holds(agreement, monitoring=fa.Monitoring(seen_late=delay)) == kept


@pytest.mark.slow
@pytest.mark.parametrize("known", KNOWN)
@given(st.integers(0, 2**32 - 1), PUNISHMENTS)
@settings(max_examples=8)
def test_conditions_of_every_punishment(known: str, seed: int, punishment: Any) -> None:
    """How late a slip may be seen, and how seldom clients may be audited."""
    agreement = agreed(seed, known, punishment)
    proof = fa.certify(agreement)
    assert proof.holds
    check_delay(proof, agreement)
    least = proof.audit_probability
    enough = np.minimum(least / INSIDE, 1.0)
    assert holds(agreement, monitoring=fa.Monitoring(audit=enough))
    for n in np.flatnonzero(least > 1e-6).tolist():
        fewer = np.where(np.arange(least.size) == n, least / BEYOND, enough)
        assert not holds(agreement, monitoring=fa.Monitoring(audit=fewer))


# --- Being alone, by hand ------------------------------------------------------------------


def kept_if_worth(agreement: Agreement, worth: float) -> bool:
    """Whether all would keep to it if a sample alone were worth so many of the agreement's.

    Every corner of the ranges under every law, from the definition of the costs, on fine grids.
    """
    return all(
        one_keeps(agreement, law, n, corner, worth)
        for law in every_law(agreement)
        for n in range(agreement.consortium.size)
        for corner in corners(agreement, n)
    )


def every_law(agreement: Agreement) -> list[Law]:
    own, others = agreement.consortium.law, agreement.laws
    if others is None:
        return [own]

    def row(k: int) -> Law:
        value, unit, shift, exponent = (
            np.broadcast_to(each, others.value.shape)[:, k, 0]
            for each in (others.value, others.unit, others.shift, others.exponent)
        )
        return Law(value, unit, shift, exponent, np.asarray(others.floor[k, 0]))

    return [own, *(row(k) for k in range(others.value.shape[1]))]


def corners(agreement: Agreement, n: int) -> list[tuple[float, float, float]]:
    """Valuation, cost per sample and most samples of a client at the ends of its ranges."""
    consortium, ranges = agreement.consortium, agreement.ranges
    if ranges is None:
        here = consortium.valuation[n], consortium.cost_per_sample[n], consortium.samples[n]
        return [(float(here[0]), float(here[1]), float(here[2]))]
    return [
        (valuation, price, float(ranges.samples[1, n]))
        for valuation in ranges.valuation[:, n].tolist()
        for price in ranges.cost_per_sample[:, n].tolist()
    ]


def one_keeps(
    agreement: Agreement, law: Law, n: int, corner: tuple[float, float, float], worth: float
) -> bool:
    valuation, price, samples = corner
    consortium, total = agreement.consortium, agreement.total
    amount, quality = float(agreement.profile[n]), float(consortium.quality[n])

    def cost(own: FloatArray, reached: FloatArray) -> FloatArray:
        return valuation * loss_by_hand(law, reached) + price * own

    agreed_cost = float(cost(np.array([amount]), np.array([total]))[0])
    slips = amount * np.linspace(0.0, 1.0, 4001)
    gain = agreed_cost - cost(slips, total - quality * (amount - slips)).min()
    alone = samples * np.concatenate([np.geomspace(1e-9, 1.0, 4001), np.linspace(1e-3, 1.0, 4001)])
    out = cost(alone, worth * quality * alone).min()
    punishment = agreement.punishment
    if isinstance(punishment, fa.Suspension) and punishment.fees_saved:
        out -= consortium.communication_cost[n] + consortium.server_fee
    slots = punishment.slots
    delta = float(consortium.discount_factor[n])
    weight = delta * (1.0 - (0.0 if slots is None else delta**slots)) / (1.0 - delta)
    return bool(gain <= weight * (out - agreed_cost) + 1e-5 * abs(out - agreed_cost))
