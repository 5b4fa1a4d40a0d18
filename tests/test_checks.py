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
    client_meant,
    no_such_client,
    shown,
    unusable_names,
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


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ("St Mary", "'St Mary' is the name of clients[0] already"),
        ("St Mary ", "'St Mary ' is the name of clients[0] already, written 'St Mary'"),
        ("st mary", "'st mary' is the name of clients[0] already, written 'St Mary'"),
        ("St  Mary", "'St  Mary' is the name of clients[0] already, written 'St Mary'"),
        ("\uff33t Mary", "'\uff33t Mary' is the name of clients[0] already, written 'St Mary'"),
        (
            "St M\u0430ry",
            "'St M\u0430ry' looks like 'St Mary', the name of clients[0]: "
            "it has a CYRILLIC SMALL LETTER A",
        ),
        (
            "St \u039cary",
            "'St \u039cary' looks like 'St Mary', the name of clients[0]: "
            "it has a GREEK CAPITAL LETTER MU",
        ),
    ],
)
def test_names_that_are_one_or_look_like_one(other: str, wrong: str) -> None:
    assert list(unusable_names(["St Mary", "Riverside", other], lambda n: f"clients[{n}]")) == [
        (2, wrong)
    ]
    numbers = {"valuation": 1.0, "cost_per_sample": 1.0, "samples": [9, 9], "discount_factor": 0.5}
    with pytest.raises(fa.InvalidInput):
        fa.Consortium(**numbers, rounds=1, names=["St Mary", other])  # type: ignore[arg-type]


def test_the_odd_letter_is_named_whoever_has_it() -> None:
    found = list(unusable_names(["St M\u0430ry", "St Mary"], lambda n: f"clients[{n}]"))
    assert [wrong for _, wrong in found] == [
        "'St Mary' looks like 'St M\u0430ry', the name of clients[0]: "
        "that one has a CYRILLIC SMALL LETTER A"
    ]


@pytest.mark.parametrize(
    "names",
    [
        ["\u0420\u0438\u043c", "Rom", "\u03a1\u03ce\u03bc\u03b7"],  # Rim, Rom, Rome
        ["Zürich", "Zurich"],  # an accent is seen
        ["A1", "AI"],
        ["\u5317", "\u5357"],
    ],
)
def test_names_in_any_script_that_differ(names: list[str]) -> None:
    assert list(unusable_names(names, str)) == []


def test_who_is_meant() -> None:
    names = ["Riverside", "St Mary"]
    for name in ("St Mary", "st mary", " St  Mary", "\uff33t Mary"):
        assert client_meant(name, names) == "St Mary"
    with pytest.raises(fa.InvalidInput, match="it has a CYRILLIC SMALL LETTER A and looks like"):
        client_meant("St M\u0430ry", names)
    with pytest.raises(fa.InvalidInput, match="did you mean 'St Mary'"):
        client_meant("St Marie", names)
