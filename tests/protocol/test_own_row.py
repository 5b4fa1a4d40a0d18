"""A client's own half of the mathematics, against what server and certificate say of all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.own_row import OwnRow, own_row
from fedaccord.protocol.standing import Standing, own_equilibrium, standings_of
from tests.consortia import consortia


def rows_agree(agreement: fa.Agreement) -> None:
    """Each client's own row, from its numbers and the totals alone, is the certificate's."""
    certificate, consortium = fa.certify(agreement), agreement.consortium
    for n, client in enumerate(consortium):
        row = own_row(
            valuation=client.valuation,
            cost_per_sample=client.cost_per_sample,
            samples=client.samples,
            discount_factor=float(client.discount_factor or 0.0),
            communication_cost=client.communication_cost,
            contribution=float(agreement.profile[n]),
            total=agreement.total,
            equilibrium_contribution=float(agreement.equilibrium.profile[n]),
            equilibrium_total=agreement.equilibrium.total,
            rounds=consortium.rounds,
            law=consortium.law,
            punishment=fa.Reversion(agreement.punishment.slots),
        )
        assert row.keeps == (certificate.keeps[n] and certificate.punishment_holds[n])
        # The others' contributions are added up in another order; rounding is all that differs,
        # and a threshold is a quotient of differences, so it is amplified there.
        scale = certificate.cost_equilibrium[n]
        assert row.cost_agreement == pytest.approx(
            certificate.cost_agreement[n] - consortium.server_fee, abs=1e-9 * scale
        )
        assert row.deviation == pytest.approx(certificate.deviation[n], abs=1e-6 * client.samples)
        if np.isfinite(certificate.threshold[n]):
            assert row.threshold == pytest.approx(certificate.threshold[n], abs=1e-5)


@pytest.mark.slow
@given(consortia(), st.sampled_from(["individual", "uniform"]), st.sampled_from([None, 1, 5]))
def test_own_rows_are_the_certificate_s(
    consortium: fa.Consortium, kind: str, punishment_slots: int | None
) -> None:
    rows_agree(
        fa.solve_agreement(
            consortium,
            kind,  # type: ignore[arg-type]
            margin=0.02,
            punishment=fa.Reversion(punishment_slots),
        )
    )


@pytest.mark.slow
def test_own_rows_of_the_paper_s_clients() -> None:
    rows_agree(fa.solve_agreement(fa.paper_consortium(), "uniform", whole_samples=True))


def test_rounding_does_not_cause_a_refusal() -> None:
    """Nothing can be agreed on, so all stays as it is; the totals differ in the last digit."""
    consortium = fa.Consortium(
        valuation=[20.9, 9.9, 39.8, 22.0, 22.6, 9.4, 13.1, 23.7, 17.9],
        cost_per_sample=1.0,
        samples=0.7,
        rounds=1,
        discount_factor=0.05,
    )
    agreement = fa.solve_agreement(consortium, margin=0.02)
    assert not agreement.exists
    rows_agree(agreement)


@pytest.mark.slow
def test_a_client_that_would_slip_refuses() -> None:
    consortium = fa.paper_consortium(clients=100)
    agreement = fa.agreement_on(consortium, np.full(100, 10_000.0))
    certificate = fa.certify(agreement)
    assert not certificate.holds
    rows_agree(agreement)


def row_of(equilibrium_contribution: float, equilibrium_total: float) -> OwnRow:
    """A client that contributes nothing when the others give more than h = 34.2."""
    return own_row(
        valuation=20.0,
        cost_per_sample=0.05,
        samples=120,
        discount_factor=0.9,
        contribution=5,
        total=97,
        equilibrium_contribution=equilibrium_contribution,
        equilibrium_total=equilibrium_total,
        rounds=1,
    )


def test_a_punishment_that_it_would_leave_does_not_count() -> None:
    """However bad a punishment is for a client, if it would not stick to it, it is no threat."""
    told, forged = row_of(0.0, 67.0), row_of(20.0, 67.0)
    assert told.keeps
    assert forged.threshold < told.threshold < 0.9  # by the threat alone it would keep on
    assert not forged.keeps


def test_whole_numbers_are_numbers() -> None:
    assert row_of(0, 67) == row_of(0.0, 67.0)
    assert row_of(20, 67) == row_of(20.0, 67.0)


@given(consortia(whole_data=True))
def test_a_client_s_own_equilibrium_is_the_server_s(consortium: fa.Consortium) -> None:
    equilibrium = fa.solve_equilibrium(consortium)
    for n, (client, standing) in enumerate(
        zip(consortium, standings_of(fa.solve_equilibrium(consortium)), strict=True)
    ):
        own = own_equilibrium(
            client.valuation / client.cost_per_sample,
            int(client.samples),
            consortium.law,
            standing,
        )
        if client.samples == int(client.samples):
            assert own == pytest.approx(equilibrium.profile[n], abs=1e-9 * client.samples + 1e-9)


def test_equal_data_need_rank_and_number_alone() -> None:
    for rank, standing in enumerate(
        standings_of(fa.solve_equilibrium(fa.paper_consortium(clients=7))), start=1
    ):
        assert standing == Standing(rank, 7)


def test_tied_clients_share_as_the_server_says() -> None:
    consortium = fa.Consortium(
        valuation=[4e3, 4e3, 1e3],
        cost_per_sample=1.0,
        samples=[100, 100, 100],
        rounds=5,
        discount_factor=0.8,
    )
    standings = standings_of(fa.solve_equilibrium(consortium))
    assert standings[0] == Standing(1 + 1, 3, 0, 200)
    assert standings[2] == Standing(1, 3)
    own = [own_equilibrium(4e3, 100, consortium.law, standing) for standing in standings[:2]]
    assert own == pytest.approx(fa.solve_equilibrium(consortium).profile[:2])
