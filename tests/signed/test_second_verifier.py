"""Two verifiers that share no code come to the same conclusions."""

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from fedaccord.errors import InvalidInput
from fedaccord.signed.file import read_agreement_file
from fedaccord.signed.layout import digest_of_text, shell_text
from fedaccord.signed.signatures import merge_signatures, sign_agreement
from fedaccord.signed.verification import verify_signatures
from tests.signed.damages import DAMAGES, MAY_BE_VALID, damaged
from tests.signed.examples import KEYS, KINDS, NAMES, draft, forged, otherwise_signed, signed

SCRIPT = Path(__file__).parents[2] / "docs" / "reference" / "verify_agreement.py"
PAGE = SCRIPT.with_name("agreement-file.md")


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_agreement", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


SECOND = loaded()


def first(content: bytes) -> tuple[str, tuple[str, ...]]:
    """What fedaccord says, apart from the proof: the verdict, and who signed."""
    try:
        found = verify_signatures(read_agreement_file(content))
    except InvalidInput:
        return "refused", ()
    if found.problems:
        return "refused", ()
    return ("incomplete" if found.missing else "complete"), found.signed


def second(content: bytes) -> tuple[str, tuple[str, ...]]:
    found = SECOND.verify(content)
    return found.verdict, () if found.verdict == "refused" else tuple(found.signed)


def check_agreement(numbers: range) -> Counter[str]:
    verdicts: Counter[str] = Counter()
    for number in numbers:
        name, intact, content = damaged(number)
        verdict, who = first(content)
        assert (verdict, who) == second(content), f"{name}, number {number}"
        if content != intact and name not in MAY_BE_VALID:
            assert verdict == "refused", f"{name}, number {number}"
        verdicts[verdict] += 1
    return verdicts


@pytest.mark.parametrize("kind", KINDS)
def test_both_accept_what_is_valid(kind: str) -> None:
    for file, verdict in ((draft(kind), "incomplete"), (signed(kind), "complete")):
        assert first(file.content) == second(file.content)
        assert first(file.content)[0] == verdict


@pytest.mark.slow
def test_both_accept_what_was_merged() -> None:
    copies = [
        otherwise_signed(sign_agreement(draft(), KEYS[3]), 0),
        sign_agreement(draft(), KEYS[0]),
    ]
    merged = merge_signatures(copies[0], [*copies, sign_agreement(draft(), KEYS[1])])
    assert second(merged.content) == first(merged.content)
    assert first(merged.content) == ("incomplete", (*NAMES[:2], "the server"))


def test_they_agree_on_damaged_files() -> None:
    verdicts = check_agreement(range(8 * len(DAMAGES)))

    assert min(verdicts[verdict] for verdict in ("complete", "incomplete", "refused")) > 3


@pytest.mark.slow
def test_they_agree_on_10_000_files() -> None:
    verdicts = check_agreement(range(10_000))

    assert min(verdicts[verdict] for verdict in ("complete", "incomplete", "refused")) > 100


@pytest.mark.parametrize(
    ("table", "field", "factor", "reason"),
    [
        ("certificate", "gain", 1e3, "a slip would pay"),
        ("certificate", "slack", 0.5, "a slack is wrong"),
        ("profile", "contribution", 2, "the total is not the sum of the contributions"),
    ],
)
def test_numbers_that_do_not_fit_together(
    table: str, field: str, factor: float, reason: str
) -> None:
    said = json.loads(signed("reversion").parts.agreement)
    said[table]["clients"][0][field] *= factor

    found = SECOND.verify(forged(signed("reversion"), **{table: said[table]}).content)

    assert found.refused == reason


def test_the_second_verifier_and_the_page_know_the_shell() -> None:
    shell = digest_of_text(shell_text())

    assert shell == SECOND.SHELL
    assert f"`{shell}`" in PAGE.read_text("utf-8")


def test_the_second_verifier_imports_nothing_of_ours() -> None:
    imported = [line for line in SCRIPT.read_text("utf-8").splitlines() if "import " in line]

    assert imported
    assert not any("fedaccord" in line for line in imported if line.startswith(("import", "from")))


def test_the_script_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "agreement.html"
    for file, code, last in ((signed(), 0, "complete"), (draft(), 1, "incomplete")):
        path.write_bytes(file.content)
        done = subprocess.run(
            [sys.executable, "-I", SCRIPT, path],
            check=False,
            capture_output=True,
            encoding="utf-8",
            env={"PYTHONUTF8": "1"},
        )
        assert (done.returncode, done.stdout.splitlines()[-1]) == (code, last)
