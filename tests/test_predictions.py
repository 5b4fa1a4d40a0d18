"""The benchmarks of predictions, in small; and the page that keeps their tables."""

from pathlib import Path

import pytest

from benchmarks import predictions, simulated_calibrations
from benchmarks.prediction_case import Case, Prediction, Setting
from benchmarks.tables import on_page, put_on_page, read_csv, write_csv


@pytest.fixture(scope="module")
def found() -> list[Prediction]:
    case = Case(Setting("breast-cancer", "softmax", 290, 139, rounds=8, seeds=3), split=0)
    return [one for one in case.predictions() if isinstance(one, Prediction)]


@pytest.mark.slow
def test_a_case_predicts_and_measures(found: list[Prediction]) -> None:
    assert {one.measured_range for one in found} == {"all", "half"}
    for one in found:
        assert one.low < one.predicted < one.high
        assert one.high_same - one.low_same < one.high - one.low
        assert one.equilibrium == pytest.approx(0.434, abs=0.01)
        assert one.agreed > one.equilibrium


def test_the_three_parts_of_the_data_have_no_example_in_common() -> None:
    case = Case(Setting("breast-cancer", "softmax", 290, 139), split=1)
    parts = (case.data.inputs, case.data.test_inputs, case.others[0])
    rows = [{row.tobytes() for row in part} for part in parts]
    assert [len(part) for part in parts] == [290, 139, 139]
    assert len(rows[0] | rows[1] | rows[2]) == 290 + 139 + 139


def test_results_are_kept(found: list[Prediction], tmp_path: Path) -> None:
    file, page = tmp_path / "found.csv", tmp_path / "page.md"
    write_csv(file, found)
    assert read_csv(file, Prediction) == found
    page.write_text("a\n\n<!-- table: summary -->\n\nold\n\n<!-- end of table -->\nb\n")
    table = predictions.tables(found)["summary"]
    put_on_page(page, {"summary": table})
    assert page.read_text(encoding="utf-8").startswith("a\n")
    assert on_page(page.read_text(encoding="utf-8"), "summary") == table


def test_the_page_shows_the_results_that_are_kept() -> None:
    text = predictions.PAGE.read_text(encoding="utf-8")
    kept = predictions.tables(read_csv(predictions.FILE, Prediction))
    outcomes = read_csv(simulated_calibrations.FILE, simulated_calibrations.Outcome)
    bands = read_csv(simulated_calibrations.BAND_FILE, simulated_calibrations.Coverage)
    for name, table in (kept | simulated_calibrations.tables(outcomes, bands)).items():
        assert on_page(text, name) == table, f"run the benchmark again: {name}"


def test_the_kept_gains_lie_in_their_bands_as_often_as_promised() -> None:
    kept = predictions.stable(read_csv(predictions.FILE, Prediction))
    cases = [one for one in kept if one.measured_range == "all"]
    assert len(cases) >= 30
    assert sum(one.covered for one in cases) >= 0.8 * len(cases)
    assert sum(one.covered_same for one in cases) >= 0.8 * len(cases)


@pytest.mark.slow
def test_an_agreement_for_all_laws_holds_under_the_truth_more_often() -> None:
    simulation = simulated_calibrations.simulate("two bends", curves=3)
    made = {one.made_for: one for one in simulated_calibrations.outcomes_of(simulation)}
    robust, fit = made[simulated_calibrations.ROBUST], made["the fit"]
    assert robust.holds >= fit.holds
    assert robust.total < fit.total
    assert 0 <= simulated_calibrations.coverage_of(simulation).by_resampling <= 3
