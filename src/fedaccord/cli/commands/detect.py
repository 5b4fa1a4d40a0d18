"""`fedaccord detect`: how well free riders are found by their updates, measured."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from fedaccord.cli.console import counting, output
from fedaccord.cli.options import from_one, options_for_fields

if TYPE_CHECKING:
    from fedaccord.mechanisms.detection.evaluation import DetectionResult
    from fedaccord.mechanisms.detection.setting import DetectionSetting

_SEVERAL = ("--free-riders", "--disguise", "--detector")
"""Options that may be followed by several values."""
_DESCRIBING = ("disguise", "free riders", "detector", "fitted on")
_MEASURED = ("AUC", "precision", "recall", "wrongly dropped")


def _repeated(words: Sequence[str]) -> list[str]:
    """With an option repeated for each of its values, as the parser expects it.

    >>> _repeated(["--free-riders", "1", "20", "--seed", "2"])
    ['--free-riders', '1', '--free-riders', '20', '--seed', '2']
    """
    result: list[str] = []
    option = None
    for word in words:
        if option is not None and result[-1] != option and not word.startswith("-"):
            result.append(option)
        elif word.startswith("-") and (not result or result[-1] != option):
            option = word if word in _SEVERAL else None
        result.append(word)
    return result


class _SeveralValues(TyperCommand):
    """A command some of whose options take several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was typed."""
        return list(super().parse_args(ctx, _repeated(args)))


detect = typer.Typer(add_completion=False, rich_markup_mode=None)


@detect.command("detect", cls=_SeveralValues)
def _detect(
    *,
    free_riders: Annotated[
        list[int] | None,
        typer.Option(
            "--free-riders",
            metavar="N...",
            help="How many clients are free riders; several numbers are tried in turn (default: "
            "1 20 49).",
        ),
    ] = None,
    disguise: Annotated[
        list[str] | None,
        typer.Option(
            "--disguise",
            metavar="NAME...",
            help="nothing, random[:R], delta, noisy-delta[:NOISE], decaying-noise[:GAMMA] "
            "(default: all).",
        ),
    ] = None,
    detector: Annotated[
        list[str] | None,
        typer.Option(
            "--detector",
            metavar="NAME...",
            help="dagmm, std-dagmm, ecod, or one from an installed package (default: all).",
        ),
    ] = None,
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            show_default=False,
            help="digits (default), or another that `train --dataset` knows.",
        ),
    ] = "digits",
    task: Annotated[
        str, typer.Option("--task", show_default=False, help="softmax, mlp (default) or cnn.")
    ] = "mlp",
    clients: Annotated[
        int,
        typer.Option("--clients", show_default=False, help="Number of clients (default: 100)."),
    ] = 100,
    samples: Annotated[
        int,
        typer.Option(
            "--samples",
            show_default=False,
            help="Samples that each client trains on (default: 100).",
        ),
    ] = 100,
    round_: Annotated[
        int,
        typer.Option("--round", show_default=False, help="The round examined (default: 10)."),
    ] = 10,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha", help="Dirichlet parameter: the smaller, the fewer labels a client has."
        ),
    ] = None,
    reference: Annotated[
        int,
        typer.Option(
            "--reference",
            show_default=False,
            help="Honest updates that the server has: half to fit, half for the threshold "
            "(default: 100).",
        ),
    ] = 100,
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms",
            show_default=False,
            help="Rate of false alarms with the reference (default: 0.05).",
        ),
    ] = 0.05,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            callback=from_one,
            show_default=False,
            help="Runs with different seeds; tables have means (default: 1).",
        ),
    ] = 1,
    seed: Annotated[
        int, typer.Option("--seed", show_default=False, help="Seed of the first run (default: 0).")
    ] = 0,
    output_format: Annotated[
        Literal["text", "json", "markdown"],
        typer.Option(
            "--format",
            show_default=False,
            help="A table (text), every number (json), or tables for a page (markdown).",
        ),
    ] = "text",
) -> None:
    """Train with disguised free riders, and measure how well detectors find them.

    Each detector is fitted to the updates of one round, and to a reference of honest updates. The
    table has its AUC, precision and recall, and how many contributors were wrongly dropped.
    """
    from fedaccord.checks import check_installed

    check_installed("free-rider detection", "torch", "sklearn")
    settings: dict[str, Any] = {
        "free_riders": free_riders or [1, 20, 49],
        "disguise": disguise or ["all"],
        "detector": detector or ["all"],
        "dataset": dataset,
        "task": task,
        "clients": clients,
        "samples": samples,
        "round": round_,
        "alpha": alpha,
        "reference": reference,
        "false_alarms": false_alarms,
        "repeats": repeats,
        "seed": seed,
    }
    from fedaccord.mechanisms.detection.setting import DetectionSetting

    fields = ("dataset", "task", "clients", "samples", "round", "alpha", "reference", "seed")
    with options_for_fields():
        results = _run(DetectionSetting(**{name: settings[name] for name in fields}), settings)
    records = [result.to_dict() for result in results]
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        typer.echo(to_json({"settings": settings, "outcomes": records}, 0))
    elif output_format == "markdown":
        from fedaccord.mechanisms.detection.evaluation import markdown_tables

        typer.echo("\n\n".join(markdown_tables(records)))
    else:
        _print(records)


def _run(setting: "DetectionSetting", chosen: dict[str, Any]) -> "list[DetectionResult]":
    import torch

    from fedaccord.mechanisms.detection.evaluation import detector_names, evaluate, find_detector
    from fedaccord.mechanisms.detection.setting import DISGUISES, read_disguise

    torch.set_num_threads(1)  # the networks are small: more threads would be slower
    disguises = {text: read_disguise(text) for text in _all_or(chosen["disguise"], DISGUISES)}
    names = _all_or(chosen["detector"], detector_names())
    detectors = {name: find_detector(name) for name in names}
    counts = list(dict.fromkeys(chosen["free_riders"]))
    ways = 2 if setting.reference else 1
    steps = len(disguises) * len(detectors) * len(counts) * chosen["repeats"] * ways
    results = evaluate(
        setting,
        detectors,
        disguises,
        counts,
        false_alarms=chosen["false_alarms"],
        repeats=chosen["repeats"],
    )
    done: list[DetectionResult] = []
    with counting("Detecting", steps) as reach:
        for result in results:
            done.append(result)
            reach(len(done), "Detecting")
    return done


def _all_or(words: Sequence[str], every: Iterable[str]) -> list[str]:
    return list(every) if "all" in words else list(words)


def _print(records: Iterable[dict[str, Any]]) -> None:
    from rich.table import Table

    from fedaccord.mechanisms.detection.evaluation import means_by_case

    table = Table(box=None)
    for heading in _DESCRIBING:
        table.add_column(heading, justify="right" if heading == "free riders" else "left")
    for heading in _MEASURED:
        table.add_column(heading, justify="right")
    for case, means in means_by_case(records).items():
        table.add_row(*map(str, case), *means)
    output().print(table)
