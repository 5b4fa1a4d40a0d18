"""Milder suspensions: an old model, fees saved, or the harsher of both punishments."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from tests.agreement.settings import HOSPITALS, SETTINGS, all_data, largest
from tests.consortia import with_patience, with_satiation

# --- What a suspended client keeps ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model_keeps", "worth_alone"),
    [
        ("hospitals", (0.219, 0.309, 0.346), (2.70, 3.63, 3.99)),
        ("N=100", (0.153, 0.238, 0.286), (28.8, 54.5, 72.0)),
        ("N=181", (0.043, 0.079, 0.103), (18.6, 45.8, 68.3)),
        ("N=200", (0.034, 0.063, 0.083), (16.6, 42.2, 64.1)),
    ],
)
def test_how_useful_an_old_model_or_being_alone_may_be(
    name: str, model_keeps: tuple[float, ...], worth_alone: tuple[float, ...]
) -> None:
    for slots, kappa, nu in zip((1, 3, None), model_keeps, worth_alone, strict=True):
        agreement = all_data(SETTINGS[name], slots=slots)
        margins = fa.certify(agreement).margins
        assert margins.model_keeps == pytest.approx(kappa, abs=1e-3)
        assert margins.worth_alone == pytest.approx(nu, rel=3e-3)
        for side, holds in ((1 - 1e-6, True), (1 + 1e-6, False)):
            kept = all_data(SETTINGS[name], slots=slots, model_keeps=side * margins.model_keeps)
            assert fa.certify(kept).holds == holds


def test_beyond_that_it_degrades_gently() -> None:
    for consortium, totals in (
        (HOSPITALS, (95_438, 103_457, 106_750)),
        (SETTINGS["N=100"], (986_124, 991_895, 994_348)),
    ):
        for slots, total in zip((1, 3, None), totals, strict=True):
            kept = fa.Suspension(slots, model_keeps=0.5)
            assert round(largest(consortium, kept)) == total


def test_a_model_that_stays_as_good_as_new_holds_nothing() -> None:
    for slots in (1, 5, None):
        agreement = fa.solve_agreement(HOSPITALS, punishment=fa.Suspension(slots, model_keeps=1.0))
        assert not agreement.exists
        assert "suspension deters too little" in str(agreement.reason)


def charging(fee: float) -> fa.Consortium:
    """The hospitals with a server's fee."""
    return fa.Consortium(
        valuation=HOSPITALS.valuation,
        cost_per_sample=HOSPITALS.cost_per_sample,
        samples=HOSPITALS.samples,
        discount_factor=HOSPITALS.discount_factor,
        rounds=HOSPITALS.rounds,
        server_fee=fee,
    )


@pytest.mark.parametrize(("slots", "fees"), [(1, 160), (3, 210), (None, 225)])
def test_fees_that_a_suspended_client_saves(slots: int | None, fees: float) -> None:
    assert fa.certify(all_data(HOSPITALS, slots=slots)).margins.fees == pytest.approx(fees, abs=0.5)
    for fee, holds in ((fees - 1, True), (fees + 1, False)):
        certificate = fa.certify(all_data(charging(fee), slots=slots, fees_saved=True))
        assert certificate.holds == holds
        assert fa.certify(all_data(charging(fee), slots=slots)).holds  # still due: no difference
    less = largest(charging(1.1 * fees), fa.Suspension(slots, fees_saved=True))
    assert 0 < less < 116_000


def test_the_harsher_of_the_two_for_each_client() -> None:
    """An old model makes suspension mild; reversion then holds some clients to more."""
    mild = fa.Suspension(None, model_keeps=0.9)
    either = replace(mild, or_reversion=True)
    totals = {
        punishment: largest(HOSPITALS, punishment) for punishment in (fa.Reversion(), mild, either)
    }
    assert totals[either] >= max(totals[fa.Reversion()], totals[mild]) - 1e-6
    plain = fa.Suspension(None, or_reversion=True)
    assert largest(HOSPITALS, plain) == largest(HOSPITALS, fa.Suspension(None))


def test_margins_count_the_fees_that_are_saved() -> None:
    """With them, an old model may be worth less: at the margin it holds, beyond it does not."""
    plain, saved = (all_data(charging(100.0), slots=1, fees_saved=saved) for saved in (False, True))
    margins = fa.certify(saved).margins
    assert margins.model_keeps < fa.certify(plain).margins.model_keeps
    assert margins.fees == pytest.approx(fa.certify(plain).margins.fees - 100.0)
    for side, holds in ((1 - 1e-6, True), (1 + 1e-6, False)):
        kept = fa.Suspension(1, model_keeps=side * margins.model_keeps, fees_saved=True)
        assert fa.certify(replace(saved, punishment=kept)).holds == holds


def test_margins_leave_out_whom_reversion_keeps() -> None:
    """With the harsher of both, they are those of the clients that suspension keeps."""
    either = fa.Suspension(None, or_reversion=True)
    agreement = replace(fa.solve_agreement(HOSPITALS), punishment=either)
    certificate = fa.certify(agreement)
    assert certificate.holds
    for side, holds in ((1 - 1e-6, True), (1 + 1e-6, certificate.margins.model_keeps == 1.0)):
        kappa = min(side * certificate.margins.model_keeps, 1.0)
        kept = replace(agreement, punishment=replace(either, model_keeps=kappa))
        assert fa.certify(kept).holds == holds


def test_nothing_is_left_to_save_at_the_largest_total() -> None:
    tight = fa.solve_agreement(HOSPITALS, punishment=fa.Suspension(1, model_keeps=0.5))
    assert (
        fa.certify(tight).assumptions[-1] == "Being suspended saves nothing besides the training."
    )


@pytest.mark.parametrize(
    ("name", "slots", "delay"),
    [("hospitals", 1, 2), ("hospitals", 3, 3), ("N=100", 1, 5), ("N=100", 3, 8)],
)
def test_how_late_a_slip_may_be_seen(name: str, slots: int, delay: int) -> None:
    assert fa.certify(all_data(SETTINGS[name], slots=slots)).margins.delay == delay


# --- Cases that the solvers once got wrong -------------------------------------------------


@pytest.mark.parametrize("objective", ["most data", "least total cost", "fair share"])
def test_a_client_that_would_rather_be_out_leaves_no_agreement(objective: Any) -> None:
    """Its fees are more than the model is worth to it, so no agreement holds."""
    consortium = fa.Consortium(
        valuation=[10, 2000, 2000],
        cost_per_sample=1,
        samples=100,
        rounds=1,
        discount_factor=0.9,
        communication_cost=[60, 0, 0],
    )
    agreement = fa.solve_agreement(
        consortium, objective=objective, punishment=fa.Suspension(None, fees_saved=True)
    )
    assert not agreement.exists
    assert "suspension deters too little" in str(agreement.reason)
    assert fa.certify(agreement).holds


def test_a_client_that_wants_to_give_all_is_not_lowered() -> None:
    consortium = with_satiation([270.0, 91.0], [100.0, 15.0])
    agreement = fa.solve_agreement(
        consortium, objective="most data", punishment=fa.Suspension(1, model_keeps=0.8)
    )
    assert fa.certify(agreement).holds
    assert agreement.profile[0] == 100.0


def test_the_least_total_cost_just_above_the_equilibrium() -> None:
    consortium = with_satiation(
        [100.0, 20.0, 50.0, 15.0],
        [100.5, 200.0, 400.0, 200.0],
        0.9,
        cost_per_sample=[1.0, 13.0, 13.0, 13.0],
    )
    agreement = fa.solve_agreement(consortium, punishment=fa.Suspension(None))
    assert agreement.exists
    assert fa.certify(agreement).holds
    assert agreement.cost.sum() <= 16_629.62
    assert agreement.cost.sum() < agreement.equilibrium.cost.sum()


# --- Why there is none ---------------------------------------------------------------------


def test_nothing_is_left_in_whole_samples() -> None:
    consortium = with_satiation([0.5, 0.9], [1.0, 1.0], 0.9)
    kept = fa.Suspension(1, model_keeps=0.01)
    assert fa.solve_agreement(consortium, objective="most data", punishment=kept).exists
    whole = fa.solve_agreement(
        consortium, objective="most data", punishment=kept, whole_samples=True
    )
    assert not whole.exists
    assert whole.reason == "in whole samples nothing is left of the agreement"


def test_a_single_client_gains_nothing() -> None:
    consortium = with_satiation([50.0], [100.0])
    agreement = fa.solve_agreement(consortium, punishment=fa.Suspension(1, model_keeps=0.01))
    assert not agreement.exists
    assert "it takes at least two clients" in str(agreement.reason)


def test_no_patience_at_all() -> None:
    consortium = with_patience(HOSPITALS, 0.0)
    for kept in (0.0, 0.01):
        agreement = fa.solve_agreement(consortium, punishment=fa.Suspension(1, model_keeps=kept))
        assert not agreement.exists
        assert "the clients are not patient enough" in str(agreement.reason)


# --- Records -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["individual", "uniform"])
def test_a_batch_takes_fees(kind: Any) -> None:
    saved = fa.Suspension(1, fees_saved=True)
    fees = np.array([[0.0], [100.0], [159.0], [170.0], [300.0], [2_000.0]])
    batch = fa.solve_batch(
        valuation=HOSPITALS.valuation,
        cost_per_sample=HOSPITALS.cost_per_sample,
        samples=HOSPITALS.samples,
        rounds=HOSPITALS.rounds,
        discount_factor=HOSPITALS.discount_factor,
        fees=fees,
        kind=kind,
        punishment=saved,
    )
    for row, fee in enumerate(fees[:, 0].tolist()):
        one = fa.solve_agreement(charging(fee), kind, objective="most data", punishment=saved)
        assert bool(batch.exists[row]) == one.exists
        np.testing.assert_allclose(batch.profile[row], one.profile, rtol=1e-9, atol=1e-9)
    if kind == "individual":
        assert len(set(np.round(batch.total))) > 2  # they matter


def test_rounding_makes_nobody_worse_off() -> None:
    """A client that gives nothing before and after cannot tell totals apart that only round."""
    consortium = with_satiation([10.0, 300.0, 300.0, 300.0], [50.0, 70.0, 80.0, 90.0])
    equilibrium = fa.solve_equilibrium(consortium)
    assert equilibrium.profile[0] == 0.0
    paid_more = False
    for tiny in (0.0, 1e-15, 1e-14):
        agreement = fa.agreement_on(consortium, equilibrium.profile * (1 - tiny), "suspension")
        paid_more |= bool(agreement.saving[0] < 0)
        assert not agreement.worse_than_equilibrium[0]
    assert paid_more
    less = fa.agreement_on(consortium, equilibrium.profile * 0.999, "suspension")
    assert less.worse_than_equilibrium[0]
