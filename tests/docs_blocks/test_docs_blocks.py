"""The code in the pages is run, and errors in a page are detected."""

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[2] / "conftest.py"


def run_page(pytester: pytest.Pytester, page: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    (pytester.path / "page.md").write_text(page, encoding="utf-8")
    return pytester.runpytest_inprocess("page.md")


WRITE = """
```python
from pathlib import Path
Path("notes.txt").write_text("one\\n\\ntwo  \\nthree\\n")
```
"""


def console(*lines: str) -> str:
    return "\n".join(["```console", *lines, "```", ""])


def test_names_and_files_last_only_for_one_page(pytester: pytest.Pytester) -> None:
    page = WRITE + console("$ cat notes.txt", "one", "", "two", "three")
    page += "```python\nassert Path('notes.txt').exists()\n```\n"
    run_page(pytester, page).assert_outcomes(passed=3)
    assert not (pytester.path / "notes.txt").exists()


def test_failing_python_is_detected(pytester: pytest.Pytester) -> None:
    run_page(pytester, "```python\nassert 1 + 1 == 3\n```\n").assert_outcomes(failed=1)


RIGHT = [
    console("$ cat notes.txt", "..."),
    console("$ cat notes.txt", "one", "...", "three"),
    console("$ cat notes.txt", "o...", "...", "three..."),
    console("$ cat notes.txt", "one", "", "two", "...", "three"),
    console("$ cat \\", "    notes.txt | grep t", "two", "three", "", "$ cat notes.txt > copy.txt"),
    console("$ make it so", "never run"),
    console("$ cat missing.txt", "...", "$ echo $?", "1"),
    console("$ fedaccord --help", "..."),
]

WRONG = [
    console("$ cat notes.txt"),
    console("$ cat notes.txt", "one", "two", "three"),
    console("$ cat notes.txt", "one", "...", "two"),
    console("$ cat notes.txt", "x...", "...", "three"),
    console("$ cat notes.txt", "..", "three"),
    console("$ cat missing.txt", "..."),
    console("$ cat missing.txt", "...", "$ echo $?", "2"),
    console("$ fedaccord no-such-command", "..."),
]


@pytest.mark.slow
def test_correct_console_output(pytester: pytest.Pytester) -> None:
    run_page(pytester, WRITE + "\n".join(RIGHT)).assert_outcomes(passed=1 + len(RIGHT))


@pytest.mark.slow
def test_wrong_console_output_is_detected(pytester: pytest.Pytester) -> None:
    outcome = run_page(pytester, WRITE + "\n".join(WRONG))
    outcome.assert_outcomes(passed=1, failed=len(WRONG))


def test_a_difference_is_shown(pytester: pytest.Pytester) -> None:
    result = run_page(pytester, WRITE + console("$ cat notes.txt", "one", "", "zwei", "three"))
    result.stdout.fnmatch_lines(["$ cat notes.txt", "*-zwei", "*+two"])


def test_a_block_can_be_skipped(pytester: pytest.Pytester) -> None:
    page = "<!-- skip: next -->\n\n```python\nassert False\n```\n"
    run_page(pytester, page).assert_outcomes(passed=2)
