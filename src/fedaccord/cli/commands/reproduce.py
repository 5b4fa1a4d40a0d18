"""`fedaccord reproduce`: the paper's evaluation, figure by figure."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedaccord.cli.console import counting, output
from fedaccord.cli.options import FormatOption, from_zero, options_for_fields

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.experiments.evaluation import Section
    from fedaccord.experiments.reproduction import Reproduction, ReproductionProgress


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(metavar="[FIGURE]...", hidden=True)] = None,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            show_default=False,
            help="Directory to write to (default: reproduction).",
        ),
    ] = Path("reproduction"),
    width: Annotated[
        Literal["one-column", "two-columns"],
        typer.Option(
            "--width",
            show_default=False,
            help="Pictures as wide as one column of a paper (default), or two.",
        ),
    ] = "one-column",
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            callback=from_zero,
            help="Seed for figures that draw random numbers, instead of their own.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Recreate figures that are there already.")
    ] = False,
    output_format: FormatOption = "text",
) -> None:
    """Recompute the paper's figures, and check what the paper says about them.

    FIGURE is fig3 to fig23, numbered as in the paper; suspension-clients, suspension-samples,
    suspension-patience, truthful-clients and patience-clients for figures of our own; accuracy and
    law for what the paper leaves out, real training on MNIST (some minutes); claims for a page of
    all its statements with our verdicts; all for everything and one HTML page. Without a FIGURE,
    they are listed.

    Each figure becomes FIGURE.csv, FIGURE.svg, FIGURE.png and FIGURE.json (its settings). A
    figure that is there already, made with the same settings, is kept. Interrupted training
    resumes after the last finished run.
    """
    from fedaccord.cli.outputs import to_json
    from fedaccord.experiments.reproduction import reproduce, reproducible

    if not figures:
        _list(reproducible(), output_format)
        return
    with options_for_fields(), _progress_bar() as progress:
        done = reproduce(figures, out, width=width, seed=seed, force=force, progress=progress)
    if output_format == "json":
        typer.echo(to_json(done.to_dict(), 0))
    else:
        _print(output(), done)


def _list(titles: dict[str, str], output_format: str) -> None:
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        figures = [{"figure": name, "title": title} for name, title in titles.items()]
        typer.echo(to_json({"figures": figures}, 0))
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        typer.echo(f"{name:{width}} {title}")


@contextmanager
def _progress_bar() -> "Iterator[ReproductionProgress]":
    """A bar for each stage, one after another."""
    with ExitStack() as bar:
        reach = None

        def tell(done: int, steps: int, doing: str) -> None:
            nonlocal reach
            if done == 0 or reach is None:
                bar.close()
                reach = bar.enter_context(counting(doing, steps))
            reach(done, doing)

        yield tell


def _print(console: "Console", done: "Reproduction") -> None:
    """For people: when there is a page of all claims, only those that do not hold."""
    from fedaccord.experiments.evaluation import summary

    width = max([9, *(len(figure.figure) for figure in done.figures)])
    for figure in done.figures:
        made = "kept" if figure.kept else "made"
        console.print(f"{figure.figure:{width}} {made}  {figure.title}")
    if done.figures:
        console.print("Each has data (.csv), a picture (.svg, .png) and its settings (.json).")
    console.print(f"In {done.directory}{': ' if done.pages else ''}{', '.join(done.pages)}.")
    for note in done.notes:
        console.print(note)
    if done.sections:
        console.print(f"\n{summary(done.claims)}")
        refuted = bool(done.pages)
        _print_claims(console, done.sections, "The paper says", papers=True, only_refuted=refuted)
    if done.trained:
        console.print()
        _print_claims(console, done.trained, "Taken for granted", papers=False)


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

    from fedaccord.experiments.claims import with_reason

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    likely = ["Likely range"] if papers else []
    for column in ("Figure", says, "Paper", "Ours", "Verdict", *likely):
        table.add_column(column, ratio=None if column in ("Figure", "Paper") else 3)
    for section in sections:
        for claim in section.claims:
            if only_refuted and claim.verdict != "does not hold":
                continue
            name = section.name.removeprefix("fig")
            verdict = with_reason(claim.verdict, claim.why)
            row = (name, claim.statement, claim.paper, claim.ours, verdict)
            table.add_row(*row, *([claim.likely] if papers else []))
    console.print(table)
