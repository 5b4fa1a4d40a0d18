"""`fedaccord.calibrate`: the law on real data, from Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.consortium import example_text
from fedaccord.files.curve import curve_text, load_curve
from fedaccord.summaries.calibration import calibration_sentences, measured_sentence


@pytest.fixture(scope="module")
def measured() -> Any:
    return fa.calibrate(
        "digits", rounds=20, seeds=3, measure="loss", smallest=60, price_per_second=2.0
    )


@pytest.mark.slow
def test_the_law_is_fitted_to_the_curve(measured: Any) -> None:
    law, curve = measured.law, measured.curve
    assert (law.kind, law.measure, curve.largest) == ("measured", "loss", 1438)
    assert (len(curve.seeds), curve.examples) == (3, 359)
    assert law.loss(curve.sizes) == pytest.approx(curve.mean, rel=0.15)
    low, high = law.evidence.band(curve.sizes)
    assert (low < curve.mean).all()
    assert (curve.mean < high).all()


def test_the_cost_follows_from_the_seconds(measured: Any) -> None:
    assert measured.cost_per_sample == pytest.approx(2 * 20 * measured.speed.seconds)
    assert measured.to_dict()["cost_per_sample"] == measured.cost_per_sample
    assert [one["family"] for one in measured.to_dict()["candidates"]] == [
        *("measured", "power", "paper"),
    ]


def test_the_sentences_name_no_options(measured: Any) -> None:
    lines = calibration_sentences(measured)
    assert lines[0].startswith("Measured with softmax on digits: the loss after 20 rounds, at ")
    assert not any("--" in line for line in lines)


def test_nothing_but_the_law_is_written(measured: Any, tmp_path: Path) -> None:
    file = tmp_path / "consortium.toml"
    file.write_text(example_text(), encoding="utf-8")
    before = fa.load_consortium(file)
    (tmp_path / "curve.csv").write_text(curve_text(measured.curve), encoding="utf-8")
    file.write_text(measured.written_into(file), encoding="utf-8")
    after = fa.load_consortium(file)
    for field in ("valuation", "cost_per_sample", "samples", "discount_factor"):
        assert np.array_equal(getattr(before, field), getattr(after, field))
    totals = np.array([100.0, 700.0])
    assert after.law.loss(totals) == pytest.approx(measured.law.loss(totals), rel=1e-9)


def test_a_consortium_larger_than_the_dataset_is_scaled() -> None:
    consortium = fa.paper_consortium(clients=4, samples=10_000, rounds=5)
    found = fa.calibrate("digits", consortium=consortium, seeds=1, smallest=300)
    assert found.rounds == 5
    assert found.course.scale == pytest.approx(1438 / 40_000)
    assert found.curve.largest == pytest.approx(40_000, rel=0.01)
    assert found.alone == ()


def _members(rng: np.random.Generator) -> dict[str, Any]:
    """Two members with examples of the same kind, and one whose labels are often wrong."""
    direction = rng.normal(size=8)

    def draw(size: int, wrong: float) -> tuple[Any, Any]:
        inputs = rng.normal(size=(size, 8)).astype(np.float32)
        labels = (inputs @ direction + rng.normal(size=size) > 0).astype(np.int64)
        flipped = rng.random(size) < wrong
        return inputs, np.where(flipped, 1 - labels, labels)

    return {"North": draw(300, 0), "South": draw(200, 0), "East": draw(200, 0.4)} | {
        "test": draw(500, 0)
    }


@pytest.mark.slow
def test_members_with_data_of_their_own_are_measured_alone() -> None:
    data = _members(np.random.default_rng(0))
    found = fa.calibrate(data=data, rounds=10, seeds=4, measure="loss", smallest=60)
    assert found.curve.largest == 700
    assert [score.name for score in found.alone] == ["North", "South", "East"]
    north, _, east = found.alone
    assert north.samples == 300
    assert east.value > north.value
    assert east.worth < north.worth
    assert any(line.startswith("East alone, with its 200") for line in calibration_sentences(found))


def test_a_folder_with_a_file_for_each_member(tmp_path: Path) -> None:
    for name, (inputs, labels) in _members(np.random.default_rng(1)).items():
        np.savez(tmp_path / f"{name}.npz", inputs=inputs, labels=labels)
    found = fa.calibrate(data=tmp_path, rounds=5, seeds=2, measure="loss", smallest=100)
    assert sorted(score.name for score in found.alone) == ["East", "North", "South"]


def test_a_call_that_was_over_is_not_repeated(tmp_path: Path) -> None:
    given: dict[str, Any] = {"rounds": 4, "seeds": 1, "smallest": 300}
    given["checkpoint"] = tmp_path / "curve.csv.part"
    told: list[tuple[int, int, str]] = []
    first = fa.calibrate(**given, progress=lambda *now: told.append(now))
    assert told[0] == (0, 0, "Timing")
    assert told[-1] == (5, 5, "Training")
    again = fa.calibrate(**given)
    assert np.array_equal(first.curve.values, again.curve.values)
    with pytest.raises(fa.FedaccordError, match="belongs to another measurement"):
        fa.calibrate(**given | {"rounds": 5})


def test_the_optimiser_reaches_the_training() -> None:
    given: dict[str, Any] = {"dataset": "digits", "rounds": 3, "seeds": 1, "smallest": 500}
    usual, other = fa.calibrate(**given), fa.calibrate(**given, server="fedyogi")
    assert not np.array_equal(usual.curve.values, other.curve.values)
    words = "with softmax on digits (FedYogi, rate 0.1, beta1 0.9, beta2 0.99, tau 0.001): the"
    assert words in measured_sentence(other)
    assert "with softmax on digits: the" in measured_sentence(usual)
    assert (usual._facts()["optimiser"], other._facts()["optimiser"]) == ("fedavg", "fedyogi")


def test_a_curve_that_rises_is_refused_when_a_law_is_asked_for() -> None:
    found = fa.calibrate("breast-cancer", rounds=4, seeds=2, measure="loss", smallest=40)
    state = found.curves.state
    state.values["loss"][:] = np.arange(len(found.curves.sizes))[:, np.newaxis] + 1.0
    state.by_example["loss"][:] = 1.0
    with pytest.raises(fa.InvalidInput, match="more data made it worse"):
        _ = found.law


def test_the_curve_survives_a_round_trip(measured: Any, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(curve_text(measured.curve), encoding="utf-8")
    again = load_curve(tmp_path / "c.csv", "loss")
    assert np.array_equal(again.values, measured.curve.values)
    assert np.array_equal(np.asarray(again.by_example), measured.curve.by_example)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chip": 1.0}, "hertz: must be given together with chip"),
        ({"hertz": 1.0}, "chip: must be given together with hertz"),
        ({"chip": 1.0, "hertz": 1.0, "price_per_second": 1.0}, "price_per_second: must be given"),
        ({"price_per_second": 0.0}, "price_per_second: must be more than 0 and finite, got 0"),
        ({"seeds": 0}, "seeds: must be a whole number, 1 or more"),
        ({"rounds": 0}, "rounds: must be a whole number, 1 or more"),
        ({"measure": "accuracy"}, "measure: must be one of 'error', 'loss', got 'accuracy'"),
        ({"smallest": 1000}, "a curve needs 4"),
        ({"data": lambda name: name}, "data: a function of a client's name needs a consortium"),
        ({"dataset": "digits", "data": {}}, "dataset: cannot be combined with data"),
    ],
)
def test_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        fa.calibrate(**options)
