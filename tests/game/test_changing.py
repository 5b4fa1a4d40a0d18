"""States, transitions and turnover: what they are, and what is refused."""

import numpy as np
import pytest

from fedaccord.errors import InvalidInput
from fedaccord.game.changing import ChangingConsortium, State, some_members
from fedaccord.game.law import Law
from fedaccord.game.paper import paper_consortium
from fedaccord.game.turnover import turned_over
from tests.changing import HOSPITALS, leaving

THREE = paper_consortium(clients=3)


def test_states_hold_numbers_and_members() -> None:
    changing = ChangingConsortium(
        HOSPITALS,
        [State("usual"), State("busy", without=["St Mary"], samples=HOSPITALS.samples / 2)],
        [[0.5, 0.5], [0.25, 0.75]],
    )
    assert changing.consortia[1].names == tuple(n for n in HOSPITALS.names if n != "St Mary")
    assert changing.consortia[1].samples.sum() == (116_000 - 18_000) / 2
    assert changing.consortia[0].discount_factor.tolist() == HOSPITALS.discount_factor.tolist()
    assert changing.index("busy") == 1
    assert changing.to_frame().shape == (2, 3)
    with pytest.raises(ValueError, match="read-only"):
        changing.samples[0, 0] = 1.0


def test_members_keep_their_own_laws() -> None:
    laws = [Law.power(scale=k, exponent=0.5) for k in (1.0, 2.0, 3.0)]
    two = some_members(THREE.with_law(laws), np.array([True, False, True]))
    assert two.law.value.tolist() == [[1.0, 3.0]]
    assert two.names == ("client-1", "client-3")
    floors = [Law.power(k, 0.5, floor=0.1 * k) for k in (1.0, 2.0, 3.0)]
    two = some_members(THREE.with_law(floors), np.array([True, False, True]))
    assert [two.law.of(k).loss(100.0) for k in (0, 1)] == pytest.approx([0.2, 0.6])


@pytest.mark.parametrize(
    ("states", "transitions", "message"),
    [
        ([], None, "needs at least one state"),
        ([State("a"), State("a")], None, r"states\[1\].name: 'a' is the name of states\[0\]"),
        ([State(" ")], None, r"states\[0\].name: must not be empty"),
        ([State("a", without=["client-9"])], None, "no client called 'client-9'"),
        ([State("a", without=THREE.names)], None, "nobody takes part"),
        ([State("a", samples=-1)], None, "must be more than 0, got -1"),
        ([State("a", samples=[1, 2])], None, "one number for each of 3 clients"),
        ([State("a")], [[0.5]], "transitions.a: the probabilities must add up to 1, got 0.5"),
        ([State("a")], [[np.nan]], "must be a probability from 0 to 1, got nan"),
        ([State("a"), State("b")], [[2, -1], [0, 1]], "from 0 to 1, got 2"),
        ([State("a")], [[0.5, 0.5]], "must have 1 rows of 1 probabilities"),
        ([State("a")], "often", "transitions: must be numbers"),
        ([State("a")], {"b": {"a": 1}}, "transitions.b: there is no such state"),
        ([State("a")], {"a": {"b": 1}}, "transitions.a.b: there is no such state"),
        ([State("a")], {"a": {"a": "x"}}, "transitions.a.a: must be a probability, got 'x'"),
        ([State("a")], {"a": 1.0}, "transitions.a: must be a table of probabilities"),
    ],
)
def test_what_is_wrong_is_said(states: list[State], transitions: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ChangingConsortium(THREE, states, transitions)  # type: ignore[arg-type]


def test_all_mistakes_are_reported_together() -> None:
    with pytest.raises(InvalidInput) as error:
        ChangingConsortium(THREE, [State("a", without=["x"], samples=0)], [[0.5]])
    assert len(error.value.problems) == 5


def test_ranges_and_states_exclude_each_other() -> None:
    with pytest.raises(InvalidInput, match="ranges cannot be combined"):
        ChangingConsortium(THREE.within(0.3), [State("a")])


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no such state; did you mean 'fewer'"):
        leaving(HOSPITALS, ["Riverside"], 0.1).index("fewr")


# --- Turnover ----------------------------------------------------------------------------------


def test_turnover_changes_discount_factors_and_is_remembered() -> None:
    consortium = THREE.with_turnover([0.0, 0.1, 0.5], growth=0.1)
    np.testing.assert_allclose(consortium.discount_factor, [0.88, 0.792, 0.44])
    assert consortium.turnover is not None
    assert consortium.turnover.stated.tolist() == [0.8] * 3
    assert consortium.with_law(Law.paper(9)).turnover is consortium.turnover
    some = some_members(consortium, np.array([False, True, True]))
    assert some.turnover is not None
    assert some.turnover.leaves.tolist() == [0.1, 0.5]


def test_ranges_of_discount_factors_turn_over_as_well() -> None:
    consortium = THREE.with_ranges(discount_factor=(0.7, 0.9)).with_turnover(0.5)
    assert consortium.ranges is not None
    np.testing.assert_allclose(consortium.ranges.discount_factor, [[0.35] * 3, [0.45] * 3])


@pytest.mark.parametrize(
    ("leaves", "growth", "message"),
    [
        (1.0, 0.0, r"clients\[0\].leaves: must be from 0 to less than 1, got 1.0"),
        ([0.1, 0.2], 0.0, "one number for each of 3 clients"),
        (0.0, -1.0, "growth: must be more than -1 and finite, got -1"),
        (0.0, np.nan, "growth: must be more than -1"),
        (0.0, np.inf, "growth: must be more than -1 and finite, got inf"),
        (0.0, 0.25, "counts as 1, which must be less than 1"),
    ],
)
def test_turnover_that_makes_no_sense(leaves: object, growth: float, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        THREE.with_turnover(leaves, growth)  # type: ignore[arg-type]


def test_leaving_makes_room_for_growth() -> None:
    assert turned_over(0.9, leaves=0.2, growth=0.2).item() == pytest.approx(0.864)
