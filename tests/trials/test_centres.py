"""Clients named after the centres of a dataset have these centres' records."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data import dataset as registry
from fedaccord.data.dataset import load_dataset
from fedaccord.data.own import OwnPartition, own_partition
from fedaccord.data.partition import RandomPartition
from fedaccord.membership.agreeing import group_curve
from fedaccord.membership.ways import Setting, Way
from fedaccord.summaries.calibration import calibration_sentences
from fedaccord.summaries.training import training_notes
from fedaccord.training.course import Course
from fedaccord.trials.setting import Clients, build_course
from tests.training.test_own_tests import survivors

SIZES = {"Uptown": 300, "Riverside": 200, "Harbour": 250}


def clinics() -> OwnPartition:
    """Three centres, each with a test and with its own level of the last feature."""
    rng = np.random.default_rng(0)
    direction = np.append(rng.normal(size=8), 0.0)

    def records(level: int, size: int) -> tuple[Any, Any]:
        inputs = rng.normal(size=(size, 9))
        labels = (inputs @ direction + rng.normal(size=size) > 0).astype(int)
        inputs[:, -1] += level
        return inputs, labels

    levels = enumerate(SIZES.items())
    data: dict[str, Any] = {name: records(level, size) for level, (name, size) in levels}
    data["test"] = {name: records(level, 150) for level, name in enumerate(SIZES)}
    return own_partition(data, list(SIZES), "clinics")


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.DATASETS, "clinics", lambda _: clinics())


def consortium(*names: str, samples: Any = 180) -> fa.Consortium:
    return fa.Consortium(
        names=names,
        valuation=[4.0] * len(names),
        cost_per_sample=0.004,
        samples=samples,
        rounds=10,
        discount_factor=0.9,
    )


def course(*names: str, dataset: Any = "clinics", **options: Any) -> Course:
    clients = Clients(names, np.full(len(names), 30.0), rounds=3)
    return build_course(clients, dataset=dataset, **options)


def levels_of(given: Course) -> list[int]:
    """The level of each client's examples, by the mean of the last feature."""
    partition = given.partition(1)
    parts = partition.draw(1)
    return [round(float(partition.dataset.inputs[rows, -1].mean())) for rows in parts]


def test_each_client_has_the_records_of_its_centre() -> None:
    found = course("Harbour", "Uptown", "Riverside")
    partition = found.partition(1)
    assert isinstance(partition, OwnPartition)
    assert (list(partition.sizes), partition.seed, found.scale) == ([250, 300, 200], 1, 1.0)
    assert levels_of(found) == [2, 0, 1]
    assert [len(rows) for rows in partition.tests] == [150, 150, 150]


def test_some_of_the_centres() -> None:
    found = course("Harbour", "Uptown")
    assert levels_of(found) == [2, 0]
    assert found.model.dataset.size == 550
    assert len(found.model.dataset.test_labels) == 300


def test_other_clients_draw_at_random_and_a_note_says_so() -> None:
    trial = fa.train(consortium("a", "b"), ["equilibrium"], dataset="clinics", seeds=1)
    partition = trial.course.partition(0)
    assert isinstance(partition, RandomPartition)
    assert partition.tests == ()
    assert training_notes(trial) == [
        "the examples of clinics are dealt out to the clients at random, since none of them is "
        "named after a centre that collected some (Uptown, Riverside, Harbour)"
    ]
    named = fa.train(consortium("Uptown", "Harbour"), ["equilibrium"], dataset="clinics", seeds=1)
    assert training_notes(named) == []


def test_clients_of_both_kinds_are_refused() -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        course("Harbour", "Elsewhere")
    assert str(refused.value) == (
        "dataset: 'Elsewhere' is no centre of clinics, but others are: name all clients after its "
        "centres (Uptown, Riverside, Harbour), or none of them"
    )


def test_more_samples_than_a_centre_has() -> None:
    with pytest.raises(fa.InvalidInput, match="Riverside: has 200 examples, but 245 samples"):
        fa.train(consortium("Uptown", "Riverside", samples=245), dataset="clinics")


def test_no_skew_of_the_centres_records() -> None:
    with pytest.raises(fa.InvalidInput, match="skew: cannot be combined with data, where each"):
        course("Harbour", "Uptown", skew=1.0)


def test_a_dataset_without_its_partition_is_dealt_out() -> None:
    found = course("Harbour", "Uptown", dataset=load_dataset("clinics"))
    assert isinstance(found.partition(0), RandomPartition)


def test_a_partition_given_as_data() -> None:
    """By the clients' names, or in its own order if they have none of its names."""
    own = clinics()
    assert levels_of(course("Harbour", "Uptown", dataset=None, data=own)) == [2, 0]
    assert levels_of(course("a", "b", "c", dataset=None, data=own)) == [0, 1, 2]
    with pytest.raises(fa.InvalidInput, match="data: has 3 clients, but there are 2"):
        course("a", "b", dataset=None, data=own)


CURVE: dict[str, Any] = {"rounds": 10, "seeds": 2, "measure": "loss", "smallest": 60}


def test_calibrate_takes_the_centres_as_clients() -> None:
    found = fa.calibrate("clinics", **CURVE)
    assert [score.name for score in found.alone] == list(SIZES)
    assert found.curve.largest == 750


@pytest.mark.parametrize(
    ("names", "alone"), [(("Harbour", "Uptown"), ["Harbour", "Uptown"]), (("a", "b"), [])]
)
def test_calibrate_for_a_consortium(names: tuple[str, ...], alone: list[str]) -> None:
    found = fa.calibrate("clinics", consortium=consortium(*names), **CURVE)
    assert [score.name for score in found.alone] == alone
    said = [line for line in calibration_sentences(found) if line.startswith("Note: ")]
    assert len(said) == (0 if alone else 1)
    assert tuple(found.course.names) == names


ERRORS = CURVE | {"measure": "error"}


@pytest.mark.slow
def test_calibrate_reports_own_tests_alone_and_together() -> None:
    """Both with 95 % intervals, as `train` has them for the same models."""
    found = fa.calibrate("clinics", **ERRORS)
    given = {"dataset": "clinics", "rounds": CURVE["rounds"], "seeds": CURVE["seeds"]}
    some = consortium(*SIZES, samples=list(SIZES.values()))
    only = {name: row * some.samples for name, row in zip(SIZES, np.eye(3), strict=True)}
    trial = fa.train(some, {"all": some.samples} | only, **given)
    everyone, *lone = trial.scores
    for n, score in enumerate(found.alone):
        assert score.own is not None
        assert score.together is not None
        alone, together = (each.clients[n].accuracy for each in (lone[n], everyone))
        assert (1 - score.own.mean, score.own.half_width) == pytest.approx(
            (alone.mean, alone.half_width)
        )
        assert (1 - score.together.mean, score.together.half_width) == pytest.approx(
            (together.mean, together.half_width)
        )
        assert score.half_width == pytest.approx(lone[n].accuracy.half_width)
    told = "\n".join(calibration_sentences(found))
    first = found.alone[0]
    assert first.own is not None
    assert f" (on its own test {first.own.mean:.3g} ± {first.own.half_width:.2g}, and " in told
    assert " with all members' model)" in told
    assert "over the seeds; on own tests, over seeds and test examples." in told


def test_calibrate_with_fine_tuning_is_about_personal_models() -> None:
    """The same curve as `join` measures for a group's agreement."""
    own = clinics()
    found = fa.calibrate("clinics", fine_tuning=2, **ERRORS)
    setting = Setting(own, found.model.task, CURVE["rounds"])
    way = Way(found.course.local, fine_tuning=2)
    by_group = group_curve(setting, way, seeds=CURVE["seeds"])
    assert found.curve.by_example is not None
    assert by_group.by_example is not None
    common = set(found.curve.sizes.tolist()) & set(by_group.sizes.tolist())
    assert len(common) > 3
    for size in common:
        [here], [there] = (np.flatnonzero(each.sizes == size) for each in (found.curve, by_group))
        assert found.curve.values[here] == pytest.approx(by_group.values[there])
        assert found.curve.by_example[here] == pytest.approx(by_group.by_example[there])
    assert found.curve.examples == 3 * 150
    assert found.to_dict()["fine_tuning"] == 2
    assert np.isnan(found.alone[0].by_law)  # the law is about another test
    lines = calibration_sentences(found)
    assert "(fine-tuned by each client for 2 epochs, on its own test)" in lines[0]
    assert any(line.endswith("with all members' model, fine-tuned).") for line in lines)


def test_calibrate_refuses_fine_tuning_that_nobody_could_judge() -> None:
    with pytest.raises(fa.InvalidInput, match="needs a test of each client's own to judge by"):
        fa.calibrate("clinics", consortium=consortium("a", "b"), fine_tuning=2, **ERRORS)
    data = {name: survivors(name) for name in ("one", "two", "three", "test")}
    data["test"]["two"]["event"][:] = False
    with pytest.raises(fa.InvalidInput, match="two: its own test has no two examples of which"):
        fa.calibrate(data=data, fine_tuning=2, **ERRORS)


def test_runs_that_differ_by_rounding_have_no_interval() -> None:
    found = fa.calibrate("clinics", **ERRORS)
    same = replace(found.alone[0], half_width=3.9e-17)
    vars(found)["alone"] = (same, *found.alone[1:])
    assert f": error {same.value:.3g} (on its own test" in "".join(calibration_sentences(found))


def test_calibrate_with_a_partition_given_as_data() -> None:
    own = clinics()
    assert [one.name for one in fa.calibrate(data=own, **CURVE).alone] == list(SIZES)
    found = fa.calibrate(data=own, consortium=consortium("Harbour", "Uptown"), **CURVE)
    assert [one.name for one in found.alone] == ["Harbour", "Uptown"]
