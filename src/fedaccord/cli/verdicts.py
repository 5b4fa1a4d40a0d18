"""What `fedaccord reproduce` says: which figures were made, and what holds of the paper."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.cli.reproduction import Reproduction
    from fedaccord.experiments.claims import Claim
    from fedaccord.experiments.evaluation import Section


def evaluation_record(done: "Reproduction") -> dict[str, Any]:
    """For programs."""
    return {
        "directory": str(done.out),
        "figures": [asdict(figure) for figure in done.made],
        "pages": done.pages,
        "notes": done.notes,
        "claims": _claim_records(done.sections),
        "measured": _claim_records(done.trained),
    }


def print_evaluation(console: "Console", done: "Reproduction") -> None:
    """For people: when there is a page of all claims, only those that do not hold."""
    from fedaccord.experiments.evaluation import summary

    for figure in done.made:
        console.print(f"{figure.figure:9} {'kept' if figure.kept else 'made'}  {figure.title}")
    if done.made:
        console.print("Each is data (.csv), a picture (.svg, .png) and its settings (.json).")
    console.print(f"In {done.out}{': ' if done.pages else ''}{', '.join(done.pages)}.")
    for note in done.notes:
        console.print(note)
    if done.sections:
        console.print(f"\n{summary(claim for s in done.sections for claim in s.claims)}")
        refuted = bool(done.pages)
        _print_claims(console, done.sections, "The paper says", papers=True, only_refuted=refuted)
    if done.trained:
        console.print()
        _print_claims(console, done.trained, "Taken for granted", papers=False)


def _claim_records(sections: "Sequence[Section]") -> list[dict[str, Any]]:
    return [{"figure": s.name, **asdict(claim)} for s in sections for claim in s.claims]


def _print_claims(
    console: "Console",
    sections: "Sequence[Section]",
    says: str,
    *,
    papers: bool,
    only_refuted: bool = False,
) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    likely = ["Likely range"] if papers else []
    for column in ("Figure", says, "Paper", "Ours", "Verdict", *likely):
        table.add_column(column, ratio=None if column in ("Figure", "Paper") else 3)
    for section in sections:
        for claim in section.claims:
            if only_refuted and claim.verdict != "does not hold":
                continue
            name = section.name.removeprefix("fig")
            row = (name, claim.statement, claim.paper, claim.ours, _verdict(claim))
            table.add_row(*row, *([claim.likely] if papers else []))
    console.print(table)


def _verdict(claim: "Claim") -> str:
    return f"{claim.verdict}: {claim.why}" if claim.why else claim.verdict
