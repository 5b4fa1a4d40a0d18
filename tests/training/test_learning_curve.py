"""Learning curves: nested subsets, the same start, both measures by example, and resuming."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.training import learning_curve
from fedaccord.training.course import Course, train
from fedaccord.training.curve_store import CurveFile, identity_of
from fedaccord.training.engine import GradientStep, LocalEpochs
from fedaccord.training.learning_curve import (
    MEASURED,
    CurveState,
    deal,
    measure_curves,
    spread_sizes,
)
from fedaccord.training.optimisers import FedAdam
from fedaccord.training.task import Model, find_task

SIZES = [40, 100, 200, 400]


def course(local: GradientStep | LocalEpochs | None = None, rounds: int = 4) -> Course:
    digits = load_dataset("digits")
    return Course(
        Model(find_task("softmax"), digits),
        lambda seed: RandomPartition(digits, [300, 200, 100], seed),
        rounds,
        local or GradientStep(0.5),
        names=("a", "b", "c"),
    )


def test_sizes_are_in_steps_of_the_root_of_two_up_to_all() -> None:
    sizes = spread_sizes(6400)
    assert (sizes[0], sizes[-1], len(sizes)) == (100, 6400, 13)
    assert np.diff(np.log2(sizes)) == pytest.approx(0.5, abs=0.02)
    assert spread_sizes(100) == [12, 18, 25, 35, 50, 71, 100]
    assert spread_sizes(1000, smallest=300) == [354, 500, 707, 1000]
    with pytest.raises(InvalidInput, match="a curve needs 4"):
        spread_sizes(1000, smallest=400)


def test_every_beginning_is_shared_in_proportion() -> None:
    dealt = deal([np.arange(300), np.arange(200), np.arange(100)])
    for size in SIZES:
        counts = np.bincount(dealt[:size], minlength=3)
        assert np.abs(counts - size * np.array([3, 2, 1]) / 6).max() <= 1


@pytest.mark.parametrize("local", [GradientStep(0.5), LocalEpochs(0.1, batch=16)])
def test_a_value_is_that_of_a_slot_on_as_many_samples(
    local: GradientStep | LocalEpochs,
) -> None:
    """The same numbers as `train` gives: 200 samples are 100, 67 and 33."""
    given = course(local)
    curves = measure_curves(given, [200, 600], 2)
    counts = np.bincount(deal(given.partition(1).draw(1))[:200], minlength=3)
    by_hand = train(given, counts, seed=1).final
    assert curves.state.values["loss"][0, 1] == pytest.approx(by_hand.loss, rel=1e-5)
    assert curves.state.values["error"][0, 1] == pytest.approx(1 - by_hand.accuracy)
    whole = train(given, [300, 200, 100], seed=0).final
    assert curves.state.values["loss"][1, 0] == pytest.approx(whole.loss, rel=1e-5)


def test_values_by_example_add_up() -> None:
    curves = measure_curves(course(), SIZES, 3)
    for measure in MEASURED:
        curve = curves.curve(measure)
        assert curve.by_example is not None
        assert curve.by_example.shape == (4, 359)
        assert curve.by_example.mean(axis=1) == pytest.approx(curve.mean)
    assert curves.curve("error", scale=0.1).sizes.tolist() == [400, 1000, 2000, 4000]


def test_members_alone_train_on_their_own_examples() -> None:
    given = course()
    curves = measure_curves(given, SIZES, 2, alone=True)
    by_hand = train(given, [0, 200, 0], seed=1).final
    assert curves.state.alone["loss"].shape == (3, 2)
    assert curves.state.alone["loss"][1, 1] == pytest.approx(by_hand.loss, rel=1e-5)


def kill_after(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the measurement stop, as if killed, when this many runs are over."""
    trained = learning_curve._train
    left = iter(range(runs))

    def some(*arguments: object) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return trained(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(learning_curve, "_train", some)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Course, int], CurveFile]:
    monkeypatch.setattr("fedaccord.training.curve_store._SECONDS_BETWEEN", 0.0)
    return lambda given, seeds: CurveFile(
        tmp_path / "curve.csv.part", identity_of(given, SIZES, seeds, True)
    )


@pytest.mark.parametrize("runs", [1, 5, 9])
def test_a_killed_measurement_goes_on_to_the_same_numbers(
    runs: int, store: Callable[[Course, int], CurveFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = course()
    whole = measure_curves(given, SIZES, 2, alone=True).state
    with monkeypatch.context() as patch:
        kill_after(runs, patch)
        with pytest.raises(KeyboardInterrupt):
            measure_curves(given, SIZES, 2, alone=True, store=store(given, 2))
    saved = store(given, 2).load()
    assert saved is not None
    over = sum(int((~np.isnan(values["loss"])).sum()) for values in (saved.values, saved.alone))
    assert over == runs
    kill_after(14 - runs, monkeypatch)
    resumed = measure_curves(given, SIZES, 2, alone=True, store=store(given, 2)).state
    for name in ("values", "by_example", "alone"):
        for measure in MEASURED:
            first, second = getattr(whole, name)[measure], getattr(resumed, name)[measure]
            assert np.array_equal(first, second)


def test_another_measurement_is_not_resumed(
    store: Callable[[Course, int], CurveFile],
) -> None:
    given = course()
    file = store(given, 2)
    file.save(CurveState.empty(4, 2, 359, 3), at_once=True)
    assert store(given, 2).load() is not None
    with pytest.raises(FedaccordError, match=r"another measurement \(rounds: 4, now 5\)"):
        store(course(rounds=5), 2).load()
    with pytest.raises(FedaccordError, match=r"another measurement \(seeds: 2, now 3\)"):
        store(given, 3).load()
    with pytest.raises(FedaccordError, match=r"\(server optimiser: none, now FedAdam, rate 0.1"):
        store(replace(given, server=FedAdam()), 2).load()
    file.path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(FedaccordError, match="is not a measurement to resume from"):
        store(given, 2).load()
