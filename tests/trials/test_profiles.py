"""What `train` accepts as profiles, and the contributions in each slot."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import DeviateOnce, play
from fedaccord.trials.profiles import PlayedProfile, play_profiles, read_profiles

CONSORTIUM = fa.paper_consortium(clients=5, samples=100, rounds=4, cost_per_sample=0.004)
INDIVIDUAL = fa.solve_agreement(CONSORTIUM)
EQUILIBRIUM = INDIVIDUAL.equilibrium


def played(given: Any, profiles: Any = None, **rest: Any) -> list[PlayedProfile]:
    punishment = rest.pop("punishment", None)
    return play_profiles(*read_profiles(given, profiles, punishment), **rest)


def contributions(*args: Any, **rest: Any) -> dict[str, list[list[float]]]:
    return {each.name: each.contributions.tolist() for each in played(*args, **rest)}


def test_an_agreement_is_compared_with_its_equilibrium() -> None:
    assert contributions(INDIVIDUAL, slots=2) == {
        "equilibrium": [EQUILIBRIUM.profile.tolist()] * 2,
        "individual": [INDIVIDUAL.profile.tolist()] * 2,
    }


def test_a_consortium_is_trained_under_profiles_by_name() -> None:
    assert list(contributions(CONSORTIUM)) == ["equilibrium", "individual"]
    found = contributions(CONSORTIUM, ["uniform", "equilibrium"])
    assert list(found) == ["uniform", "equilibrium"]
    uniform = fa.solve_agreement(CONSORTIUM, "uniform")
    assert found["uniform"] == [uniform.profile.tolist()]


def test_a_mapping_has_profiles_of_any_kind() -> None:
    match = play(INDIVIDUAL, {"client-5": DeviateOnce(1, 0.0)}, 2)
    rows = [[1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5]
    found = contributions({"alone": EQUILIBRIUM, "agreed": INDIVIDUAL, "slip": match, "mine": rows})
    assert list(found) == ["alone", "agreed", "slip", "mine"]
    assert found["slip"][0][4] == 0.0 < found["agreed"][0][4]
    assert found["slip"][1] == found["alone"][1]  # the punishment
    assert found["mine"] == rows


def test_a_profile_of_a_consortium_is_played_as_an_agreement() -> None:
    mine = [50.0] * 5
    slip = {"client-1": DeviateOnce(1, 0.0)}
    [one] = played(CONSORTIUM, {"mine": mine}, slots=3, strategies=slip, punishment=fa.Reversion(1))
    assert one.phases == ("cooperating", "punishing", "cooperating")
    assert one.contributions.tolist() == [[0.0, *mine[1:]], EQUILIBRIUM.profile.tolist(), mine]


def test_numbers_alone_are_repeated() -> None:
    assert contributions([30, 0, 5], slots=2) == {"contributions": [[30.0, 0.0, 5.0]] * 2}
    assert contributions({"few": [1, 2], "more": [3, 4]}) == {"few": [[1, 2]], "more": [[3, 4]]}


def test_an_agreement_that_does_not_exist_is_replaced_by_the_equilibrium() -> None:
    impatient = fa.paper_consortium(discount_factor=0.3)
    [one] = played(impatient, ["uniform"])
    assert one.agreement is not None
    assert not one.agreement.exists
    assert one.match is None
    assert one.phases == ("equilibrium",)
    np.testing.assert_array_equal(one.contributions[0], one.agreement.equilibrium.profile)


OTHER = fa.solve_equilibrium(fa.paper_consortium(clients=4, samples=100, rounds=4))


@pytest.mark.parametrize(
    ("given", "profiles", "rest", "message"),
    [
        (CONSORTIUM, ["best"], {}, "profiles: must be one of equilibrium, uniform, individual"),
        (CONSORTIUM, [], {}, "profiles: there must be at least one"),
        (CONSORTIUM, ["uniform", "uniform"], {}, "none of them twice"),
        (CONSORTIUM, {"mine": [200.0] * 5}, {}, "from 0 to"),
        (CONSORTIUM, {"mine": [[1.0] * 4]}, {}, "mine: has contributions of 4 clients"),
        (CONSORTIUM, {"mine": [[1.0, 1, 1, 1, 101]]}, {}, "client-5 must contribute from 0 to 100"),
        (CONSORTIUM, {"mine": OTHER}, {}, "mine: belongs to another consortium"),
        (INDIVIDUAL, ["uniform"], {}, "profiles: can be chosen only for a Consortium"),
        (INDIVIDUAL, None, {"punishment": fa.Reversion(2)}, "can be chosen only for a Consortium"),
        ({"a": INDIVIDUAL, "b": OTHER}, None, {}, "b: belongs to another consortium"),
        ({}, None, {}, "there must be at least one profile"),
        ({"a": "uniform"}, None, {}, "a: must be an Agreement, an Equilibrium, a Match"),
        ("uniform", None, {}, "agreement: must be an Agreement, an Equilibrium, a Match, a Cons"),
        (None, None, {}, "agreement: must be an Agreement, an Equilibrium, a Match, a Consortium"),
        ([1, -2], None, {}, "contributions: must be 0 or more and finite"),
        ([[1, float("inf")]], None, {}, "contributions: must be 0 or more and finite"),
        ([[1, 2], [3, 4]], None, {"slots": 3}, "slots: contributions has contributions for 2"),
        ([1, 2], None, {"slots": 0}, "slots: must be a whole number, 1 or more, got 0"),
        (
            CONSORTIUM,
            ["equilibrium"],
            {"strategies": {"client-1": DeviateOnce(1)}},
            "strategies: at the equilibrium there is nothing to slip from",
        ),
    ],
)
def test_rejected(given: Any, profiles: Any, rest: dict[str, Any], message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        played(given, profiles, **rest)
