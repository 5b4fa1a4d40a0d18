"""`fedaccord train`: real federated training under one profile or several."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedaccord.cli.console import output, say_where_from
from fedaccord.cli.options import (
    FileArgument,
    FormatOption,
    MarginOption,
    PaperOptions,
    PunishmentOptions,
    ReportOption,
    check_slots,
    choose_consortium,
    from_one,
    from_zero,
    margin_or_usual,
    with_option_groups,
)
from fedaccord.cli.outputs import all_or_none, check_writable, write_runs, write_training
from fedaccord.cli.strategy_options import read_strategies
from fedaccord.cli.training_options import (
    DataOption,
    DatasetOption,
    FineTuneOption,
    RuleOptions,
    ScaleOption,
    SkewOption,
    TaskOption,
    flags_in_messages,
    progress_bar,
)
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.agreement.punishment import Punishment
    from fedaccord.game.consortium import Consortium
    from fedaccord.trials.trial import Trial

_KINDS = ("equilibrium", "uniform", "individual", "suspension", "alone", "pooled")


@with_option_groups
def train(
    file: FileArgument = None,
    *,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            "--profile",
            metavar="PROFILE",
            help="equilibrium, uniform, individual, suspension (individual, under suspension), "
            "alone (each by itself), pooled (all data in one place), or a file of contributions. "
            "Repeatable: the profiles are compared on the same data. Default: equilibrium and "
            "individual; alone and pooled as well if clients have own tests.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    data: DataOption = None,
    task: TaskOption = None,
    slots: Annotated[
        int,
        typer.Option(
            "--slots", callback=from_one, show_default=False, help="How many slots; default 1."
        ),
    ] = 1,
    deviate: Annotated[
        list[str] | None,
        typer.Option(
            "--deviate",
            metavar="NAME@SLOT[:AMOUNT]",
            help="Let a client slip in a slot, under every agreement. Repeatable.",
        ),
    ] = None,
    punishment: PunishmentOptions,
    rules: RuleOptions,
    fine_tune: FineTuneOption = None,
    skew: SkewOption = None,
    scale: ScaleOption = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            callback=from_one,
            help="How many runs of each profile; default 3, on Flower 1.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            callback=from_zero,
            show_default=False,
            help="Seed of the first run; default 0.",
        ),
    ] = 0,
    engine: Annotated[
        Literal["vectorised", "plain", "flower"] | None,
        typer.Option(
            "--engine",
            metavar="[vectorised|plain]",
            help="All clients at once (vectorised, the default), or one after another (plain).",
        ),
    ] = None,
    flower: Annotated[
        bool,
        typer.Option("--flower", help="Run the whole protocol in Flower's simulation."),
    ] = False,
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="PATH", help="Flower: file or URL of the ledger."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="DIR", help="Save the runs' state and models there."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume from the checkpoints in that directory.")
    ] = False,
    margin: MarginOption = None,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    report: ReportOption = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE.csv", help="Write every round's loss and accuracy."),
    ] = None,
) -> None:
    """Train a real model under one profile or several, and measure its accuracy.

    FILE describes the consortium, in TOML; without it the paper's setting is used. In each slot
    every client's data is redrawn and the model carries over. Contributions come from playing the
    repeated game, so that you see what a slip and its punishment do:

    fedaccord train --paper --slots 6 --deviate client-90@2 --punishment-slots 2

    With --punishment suspension, whoever slips is out and trains a model alone.
    """
    words = profile or []
    own = [Path(word) for word in words if word not in _KINDS]
    check_writable(report, csv, inputs=[file, *own, Path(ledger) if ledger else None])
    flower = _on_flower(flower, engine)
    consortium = choose_consortium(file, setting)
    check_slots(slots, consortium)
    from fedaccord.trials.trial import train as train_profiles

    strategies = read_strategies(consortium, slots, deviate or [], [])
    with flags_in_messages():
        local, server = rules.rule(), rules.server()
    with flags_in_messages(), progress_bar() as progress:
        trial = train_profiles(
            consortium,
            _profiles(consortium, words, punishment.chosen(file) if punishment.given else None),
            dataset=dataset,
            data=data,
            task=task,
            local=local,
            server=server,
            fine_tuning=fine_tune,
            slots=slots,
            strategies=strategies,
            punishment=punishment.chosen(file),
            margin=margin_or_usual(margin, file),
            skew=skew,
            scale=scale,
            seeds=seeds,
            seed=seed,
            engine="plain" if engine == "plain" else "vectorised",
            checkpoint=checkpoint,
            resume=resume,
            flower=flower,
            ledger=ledger,
            progress=progress,
        )
    with all_or_none():
        if csv is not None:
            write_runs(csv, trial)
        if report is not None:
            write_training(report, trial)
    say_where_from(file, setting.paper, output_format)
    _print(trial, consortium, skew, output_format)


def _on_flower(flower: bool, engine: str | None) -> bool:
    """Whether to run on Flower; the old spelling, `--engine flower`, still works."""
    if engine == "flower":
        typer.echo(
            "Note: --engine flower is now --flower; the old spelling will be removed in the next "
            "version.",
            err=True,
        )
        return True
    if flower and engine is not None:
        raise InvalidInput("--engine: cannot be combined with --flower, which needs none")
    return flower


def _profiles(
    consortium: "Consortium", words: Sequence[str], punishment: "Punishment | None"
) -> dict[str, Any] | None:
    """Each `--profile`: the name of a kind, or the agreement in a file."""
    from fedaccord.agreement.file import load_agreement

    if len(set(words)) < len(words):
        raise InvalidInput("--profile: each profile can be given only once")
    for word in words:
        if word not in _KINDS and not Path(word).exists():
            raise InvalidInput(
                f"--profile {word}: must be one of {', '.join(_KINDS)}, or an existing file"
            )
    loaded = {
        word: load_agreement(word, consortium, punishment) for word in words if word not in _KINDS
    }
    # contributions alone say nothing of a punishment, so that they get the usual one
    own = {word: a.profile if a.kind == "given" else a for word, a in loaded.items()}
    return {word: own.get(word, word) for word in words} or None


def _print(
    trial: "Trial", consortium: "Consortium", skew: float | None, output_format: str
) -> None:
    if output_format == "json":
        from fedaccord.cli.outputs import to_json
        from fedaccord.summaries.training import training_record

        typer.echo(to_json(training_record(trial, skew), sum(len(run.slots) for run in trial.runs)))
    else:
        from fedaccord.cli.tables import print_consortium, print_training

        print_consortium(output(), consortium)
        print_training(output(), trial)
