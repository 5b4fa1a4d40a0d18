"""`fedaccord join`: who should train together, and is it worth it for each?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer
from click.core import ParameterSource

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
    from fedaccord.membership.agreeing import GroupAgreement
    from fedaccord.membership.joining import Joining
    from fedaccord.membership.ways import Way


@with_option_groups
def join(
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
            callback=from_zero,
            help="Epochs that each client trains the shared model for on its own data, at the end.",
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
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.toml",
            help="Write FILE there for the group that should form, with its measured law; the "
            "curve goes beside it.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.png", help="Plot who gains (png, svg, pdf)."),
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Find out who gains by training together, with whom, and what that group can agree on.

    Every group of up to 10 clients is trained, and each member is judged by its own test: is its
    model better than the one it trains alone? FILE says who they are, and what an error costs
    them; without it, whoever the data is of:

    fedaccord join --dataset heart-disease-shared

    Unless --optimiser or --fine-tune says how to train, several ways are tried on training records
    alone, and the best is used.
    """
    curve = None if out is None else out.with_name(f"{out.stem}-curve.csv")
    check_writable(out, curve, picture, inputs=[file])
    check_picture(picture)
    if out is not None and file is None:
        raise InvalidInput(
            "--out: needs a FILE to put the law into (`fedaccord init` writes one to start from)"
        )
    consortium = _consortium(file, rounds)
    import fedaccord as fa

    with flags_in_messages(), progress_bar() as progress:
        found = fa.join(
            consortium,
            dataset=dataset,
            data=data,
            clients=clients,
            task=task,
            local=rules.rule(),
            ways=_ways(rules, fine_tune),
            rounds=rounds,
            skew=skew,
            scale=scale,
            seeds=seeds,
            seed=seed,
            progress=progress,
        )
        agreed = None
        if consortium is not None and found.recommended is not None:
            from fedaccord.membership.agreeing import agree

            agreed = agree(
                found,
                consortium,
                found.recommended,
                lambda done, of: progress(done, of, "Measuring the law"),
            )
    told = None
    with all_or_none():
        if picture is not None:
            from fedaccord.plots import plot_joining

            write_picture(picture, plot_joining(found))
        if file is not None and out is not None and curve is not None:
            told = _write(out, file, curve, agreed)
    _print(found, agreed, output_format)
    if told is not None:
        typer.echo(told, err=output_format == "json")


def _consortium(file: Path | None, rounds: int | None) -> "Consortium | None":
    if file is None:
        return None
    from fedaccord.files.consortium import load_consortium

    consortium = load_consortium(file)
    if rounds not in (None, consortium.rounds):
        raise InvalidInput(f"--rounds: {file} says {consortium.rounds}")
    return consortium


def _ways(rules: RuleOptions, fine_tune: int | None) -> "list[Way] | None":
    """The way that was asked for; None to choose from several."""
    from fedaccord.membership.ways import Way

    server = rules.server()  # refuses numbers that go with another optimiser
    source = click.get_current_context().get_parameter_source("optimiser")
    if fine_tune is None and source is not ParameterSource.COMMANDLINE:
        return None
    return [Way(rules.rule(), server, fine_tune or 0)]


def _write(out: Path, file: Path, curve: Path, agreed: "GroupAgreement | None") -> str:
    """Write the group's own file and the curve of its law; what was done, in words."""
    if agreed is None or agreed.certificate is None:
        missing = "no group should form" if agreed is None else "no law fits the measurements"
        return f"{out} was not written: {missing}."
    from fedaccord.files.curve import curve_text
    from fedaccord.summaries.joining import group_comment

    write_file(curve, curve_text(agreed.curve))
    write_file(out, agreed.written_into(file, curve.name, [group_comment(agreed)]))
    return f"Wrote {out}, with these members and their law; its curve is in {curve}."


def _print(found: "Joining", agreed: "GroupAgreement | None", output_format: str) -> None:
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        record = found.to_dict() | {"agreement": None if agreed is None else agreed.to_dict()}
        typer.echo(to_json(record, len(record["groups"])))
        return
    from fedaccord.cli.join_tables import print_joining

    print_joining(output(), found, agreed)
