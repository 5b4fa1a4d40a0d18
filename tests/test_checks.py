"""The checks that the whole package shares."""

import sys
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.checks import (
    check_choice,
    check_installed,
    check_number,
    check_whole,
    no_such_client,
    shown,
    wrong_number,
    wrong_whole,
)


@pytest.mark.parametrize("value", [1, 7, np.int64(3), 2**53])
def test_whole_numbers(value: object) -> None:
    assert wrong_whole(value, 1, 2**53) is None


@pytest.mark.parametrize("value", [0, -1, 2.0, np.float64(2.5), True, "3", None, nan, inf])
def test_not_whole_numbers(value: object) -> None:
    with pytest.raises(fa.InvalidInput, match=r"^slots: must be a whole number, 1 or more, got "):
        check_whole("slots", value)


def test_a_whole_number_above_the_largest() -> None:
    assert wrong_whole(11, 1, 10) == "must be 10 or less"


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.25), np.int64(0)])
def test_numbers_within_bounds(value: object) -> None:
    assert wrong_number(value, least=0, below=1) is None


@pytest.mark.parametrize("value", [1, -0.1, nan, inf, "0.5", None, True, 10**400])
def test_numbers_outside_bounds(value: object) -> None:
    with pytest.raises(fa.InvalidInput, match=r"^noise: must be from 0 to less than 1, got "):
        check_number("noise", value, least=0, below=1)


def test_bounds_in_words() -> None:
    assert wrong_number(0, above=0) == "must be more than 0, got 0"
    assert wrong_number(inf, above=0) == "must be more than 0 and finite, got inf"
    assert wrong_number(2, above=0, below=1) == "must be between 0 and 1, got 2"
    assert wrong_number("x") == "must be a number, got 'x'"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (fa.solve_equilibrium, "consortium: must be of type Consortium, got str: 'a.toml'"),
        (fa.solve_agreement, "consortium: must be of type Consortium, got str: 'a.toml'"),
        (fa.compare, "consortium: must be of type Consortium, got str: 'a.toml'"),
        (fa.solve_social_optimum, "consortium: must be of type Consortium, got str: 'a.toml'"),
        (fa.shortest_punishment, "agreement: must be of type Agreement, got str: 'a.toml'"),
        (fa.certify, "agreement: must be of type Agreement, got str: 'a.toml'"),
        (fa.play, "agreement: must be of type Agreement or Consortium, got str: 'a.toml'"),
    ],
)
def test_a_file_name_is_neither_a_consortium_nor_an_agreement(call: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        call("a.toml")
    assert str(refused.value) == message


def test_a_misspelt_choice() -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        check_choice("kind", "unifrom", ("individual", "uniform"))
    assert str(refused.value) == (
        "kind: must be one of 'individual', 'uniform', got 'unifrom'; did you mean 'uniform'?"
    )


def test_a_client_that_does_not_exist() -> None:
    assert no_such_client("Q", ["A", "B"]) == "there is no client called 'Q'; the first is 'A'"
    many = [f"client {n}" for n in range(2_000)]
    assert no_such_client("client 1x", many).endswith("; the first is 'client 0'")


def test_all_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "flwr"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(fa.FedaccordError) as refused:
        check_installed("this", "torch", "flwr")
    assert str(refused.value) == (
        "this needs PyTorch and Flower: pip install 'fedaccord[train,flower]'"
    )


def test_how_values_are_shown() -> None:
    assert [shown(True), shown({}), shown([])] == ["true", "a table", "a list"]
    assert [shown(np.float64(0.5)), shown(np.int64(3)), shown(50.0)] == ["0.5", "3", "50.0"]
    assert len(shown("x" * 100)) == 40
