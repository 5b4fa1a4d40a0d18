"""`fedaccord train`: real federated training under one profile or several."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fedaccord.cli.console import output, say_where_from, working
from fedaccord.cli.options import (
    FileArgument,
    FormatOption,
    PaperOptions,
    PunishmentSlotsOption,
    ReportOption,
    check_slots,
    choose_consortium,
    from_one,
    from_zero,
    with_option_groups,
)
from fedaccord.cli.outputs import check_writable, write_runs, write_training
from fedaccord.cli.training_flower import check_flower_options, run_on_flower
from fedaccord.cli.training_options import (
    BatchOption,
    DataOption,
    DatasetOption,
    EpochsOption,
    LocalOption,
    RateOption,
    ScaleOption,
    SkewOption,
    TaskOption,
    build_course,
    read_local,
)
from fedaccord.cli.training_runs import checkpoint_folder, find_engine, idle_notes, run_all
from fedaccord.errors import InvalidInput


@with_option_groups
def train(
    file: FileArgument = None,
    *,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            "--profile",
            metavar="PROFILE",
            help="equilibrium, uniform, individual, or a file of contributions. Repeatable: the "
            "profiles are compared on the same data (equilibrium and individual).",
        ),
    ] = None,
    dataset: DatasetOption = None,
    data: DataOption = None,
    task: TaskOption = "softmax",
    slots: Annotated[
        int,
        typer.Option("--slots", callback=from_one, show_default=False, help="How many slots (1)."),
    ] = 1,
    deviate: Annotated[
        list[str] | None,
        typer.Option(
            "--deviate",
            metavar="NAME@SLOT[:AMOUNT]",
            help="Let a client slip in a slot, under every agreement. Repeatable.",
        ),
    ] = None,
    punishment_slots: PunishmentSlotsOption = None,
    local: LocalOption = "gradient",
    rate: RateOption = None,
    batch: BatchOption = None,
    epochs: EpochsOption = None,
    skew: SkewOption = None,
    scale: ScaleOption = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", callback=from_one, help="How many runs a profile (3; on Flower 1)."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", callback=from_zero, show_default=False, help="Of the first run (0)."
        ),
    ] = 0,
    engine: Annotated[
        Literal["vectorised", "plain", "flower"],
        typer.Option(
            "--engine",
            show_default=False,
            help="All clients at once (vectorised), a loop, or the whole protocol in Flower's "
            "simulation.",
        ),
    ] = "vectorised",
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="PATH", help="Flower: where the ledger is, or goes; or its URL."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="DIR", help="Keep the runs' state and models there."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoints in that directory.")
    ] = False,
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
    everyone's data is drawn anew and the model carries over. What is contributed comes from
    playing the repeated game, so that you see what a slip and its punishment do:

    fedaccord train --paper --slots 6 --deviate client-90@2 --punishment-slots 2
    """
    on_flower = engine == "flower"
    words = profile or (["individual"] if on_flower else ["equilibrium", "individual"])
    own = [Path(word) for word in words if word not in ("equilibrium", "uniform", "individual")]
    check_writable(report, csv, inputs=[file, *own, Path(ledger) if ledger else None])
    if seeds is None:
        seeds = 1 if on_flower else 3
    if on_flower:
        check_flower_options(words, seeds, ledger, checkpoint)
    elif ledger is not None:
        raise InvalidInput("--ledger: goes with --engine flower only")
    folder = checkpoint_folder(checkpoint, resume)
    consortium = choose_consortium(file, setting)
    check_slots(slots, consortium)
    from fedaccord.cli.training_profiles import read_profiles

    with working("Solving"):
        profiles = read_profiles(consortium, words, slots, deviate or [], punishment_slots)
    course = build_course(
        consortium,
        dataset=dataset,
        data=data,
        task=task,
        local=read_local(local, rate, batch, epochs),
        skew=skew,
        scale=scale,
    )
    if on_flower:
        runs = [run_on_flower(course, profiles[0], seed, ledger)]
    else:
        runs = run_all(course, profiles, range(seed, seed + seeds), find_engine(engine), folder)

    from fedaccord.training.comparison import Comparison

    notes = [line for each in profiles for line in each.notes]
    notes += idle_notes(course, profiles, runs)
    comparison = Comparison(consortium.name, course, engine, tuple(runs), tuple(notes))
    if csv is not None:
        write_runs(csv, comparison)
    if report is not None:
        write_training(report, comparison)
    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        from fedaccord.cli.records import to_json, training_record

        record = training_record(comparison, skew)
        typer.echo(to_json(record, sum(len(run.slots) for run in runs)))
    else:
        from fedaccord.cli.tables import print_consortium, print_training

        print_consortium(output(), consortium)
        print_training(output(), comparison)
