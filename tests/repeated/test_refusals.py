"""Bad input: one clear sentence."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import DeviateOnce, Steady, find_tolerance, play
from tests.contracts.strategy_contract import small_agreement


class WrongLength(Steady):
    def contribution(self, view: Any) -> Any:
        return np.zeros(3)


class NoNumbers(Steady):
    def contribution(self, view: Any) -> Any:
        return ["a lot"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"strategies": {"Hugo": Steady()}},
            "there is no client called 'Hugo'; the first is 'client-1'",
        ),
        (
            {"strategies": {"client-2": DeviateOnce(51)}},
            "client-2: slot 51 is not from 1 to 50",
        ),
        (
            {"strategies": {"client-2": DeviateOnce(5, otherwise=DeviateOnce(51))}},
            "client-2: slot 51 is not from 1 to 50",
        ),
        (
            {"strategies": {"client-2": DeviateOnce(3, amount=1001.0)}},
            "client-2: amount must be from 0 to 1000, got 1001",
        ),
        (
            {"strategies": {"client-2": "cheat"}},
            "a strategy must be a function of a view, got 'cheat'",
        ),
        (
            {"strategies": {"client-2": lambda view: float("nan")}},
            "the strategy of client-2 answered nan in slot 1: must be from 0 to 1000",
        ),
        (
            {"strategies": {"client-2": lambda view: view.agreed if view.slot < 4 else -1.0}},
            "the strategy of client-2 answered -1 in slot 4: must be from 0 to 1000",
        ),
        (
            {"strategies": {"client-2": lambda view: 2 * view.samples}},
            "the strategy of client-2 answered 2000 in slot 1: must be from 0 to 1000",
        ),
        (
            {"strategies": {"client-2": lambda view: None}},
            "the strategy of client-2 answered nan in slot 1: must be from 0 to 1000",
        ),
        (
            {"strategies": {"client-2": lambda view: [1.0, 2.0]}},
            "a strategy must answer with one number, got [1.0, 2.0] in slot 1",
        ),
        (
            {"strategies": {"client-2": WrongLength()}},
            "the strategy of client-2 must answer with one number, got array([0., 0., 0.]) "
            "in slot 1",
        ),
        (
            {"strategies": dict.fromkeys(("client-2", "client-5"), WrongLength())},
            "the strategy of client-2 must answer with 2 numbers, one per client, "
            "got array([0., 0., 0.]) in slot 1",
        ),
        (
            {"strategies": {"client-2": NoNumbers()}},
            "the strategy of client-2 must answer with one number, got ['a lot'] in slot 1",
        ),
        ({"slots": 0}, "slots: must be a whole number, 1 or more, got 0"),
        ({"slots": 2.5}, "slots: must be a whole number, 1 or more, got 2.5"),
        ({"slots": True}, "slots: must be a whole number, 1 or more, got true"),
        ({"noise": -0.1}, "noise: must be 0 or more, got -0.1"),
        ({"noise": float("nan")}, "noise: must be 0 or more and finite, got nan"),
        ({"noise": float("inf")}, "noise: must be 0 or more and finite, got inf"),
        ({"noise": "loud"}, "noise: must be 0 or more, got 'loud'"),
        ({"dropout": 1.0}, "dropout: must be from 0 to less than 1, got 1.0"),
        ({"dropout": -0.2}, "dropout: must be from 0 to less than 1, got -0.2"),
        ({"tolerance": -0.2}, "tolerance: must be from 0 to less than 1, got -0.2"),
        ({"tolerance": 1}, "tolerance: must be from 0 to less than 1, got 1"),
        ({"seed": -1}, "seed: must be a whole number, 0 or more, got -1"),
        ({"seed": 0.5}, "seed: must be a whole number, 0 or more, got 0.5"),
    ],
)
def test_play(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        play(small_agreement(), **arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": 0.0}, "noise: must be more than 0, got 0.0"),
        ({"noise": float("nan")}, "noise: must be more than 0 and finite, got nan"),
        ({"noise": 0.1, "dropout": 1.0}, "dropout: must be from 0 to less than 1, got 1.0"),
    ],
)
def test_find_tolerance(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        find_tolerance(small_agreement(), **arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize("strategies", [lambda view: 0.0, 3, ["client-1"], 0])
def test_strategies_that_are_not_by_name(strategies: Any) -> None:
    with pytest.raises(fa.InvalidInput, match="strategies: must be of type Mapping"):
        play(small_agreement(), strategies)
