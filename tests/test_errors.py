import pytest

import fedaccord as fa


def test_one_mistake_is_one_sentence() -> None:
    error = fa.InvalidInput("rounds: must be more", source="a.toml")
    assert str(error) == "a.toml: rounds: must be more"
    assert error.problems == ("rounds: must be more",)
    assert error.source == "a.toml"


def test_more_are_a_list() -> None:
    error = fa.InvalidInput(["one", "two"])
    assert str(error) == "2 mistakes:\n  one\n  two"
    assert error.problems == ("one", "two")


def test_very_many_are_counted() -> None:
    error = fa.InvalidInput([f"mistake {n}" for n in range(1, 63)])
    first, *lines = str(error).splitlines()
    assert first == "62 mistakes:"
    assert lines[-2:] == ["  mistake 50", "  and 12 more"]
    assert len(error.problems) == 62


@pytest.mark.parametrize("error", [fa.InvalidInput("x"), fa.NotConverged("x")])
def test_all_are_fedaccords(error: Exception) -> None:
    assert isinstance(error, fa.FedaccordError)
