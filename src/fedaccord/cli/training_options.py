"""Options of the commands that train, their progress bar, and how their mistakes are reported."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import typer

from fedaccord.checks import check_installed
from fedaccord.cli.console import counting, working
from fedaccord.cli.options import from_one
from fedaccord.errors import InvalidInput, Problem
from fedaccord.plugins import names_in

if TYPE_CHECKING:
    from fedaccord.training.engine import GradientStep, LocalEpochs
    from fedaccord.trials.setting import Progress

# The built-in names are repeated here because the modules that define them import PyTorch.
_DATASETS = names_in("datasets", dict.fromkeys(("digits", "breast-cancer", "mnist")))
_TASKS = names_in("tasks", dict.fromkeys(("softmax", "mlp", "cnn")))


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="DATASET",
        show_default=False,
        help=f"{_listed(_DATASETS)}; default {_DATASETS[0]}.",
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Your own data: a .npz or .csv file for each client, and one called test.",
    ),
]
TaskOption = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="TASK",
        show_default=False,
        help=f"{_listed(_TASKS)}; default {_TASKS[0]}. Or your own: FILE.py:FUNCTION, or "
        "MODULE:FUNCTION.",
    ),
]
LocalOption = Annotated[
    Literal["gradient", "epochs"],
    typer.Option(
        "--local",
        show_default=False,
        help="In a round each client takes one step on all its samples (gradient, as in the "
        "paper; the default), or goes through them in mini-batches (epochs).",
    ),
]
RateOption = Annotated[
    float | None, typer.Option("--rate", help="Learning rate; default 1 (gradient), 0.1 (epochs).")
]
BatchOption = Annotated[
    int | None,
    typer.Option("--batch", callback=from_one, help="Epochs: samples in a mini-batch; default 64."),
]
EpochsOption = Annotated[
    int | None,
    typer.Option("--epochs", callback=from_one, help="Epochs: how many per round; default 1."),
]
SkewOption = Annotated[
    float | None,
    typer.Option(
        "--skew",
        metavar="ALPHA",
        help="Give each client its own mixture of labels (Dirichlet; smaller is more skewed); "
        "default: none.",
    ),
]
ScaleOption = Annotated[
    float | None,
    typer.Option(
        "--scale",
        help="Examples of the dataset per sample of a client; default 1, or what fits.",
    ),
]


def read_local(
    local: str, rate: float | None, batch: int | None, epochs: int | None
) -> "GradientStep | LocalEpochs":
    """What a client does in a round."""
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.engine import GradientStep, LocalEpochs

    options = {"rate": rate, "batch": batch, "epochs": epochs}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if local == "epochs":
        return LocalEpochs(**given)
    if batch is not None or epochs is not None:
        raise InvalidInput("--batch and --epochs: go with --local epochs only")
    return GradientStep(**given)


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """What to pass to the library as `progress`: a bar, or a spinner while there is no number."""
    with ExitStack() as shown:
        bar = _Bar(shown)
        yield bar.tell


class _Bar:
    """Replaces what is shown when another kind of work begins."""

    def __init__(self, shown: ExitStack) -> None:
        self._shown = shown
        self._kind: tuple[int, str] | None = None
        self._reach: Callable[[int, str], None] = lambda *_: None

    def tell(self, done: int, of: int, doing: str) -> None:
        kind = (of, "" if of else doing)
        if kind != self._kind:
            self._kind = kind
            self._shown.close()
            if of:
                self._reach = self._shown.enter_context(counting(doing, of))
            else:
                self._shown.enter_context(working(doing))
        if of:
            self._reach(done, doing)


_FLAGS = {"alpha": "--skew", "profiles": "--profile", "strategies": "--deviate"}
"""Fields of the library whose option has another name."""


@contextmanager
def flags_in_messages() -> Iterator[None]:
    """Name the option where the library names the field."""
    try:
        yield
    except InvalidInput as error:
        options = {
            str(each.name): each.opts[0] for each in click.get_current_context().command.params
        }
        flags = options | _FLAGS
        problems = [
            Problem(each.field, each.message, each.place or flags.get(each.field, ""))
            for each in error.problems
        ]
        raise InvalidInput(problems, error.source) from None
