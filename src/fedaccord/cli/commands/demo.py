"""`fedaccord demo`: the whole story in under a minute, step by step."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.cli.console import output
from fedaccord.cli.outputs import check_writable, write_report

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.agreement.agreement import Agreement
    from fedaccord.agreement.certificate import Certificate
    from fedaccord.game.equilibrium import Equilibrium
    from fedaccord.trials.trial import Trial


_SAMPLES_PER_DIGIT = 500
"""Few enough images that more of them still help: digits is an easy dataset."""
_SEEDS = 10


def demo(
    report: Annotated[
        Path,
        typer.Option(
            "--report",
            metavar="FILE.html",
            show_default=False,
            help="Where to write the HTML report; default fedaccord-demo.html.",
        ),
    ] = Path("fedaccord-demo.html"),
) -> None:
    """Show the whole story with six made-up hospitals, and write a report."""
    check_writable(report)

    import fedaccord as fa
    from fedaccord.cli.tables import print_consortium
    from fedaccord.files.consortium import example_consortium

    console = output()
    consortium = example_consortium()
    print_consortium(console, consortium)
    equilibrium = fa.solve_equilibrium(consortium)
    tell_alone(console, equilibrium)
    individual = tell_agreed(console, equilibrium)
    tell_proved(console, individual)
    trial = tell_trained(console, individual.agreement)
    tell_reported(console, individual, report, trial)


def tell_alone(console: "Console", equilibrium: "Equilibrium") -> None:
    """Step 1: what selfish clients do."""
    from fedaccord.numbers import write

    _heading(console, 1, "Alone, each hospital looks at its own bill")
    riders = [
        name
        for name, amount in zip(equilibrium.consortium.names, equilibrium.profile, strict=True)
        if amount == 0
    ]
    total, samples = write([equilibrium.total, float(equilibrium.consortium.samples.sum())])
    console.print(
        f"{', '.join(riders[:-1])} and {riders[-1]} would let the others pay for the training: "
        f"they free-ride. Of {samples} samples only {total} are trained on."
    )


def tell_agreed(console: "Console", equilibrium: "Equilibrium") -> "Certificate":
    """Step 2: what the two kinds of agreements achieve; the individual one's certificate."""
    import fedaccord as fa
    from fedaccord.cli.tables import print_comparison

    _heading(console, 2, "Together, slot after slot, they can agree on more")
    console.print(
        "If a hospital slips, everyone acts alone from then on. That threat makes agreements hold: "
        "the uniform one asks all converted clients for the same level, the individual one asks "
        "each client for as much as it would still keep to."
    )
    uniform = fa.certify(fa.solve_agreement(equilibrium, "uniform"))
    individual = fa.certify(fa.solve_agreement(equilibrium, "individual"))
    print_comparison(console, [uniform, individual])
    return individual


def tell_proved(console: "Console", certificate: "Certificate") -> None:
    """Step 3: the proof."""
    from fedaccord.cli.tables import print_clients
    from fedaccord.summaries.agreement import verdict

    _heading(console, 3, "The individual agreement, client by client, and its proof")
    print_clients(console, certificate, every=True)
    console.print(verdict(certificate))


def tell_trained(console: "Console", agreement: "Agreement") -> "Trial | None":
    """Step 4: what the additional data does to a real model."""
    from fedaccord.checks import is_installed

    _heading(console, 4, "More data, better model: federated averaging on real images")
    if not is_installed("torch", "sklearn"):
        console.print("This step needs PyTorch: pip install 'fedaccord[train]'")
        return None
    import fedaccord as fa
    from fedaccord.cli.tables import print_training
    from fedaccord.cli.training_options import progress_bar

    with progress_bar() as progress:
        trial = fa.train(agreement, seeds=_SEEDS, scale=1 / _SAMPLES_PER_DIGIT, progress=progress)
    print_training(console, trial)
    return trial


def tell_reported(
    console: "Console", certificate: "Certificate", report: Path, trial: "Trial | None"
) -> None:
    """Step 5: the page, and what to do next."""
    _heading(console, 5, "A page to send to everyone")
    write_report(report, certificate, trial)
    console.print(f"Wrote {report}. Next, with your own numbers:", soft_wrap=True)
    for command in (
        "fedaccord init                                   a consortium file to start from",
        "fedaccord solve consortium.toml                  its equilibrium, agreement and proof",
        "fedaccord solve consortium.toml --margin 0.05    with slack for less patient clients",
        "fedaccord train consortium.toml                  a model under it, on real data",
        "fedaccord solve --paper --agreement uniform      the paper's setting and its optimum",
    ):
        console.print(f"  {command}")


def _heading(console: "Console", number: int, words: str) -> None:
    console.print()
    console.print(f"{number}. {words}", style="bold")
