"""Mechanisms and detectors from other packages, found by their entry points."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import fedaccord as fa
from fedaccord.mechanisms.simple import find_mechanism, mechanism_names
from tests.cli.conftest import Run

Install = Callable[..., None]

LOTTERY = """
from fedaccord.mechanisms.mechanism import outcome_of


class Lottery:
    name = "fair lottery"

    def outcome(self, consortium):
        return outcome_of(consortium, 0.5 * consortium.samples, enforced_by="a lottery")


class Renamed(Lottery):
    name = "something else"


class NeedsMore(Lottery):
    def __init__(self, ticket):
        self.ticket = ticket


class Forgetful(Lottery):
    def outcome(self, consortium):
        return 0.5 * consortium.samples


ready = Lottery()
"""

LENGTH = """
import numpy as np


class Length:
    def __init__(self, seed):
        self.seed = seed

    def fit(self, updates, names=None):
        self.typical = np.median(np.linalg.norm(updates, axis=1))
        return self

    def scores(self, updates, names=None):
        return np.abs(np.linalg.norm(updates, axis=1) - self.typical)
"""


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with entry points on the path, as pip would."""
    site = tmp_path_factory.mktemp("site")
    number = 0

    def install(source: str, **groups: str) -> None:
        nonlocal number
        number += 1
        module = f"{site.name.replace('-', '_')}_{number}"  # a name that was never imported
        (site / f"{module}.py").write_text(source)
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [
            f"[fedaccord.{group}]\n{line.format(module=module)}" for group, line in groups.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")

    monkeypatch.syspath_prepend(str(site))
    return install


@pytest.mark.slow
@pytest.mark.parametrize("declared", ["Lottery", "ready"])
def test_a_mechanism_from_another_package_is_compared(
    install: Install, run: Run, declared: str
) -> None:
    install(LOTTERY, mechanisms=f"fair-lottery = {{module}}:{declared}")
    comparison = fa.compare(fa.paper_consortium())
    assert comparison["fair lottery"].outcome.total == 500_000.0
    assert [entry.name for entry in comparison.entries][-2:] == ["detection", "fair lottery"]
    text = run("compare", "--paper").stdout
    assert "fair lottery: A lottery is not enough" in text
    chosen = run("compare", "--paper", "--mechanism", "fair-lottery", "--format", "json").stdout
    [mechanism] = json.loads(chosen)["mechanisms"]
    assert (mechanism["name"], mechanism["total"]) == ("fair lottery", 500_000.0)
    page = run("compare", "--mechanism", "fair-lottery", "--report", "page.html")
    assert page.exit_code == 0
    assert "fair lottery" in Path("page.html").read_text(encoding="utf-8")


def test_names_of_mechanisms_in_python(install: Install) -> None:
    install(LOTTERY, mechanisms="fair-lottery = {module}:Lottery")
    assert mechanism_names()[-1] == "fair lottery"
    two = fa.compare(fa.paper_consortium(), ["social-optimum", "fair lottery"])
    assert [entry.name for entry in two.entries] == ["social optimum", "fair lottery"]
    with pytest.raises(fa.InvalidInput, match="no mechanism called 'fair lotery': did you mean"):
        find_mechanism("fair lotery")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("fair-lottery = {module}:Missing", "fair-lottery: cannot be loaded from"),
        ("fair-lottery = {module}:Renamed", "mechanism fair-lottery: calls itself 'something else"),
        ("fair-lottery = {module}:NeedsMore", "mechanism fair-lottery: must have a name and a"),
        ("fair-lottery = {module}:outcome_of", "mechanism fair-lottery: must have a name and a"),
        ("fair-lottery = {module}:Forgetful", "'fair lottery': outcome() must return an Outcome"),
    ],
)
def test_a_broken_mechanism_is_named_in_one_sentence(
    install: Install, run: Run, declared: str, message: str
) -> None:
    install(LOTTERY, mechanisms=declared)
    result = run("compare", "--paper")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert run("compare", "--paper", "--mechanism", "uniform").exit_code == 0


def test_a_built_in_mechanism_cannot_be_replaced(install: Install) -> None:
    install(LOTTERY, mechanisms="uniform = {module}:Lottery")
    assert mechanism_names().count("uniform") == 1
    assert find_mechanism("uniform").name == "uniform"


def test_a_detector_from_another_package_is_measured(install: Install, run: Run) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    install(LENGTH, detectors="length = {module}:Length")
    words = ("detect", "--task", "softmax", "--clients", "12", "--samples", "20", "--round", "2")
    result = run(
        *words, "--reference", "40", "--free-riders", "3", "--disguise", "nothing",
        "--detector", "length", "--format", "json",
    )  # fmt: skip
    assert result.exit_code == 0
    outcomes = json.loads(result.stdout)["outcomes"]
    assert [(one["detector"], one["auc"]) for one in outcomes] == [("length", 1.0)] * 2
    refused = run("detect", "--detector", "lenght")
    assert "there is no detector called 'lenght': did you mean 'length'?" in refused.stderr
