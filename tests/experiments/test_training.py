"""Accuracy and the law on a small dataset: shapes, seeds, intervals and known fits."""

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedaccord.experiments.figure_data import FigureData, read_figure_data
from fedaccord.experiments.figures import accuracy, law, training_kind
from fedaccord.experiments.figures.paper_law import fit_paper_law
from fedaccord.experiments.pictures import Width, save
from fedaccord.experiments.presets import TrainingPreset
from fedaccord.experiments.standard import half_width
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.paper import paper_consortium
from fedaccord.mechanisms.simple import OracleDetection
from tests.experiments.presets_for_tests import small_training

pytest.importorskip("torch")
pytest.importorskip("sklearn")

ACCURACY = small_training("accuracy", scales=[1.0, 0.1])
LAW = small_training("law", samples=[20, 100, 500], rounds=[1, 2, 5])
WIDER_LAW = small_training("law", samples=[20, 50, 100, 500], rounds=[1, 2, 5])


@pytest.mark.slow
def test_accuracy_has_one_row_per_round_and_is_reproducible() -> None:
    told: list[int] = []
    table = accuracy.run(ACCURACY, lambda done, _: told.append(done))
    assert told == list(range(accuracy.steps(ACCURACY)))
    assert table.swept.tolist() == [1, 2, 3, 4, 5, 6]
    assert table["slot"].tolist() == [1, 1, 1, 2, 2, 2]
    for size in (100, 10):
        for name in accuracy.MECHANISMS:
            assert (table[f"{name}_{size}_accuracy"] > 0.0).all()
            assert np.isfinite(table[f"{name}_{size}_loss_half"]).all()
        assert (table[f"equilibrium_{size}_gain"] == 0.0).all()
        alone = table[f"equilibrium_{size}_accuracy"]
        for name in accuracy.MECHANISMS:
            # the mean of differences is the difference of means, up to rounding
            gain = table[f"{name}_{size}_accuracy"] - alone
            np.testing.assert_allclose(table[f"{name}_{size}_gain"], gain, atol=1e-12)
            assert gain.any() == (name != "equilibrium")
        for key in ("accuracy", "loss", "gain"):
            for end in ("", "_half"):
                detection, papers = (
                    table[f"{name}_{size}_{key}{end}"] for name in ("detection", "equilibrium")
                )
                np.testing.assert_array_equal(detection, papers)
    assert accuracy.run(ACCURACY).as_csv() == table.as_csv()


def test_detection_trains_on_the_same_data_as_the_equilibrium() -> None:
    """So its columns need no runs of their own."""
    consortium = paper_consortium(**asdict(ACCURACY.setting))
    kept = OracleDetection().outcome(consortium).contributions
    np.testing.assert_array_equal(kept, solve_equilibrium(consortium).profile)


def test_the_verdict_on_a_gain_follows_its_sign() -> None:
    def told(gain: float) -> list[str]:
        names = ("equilibrium", "detection", "uniform", "individual", "contract")
        columns = {f"{name}_{size}_accuracy": 0.9 for name in names for size in (100, 10)}
        for size in (100, 10):
            columns |= {f"{name}_{size}_gain": gain for name in names}
            columns |= {f"{name}_{size}_gain_half": 0.01 for name in names}
        table = FigureData({name: np.array([value]) for name, value in columns.items()})
        return [claim.verdict for claim in accuracy.claims(table, ACCURACY)]

    no, open_ = "does not hold", "not decided"
    assert told(0.02) == ["holds", "holds", no, no] * 2
    assert told(-0.02) == [no, no, "holds", "holds"] * 2
    assert told(0.005) == [open_, open_, open_, no] * 2
    assert told(0.0) == [open_, open_, open_, "holds"] * 2


def test_the_plot_shows_the_measured_rounds() -> None:
    table = accuracy.run(ACCURACY)
    figure = accuracy.draw(table, ACCURACY, "two-columns")
    shown = ("100_accuracy", "100_loss", "10_accuracy", "10_loss")
    for axes, column in zip(figure.axes, shown, strict=True):
        lines = {line.get_label(): line for line in axes.get_lines()}
        for words, name in {
            "individual": "individual",
            "uniform (the paper's)": "uniform",
            "equilibrium, detection": "equilibrium",
            "contract design": "contract",
        }.items():
            drawn = lines[words].get_xydata()
            np.testing.assert_array_equal(
                drawn, np.column_stack([table.swept, table[f"{name}_{column}"]])
            )


@pytest.mark.slow
def test_the_law_is_drawn_next_to_the_measurements() -> None:
    table = law.run(WIDER_LAW)
    figure = law.draw(table, WIDER_LAW, "one-column")
    figure.draw_without_rendering()
    [legend] = figure.legends
    handles = legend.get_lines()
    assert [handle.get_label() for handle in handles] == [f"X = {x}" for x in (20, 50, 100, 500)]
    for key in ("get_marker", "get_linestyle", "get_color"):
        assert len({getattr(handle, key)() for handle in handles}) == 4
    for axes, column in zip(figure.axes, ("law", "separate"), strict=True):
        curves = [line for line in axes.get_lines() if line.get_linestyle() != "None"]
        points = [line for line in axes.get_lines() if line.get_marker() in list("o^sD")]
        for size, curve, dots in zip((20, 50, 100, 500), curves, points, strict=True):
            part = table.where(table["samples"] == size)
            drawn = np.column_stack([part["rounds"], part[column]])
            np.testing.assert_array_equal(curve.get_xydata(), drawn)
            x, y = np.asarray(dots.get_xydata()).T
            np.testing.assert_array_equal(y, part["loss"])
            # shifted by less than a fifth, so that none hides another
            np.testing.assert_allclose(x, part["rounds"], rtol=0.2)
        assert len({np.asarray(dots.get_xdata())[0] for dots in points}) == 4
        label, title = axes.yaxis.label.get_window_extent(), axes.title.get_window_extent()
        assert label.height < axes.get_window_extent().height
        outside = legend.get_window_extent()
        assert not outside.overlaps(label)
        assert not outside.overlaps(title)


@pytest.mark.slow
@pytest.mark.parametrize("preset", [ACCURACY, LAW], ids=["accuracy", "law"])
def test_plots_and_claims_are_made_from_the_csv(preset: TrainingPreset) -> None:
    kind = training_kind(preset)
    table = read_figure_data(kind.run(preset).as_csv())
    widths: tuple[Width, ...] = ("one-column", "two-columns")
    for width in widths:
        figure = kind.draw(table, preset, width)
        assert all(axes.get_ylabel() for axes in figure.axes)
    assert save(figure, preset.name)["svg"]
    claims = kind.claims(table, preset)
    assert claims
    assert all(claim.why or claim.verdict == "holds" for claim in claims)


def test_the_law_has_one_row_per_pair() -> None:
    table = law.run(LAW)
    assert table["samples"].tolist() == [20] * 3 + [100] * 3 + [500] * 3
    assert table["rounds"].tolist() == [1, 2, 5] * 3
    assert (table["loss"] > 0).all()


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.0, 1.0))
def test_a_loss_of_separate_terms_is_found(a: float, b: float, c: float) -> None:
    X, G = (grid.ravel() for grid in np.meshgrid([100.0, 1e3, 1e4], [1.0, 10.0, 100.0]))
    loss = a / np.sqrt(X) + b / np.sqrt(G) + c
    # three numbers from nine without noise: exact up to rounding
    np.testing.assert_allclose(law.fit_separate(X, G, loss), loss, rtol=1e-9)


def made_up(
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray], known: float = 1e-3
) -> FigureData:
    X, G = (grid.ravel() for grid in np.meshgrid([1e2, 1e3, 1e4], [1.0, 9.0, 81.0], indexing="ij"))
    half = np.full(X.shape, known)
    return FigureData({"samples": X, "rounds": G, "loss": loss(X, G), "loss_half": half})


def test_the_verdict_on_the_law_follows_the_losses() -> None:
    as_assumed = made_up(lambda X, G: 9 / np.sqrt(X * G) + 1 / G + 0.2)
    assert [claim.verdict for claim in law.claims(as_assumed, LAW)] == ["holds"] * 3
    otherwise = made_up(lambda X, G: 2 - np.log10(X) * np.log10(3 * G) / 5)
    assert [claim.verdict for claim in law.claims(otherwise, LAW)] == [
        "does not hold",
        "does not hold",
        "holds",
    ]


def test_differences_below_the_noise_are_not_decided() -> None:
    def loss(X: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.asarray(9 / np.sqrt(X * G) + 1 / G + 0.2)

    decided, unclear = (law.claims(made_up(loss, known), LAW) for known in (1e-3, 2.0))
    assert [claim.verdict for claim in decided[1:]] == ["holds"] * 2
    assert [claim.verdict for claim in unclear[1:]] == ["not decided"] * 2


def test_why_the_law_fails_is_computed() -> None:
    """Here more data increases the loss after one round, first by 0.1 and then by 0.2."""
    fails = made_up(lambda X, G: 1 / G + np.where(G == 1, 0.1, -0.1) * (np.log10(X) + (X == 1e4)))
    [fit, matters, helps] = law.claims(fails, LAW)
    assert fit.why == "; ".join(
        fit_paper_law(*(fails[c] for c in ("samples", "rounds", "loss"))).objections
    )
    assert matters.why == "the difference grows"
    assert matters.ours.endswith(": +0.60 ± 0.00")  # from -0.3 to 0.3
    assert helps.why == "it rises by more than chance"
    assert helps.ours == (
        "of 6 steps to more data 4 lower and 2 raise the loss by more than their interval; the "
        "largest rise is 0.2 ± 0.0014, from X = 1,000 to 10,000 at G = 1"
    )


def test_half_widths_are_those_of_students_t() -> None:
    values = np.array([[0.8, 0.1], [0.9, 0.2], [1.0, 0.6]])
    interval = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose(half_width(values), (interval.high - interval.low) / 2)
    assert np.isnan(half_width(values[:1])).all()
