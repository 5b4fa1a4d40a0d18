"""Options of the commands that train, their progress bar, and how their mistakes are reported."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
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
    from fedaccord.training.optimisers import ServerOptimiser
    from fedaccord.training.rules import LocalRule
    from fedaccord.trials.setting import Progress

# The built-in names are repeated here because the modules that define them import PyTorch.
_BUILT_IN = (
    "digits",
    "breast-cancer",
    "mnist",
    "heart-disease",
    "heart-disease-shared",
    "heart-disease-imputed",
    "tcga-brca",
)
_DATASETS = names_in("datasets", dict.fromkeys(_BUILT_IN))
_TASKS = names_in("tasks", dict.fromkeys(("softmax", "mlp", "cnn", "cox")))


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
        help="Your own data: a .npz or .csv file for each client, and one called test (or a "
        "directory test, with a file for each).",
    ),
]
TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="TASK",
        show_default=False,
        help=f"{_listed(_TASKS)}; default {_TASKS[0]}, and cox for survival times. Or your own: "
        "FILE.py:FUNCTION, or MODULE:FUNCTION.",
    ),
]
ClientsOption = Annotated[
    int | None,
    typer.Option(
        "--clients",
        callback=from_one,
        help="Without FILE: so many clients share a dataset that has no centres; default 5.",
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        "--rounds", callback=from_one, help="Rounds in a slot; default 50, or what FILE says."
    ),
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
        help="Examples per sample of a client; default 1, or what fits the dataset.",
    ),
]


FineTuneOption = Annotated[
    int | None,
    typer.Option(
        "--fine-tune",
        metavar="EPOCHS",
        callback=from_one,
        help="After each slot every client trains the model for so many epochs more, for itself: "
        "judged on its own test.",
    ),
]


_OF_MINI_BATCHES = ("batch", "proximal", "local_optimiser")
_OF_SERVER = {"server_rate": "rate", "beta1": "beta1", "beta2": "beta2", "tau": "tau"}
"""The numbers of an adaptive server optimiser, and what the library calls them."""


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """What clients and server do in a round."""

    local: Annotated[
        Literal["gradient", "epochs", "steps"],
        typer.Option(
            "--local",
            show_default=False,
            help="In a round each client takes one step on all its samples (gradient, as in the "
            "paper; the default), goes through them in mini-batches (epochs), or takes the same "
            "number of mini-batches as everyone (steps).",
        ),
    ] = "gradient"
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Learning rate; default 1 (gradient), 0.1 (mini-batches)."),
    ] = None
    batch: Annotated[
        int | None,
        typer.Option("--batch", callback=from_one, help="Samples in a mini-batch; default 64."),
    ] = None
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", callback=from_one, help="Epochs: how many per round; default 1."),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", callback=from_one, help="Steps: mini-batches per round; default 100."
        ),
    ] = None
    local_optimiser: Annotated[
        Literal["sgd", "adam"] | None,
        typer.Option(
            "--local-optimiser",
            help="Mini-batches: how a client steps; default sgd. Adam starts afresh in each round.",
        ),
    ] = None
    proximal: Annotated[
        float | None,
        typer.Option(
            "--proximal",
            metavar="MU",
            help="Mini-batches: how strongly clients are held to the global model; default 0, and "
            "0.01 for fedprox.",
        ),
    ] = None
    optimiser: Annotated[
        Literal["fedavg", "fedadam", "fedyogi", "fedadagrad", "fedprox"],
        typer.Option(
            "--optimiser",
            show_default=False,
            help="The next model is the clients' average (fedavg, the default; fedprox, with "
            "--proximal), or a step towards it that adapts to earlier rounds.",
        ),
    ] = "fedavg"
    server_rate: Annotated[
        float | None,
        typer.Option(
            "--server-rate",
            help="For fedadam, fedyogi and fedadagrad, as the next three: the rate of that step; "
            "default 0.1.",
        ),
    ] = None
    beta1: Annotated[
        float | None,
        typer.Option("--beta1", help="How much of earlier steps is kept; default 0.9."),
    ] = None
    beta2: Annotated[
        float | None,
        typer.Option(
            "--beta2", help="The same of their squares, but not for fedadagrad; default 0.99."
        ),
    ] = None
    tau: Annotated[
        float | None,
        typer.Option(
            "--tau", help="Parameters that change much less than this move little; default 0.001."
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that are not as by default."""
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]

    def rule(self) -> "LocalRule":
        """What a client does in a round."""
        check_installed("training", "torch", "sklearn")

        from fedaccord.training.rules import USUAL_PROXIMAL, GradientStep, LocalEpochs, LocalSteps

        self._check()
        rate = self._given("rate")
        if self.local == "gradient":
            return GradientStep(**rate)
        common = rate | self._given("batch", "proximal")
        if self.optimiser == "fedprox":
            common = {"proximal": USUAL_PROXIMAL} | common
        if self.local_optimiser is not None:
            common["optimiser"] = self.local_optimiser
        if self.local == "epochs":
            return LocalEpochs(**common, **self._given("epochs"))
        return LocalSteps(**common, **self._given("steps"))

    def server(self) -> "ServerOptimiser":
        """What the server does with the clients' average."""
        from fedaccord.training.optimisers import find_optimiser

        name = "fedavg" if self.optimiser == "fedprox" else self.optimiser
        given = self._given(*_OF_SERVER)
        if name == "fedavg" and given:
            raise InvalidInput(
                "goes with --optimiser fedadam, fedyogi or fedadagrad", field=next(iter(given))
            )
        try:
            return find_optimiser(name, **{_OF_SERVER[each]: given[each] for each in given})
        except InvalidInput as error:
            own = {theirs: ours for ours, theirs in _OF_SERVER.items()}
            problems = [Problem(own[each.field], each.message) for each in error.problems]
            raise InvalidInput(problems) from None

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def _check(self) -> None:
        """Refuse options that would do nothing."""
        if self.local == "gradient":
            for name in (*_OF_MINI_BATCHES, "epochs", "steps"):
                if getattr(self, name) is not None:
                    local = name if name in ("epochs", "steps") else "epochs or --local steps"
                    raise InvalidInput(f"goes with --local {local}", field=name)
            if self.optimiser == "fedprox":
                raise InvalidInput(
                    "fedprox goes with --local epochs or --local steps: a single step begins at "
                    "the global model",
                    field="optimiser",
                )
        for name in ("epochs", "steps"):
            if getattr(self, name) is not None and self.local != name:
                raise InvalidInput(f"goes with --local {name}", field=name)


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


_FLAGS = {
    "alpha": "--skew",
    "fine_tuning": "--fine-tune",
    "profiles": "--profile",
    "strategies": "--deviate",
}
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
