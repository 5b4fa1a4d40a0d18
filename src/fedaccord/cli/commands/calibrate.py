"""`fedaccord calibrate`: measures the law of the loss, and what a sample costs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedaccord.atomic import Changed, fingerprint
from fedaccord.checks import normalised
from fedaccord.cli.console import output
from fedaccord.cli.options import FormatOption, from_one, with_option_groups
from fedaccord.cli.outputs import (
    all_or_none,
    check_picture,
    check_writable,
    write_file,
    write_picture,
)
from fedaccord.cli.training_options import (
    DataOption,
    DatasetOption,
    RoundsOption,
    RuleOptions,
    TaskOption,
    flags_in_messages,
    progress_bar,
)
from fedaccord.errors import FedaccordError, InvalidInput

if TYPE_CHECKING:
    from fedaccord.game.consortium import Consortium
    from fedaccord.trials.calibration import Calibration


@with_option_groups
def calibrate(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None,
    *,
    data: DataOption = None,
    dataset: DatasetOption = None,
    task: TaskOption = None,
    measure: Annotated[
        Literal["error", "loss"],
        typer.Option(
            "--measure",
            show_default=False,
            help="What is lost: error (1 - accuracy, or 1 - concordance for survival times; the "
            "default), or the loss of the task.",
        ),
    ] = "error",
    rules: RuleOptions,
    fine_tune: Annotated[
        int | None,
        typer.Option(
            "--fine-tune",
            metavar="EPOCHS",
            callback=from_one,
            help="Every client trains the model for so many epochs more, for itself; the law is of "
            "these models, each judged on its owner's own test.",
        ),
    ] = None,
    rounds: RoundsOption = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds",
            callback=from_one,
            show_default=False,
            help="Runs for each size; default 10.",
        ),
    ] = 10,
    smallest: Annotated[
        int | None,
        typer.Option(
            "--smallest",
            callback=from_one,
            help="The fewest examples to train on; default: a 64th of all, but at least 10.",
        ),
    ] = None,
    curve: Annotated[
        Path | None,
        typer.Option(
            "--curve",
            metavar="FILE.csv",
            help="Write the curve there; default: curve.csv beside --out.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.toml",
            help="Write FILE there with the law; comments and all other numbers stay.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", metavar="FILE.png", help="Plot the curve and the law (png, svg, pdf)."
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
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--client",
            metavar="NAME",
            help="Whose machine this is: its cost per sample is written, too. Repeatable.",
        ),
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Measure how the loss of your model falls with data, and what a sample costs here.

    The model is trained on more and more samples, up to all that the clients have together, and
    the law that agreements rest on is fitted to what it loses. To put it into a consortium file:

    fedaccord calibrate mine.toml --data DIR --out mine.toml

    An interrupted measurement goes on where it was. Valuations are never changed.
    """
    in_place = out is not None and out == file  # then FILE is meant to change
    client = [normalised(name) for name in client or []]
    consortium = _consortium(file, out, client)
    if out is not None and curve is None:
        curve = out.parent / "curve.csv"
    check_writable(out, curve, picture, inputs=[] if in_place else [file])
    if client and (out is None or price_per_second is chip is hertz is None):
        raise InvalidInput("--client: goes with --out and a price, which make a cost to write")
    check_picture(picture)
    if consortium is not None and rounds not in (None, consortium.rounds):
        raise InvalidInput(f"--rounds: {file} says {consortium.rounds}")
    from fedaccord.trials.calibration import calibrate as measure_law

    part = None if curve is None else curve.with_name(f"{curve.name}.part")
    with flags_in_messages():
        local, server = rules.rule(), rules.server()
    with flags_in_messages(), progress_bar() as progress:
        result = measure_law(
            dataset,
            data=data,
            consortium=consortium,
            task=task,
            local=local,
            server=server,
            fine_tuning=fine_tune,
            rounds=rounds,
            measure=measure,
            seeds=seeds,
            smallest=smallest,
            price_per_second=price_per_second,
            chip=chip,
            hertz=hertz,
            checkpoint=part,
            progress=progress,
        )
    try:
        with all_or_none():
            _write_curve(curve, result)
            if out is not None and file is not None and curve is not None:
                _write_law(out, result, file, curve, client)
            if picture is not None:
                from fedaccord.plots import plot_law

                write_picture(picture, plot_law(result.law))
    except Changed:
        raise  # the measurement is kept beside the curve, so that it need not be made again
    except FedaccordError:
        _write_curve(curve, result)  # also one that no law fits
        _forget(part)
        raise
    _forget(part)
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        typer.echo(to_json(result.to_dict(), 1))
    else:
        from fedaccord.summaries.calibration import calibration_sentences

        for line in [*calibration_sentences(result), *_hints(result, curve, out)]:
            output().print(line)


def _consortium(file: Path | None, out: Path | None, clients: list[str]) -> "Consortium | None":
    """The consortium in the file, if there is one; it must have these clients."""
    if file is None:
        if out is not None or clients:
            raise InvalidInput(
                "--out and --client: need a FILE to put the law into "
                "(`fedaccord init` writes one to start from)"
            )
        return None
    from fedaccord.files.consortium import load_consortium

    consortium = load_consortium(file)
    for name in clients:
        consortium.index(name)
    return consortium


def _write_curve(curve: Path | None, result: "Calibration") -> None:
    from fedaccord.files.curve import curve_text

    if curve is not None:
        write_file(curve, curve_text(result.curve))


def _forget(part: Path | None) -> None:
    """Remove a measurement that is over: there is nothing to resume."""
    if part is not None:
        part.unlink(missing_ok=True)


def _write_law(
    out: Path, result: "Calibration", file: Path, curve: Path, clients: list[str]
) -> None:
    """Write the file as it is now with the law, and with the cost of those whose machine it is."""
    from fedaccord.files.consortium import description_text, load_consortium
    from fedaccord.files.consortium_text import with_numbers
    from fedaccord.files.reading import parse_toml
    from fedaccord.summaries.calibration import law_sentence, measured_sentence

    seen = fingerprint(out) if out == file else None
    rounds = load_consortium(file).rounds
    if rounds != result.rounds:
        raise InvalidInput(
            f"has {rounds:,} rounds by now, and the law was measured for {result.rounds:,}; the "
            f"curve is in {curve}",
            str(file),
        )
    place = Path(os.path.relpath(curve, out.parent)).as_posix()
    comments = [measured_sentence(result), law_sentence(result)]
    text = result.written_into(file, place, comments)
    if clients and result.cost_per_sample is not None:
        cost = {"cost_per_sample": result.cost_per_sample}
        text = with_numbers(file, dict.fromkeys(clients, cost), text=text)
        table = parse_toml(description_text(file), str(file))["clients"]
        if isinstance(table, str):
            typer.echo(f"Note: {table} is unchanged; {out} lists the clients itself.", err=True)
    write_file(out, text, seen=seen)


def _hints(result: "Calibration", curve: Path | None, out: Path | None) -> list[str]:
    """What was written where, and which options lead further."""
    hints = []
    if curve is not None:
        hints.append(f"The curve is in {curve}" + (f", the law in {out}." if out else "."))
    else:
        hints.append("To keep the curve, give --curve; to put the law into a file, FILE and --out.")
    if result.cost_per_sample is None:
        hints.append("To turn seconds into a cost, give --price-per-second, or --chip and --hertz.")
    return hints
