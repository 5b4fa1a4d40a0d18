"""The mutants: which changes are made, and that a process imports a module with its change."""

import ast
import subprocess
import sys

import pytest

from tests.mutants import ROOT, TESTS, Mutator, forked, mutants_of


def changes(code: str) -> list[str]:
    mutator = Mutator("some.py")
    mutator.visit(ast.parse(code))
    return [mutant.change.removesuffix(f" in {code}") for mutant in mutator.found]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
        ("a is b", ["a is b -> a is not b"]),
        (
            "a and b and c",
            [f"a and b and c -> {new}" for new in ("a or b or c", "b and c", "a and c", "a and b")],
        ),
        ("not a", ["not a -> a"]),
        ("a / b", ["a / b -> a * b"]),
        ("f(a & b)", ["f(a & b) -> pass", "a & b -> a | b", "a & b -> a", "a & b -> b"]),
        ("x = 3", ["3 -> 4", "3 -> 2"]),
        ("x = 1e-9", ["1e-09 -> 2e-09 in x = 1e-09"]),
        ("x = True", ["True -> False"]),
        ("x = min(a)", ["min -> max in min(a)"]),
        ("x = a.all()", ["a.all -> a.any"]),
        ("x += y", ["x += y -> pass"]),
        ("raise Wrong(1 + 2)", ["raise Wrong(1 + 2) -> pass"]),
        ("if a: b", ["if a: -> if not a:"]),
        ("x: Literal[1] | None = y", []),
        ("'a text'", []),
        ("X = int | str", []),
    ],
)
def test_the_changes(code: str, expected: list[str]) -> None:
    assert changes(code) == expected


def test_places_have_names_and_types_are_left_alone() -> None:
    mutator = Mutator("some.py")
    mutator.visit(
        ast.parse("@made(1)\nclass A:\n  def f(self, x: 'T' = 2) -> int | None: return x < x")
    )
    assert {mutant.place for mutant in mutator.found} == {"A.f"}
    assert [mutant.line for mutant in mutator.found] == [3, 3, 3, 3]


def test_each_package_has_mutants_each_with_a_place() -> None:
    for package in TESTS:
        found = mutants_of(package)
        assert len(found) > 50
        assert all(mutant.line > 0 and mutant.module.startswith(f"{package}/") for mutant in found)


def test_a_process_that_is_stuck_is_ended() -> None:
    def stuck() -> int:
        while True:
            pass

    assert forked(stuck, 0.1) is None
    assert forked(lambda: 5) == 5


@pytest.mark.slow
def test_survivors_and_the_score_are_printed() -> None:
    words = ["-m", "tests.mutants", "signing/statement.py", "--minutes", "0.3", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    assert "noticed, " in done.stdout.splitlines()[-1]
    assert done.stdout.splitlines()[-1].startswith("signing: ")
