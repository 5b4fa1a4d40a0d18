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
    tell_selfish(console, equilibrium)
    suspension = tell_agreed(console, equilibrium)
    tell_proved(console, suspension)
    trial = tell_trained(console, suspension.agreement)
    tell_reported(console, suspension, report, trial)


def tell_selfish(console: "Console", equilibrium: "Equilibrium") -> None:
    """Step 1: what selfish clients do."""
    from fedaccord.numbers import write

    _heading(console, 1, "Left to itself, each hospital looks at its own bill")
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
    """Step 2: what agreements achieve under either punishment; the certificate of the best."""
    import fedaccord as fa
    from fedaccord.cli.tables import print_comparison

    _heading(console, 2, "Together, slot after slot, they can agree on more")
    console.print(
        "A threat makes agreements hold. With reversion, the paper's punishment, everyone acts "
        "selfishly after a slip, for ever: that hurts the innocent as much. With suspension, "
        "whoever slips gets no model for one slot and trains alone, and the others go on. It "
        "deters more, so they can agree on more data."
    )
    reversion = fa.certify(fa.solve_agreement(equilibrium))
    suspension = fa.certify(fa.solve_agreement(equilibrium, punishment="suspension"))
    print_comparison(console, [reversion, suspension], ["Reversion", "Suspension"])
    return suspension


def tell_proved(console: "Console", certificate: "Certificate") -> None:
    """Step 3: the proof."""
    from fedaccord.cli.tables import print_assumptions, print_clients
    from fedaccord.summaries.agreement import verdict

    _heading(console, 3, "The agreement with suspension, client by client, and its proof")
    print_clients(console, certificate, every=True)
    console.print(verdict(certificate))
    print_assumptions(console, certificate)


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
    from fedaccord.summaries.agreement import alternatives_to

    _heading(console, 5, "A page to send to everyone")
    write_report(report, certificate, alternatives_to(certificate.agreement), trial)
    console.print(f"Wrote {report}. Next, with your own numbers:", soft_wrap=True)
    for command in (
        "fedaccord init                                   a consortium file to start from",
        "fedaccord solve consortium.toml                  its equilibrium, agreement and proof",
        "fedaccord play consortium.toml                   the agreement slot by slot",
        "fedaccord train consortium.toml                  a model under it, on real data",
        "fedaccord solve --paper --agreement uniform      the paper's setting and its optimum",
    ):
        console.print(f"  {command}")


def _heading(console: "Console", number: int, words: str) -> None:
    console.print()
    console.print(f"{number}. {words}", style="bold")
