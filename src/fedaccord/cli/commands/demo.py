"""`fedaccord demo`: a law is measured, an agreement made for it, and its prediction tested."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.checks import check_installed
from fedaccord.cli.console import output, working
from fedaccord.cli.options import html_only
from fedaccord.cli.outputs import all_or_none, check_writable, write_demo, write_file
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.agreement.certificate import Certificate
    from fedaccord.trials.calibration import Calibration
    from fedaccord.trials.trial import Trial


def demo(
    report: Annotated[
        Path,
        typer.Option(
            "--report",
            metavar="FILE.html",
            callback=html_only,
            show_default=False,
            help="Where to write the HTML report; default fedaccord-demo.html.",
        ),
    ] = Path("fedaccord-demo.html"),
    files: Annotated[
        Path | None,
        typer.Option(
            "--files",
            metavar="DIR",
            help="Write the consortium and the measured curve there, to go on with them.",
        ),
    ] = None,
) -> None:
    """Show the whole story with six made-up hospitals, and write a report.

    How a model gets better with data is measured, the hospitals make an agreement for it, and
    training shows whether the gain is there that was predicted.
    """
    consortium_file, curve_file = _paths(files)
    check_writable(report, consortium_file, curve_file)
    check_installed("the demo, which measures and trains a model,", "torch", "sklearn")

    from fedaccord.summaries.demo import Story

    console = output()
    calibration = tell_measured(console)
    certificate = tell_agreed(console, calibration)
    trial = tell_tested(console, certificate)
    with all_or_none():
        if consortium_file is not None and curve_file is not None:
            write_files(consortium_file, curve_file, calibration)
        write_demo(report, Story(certificate, trial))
    tell_reported(console, report, consortium_file)


def tell_measured(console: "Console") -> "Calibration":
    """Step 1: how the model gets better with data, measured on the hospitals' images."""
    from fedaccord.cli.tables import print_consortium
    from fedaccord.cli.training_options import progress_bar
    from fedaccord.files.consortium import demo_consortium
    from fedaccord.summaries.demo import INTRODUCTION, measured_sentence
    from fedaccord.trials.demonstration import measure_demo

    print_consortium(console, demo_consortium())
    console.print(INTRODUCTION)
    _heading(console, 1)
    with progress_bar() as progress:
        calibration = measure_demo(progress=progress)
    console.print(measured_sentence(calibration.law))
    return calibration


def tell_agreed(console: "Console", calibration: "Calibration") -> "Certificate":
    """Steps 2 to 4: what selfish hospitals do, what they can agree on, and the proof."""
    from fedaccord.cli.tables import print_assumptions, print_clients, print_comparison
    from fedaccord.summaries.agreement import verdict
    from fedaccord.summaries.demo import agreed_sentence, selfish_sentence
    from fedaccord.trials.demonstration import agree_in_demo

    with working("Making an agreement for every law that fits"):
        certificate = agree_in_demo(calibration)
        selfish, agreed = selfish_sentence(certificate), agreed_sentence(certificate)
    _heading(console, 2)
    console.print(selfish)
    _heading(console, 3)
    print_comparison(console, [certificate], ["Agreement"])
    console.print(agreed)
    _heading(console, 4)
    print_clients(console, certificate, every=True)
    console.print(verdict(certificate))
    print_assumptions(console, certificate)
    return certificate


def tell_tested(console: "Console", certificate: "Certificate") -> "Trial":
    """Step 5: whether training shows the gain that was predicted."""
    from fedaccord.cli.tables import print_training
    from fedaccord.cli.training_options import progress_bar
    from fedaccord.trials.demonstration import train_in_demo

    _heading(console, 5)
    with progress_bar() as progress:
        trial = train_in_demo(certificate, progress=progress)
    print_training(console, trial)
    return trial


def tell_reported(console: "Console", report: Path, consortium: Path | None) -> None:
    """Step 6: the page, and what to do next."""
    _heading(console, 6)
    console.print(f"Wrote {report}.", soft_wrap=True)
    if consortium is not None:
        console.print(f"The hospitals and their law: fedaccord solve {consortium}", soft_wrap=True)
    console.print("Next, with your own numbers:")
    for command in (
        "fedaccord init                                    a consortium file to start from",
        "fedaccord calibrate consortium.toml --data DIR    the law of your model on your data",
        "fedaccord solve consortium.toml                   equilibrium, agreement and proof",
        "fedaccord play consortium.toml                    the agreement slot by slot",
        "fedaccord train consortium.toml                   a model under it",
    ):
        console.print(f"  {command}", soft_wrap=True)


def write_files(consortium: Path, curve: Path, calibration: "Calibration") -> None:
    """The hospitals and the measured curve, for the other commands."""
    from fedaccord.files.consortium import demo_text
    from fedaccord.files.curve import curve_text

    with TemporaryDirectory() as folder:
        without_law = Path(folder) / consortium.name
        without_law.write_text(demo_text(), encoding="utf-8")
        text = calibration.written_into(without_law, curve.name)
    write_file(curve, curve_text(calibration.curve))
    write_file(consortium, text)


def _paths(files: Path | None) -> tuple[Path | None, Path | None]:
    """Where the consortium and the curve go, in a directory that exists from here on."""
    if files is None:
        return None, None
    try:
        files.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--files: {files}: {error.strerror or error}") from None
    return files / "consortium.toml", files / "curve.csv"


def _heading(console: "Console", number: int) -> None:
    from fedaccord.summaries.demo import HEADINGS

    console.print()
    console.print(f"{number}. {HEADINGS[number - 1]}", style="bold")
