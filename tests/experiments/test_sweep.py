"""Sweeps against solving the points one by one, and against the mechanisms."""

from dataclasses import asdict, replace

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.experiments.figures.mechanisms import beside_others
from fedaccord.experiments.presets import Preset, find_preset
from fedaccord.experiments.sweep import least_patience, sweep
from fedaccord.mechanisms.contract.contract import Contract
from fedaccord.mechanisms.simple import OracleDetection
from tests.experiments.presets_for_tests import few

ONE_OF_EACH_SWEEP = ("fig3", "fig5", "fig11", "fig13", "fig15")


def consortium_at(preset: Preset, value: float) -> fa.Consortium:
    whole = preset.parameter in ("clients", "rounds")
    fields = asdict(preset.setting) | {preset.parameter: int(value) if whole else value}
    return fa.paper_consortium(**fields)


@pytest.mark.parametrize("name", ONE_OF_EACH_SWEEP)
def test_a_sweep_equals_the_points_solved_one_by_one(name: str) -> None:
    preset = few(name)
    table = sweep(preset)
    assert table.parameter == preset.parameter
    for k, value in enumerate(preset.values):
        alone = fa.solve_equilibrium(consortium_at(preset, value))
        row = {column: table[column][k] for column in table.columns}
        assert row["case"] == alone.case
        assert row["free_riders"] == alone.free_riders
        assert row["contributors"] == alone.consortium.size - alone.free_riders
        # the same numbers summed in two ways
        assert row["total"] == pytest.approx(alone.total, rel=1e-12)
        for kind in ("uniform", "individual"):
            agreement = fa.solve_agreement(alone, kind)
            assert row[f"{kind}_removed"] == agreement.free_riders_removed
            assert row[f"{kind}_contributors"] == alone.consortium.size - agreement.free_riders
            assert row[f"{kind}_total"] == pytest.approx(agreement.total, rel=1e-9)
            assert row[f"{kind}_ratio"] == pytest.approx(agreement.ratio, rel=1e-9)


@pytest.mark.parametrize("name", ["fig8", "fig19", "fig21", "fig23"])
def test_thresholds_are_those_of_the_certificate(name: str) -> None:
    """Of client l, if converted clients contribute all they have; above 1 no patience suffices."""
    preset = few(name)
    compared = 0
    for value, threshold in zip(preset.values, sweep(preset)["threshold"], strict=True):
        alone = fa.solve_equilibrium(consortium_at(preset, value))
        first = fa.solve_agreement(alone, "uniform").first_converted
        if first is None:
            assert np.isnan(threshold)
            continue
        n = alone.consortium.names.index(first)
        converted = (alone.profile == 0) & (np.arange(alone.consortium.size) >= n)
        profile = np.where(converted, alone.consortium.samples, alone.profile)
        expected = fa.certify(fa.agreement_on(alone.consortium, profile)).threshold
        assert expected[converted].max() == expected[n]
        if threshold < 1:
            assert threshold == pytest.approx(expected[n], rel=1e-9)
            compared += 1
        else:
            assert expected[n] == np.inf
    assert compared > 0


@pytest.mark.parametrize("name", ["fig7", "fig9", "fig18", "fig20", "fig22"])
def test_columns_of_mechanisms_match_the_mechanisms(name: str) -> None:
    preset = few(name, 5)
    table = beside_others(preset)
    for k, value in enumerate(preset.values):
        consortium = consortium_at(preset, value)
        for mechanism in (OracleDetection(), Contract()):
            outcome = mechanism.outcome(consortium)
            contributors = consortium.size - outcome.free_riders
            assert table[f"{mechanism.name}_contributors"][k] == contributors
            assert table[f"{mechanism.name}_total"][k] == pytest.approx(outcome.total, rel=1e-12)


def test_contract_design_as_the_paper_reports_it() -> None:
    by_clients = beside_others(replace(find_preset("fig18"), values=(100.0, 101.0, 181.0, 200.0)))
    assert by_clients["contract_contributors"].tolist() == [20, 21, 37, 40]
    by_cost = beside_others(replace(find_preset("fig22"), values=(1e-8, 7.9e-8, 7.91e-8)))
    assert by_cost["contract_contributors"].tolist() == [20, 20, 0]


def test_the_table_of_agreements() -> None:
    table = sweep(replace(find_preset("fig4"), values=(100.0, 181.0, 200.0)))
    assert table["total"].round().tolist() == [505_063, 610_000, 626_035]
    assert table["uniform_total"].round().tolist() == [887_448, 1_112_571, 1_134_047]
    assert table["individual_total"].round().tolist() == [993_957, 1_800_192, 1_989_130]


def test_no_uniform_agreement_below_05106() -> None:
    assert least_patience() == pytest.approx(0.5106, abs=0.00005)
