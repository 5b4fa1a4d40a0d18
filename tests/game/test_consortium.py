from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.game.law import Law

FINE: dict[str, Any] = {
    "valuation": [1.0, 2.0, 4.0],
    "cost_per_sample": 1e-6,
    "samples": [500, 400, 900],
    "rounds": 50,
    "discount_factor": 0.8,
}


def build(**changed: Any) -> fa.Consortium:
    return fa.Consortium(**(FINE | changed))


def mistakes(**changed: Any) -> tuple[str, ...]:
    with pytest.raises(fa.InvalidInput) as refused:
        build(**changed)
    return tuple(map(str, refused.value.problems))


def test_a_single_number_applies_to_every_client() -> None:
    consortium = build(communication_cost=0.5)
    assert len(consortium) == consortium.size == 3
    assert consortium.cost_per_sample.tolist() == [1e-6] * 3
    assert consortium.communication_cost.tolist() == [0.5] * 3
    assert consortium.server_fee == 0.0


def test_a_consortium_is_immutable() -> None:
    given = np.array([500.0, 400.0, 900.0])
    consortium = build(samples=given)
    given[0] = -1.0
    assert consortium.samples[0] == 500.0
    with pytest.raises(ValueError, match="read-only"):
        consortium.samples[0] = 1.0
    with pytest.raises(AttributeError):
        consortium.rounds = 3  # type: ignore[misc]


def test_clients_come_in_order_with_their_own_numbers() -> None:
    consortium = build(discount_factor=[0.1, 0.2, 0.3], names=["a", "b", "c"])
    clients = list(consortium)
    assert clients[1] == fa.Client("b", 2.0, 1e-6, 400.0, 0.0, 0.2)
    again = fa.Consortium.of(clients, rounds=50)
    assert again.names == ("a", "b", "c")
    assert again.discount_factor.tolist() == [0.1, 0.2, 0.3]
    assert again.index("c") == 2


def test_names_are_counted_from_one_unless_given() -> None:
    assert build().names == ("client-1", "client-2", "client-3")
    assert build().index("client-3") == 2
    with pytest.raises(fa.InvalidInput, match="no client called 'client-4'"):
        build().index("client-4")


def test_ratio_and_satiation() -> None:
    consortium = build()
    assert consortium.ratio.tolist() == pytest.approx([1e6, 2e6, 4e6])
    # h = (r^2 / 4G)^(1/3), computed in another way; a few units in the last place
    expected = (consortium.ratio / (2 * np.sqrt(50))) ** (2 / 3)
    np.testing.assert_allclose(consortium.satiation, expected, rtol=1e-14)


@pytest.mark.parametrize("ratio", [1e-300, 1e300])
def test_satiation_of_extreme_ratios(ratio: float) -> None:
    point = Law.paper(50).stop(np.array([ratio]))
    assert np.log10(point) == pytest.approx((2 * np.log10(ratio) - np.log10(200)) / 3, abs=1e-12)


def test_equal_samples() -> None:
    assert build(samples=10).equal_samples
    assert not build().equal_samples


RULES = [
    ({"valuation": [1, 0, 4]}, "clients[1].valuation: must be more than 0, got 0"),
    ({"valuation": [1, np.inf, 4]}, "clients[1].valuation: must be more than 0, got inf"),
    ({"cost_per_sample": [1, 1, -2]}, "clients[2].cost_per_sample: must be more than 0, got -2"),
    ({"samples": [-5, 1, 1]}, "clients[0].samples: must be more than 0, got -5"),
    ({"samples": [np.nan, 1, 1]}, "clients[0].samples: must be more than 0, got nan"),
    (
        {"communication_cost": [0, 0, -1]},
        "clients[2].communication_cost: must be 0 or more, got -1",
    ),
    (
        {"discount_factor": [0, -0.1, 0.5]},
        "clients[1].discount_factor: must be 0 or more, got -0.1",
    ),
    ({"discount_factor": [0, 1, 0.5]}, "clients[1].discount_factor: must be less than 1, got 1"),
    ({"rounds": 0}, "rounds: must be a whole number, 1 or more, got 0"),
    ({"rounds": 2.5}, "rounds: must be a whole number, 1 or more, got 2.5"),
    ({"rounds": 10**400}, "rounds: must be 9,007,199,254,740,992 or less"),
    ({"samples": 10**400}, "samples: must be numbers that a float can hold"),
    ({"rounds": True}, "rounds: must be a whole number, 1 or more, got true"),
    ({"server_fee": 10**400}, f"server_fee: must be 0 or more, got 1{'0' * 36}..."),
    ({"server_fee": -1}, "server_fee: must be 0 or more, got -1"),
    ({"names": ["a", "b", "a"]}, "clients[2].name: 'a' is the name of clients[0] already"),
    ({"names": ["a", " ", "c"]}, "clients[1].name: must not be empty"),
    ({"names": ["a", "b"]}, "names: 2 names for 3 clients"),
    (
        {"valuation": [1e280, 1, 1], "cost_per_sample": [1e-40, 1, 1]},
        "clients[0]: valuation / cost_per_sample is beyond what a number can hold",
    ),
    (
        {"cost_per_sample": [1, 1e289, 1]},
        "clients[1]: cost_per_sample * samples must be less than 1e+290",
    ),
    ({"valuation": [1, 1, 1e295]}, "clients[2].valuation: must be less than 1e+290, got 1e+295"),
]


@pytest.mark.parametrize(("changed", "problem"), RULES)
def test_every_rule(changed: dict[str, Any], problem: str) -> None:
    assert mistakes(**changed) == (problem,)


def test_discount_factors_of_0_and_just_under_1_are_fine() -> None:
    build(discount_factor=[0.0, 0.9999999999999999, 0.5])


def test_all_problems_are_reported_together() -> None:
    found = mistakes(
        valuation=[-1, 2, np.nan],
        samples=[0, 1, 1],
        discount_factor=[0.5, 2, 0.5],
        rounds=0,
        server_fee=-3,
        names=["a", "a", ""],
    )
    assert len(found) == 8
    assert {text.split(":")[0] for text in found} == {
        "rounds",
        "server_fee",
        "clients[0].valuation",
        "clients[2].valuation",
        "clients[0].samples",
        "clients[1].discount_factor",
        "clients[1].name",
        "clients[2].name",
    }


def test_very_many_problems_are_counted() -> None:
    with pytest.raises(fa.InvalidInput, match="120 mistakes:") as refused:
        fa.Consortium(**{**FINE, "valuation": -np.ones(120), "samples": 10})
    assert len(refused.value.problems) == 120
    assert str(refused.value).endswith("\n  and 70 more")


WRONG_SHAPES = [
    ({"samples": [1, 2]}, "samples: must have one number for each of 3 clients"),
    ({"samples": "many"}, "samples: must be numbers, got 'many'"),
    ({"samples": [[1, 2, 3]]}, "samples: must have one number for each of 3 clients"),
    ({"samples": [[1, 2], [3]]}, "samples: must be numbers, got [[1, 2], [3]]"),
    ({"server_fee": "x"}, "server_fee: must be 0 or more, got 'x'"),
]


@pytest.mark.parametrize(("changed", "problem"), WRONG_SHAPES)
def test_wrong_shapes(changed: dict[str, Any], problem: str) -> None:
    assert mistakes(**changed) == (problem,)


def test_all_wrong_shapes_are_reported_together() -> None:
    found = mistakes(cost_per_sample=[1.0, 2.0], samples=[1.0])
    assert [text.split(":")[0] for text in found] == ["cost_per_sample", "samples"]


def test_a_consortium_needs_a_client() -> None:
    with pytest.raises(fa.InvalidInput, match="at least one client"):
        fa.Consortium.of([], rounds=3, discount_factor=0.5)
    with pytest.raises(fa.InvalidInput, match="at least one client"):
        build(valuation=[], cost_per_sample=[], samples=[], discount_factor=[])


def test_clients_without_a_discount_factor_use_the_consortiums() -> None:
    clients = [fa.Client("a", 1, 1, 1), fa.Client("b", 1, 1, 1, discount_factor=0.3)]
    consortium = fa.Consortium.of(clients, rounds=1, discount_factor=0.9)
    assert consortium.discount_factor.tolist() == [0.9, 0.3]
    with pytest.raises(fa.InvalidInput, match="neither the consortium nor a has one"):
        fa.Consortium.of(clients, rounds=1)


def test_what_is_not_said_of_a_client_costs_nothing_and_changes_nothing() -> None:
    client = fa.Client("a", 3.0, 2.0, 10.0)
    assert (client.communication_cost, client.discount_factor, client.quality) == (0.0, None, 1.0)
    consortium = fa.Consortium.of([client], rounds=1, discount_factor=0.9)
    assert consortium.communication_cost.tolist() == [0.0]
    assert consortium.quality.tolist() == [1.0]
    assert consortium.server_fee == 0.0


@pytest.mark.parametrize(
    ("field", "least", "below"),
    [
        ("quality", 1e-9, 0.99e-9),
        ("communication_cost", 0.0, -1e-300),
        ("discount_factor", 0.0, -1e-300),
        ("valuation", 1e-300, 0.0),
        ("cost_per_sample", 1e-9, 0.0),
        ("samples", 1e-9, 0.0),
    ],
)
def test_the_least_that_each_number_may_be(field: str, least: float, below: float) -> None:
    build(**{field: least})
    with pytest.raises(fa.InvalidInput, match=field):
        build(**{field: below})


@pytest.mark.parametrize(
    ("field", "most", "above"),
    [
        ("quality", 0.99e9, 1e9),
        ("communication_cost", 0.99e290, 1e290),
        ("discount_factor", 1.0 - 1e-12, 1.0),
        ("valuation", 1e200, 1e290),
    ],
)
def test_the_most_that_each_number_may_be(field: str, most: float, above: float) -> None:
    build(**{field: most})
    with pytest.raises(fa.InvalidInput, match=field):
        build(**{field: above})


@pytest.mark.parametrize("quality", [1.0, 0.3])
def test_amounts_that_count_by_quality_in_samples(quality: float) -> None:
    """Never more than a client has, and exactly all it has if it gives everything."""
    consortium = build(quality=quality)
    samples = consortium.samples
    for part, expected in ((0.5, 0.5 * samples), (1.0, samples), (1.0 + 1e-12, samples)):
        assert consortium.in_samples(part * quality * samples) == pytest.approx(expected)
    assert (consortium.in_samples(quality * samples) == samples).all()
    assert (consortium.in_samples(2.0 * quality * samples) == samples).all()


def test_a_consortium_counted_by_quality_is_the_same_game() -> None:
    """With its ranges: q_n D_n samples of quality 1, each of which costs E_n / q_n."""
    quality = np.array([0.5, 1.0, 3.0])
    plain = fa.Consortium(
        valuation=[1e4, 2e4, 3e4],
        cost_per_sample=[0.5, 1.0, 2.0],
        samples=[100, 200, 300],
        discount_factor=0.9,
        rounds=50,
        quality=quality,
    )
    ranged = plain.with_ranges(samples=(0.5 * plain.samples, 2 * plain.samples))
    for consortium in (plain, ranged):
        counted = consortium.effective
        np.testing.assert_allclose(counted.samples, [50, 200, 900])
        np.testing.assert_allclose(counted.cost_per_sample, [1, 1, 2 / 3])
        np.testing.assert_allclose(counted.satiation, consortium.satiation)
        assert counted.equal_quality
        assert counted.effective is counted
    assert plain.effective.ranges is None
    assert ranged.effective.ranges is not None
    np.testing.assert_allclose(ranged.effective.ranges.samples, [[25, 100, 450], [100, 400, 1_800]])


@pytest.mark.parametrize("wrong", [{}, {"share": 1.0}, {"share": -0.1}, {"factor": 0.99}])
def test_ratios_are_known_to_less_than_all_of_them(wrong: dict[str, float]) -> None:
    consortium = fa.paper_consortium()
    with pytest.raises(fa.InvalidInput, match="within"):
        consortium.within(**wrong)
    for known, ends in (
        (consortium.within(0.25), (0.75, 1.25)),
        (consortium.within(factor=4), (0.25, 4)),
        (consortium.within(factor=1.25), (0.8, 1.25)),
    ):
        low, high = known.ratio_range / consortium.ratio
        assert (low.max(), high.min()) == pytest.approx(ends)
        assert (low.min(), high.max()) == pytest.approx(ends)
    assert consortium.within(0.25).without_ranges().ranges is None


def test_a_slot_of_no_known_length_is_refused() -> None:
    with pytest.raises(fa.InvalidInput, match="slot"):
        fa.Consortium(
            valuation=1.0,
            cost_per_sample=1.0,
            samples=[5.0],
            discount_factor=0.9,
            rounds=50,
            slot="soonish",
        )


def test_numbers_alone_are_one_client() -> None:
    one = fa.Consortium(
        valuation=1.0, cost_per_sample=1.0, samples=5.0, discount_factor=0.9, rounds=1
    )
    assert (one.size, one.names) == (1, ("client-1",))


def test_a_whole_total_is_shown_as_a_whole_number() -> None:
    for samples, total in (([2.0, 3.0], "5"), ([2.5, 3.0], "5.5")):
        consortium = fa.Consortium(
            valuation=1.0, cost_per_sample=1.0, samples=samples, discount_factor=0.9, rounds=1
        )
        assert str(consortium.to_dict()["samples"]) == total


def test_observations_that_no_numbers_explain() -> None:
    """Nobody can give more than it has, and whoever gives nothing wants little."""
    consortium = fa.paper_consortium().within(0.1)
    seen = fa.solve_equilibrium(consortium).profile
    assert consortium.with_ranges(observed=seen).ranges is not None
    for observed, wrong in (
        (seen + 2 * consortium.samples, "must be from 0 to"),
        (seen - 1.0, "must be from 0 to"),
        (seen[::-1], "no ratio within its range explains"),
    ):
        with pytest.raises(fa.InvalidInput, match=wrong):
            consortium.with_ranges(observed=observed)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 0.0])
@pytest.mark.parametrize("field", ["valuation", "cost_per_sample", "samples"])
def test_a_wrong_number_is_one_problem(field: str, wrong: float) -> None:
    """What follows from it is not a second one."""
    numbers: dict[str, Any] = {"valuation": 1.0, "cost_per_sample": 1.0, "samples": [5.0]}
    with pytest.raises(fa.InvalidInput) as refused:
        fa.Consortium(**numbers | {field: [wrong]}, discount_factor=0.9, rounds=1)
    assert [problem.field for problem in refused.value.problems] == [field]
