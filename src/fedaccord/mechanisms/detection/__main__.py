"""`python -m fedaccord.mechanisms.detection`: how well free riders are found, measured."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fedaccord.checks import check_installed
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.mechanisms.detection.evaluation import markdown_tables, means_by_case, record_of

if TYPE_CHECKING:
    from fedaccord.mechanisms.detection.evaluation import Outcome

COLUMNS = ("disguise", "free riders", "detector", "fitted on")
NUMBERS = ("AUC", "precision", "recall", "wrongly dropped")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; what is refused is a message and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        outcomes = _run(options)
    except FedaccordError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    if options.format == "json":
        print(json.dumps(_record(options, outcomes), indent=2))
    elif options.format == "markdown":
        print(*markdown_tables(map(record_of, outcomes)), sep="\n\n")
    else:
        _print(outcomes)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fedaccord.mechanisms.detection",
        description="Train with free riders in disguise, and measure how well they are found.",
    )
    add = parser.add_argument
    add("--free-riders", type=int, nargs="+", default=[1, 20, 49], metavar="N")
    add(
        "--disguise",
        nargs="+",
        default=["all"],
        help="nothing, random[:R], delta, noisy-delta[:NOISE], decaying-noise[:GAMMA], or all",
    )
    add("--detector", nargs="+", default=["all"], help="dagmm, std-dagmm, ecod, or all")
    add("--dataset", default="digits", help="digits (default), breast-cancer or mnist")
    add("--task", default="mlp", help="softmax, mlp (default) or cnn")
    add("--clients", type=int, default=100)
    add("--samples", type=int, default=100, help="that each client trains on (100)")
    add("--round", type=int, default=10, help="the round that the server looks at (10)")
    add("--alpha", type=float, help="give clients few labels each: Dirichlet, less is fewer")
    add(
        "--reference",
        type=int,
        default=100,
        help="honest updates that the server has, half to fit on, half for the threshold (100)",
    )
    add("--false-alarms", type=float, default=0.05, help="with the reference (0.05)")
    add("--repeats", type=int, default=1, help="with other seeds; the table has means (1)")
    add("--seed", type=int, default=0, help="of the first repeat (0)")
    add("--format", choices=["text", "json", "markdown"], default="text")
    return parser


def _run(options: argparse.Namespace) -> list["Outcome"]:
    check_installed("training", "torch", "sklearn")
    if options.repeats < 1:
        raise InvalidInput(f"--repeats: must be 1 or more, got {options.repeats}")
    import torch

    from fedaccord.mechanisms.detection.disguises import DISGUISES, read_disguise
    from fedaccord.mechanisms.detection.evaluation import DETECTORS, evaluate, find_detector
    from fedaccord.mechanisms.detection.setting import Setting

    torch.set_num_threads(1)  # a second one would wait more than work: the networks are small
    setting = Setting(
        dataset=options.dataset,
        task=options.task,
        clients=options.clients,
        samples=options.samples,
        turn=options.round,
        reference=options.reference,
        alpha=options.alpha,
        seed=options.seed,
    )
    disguises = {text: read_disguise(text) for text in _chosen(options.disguise, DISGUISES)}
    detectors = {name: find_detector(name) for name in _chosen(options.detector, DETECTORS)}
    counts = list(dict.fromkeys(options.free_riders))
    ways = 2 if options.reference else 1
    total = len(disguises) * len(detectors) * len(counts) * options.repeats * ways
    outcomes = evaluate(
        setting,
        detectors,
        disguises,
        counts,
        false_alarms=options.false_alarms,
        repeats=options.repeats,
    )
    return list(_with_progress(outcomes, total))


def _chosen(words: Sequence[str], every: Iterable[str]) -> list[str]:
    return list(every) if "all" in words else list(words)


def _with_progress(outcomes: Iterable["Outcome"], total: int) -> Iterable["Outcome"]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Detecting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for outcome in outcomes:
            yield outcome
            progress.advance(bar)


def _record(options: argparse.Namespace, outcomes: list["Outcome"]) -> dict[str, Any]:
    settings = {key: value for key, value in vars(options).items() if key != "format"}
    return {"settings": settings, "outcomes": [record_of(outcome) for outcome in outcomes]}


def _print(outcomes: list["Outcome"]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for heading in COLUMNS:
        table.add_column(heading, justify="right" if heading == "free riders" else "left")
    for heading in NUMBERS:
        table.add_column(heading, justify="right")
    for case, means in means_by_case(map(record_of, outcomes)).items():
        table.add_row(*map(str, case), *means)
    Console(width=None if sys.stdout.isatty() else 100, markup=False).print(table)


if __name__ == "__main__":
    sys.exit(main())
