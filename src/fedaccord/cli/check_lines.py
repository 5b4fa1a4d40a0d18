"""How the findings of `member check` and `server check` are shown."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from fedaccord.checks import escaped
from fedaccord.cli.console import output
from fedaccord.cli.options import Format
from fedaccord.cli.outputs import to_json

if TYPE_CHECKING:
    from fedaccord.deployment.check import Finding

_MARKS = {"ok": ("ok   ", "green"), "note": ("NOTE ", "yellow"), "wrong": ("WRONG", "bold red")}


def show_checks(findings: "Iterable[Finding]", output_format: Format) -> None:
    """Show findings as they come; ends with exit code 1 if one is wrong."""
    found = []
    for finding in findings:
        found.append(finding)
        if output_format == "text":
            _show(finding)
    bad = sum(finding.grade == "wrong" for finding in found)
    if output_format == "json":
        result = {"ready": not bad, "findings": [asdict(finding) for finding in found]}
        typer.echo(to_json(result, 1))
    else:
        typer.echo(f"\n{bad} of {len(found)} checks failed." if bad else "\nReady for a slot.")
    if bad:
        raise typer.Exit(1)


def _show(finding: "Finding") -> None:
    mark, style = _MARKS[finding.grade]
    console = output()
    console.print(f"{mark} ", style=style, end="")
    console.print(escaped(f"{finding.about}: {finding.found}"), soft_wrap=True)
    if finding.do:
        console.print(escaped(f"      -> {finding.do}"), soft_wrap=True)
