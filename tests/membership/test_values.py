"""What everyone's data is worth: records, who is asked what, and real unlike clients."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, spearmanr

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.errors import InvalidInput
from fedaccord.game.law import Law
from fedaccord.membership.estimates import Estimates
from fedaccord.membership.group_scores import GroupScores
from fedaccord.membership.measuring import Cache
from fedaccord.membership.shapley import sampled_worth
from fedaccord.membership.values import DataValues, value_data
from fedaccord.numbers import BoolArray


def unlike(few: int = 0) -> Mapping[str, Any]:
    """Clients with some digits only, and one with wrong labels, each with its own test."""
    digits, rng = load_dataset("digits"), np.random.default_rng(0)
    known = {"low": range(5), "high": range(5, 10), "all": range(10), "wrong": range(10)}
    data: dict[str, Any] = {"test": {}}
    for n, (name, labels) in enumerate(known.items()):
        own = np.flatnonzero(np.isin(digits.labels, labels))[n::4][: 150 - few]
        test = np.flatnonzero(np.isin(digits.test_labels, labels))[n::4]
        truth = digits.labels[own]
        told = rng.integers(0, 10, len(own)) if name == "wrong" else truth
        data[name] = (digits.inputs[own], told)
        data["test"][name] = (digits.test_inputs[test], digits.test_labels[test])
    return data


@pytest.fixture(scope="module")
def values() -> DataValues:
    return value_data(data=unlike(), rounds=30, seeds=4)


def test_values_lead_from_the_untrained_model_to_everyones(values: DataValues) -> None:
    assert values.shapley.mean.shape == (5, 4)
    gained = values.together.mean - values.untrained.mean
    assert values.shapley.mean.sum(axis=1) == pytest.approx(gained, abs=1e-9)
    assert values.gain.mean == pytest.approx(values.together.mean[1:] - values.alone.mean)


def test_whose_data_helps_whom(values: DataValues) -> None:
    """Those who know a digit help those who are tested on it; wrong labels help nobody."""
    low, high, both, wrong = range(4)
    shapley, left = values.shapley, values.leave_one_out
    for own in (low, high):
        assert shapley.mean[own + 1, own] > shapley.mean[own + 1, 1 - own] + 0.2
        assert values.shapley.sure()[own + 1, both]
    assert shapley.mean[0].argmin() == wrong
    assert (left.mean[:, wrong] < 0.03).all()
    assert values.gain.mean[wrong] > 0.3
    assert values.gain.sure()[wrong]


def test_the_record(values: DataValues) -> None:
    record = values.to_dict()
    assert (record["groups"], record["trainings"], record["exact"]) == (15, 60, True)
    assert [client["name"] for client in record["clients"]] == ["low", "high", "all", "wrong"]
    first = record["clients"][0]
    assert [other["client"] for other in first["helps"]] == ["low", "high", "all", "wrong"]
    assert first["shapley"]["mean"] == values.shapley.mean[0, 0]
    assert first["helps"][1]["leave_one_out"]["error"] == values.leave_one_out.error[2, 0]
    assert (first["samples"], first["quality"]) == (150, None)
    frame = values.to_frame("helps")
    assert len(frame) == 16
    row = frame[(frame.client == "low") & (frame.test == "all")]
    assert row.shapley.item() == values.shapley.mean[3, 0]
    assert "seeds=4" in repr(values)


def test_an_interval_is_never_wider_than_what_is_possible(values: DataValues) -> None:
    """As if hardly any example of a test counted, like one event among 2,000 patients."""
    few = replace(values, scores=replace(values.scores, scales=(2_000.0,) * 5))
    for level in (few.untrained, few.together, few.alone):
        assert (level.half_width() <= np.maximum(level.mean, 1 - level.mean)).all()
        assert (level.half_width() >= 0.5).all()
    for difference in (few.shapley, few.leave_one_out, few.gain):
        assert difference.half_width() == pytest.approx(1 + np.abs(difference.mean))
        assert not difference.sure().any()
    one = few.untrained
    assert float(one.at(0).half_width()) == one.half_width()[0]


def test_more_seeds_begin_with_the_same_ones(values: DataValues) -> None:
    fewer = value_data(data=unlike(), rounds=30, seeds=2)
    assert fewer.scores.by_seed() == pytest.approx(values.scores.by_seed()[:, :2], abs=1e-6)


def test_two_members_with_the_same_data() -> None:
    """Leave-one-out says that neither is worth anything; Shapley values share it out."""
    digits = load_dataset("digits")
    same = (digits.inputs[:300], digits.labels[:300])
    data = {"one": same, "two": same, "test": (digits.test_inputs, digits.test_labels)}
    found = value_data(data=data, rounds=30, seeds=3)
    assert found.leave_one_out.mean == pytest.approx(np.zeros((1, 2)), abs=1e-3)
    assert found.shapley.mean[0, 0] == pytest.approx(found.shapley.mean[0, 1], abs=1e-3)
    assert found.shapley.mean.sum() > 0.5


UNLIKE_TEN: dict[str, Any] = {"dataset": "digits", "clients": 10, "skew": 0.3, "rounds": 20}
DRAWS = 100
"""Of circles: what the page on values says was counted in 200 must hold in these, but for chance
(1 %, by the binomial distribution)."""


@pytest.fixture(scope="module")
def exact() -> DataValues:
    return value_data(**UNLIKE_TEN, seeds=2, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cycles", "groups", "mean", "good"), [(1, 91, 0.92, 0.79), (2, 154, 0.95, 0.92)]
)
def test_the_order_of_ten_real_clients(
    exact: DataValues, cycles: int, groups: int, mean: float, good: float
) -> None:
    """Rank correlations with the exact values on average, and how often they are at least 0.9."""
    found = [drawn(exact, cycles, seed) for seed in range(DRAWS)]
    known = exact.shapley.mean[0]
    ranks = np.array([spearmanr(known, each.mean).statistic for each, _ in found])
    assert np.mean([trained for _, trained in found]) == pytest.approx(groups, abs=1)
    assert ranks.mean() == pytest.approx(mean, abs=0.015)
    assert (ranks >= 0.9).sum() >= binom.ppf(0.01, DRAWS, good)


@pytest.mark.slow
@pytest.mark.parametrize("cycles", [2, 5])
def test_sampled_intervals_of_real_clients_cover_the_exact_values(
    exact: DataValues, cycles: int
) -> None:
    """In 95 of 100 cases: the ten values of a draw are hardly more alike than those of ten draws.

    Over 200 draws the share of the ten that is covered had a standard deviation of 0.07, as if they
    were independent.
    """
    known, covered = exact.shapley.mean[0], 0
    for seed in range(DRAWS):
        found, _ = drawn(exact, cycles, seed)
        sampling = Estimates(found.mean, found.variances[2:], found.freedoms[2:])
        covered += int((np.abs(found.mean - known) <= sampling.half_width()).sum())
    low, high = binom.interval(0.99, DRAWS * 10, 0.95)
    assert low <= covered <= high


def drawn(exact: DataValues, cycles: int, seed: int) -> tuple[Estimates, int]:
    """Values sampled from groups whose scores are known, and how many groups that took."""
    every = exact.scores

    def looked_up(groups: BoolArray) -> GroupScores:
        rows = [every.row(group) for group in groups]
        return replace(every, members=groups, errors=every.errors[rows], losses=every.losses[rows])

    cache = Cache(looked_up)
    worth = sampled_worth(cache, 10, cycles, 0.0, np.random.default_rng(seed))
    return worth.of(cache.scores, 0), len(cache.scores.members) - 1


@pytest.mark.slow
def test_sampled_on_real_clients(exact: DataValues) -> None:
    sampled = value_data(**UNLIKE_TEN, seeds=2, permutations=40)
    assert sampled.worth.permutations == 40
    assert sampled.leave_one_out.mean == pytest.approx(exact.leave_one_out.mean, abs=1e-6)
    apart = np.abs(sampled.shapley.mean[0] - exact.shapley.mean[0])
    assert (apart <= sampled.shapley.half_width()[0]).all()


@pytest.mark.parametrize(
    ("clients", "options", "permutations"),
    [
        (6, {}, 0),
        (7, {}, 0),  # 5 cycles lead through as many groups as there are
        (9, {}, 90),
        (9, {"permutations": 1}, 36),
        (9, {"permutations": 37}, 54),
        (9, {"exact": True}, 0),
    ],
)
def test_when_permutations_are_sampled(
    clients: int, options: dict[str, Any], permutations: int
) -> None:
    found = value_data(dataset="digits", clients=clients, rounds=1, seeds=2, **options)
    assert found.worth.permutations == permutations


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": 1}, "seeds: must be a whole number, 2 or more"),
        ({"clients": 13, "exact": True}, "13 clients have 8,191 groups: at most 12"),
        ({"exact": True, "permutations": 10}, "permutations: cannot be combined with exact"),
        ({"tolerance": -0.1}, "tolerance: must be 0 or more"),
        ({"data": {"a": ([[0.0]], [0])}, "clients": 3}, "there are no examples of this name"),
    ],
)
def test_mistakes(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        value_data(**wrong)
    assert message in str(refused.value)


# --- Quality weights -----------------------------------------------------------------------


@pytest.mark.slow
def test_quality_weights_by_a_law_that_is_measured_here() -> None:
    found = value_data(dataset="breast-cancer", clients=3, rounds=30, seeds=3, quality="loss")
    assert [weight.name for weight in found.quality] == ["client-1", "client-2", "client-3"]
    assert found.quality[0].bases == pytest.approx((304, 152), abs=2)
    assert found.to_dict()["clients"][1]["quality"]["verdict"] == found.quality[1].verdict


def test_the_law_of_the_consortium_is_used_if_it_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[Law] = []

    def measure(course: Any, scores: Any, law: Law, told: Any) -> tuple[Any, ...]:
        used.append(law)
        return ()

    monkeypatch.setattr("fedaccord.membership.quality.measure_quality", measure)
    sizes = np.geomspace(10, 400, 7)
    values = 1 / np.sqrt(sizes)[:, np.newaxis] + np.random.default_rng(0).normal(0, 0.001, (7, 3))
    measured = fa.fit_law(fa.Curve(sizes, range(3), values, "loss"))
    for law, here in ((measured, False), (None, True)):
        consortium = fa.Consortium(
            valuation=1.0,
            cost_per_sample=1.0,
            samples=[150, 150],
            rounds=20,
            discount_factor=0.5,
            law=law,
        )
        value_data(consortium, dataset="breast-cancer", seeds=2, quality="loss")
        assert (used[-1] is not measured) == here
        assert used[-1].kind == "measured"


def test_no_quality_weights_where_there_is_no_law() -> None:
    alone = value_data(dataset="digits", clients=1, rounds=2, seeds=2, quality="loss")
    assert alone.no_quality == "there is nobody else's data to compare with"
    rows = load_dataset("digits").inputs[:12], load_dataset("digits").labels[:12] % 2
    few = value_data(data={"a": rows, "b": rows, "test": rows}, rounds=5, seeds=2, quality="loss")
    assert few.quality == ()
    assert "24 examples from 10 on make 3 sizes" in few.no_quality
