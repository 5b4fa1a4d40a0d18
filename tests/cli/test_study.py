"""`fedaccord study`: mistakes are one sentence."""

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("five-banks",), "there is no case study called 'five-banks'"),
        (("four-hospitals", "--out", "page.pdf"), "--out: must end in .html or .md"),
        (("four-hospitals", "--seeds", "1"), "--seeds: must be 2 or more"),
    ],
)
def test_mistakes(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("study", *words)
    assert result.exit_code == 2
    assert message in result.stderr
