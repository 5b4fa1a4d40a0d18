"""`python -m fedaccord.mechanisms.detection`, as a user runs it."""

import json
import sys

import pytest

from fedaccord.mechanisms.detection import __main__ as command

SMALL = (
    *("--task", "softmax", "--clients", "12", "--samples", "20", "--round", "2"),
    *("--reference", "40", "--detector", "ecod"),
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = command.main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys,
        *SMALL,
        *["--free-riders", "1", "5", "--disguise", "delta", "random:0.1", "--format", "json"],
    )
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert record["settings"]["clients"] == 12
    cases = [(one["disguise"], one["free_riders"], one["fitted_on"]) for one in record["outcomes"]]
    assert cases == [
        (disguise, count, way)
        for disguise in ("delta", "random:0.1")
        for count in (1, 5)
        for way in ("round", "reference")
    ]
    for one in record["outcomes"]:
        assert 0.0 <= one["auc"] <= 1.0
        assert 0.0 <= one["recall"] <= 1.0
        caught = one["dropped"] - one["dropped_contributors"]
        assert one["recall"] == caught / one["free_riders"]


def test_the_table_has_a_row_a_case_with_means(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--free-riders", "3", "--disguise", "nothing", "--repeats", "2"]
    _, out, _ = run(capsys, *SMALL, *chosen)
    lines = [line.split() for line in out.splitlines()]
    assert [line[:4] for line in lines[1:]] == [
        ["nothing", "3", "ecod", "round"],
        ["nothing", "3", "ecod", "reference"],
    ]
    _, text, _ = run(capsys, *SMALL, *chosen, "--format", "json")
    areas = [one["auc"] for one in json.loads(text)["outcomes"] if one["fitted_on"] == "round"]
    assert lines[1][4] == f"{sum(areas) / 2:.2f}"


def test_everything_unless_said_otherwise() -> None:
    options = command._parser().parse_args([])
    assert (options.free_riders, options.disguise, options.detector) == (
        [1, 20, 49],
        ["all"],
        ["all"],
    )
    assert (options.dataset, options.clients) == ("digits", 100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--disguise deltas", "no disguise called 'deltas': did you mean 'delta'?"),
        ("--detector x", "no detector called 'x': choose one of dagmm, std-dagmm, ecod"),
        ("--free-riders 12", "free riders: must be from 1 to 11 of 12 clients, got 12"),
        ("--free-riders 1 --dataset cifar", "there is no dataset called 'cifar'"),
        ("--repeats 0", "--repeats: must be 1 or more, got 0"),
        ("--round 0 --seed -1", "2 mistakes"),
    ],
)
def test_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    code, out, err = run(capsys, *SMALL, *arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert message in err


def test_without_pytorch(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = run(capsys, *SMALL)
    assert code == 2
    assert err == "Error: training needs PyTorch: pip install 'fedaccord[train]'\n"
