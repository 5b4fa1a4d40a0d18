"""`fedaccord calibrate`: measures the numbers that a consortium file asks for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.checks import normalised
from fedaccord.cli.console import output
from fedaccord.cli.options import FormatOption, from_one
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.cli.training_options import (
    BatchOption,
    DatasetOption,
    EpochsOption,
    LocalOption,
    RateOption,
    TaskOption,
    flags_in_messages,
    progress_bar,
    read_local,
)
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.game.consortium import Consortium
    from fedaccord.trials.calibration import Calibration


def calibrate(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None,
    *,
    dataset: DatasetOption = None,
    task: TaskOption = "softmax",
    local: LocalOption = "gradient",
    rate: RateOption = None,
    batch: BatchOption = None,
    epochs: EpochsOption = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", callback=from_one, help="Rounds in a slot; default 50, or what FILE says."
        ),
    ] = None,
    price_per_second: Annotated[
        float | None,
        typer.Option("--price-per-second", help="What a second of this machine costs."),
    ] = None,
    chip: Annotated[
        float | None,
        typer.Option(
            "--chip", help="Instead of a price, with --hertz: the chip's coefficient (eq. 4)."
        ),
    ] = None,
    hertz: Annotated[
        float | None, typer.Option("--hertz", help="With --chip: its clock speed.")
    ] = None,
    value_of_loss: Annotated[
        float | None,
        typer.Option(
            "--value-of-loss", help="What a test loss higher by 1 costs a client per slot."
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--client", metavar="NAME", help="Whose numbers these are; default: all. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.toml",
            help="Write FILE there with these numbers; all else stays.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", metavar="FILE.png", help="Plot the losses and the law (png, svg, pdf)."
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds",
            callback=from_one,
            show_default=False,
            help="Runs for each amount of data; default 3.",
        ),
    ] = 3,
    output_format: FormatOption = "text",
) -> None:
    """Measure what a sample costs on this machine, and what data is worth to a model.

    Seconds per sample become a cost per sample, at a price per second or by eq. 4 of the paper.
    Losses on more and more data are compared with the law that the game assumes. To put the
    numbers into a consortium file:

    fedaccord calibrate mine.toml --price-per-second 0.0001 --value-of-loss 5000 --out new.toml
    """
    in_place = out == file  # then FILE is meant to change
    check_writable(out, picture, inputs=[] if in_place else [file])
    client = [normalised(name) for name in client or []]
    consortium = _consortium(file, out, client)
    if client and out is None:
        raise InvalidInput("--client: goes with --out only, which says where its numbers go")
    if picture is not None and picture.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"--picture: {picture} must end in .png, .svg or .pdf")
    if rounds is None:
        rounds = int(consortium.rounds) if consortium else 50
    elif consortium is not None and rounds != consortium.rounds:
        raise InvalidInput(f"--rounds: {file} says {consortium.rounds}")
    if out is not None and price_per_second is chip is hertz is value_of_loss is None:
        raise InvalidInput(
            "--out: there would be no number to write into the file: give a price "
            "(--price-per-second, or --chip and --hertz), or --value-of-loss"
        )
    from fedaccord.summaries.training import calibration_sentences
    from fedaccord.trials.calibration import calibrate as measure

    with flags_in_messages(), progress_bar() as progress:
        result = measure(
            dataset,
            task=task,
            local=read_local(local, rate, batch, epochs),
            rounds=rounds,
            price_per_second=price_per_second,
            chip=chip,
            hertz=hertz,
            value_of_loss=value_of_loss,
            seeds=seeds,
            progress=progress,
        )
    if out is not None and file is not None:
        _write(out, result, file, client or None)
    if picture is not None:
        _draw(picture, result)
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        typer.echo(to_json(result.to_dict(), 1))
    else:
        for line in [*calibration_sentences(result), *_hints(result)]:
            output().print(line)


def _consortium(file: Path | None, out: Path | None, clients: list[str]) -> "Consortium | None":
    """The consortium in the file, if there is one; it must have these clients."""
    if file is None:
        if out is not None or clients:
            raise InvalidInput(
                "--out and --client: need a FILE to put the numbers into "
                "(`fedaccord init` writes one to start from)"
            )
        return None
    from fedaccord.files.consortium import load_consortium

    consortium = load_consortium(file)
    for name in clients:
        consortium.index(name)
    return consortium


def _write(out: Path, result: "Calibration", file: Path, clients: list[str] | None) -> None:
    """Write the file with the new numbers, and say what becomes of clients in a CSV file."""
    from fedaccord.files.reading import load_toml
    from fedaccord.summaries.training import calibration_sentences

    table = load_toml(file)["clients"]
    write_file(out, result.written_into(file, clients, calibration_sentences(result)))
    if isinstance(table, str):
        typer.echo(f"Note: {table} is unchanged; {out} lists the clients itself.", err=True)


def _hints(result: "Calibration") -> list[str]:
    """Which options lead from what was measured to the numbers of a file."""
    hints = []
    if result.cost_per_sample is None:
        hints.append("To turn seconds into a cost, give --price-per-second, or --chip and --hertz.")
    if result.value_of_loss is None:
        hints.append("To turn a into a valuation, give --value-of-loss.")
    return hints


def _draw(picture: Path, result: "Calibration") -> None:
    from io import BytesIO

    from fedaccord.plots import plot_law

    drawn = BytesIO()
    plot_law(result.losses).savefig(drawn, format=picture.suffix[1:], dpi=150)
    write_file(picture, drawn.getvalue())
