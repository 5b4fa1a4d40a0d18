"""`fedaccord calibrate`: measures the numbers that a consortium's file asks for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.checks import normalised
from fedaccord.cli.console import counting, output, working
from fedaccord.cli.options import FormatOption, from_one
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.cli.training_options import (
    BatchOption,
    DatasetOption,
    EpochsOption,
    LocalOption,
    RateOption,
    TaskOption,
    find_model,
    read_local,
)
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.cli.calibration_results import Calibration
    from fedaccord.game.consortium import Consortium


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
        typer.Option("--rounds", callback=from_one, help="In a slot (50, or what FILE says)."),
    ] = None,
    price_per_second: Annotated[
        float | None,
        typer.Option("--price-per-second", help="What a second of this machine costs."),
    ] = None,
    chip: Annotated[
        float | None,
        typer.Option("--chip", help="Or by eq. 4: the chip's coefficient ..."),
    ] = None,
    hertz: Annotated[float | None, typer.Option("--hertz", help="... and its speed.")] = None,
    value_of_loss: Annotated[
        float | None,
        typer.Option("--value-of-loss", help="What a test loss higher by 1 costs a client."),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="Whose numbers these are (all). Repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.toml", help="Write FILE with these numbers there."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.png", help="Draw losses and law (png, svg, pdf)."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", callback=from_one, show_default=False, help="Runs for each amount (3)."
        ),
    ] = 3,
    output_format: FormatOption = "text",
) -> None:
    """Measure what a sample costs on this machine, and what data is worth to a model.

    Seconds per sample become a cost per sample, at a price per second or by eq. 4 of the paper.
    Losses on more and more data are compared with the law that the game rests on. To put the
    numbers into a consortium's file:

    fedaccord calibrate mine.toml --price-per-second 0.0001 --value-of-loss 5000 --out new.toml
    """
    in_place = out == file  # then it is asked for that FILE changes
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
    price = _price(price_per_second, chip, hertz)
    _check_positive("--value-of-loss", value_of_loss)
    if out is not None and price is None and value_of_loss is None:
        raise InvalidInput(
            "--out: there would be nothing to put into the file: give a price "
            "(--price-per-second, or --chip and --hertz), or --value-of-loss"
        )
    steps = read_local(local, rate, batch, epochs)
    model = find_model(dataset, task)

    from fedaccord.cli.calibration_results import Calibration
    from fedaccord.training.calibration import measure_losses, measure_speed

    with working("Timing"):
        speed = measure_speed(model, steps)
    with counting("Training", 100) as reach:
        losses = measure_losses(
            model,
            steps,
            rounds,
            seeds=seeds,
            progress=lambda done, of: reach(100 * done // of, "Training (%)"),
        )
    result = Calibration(model, rounds, speed, losses, price, value_of_loss)
    _check_positive("the cost per sample", result.cost_per_sample)
    _check_positive("the valuation", result.valuation)
    if out is not None and consortium is not None:
        write_file(out, result.written_into(consortium, client or list(consortium.names)))
    if picture is not None:
        _draw(picture, result)
    if output_format == "json":
        from fedaccord.cli.records import to_json

        typer.echo(to_json(result.record(), 1))
    else:
        result.print(output())


def _consortium(file: Path | None, out: Path | None, clients: list[str]) -> "Consortium | None":
    """The file to write into, if any, and whether the clients are in it."""
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


def _price(per_second: float | None, chip: float | None, hertz: float | None) -> float | None:
    """What a second costs: as it is said, or chip / 2 x hertz^3, which is eq. 4 for a second.

    A sample takes cycles = seconds x hertz, and costs chip / 2 x cycles x hertz^2.
    """
    if (chip is None) != (hertz is None) or (chip is not None and per_second is not None):
        raise InvalidInput("give --price-per-second, or --chip and --hertz")
    _check_positive("--price-per-second", per_second)
    _check_positive("--chip", chip)
    _check_positive("--hertz", hertz)
    if chip is not None and hertz is not None:
        per_second = chip / 2 * hertz * hertz * hertz  # a power would overflow with a traceback
        _check_positive("--chip and --hertz: what a second costs", per_second)
    return per_second


def _check_positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < float("inf"):
        raise InvalidInput(f"{name}: must be more than 0 and finite, got {value:g}")


def _draw(picture: Path, result: "Calibration") -> None:
    from io import BytesIO

    from fedaccord.plots import plot_law

    drawn = BytesIO()
    plot_law(result.losses).savefig(drawn, format=picture.suffix[1:], dpi=150)
    write_file(picture, drawn.getvalue())
