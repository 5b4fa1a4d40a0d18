"""Who holds what while it is valued: the same with every seed, with tests of the same mixture."""

from pathlib import Path

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.own import OwnPartition
from fedaccord.errors import InvalidInput
from fedaccord.membership.holdings import holders_course, mixture_test
from fedaccord.training.course import Course
from tests.membership.clinics import NAMES, clinics


def held(course: Course) -> OwnPartition:
    partition = course.partition(0)
    assert isinstance(partition, OwnPartition)
    return partition


def test_what_is_drawn_is_the_same_with_every_seed() -> None:
    course = holders_course(dataset="digits", clients=4, skew=0.3)
    first, second = (course.partition(seed).draw(1) for seed in (0, 1))
    for own, again in zip(first, second, strict=True):
        assert sorted(own) == sorted(again)
        assert own.tolist() != again.tolist()
    other = holders_course(dataset="digits", clients=4, skew=0.3, seed=1)
    labels = [np.bincount(held(one).dataset.labels[:359]) for one in (course, other)]
    assert labels[0].tolist() != labels[1].tolist()


def test_skewed_clients_have_tests_of_their_own_mixture() -> None:
    partition = held(holders_course(dataset="digits", clients=4, skew=0.5))
    data, ends = partition.dataset, np.cumsum(partition.sizes)
    for end, size, test in zip(ends, partition.sizes, partition.tests, strict=True):
        own, tested = data.labels[end - size : end], data.test_labels[test]
        mixture = np.bincount(own, minlength=10) / size
        assert np.bincount(tested, minlength=10) / len(test) == pytest.approx(mixture, abs=0.03)
        assert len(set(test)) == len(test)


def test_clients_drawn_alike_have_the_common_test_alone() -> None:
    partition = held(holders_course(dataset="digits"))
    assert len(partition.tests) == 0
    assert list(partition.names) == [f"client-{n}" for n in range(1, 6)]
    assert list(partition.sizes) == [287] * 5


def test_a_label_that_is_not_tested() -> None:
    labels, tested = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0, 1])
    assert mixture_test(labels, tested).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_consortium_says_who_has_how_much() -> None:
    consortium = fa.Consortium(
        valuation=1.0,
        cost_per_sample=1.0,
        samples=[300, 200],
        rounds=7,
        discount_factor=0.5,
        names=["North", "South"],
    )
    course = holders_course(consortium, dataset="digits")
    assert (list(held(course).sizes), course.rounds) == ([300, 200], 7)
    assert list(course.names) == ["North", "South"]


def clinic_consortium(samples: list[float]) -> fa.Consortium:
    return fa.Consortium(
        names=NAMES,
        valuation=1.0,
        cost_per_sample=1.0,
        samples=samples,
        rounds=7,
        discount_factor=0.5,
    )


def test_a_consortium_says_how_many_of_its_own_records_each_has() -> None:
    whole = clinics(tested=40)
    course = holders_course(clinic_consortium([10, 30, 20]), data=whole)
    first, second = (course.partition(seed).draw(1) for seed in (0, 1))
    assert [len(own) for own in first] == list(held(course).sizes) == [10, 30, 20]
    assert [sorted(own) for own in first] == [sorted(own) for own in second]
    assert [len(test) for test in held(course).tests] == [40, 40, 40]
    north = held(course).dataset.inputs[:10]
    assert {tuple(row) for row in north} < {tuple(row) for row in whole.dataset.inputs[:30]}
    other = held(holders_course(clinic_consortium([10, 30, 20]), data=whole, seed=1))
    assert not np.array_equal(other.dataset.inputs[:10], north)


def test_all_of_the_records_stay_as_they_are() -> None:
    whole = clinics()
    assert held(holders_course(clinic_consortium([30, 30, 30]), data=whole)).dataset is (
        whole.dataset
    )


def test_the_scale_is_in_records_per_sample() -> None:
    for consortium in (clinic_consortium([30, 30, 30]), None):
        course = holders_course(consortium, data=clinics(), scale=0.5)
        assert (list(held(course).sizes), course.scale) == ([15, 15, 15], 0.5)


@pytest.mark.originals("heart-disease")
def test_centres_have_as_many_records_as_the_consortium_says() -> None:
    consortium = fa.Consortium(
        names=["Cleveland", "Hungary"],
        valuation=1.0,
        cost_per_sample=1.0,
        samples=[100, 50],
        rounds=7,
        discount_factor=0.5,
    )
    assert list(held(holders_course(consortium, dataset="heart-disease")).sizes) == [100, 50]


def test_fewer_records_than_the_consortium_says_are_refused() -> None:
    with pytest.raises(InvalidInput, match="North: has 30 examples, but 31 samples in the"):
        holders_course(clinic_consortium([31, 30, 30]), data=clinics())
    with pytest.raises(InvalidInput, match="North: has 30 examples, but at scale 2 it needs 60"):
        holders_course(data=clinics(), scale=2.0)


def test_own_data_without_a_consortium(tmp_path: Path) -> None:
    digits = load_dataset("digits")
    for name, rows in {"North": slice(0, 90), "South": slice(90, 150)}.items():
        np.savez(tmp_path / f"{name}.npz", inputs=digits.inputs[rows], labels=digits.labels[rows])
        (tmp_path / "test").mkdir(exist_ok=True)
        inputs, labels = digits.test_inputs[rows], digits.test_labels[rows]
        np.savez(tmp_path / "test" / f"{name}.npz", inputs=inputs, labels=labels)
    partition = held(holders_course(data=tmp_path))
    assert list(partition.names) == ["North", "South"]
    assert list(partition.sizes) == [90, 60]
    assert [len(test) for test in partition.tests] == [90, 60]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dataset": "digits", "data": "there"}, "dataset: cannot be combined with data"),
        ({"clients": 0}, "clients: must be a whole number, 1 or more"),
        ({"dataset": "digit"}, "did you mean 'digits'?"),
        ({"skew": -1.0}, "skew: must be more than 0"),
    ],
)
def test_mistakes(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        holders_course(**wrong)  # type: ignore[arg-type]
    assert message in str(refused.value)
