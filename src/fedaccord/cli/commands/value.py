"""`fedaccord value`: how much each member's data helps the others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedaccord.atomic import fingerprint
from fedaccord.checks import check_number
from fedaccord.cli.console import output
from fedaccord.cli.options import FormatOption, from_one, from_zero, with_option_groups
from fedaccord.cli.outputs import (
    all_or_none,
    check_picture,
    check_writable,
    write_file,
    write_picture,
)
from fedaccord.cli.training_options import (
    ClientsOption,
    DataOption,
    DatasetOption,
    RoundsOption,
    RuleOptions,
    ScaleOption,
    SkewOption,
    TaskOption,
    flags_in_messages,
    progress_bar,
)
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.game.consortium import Consortium
    from fedaccord.membership.values import DataValues


@with_option_groups
def value(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None,
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    clients: ClientsOption = None,
    task: TaskOption = None,
    rules: RuleOptions,
    fine_tune: Annotated[
        int | None,
        typer.Option(
            "--fine-tune",
            metavar="EPOCHS",
            callback=from_one,
            help="Each member of a group trains its model for so many epochs more, for itself: "
            "judged on its own test.",
        ),
    ] = None,
    rounds: RoundsOption = None,
    skew: SkewOption = None,
    scale: ScaleOption = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds",
            callback=from_one,
            show_default=False,
            help="Runs of each group, at least 2; default 10.",
        ),
    ] = 10,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            callback=from_zero,
            show_default=False,
            help="Seed of the first run, and of what is drawn; default 0.",
        ),
    ] = 0,
    permutations: Annotated[
        int | None,
        typer.Option(
            "--permutations",
            callback=from_one,
            help="With more than 6 clients: how many orders of them to sample; default 10 for "
            "each client.",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Train all groups, for up to 12 clients.")
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            metavar="POINTS",
            help="Truncate a permutation once a group is this close to everyone; default 0.5 "
            "percentage points.",
        ),
    ] = None,
    quality: Annotated[
        Literal["error", "loss"] | None,
        typer.Option(
            "--quality",
            help="Also measure quality weights for the game, by the error or by the task's loss.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.toml",
            help="Write FILE there with the quality weights that are sure enough; by default "
            "those of the measure that its law has, or else by the error.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.png", help="Draw who helps whom (png, svg, pdf)."),
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Measure how much each member's data helps every other, and whom it hurts.

    Groups of clients are trained, each on all the data of its members, and judged by the common
    test and by each client's own. FILE says who they are; without it, whoever the data is of:

    fedaccord value --dataset digits --skew 0.3

    Up to 6 clients all groups are trained; with more, permutations of them are sampled.
    """
    in_place = out is not None and out == file  # then FILE is meant to change
    check_writable(out, picture, inputs=[] if in_place else [file])
    check_picture(picture)
    consortium = _consortium(file, out, rounds)
    from fedaccord.membership.values import value_data

    with flags_in_messages():
        if tolerance is not None:
            check_number("tolerance", tolerance, least=0)
        local, server = rules.rule(), rules.server()
    with flags_in_messages(), progress_bar() as progress:
        values = value_data(
            consortium,
            dataset=dataset,
            data=data,
            clients=clients,
            task=task,
            local=local,
            server=server,
            fine_tuning=fine_tune or 0,
            rounds=rounds,
            skew=skew,
            scale=scale,
            seeds=seeds,
            seed=seed,
            exact=exact,
            permutations=permutations,
            tolerance=None if tolerance is None else tolerance / 100,
            quality=_measure(quality, out, consortium),
            progress=progress,
        )
    with all_or_none():
        written = _write(out, file, values) if out is not None and file is not None else []
        if picture is not None:
            from fedaccord.plots import plot_value

            write_picture(picture, plot_value(values))
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        typer.echo(to_json(values.to_dict(), len(values.names) ** 2))
    else:
        from fedaccord.cli.value_tables import print_values

        print_values(output(), values)
        for line in written:
            output().print(line)


def _consortium(file: Path | None, out: Path | None, rounds: int | None) -> "Consortium | None":
    """The consortium in the file, if there is one."""
    if file is None:
        if out is not None:
            raise InvalidInput(
                "--out: needs a FILE to put quality weights into "
                "(`fedaccord init` writes one to start from)"
            )
        return None
    from fedaccord.files.consortium import load_consortium

    consortium = load_consortium(file)
    if rounds not in (None, consortium.rounds):
        raise InvalidInput(f"--rounds: {file} says {consortium.rounds}")
    return consortium


def _measure(
    asked: Literal["error", "loss"] | None, out: Path | None, consortium: "Consortium | None"
) -> Literal["error", "loss"] | None:
    """What quality weights are measured by, if they are."""
    if asked is not None or out is None or consortium is None:
        return asked
    measured = consortium.law.evidence is not None
    return "loss" if measured and consortium.law.measure == "loss" else "error"


def _write(out: Path, file: Path, values: "DataValues") -> list[str]:
    """Write the file with the weights that can be used; what was done, in words."""
    from fedaccord.files.consortium_text import with_numbers
    from fedaccord.summaries.value import quality_comment

    weights = {weight.name: weight.value for weight in values.quality if weight.usable}
    if not weights:
        return [f"No quality weight is sure enough: {out} was not written."]
    numbers = {name: {"quality": float(f"{value:.3g}")} for name, value in weights.items()}
    seen = fingerprint(out) if out == file else None
    write_file(out, with_numbers(file, numbers, [quality_comment(values)]), seen=seen)
    return [f"The quality of {', '.join(weights)} is in {out}."]
