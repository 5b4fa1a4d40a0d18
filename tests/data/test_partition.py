"""Who has which examples, slot after slot."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data.dataset import Dataset
from fedaccord.data.partition import RandomPartition, SkewedPartition, skew_of


def dataset(size: int = 200, classes: int = 4) -> Dataset:
    inputs = np.arange(size, dtype=np.float32)[:, np.newaxis]
    labels = np.arange(size) % classes
    return Dataset("numbers", inputs, labels, inputs, labels, classes)


PARTITIONS: list[Any] = [
    RandomPartition,
    lambda data, sizes, seed=0: SkewedPartition(data, sizes, 0.5, seed),
]


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("sizes", [[50, 70, 80], [150, 200, 0, 30]])
def test_every_client_draws_as_many_distinct_examples_as_it_has_samples(
    partition: Any, sizes: list[int]
) -> None:
    drawn = partition(dataset(), sizes).draw(1)
    assert [len(part) for part in drawn] == sizes
    assert [len(set(part.tolist())) for part in drawn] == sizes
    assert all(part.min(initial=0) >= 0 and part.max(initial=0) < 200 for part in drawn)


def test_examples_are_not_shared_if_there_are_enough() -> None:
    drawn = np.concatenate(RandomPartition(dataset(), [50, 70, 80]).draw(3))
    assert sorted(drawn.tolist()) == list(range(200))


@pytest.mark.parametrize("partition", PARTITIONS)
def test_drift(partition: Any) -> None:
    """Redrawn in the next slot, and the same for the same slot and seed."""
    one, other = (partition(dataset(), [60, 190], seed=5) for _ in range(2))
    for slot in (1, 2):
        for here, there in zip(one.draw(slot), other.draw(slot), strict=True):
            np.testing.assert_array_equal(here, there)
    assert set(one.draw(1)[0].tolist()) != set(one.draw(2)[0].tolist())
    assert one.draw(1)[0].tolist() != partition(dataset(), [60, 190], seed=6).draw(1)[0].tolist()


@pytest.mark.parametrize("sizes", [[50, 70, 80], [60, 190]])
def test_drift_with_and_without_enough_examples(sizes: list[int]) -> None:
    """Every client's examples change from slot to slot and from seed to seed."""
    partition = RandomPartition(dataset(), sizes, seed=5)
    now, later = partition.draw(1), partition.draw(2)
    elsewhere = RandomPartition(dataset(), sizes, seed=6).draw(1)
    for n in range(len(sizes)):
        assert set(now[n].tolist()) != set(later[n].tolist())
        assert set(now[n].tolist()) != set(elsewhere[n].tolist())


@pytest.mark.parametrize(
    "partition", [RandomPartition, lambda data, sizes: SkewedPartition(data, sizes, 1e6)]
)
def test_each_client_draws_independently(partition: Any) -> None:
    """Even if examples are shared: of 200, two clients with 150 each have about 113 in common."""
    one, other = (set(part.tolist()) for part in partition(dataset(), [150, 150]).draw(1))
    assert 85 < len(one & other) < 140


def test_a_small_alpha_skews_the_labels() -> None:
    data = dataset(4000)
    sizes = [300] * 20

    def spread(alpha: float) -> float:
        """How far the clients' label shares are from equal, on average."""
        drawn = SkewedPartition(data, sizes, alpha, seed=1).draw(1)
        shares = [np.bincount(data.labels[part], minlength=4) / 300 for part in drawn]
        return float(np.abs(np.array(shares) - 0.25).mean())

    # the mean absolute deviation of a Dirichlet share: 0.31 at 0.1, 0.03 at 100 (with sampling)
    assert spread(0.1) > 0.25
    assert spread(100.0) < 0.05


def test_label_mixtures_stay_the_same_while_the_data_drifts() -> None:
    data = dataset(4000)
    partition = SkewedPartition(data, [300] * 5, 0.2, seed=2)
    counts = [
        [np.bincount(data.labels[part], minlength=4) for part in partition.draw(slot)]
        for slot in (1, 2)
    ]
    # two samples of 300 from one mixture differ by about 10, two mixtures by hundreds
    assert np.abs(np.array(counts[0]) - np.array(counts[1])).max() < 60


def test_the_first_examples_are_a_fair_sample() -> None:
    """A client that trains on x of its examples takes the first x: they must not be sorted."""
    part = SkewedPartition(dataset(4000), [2000], 1.0, seed=3).draw(1)[0]
    labels = dataset(4000).labels[part]
    half = np.bincount(labels[:1000], minlength=4) / np.bincount(labels, minlength=4)
    np.testing.assert_allclose(half, 0.5, atol=0.1)  # four standard deviations at 400 per label


@pytest.mark.parametrize("partition", PARTITIONS)
def test_more_samples_than_examples_are_rejected(partition: Any) -> None:
    with pytest.raises(fa.InvalidInput, match=r"clients\[1\] has 201 samples.* only 200"):
        partition(dataset(), [3, 201])


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf])
def test_alpha(alpha: float) -> None:
    with pytest.raises(fa.InvalidInput, match="alpha: must be more than 0 and finite, got"):
        SkewedPartition(dataset(), [5], alpha)


def test_an_alpha_that_is_too_large() -> None:
    """NumPy's mixtures are then all zeros, and every client would have only the last label."""
    with pytest.raises(fa.InvalidInput, match=r"alpha: 1e\+308 is too large"):
        SkewedPartition(dataset(), [5], 1e308)


@pytest.mark.parametrize("alpha", [1e-300, 1e-5, 1e100])
def test_mixtures_add_up_to_one(alpha: float) -> None:
    mixtures = SkewedPartition(dataset(), [5, 6, 7], alpha).mixtures
    assert mixtures.shape == (3, 4)
    np.testing.assert_allclose(mixtures.sum(axis=1), 1.0)


def test_the_alpha_of_a_partition() -> None:
    assert skew_of(SkewedPartition(dataset(), [5], 0.3)) == 0.3
    assert skew_of(RandomPartition(dataset(), [5])) is None
