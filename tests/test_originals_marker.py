"""The marker `originals`: tests without their data are skipped, counted, and noticed."""

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
TESTS = """
import pytest

@pytest.mark.originals("mnist")
def test_one(): pass

@pytest.mark.originals("mnist", "tcga-brca")
def test_both(): pass

def test_none(): pass

@pytest.mark.skip("for another reason")
def test_other(): pass
"""


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nmarkers =\n    originals(dataset, ...): needs these")
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *words)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-n", "1")])
def test_no_data_is_said_and_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.delenv("FEDACCORD_DATA", raising=False)
    result = run(pytester, *words)
    result.assert_outcomes(passed=1, skipped=3)
    assert "Skipped for want of data: 2" in result.outlines
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-n", "1")])
def test_some_data_but_not_all_of_it_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("FEDACCORD_DATA", str(pytester.mkdir("mnist").parent))
    result = run(pytester, *words)
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["Skipped for want of data: 1, which fails the run: *"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.slow
def test_all_data(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.mkdir("mnist")
    monkeypatch.setenv("FEDACCORD_DATA", str(pytester.mkdir("tcga-brca").parent))
    result = run(pytester)
    result.assert_outcomes(passed=3, skipped=1)
    assert "Skipped for want of data: 0" in result.outlines
    assert result.ret == pytest.ExitCode.OK
