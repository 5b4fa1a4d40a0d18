"""`fedaccord.calibrate`: the numbers of the command, from Python."""

from pathlib import Path
from typing import Any

import pytest

import fedaccord as fa
from fedaccord.files.consortium import example_text
from fedaccord.summaries.training import calibration_sentences


@pytest.fixture(scope="module")
def measured() -> Any:
    return fa.calibrate("digits", rounds=6, seeds=1, price_per_second=2.0, value_of_loss=10.0)


def test_the_numbers_follow_from_the_measurements(measured: Any) -> None:
    assert measured.cost_per_sample == pytest.approx(2 * 6 * measured.speed.seconds)
    assert measured.valuation == pytest.approx(10 * measured.law_at_the_end.data)
    assert measured.to_dict()["valuation"] == measured.valuation
    assert not any("--" in line for line in calibration_sentences(measured))


def test_the_numbers_are_written_to_a_file(measured: Any, tmp_path: Path) -> None:
    file = tmp_path / "consortium.toml"
    file.write_text(example_text(), encoding="utf-8")
    before = fa.load_consortium(file)
    file.write_text(measured.written_into(file, ["St Mary"]), encoding="utf-8")
    after = fa.load_consortium(file)
    n = before.index("St Mary")
    assert after.valuation[n] == measured.valuation
    assert (before.valuation != after.valuation).nonzero()[0].tolist() == [n]
    file.write_text(measured.written_into(file), encoding="utf-8")
    assert set(fa.load_consortium(file).cost_per_sample) == {measured.cost_per_sample}


def test_without_a_price_there_is_no_number(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    plain = fa.calibrate(rounds=4, seeds=1, progress=lambda *now: told.append(now))
    assert (plain.cost_per_sample, plain.valuation) == (None, None)
    assert told[0] == (0, 0, "Timing")
    assert told[-1] == (24, 24, "Training")
    with pytest.raises(fa.FedaccordError, match="neither a price nor a value of the loss"):
        plain.written_into(tmp_path / "consortium.toml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chip": 1.0}, "hertz: must be given together with chip"),
        ({"hertz": 1.0}, "chip: must be given together with hertz"),
        ({"chip": 1.0, "hertz": 1.0, "price_per_second": 1.0}, "price_per_second: must be given"),
        ({"price_per_second": 0.0}, "price_per_second: must be more than 0 and finite, got 0"),
        ({"value_of_loss": -1.0}, "value_of_loss: must be more than 0"),
        ({"seeds": 0}, "seeds: must be a whole number, 1 or more"),
        ({"rounds": 3}, "rounds: must be 4 or more to fit the law"),
    ],
)
def test_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        fa.calibrate(**options)
