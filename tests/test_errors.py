from pathlib import Path

import pytest

import fedaccord as fa
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.consortium import build_consortium


def test_one_problem_is_one_sentence() -> None:
    error = fa.InvalidInput("must be more", source="a.toml", field="rounds")
    assert str(error) == "a.toml: rounds: must be more"
    assert error.problems == (Problem("rounds", "must be more"),)
    assert error.source == "a.toml"


def test_a_problem_names_its_place_if_it_has_one() -> None:
    problem = Problem("samples", "must be more", "clients[3].samples")
    assert str(fa.InvalidInput(problem)) == "clients[3].samples: must be more"
    assert str(problem.inside("a.csv")) == "a.csv: clients[3].samples: must be more"
    assert str(Problem("", "is empty").inside("a.csv")) == "a.csv: is empty"


def test_text_is_a_problem_without_a_field_and_is_not_parsed() -> None:
    assert fa.InvalidInput("rounds: what is that?").problems == (
        Problem("", "rounds: what is that?"),
    )


def test_several_problems_are_a_list() -> None:
    error = fa.InvalidInput(["one", "two"])
    assert str(error) == "2 mistakes:\n  one\n  two"
    assert error.problems == (Problem("", "one"), Problem("", "two"))


def test_very_many_problems_are_only_counted() -> None:
    error = fa.InvalidInput([f"mistake {n}" for n in range(1, 63)])
    first, *lines = str(error).splitlines()
    assert first == "62 mistakes:"
    assert lines[-2:] == ["  mistake 50", "  and 12 more"]
    assert len(error.problems) == 62


@pytest.mark.parametrize("error", [fa.InvalidInput("x"), fa.NotConverged("x")])
def test_all_errors_are_fedaccord_errors(error: Exception) -> None:
    assert isinstance(error, fa.FedaccordError)


def test_what_is_missing_and_what_is_unknown_is_told_by_the_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pages treat these differently, however their messages are worded."""
    for wording in ("is missing", "has to be given"):
        with monkeypatch.context() as reworded:
            reworded.setattr("fedaccord.errors.MISSING", wording)
            assert Problem("name", f"{wording}, and others have it").is_missing
    assert Problem("name", "unknown key; did you mean 'names'?").is_unknown_key
    assert not Problem("name", "must not be empty").is_missing
    assert not Problem("name", "must not be empty").is_unknown_key
    with pytest.raises(InvalidInput) as refused:
        build_consortium({"rounds": 5, "clients": [{"name": "A", "sample": 3}]}, Path("c.toml"))
    kinds = [(each.is_missing, each.is_unknown_key) for each in refused.value.problems]
    assert (True, False) in kinds
    assert (False, True) in kinds
