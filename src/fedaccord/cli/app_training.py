"""What `fedaccord flower new` is told about training, and what the terms say about it then."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedaccord.cli.options import flag_of, from_one, read_shape
from fedaccord.cli.training_options import RuleOptions, flags_in_messages
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.data.dataset import Dataset
    from fedaccord.deployment.own_task import AppTask

_RATE = 0.5
"""Of local steps, unless --rate says otherwise."""


@dataclass(frozen=True, kw_only=True)
class AppTaskOptions:
    """What is trained, and on examples of which form."""

    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="What is trained: softmax (default), mlp, cnn, or cox (default for survival "
            "times); or your own: FILE.py:FUNCTION, which is copied into APP, or MODULE:FUNCTION, "
            "which everyone has installed.",
        ),
    ] = None
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape", metavar="A,B,...", help="Shape of one example, unless --dataset is used."
        ),
    ] = None
    classes: Annotated[
        int | None,
        typer.Option(
            "--classes", callback=from_one, help="Number of labels, unless --dataset is used."
        ),
    ] = None
    survival: Annotated[
        bool,
        typer.Option("--survival", help="Labels are survival times: instead of --classes."),
    ] = False
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            help="To rehearse with a dataset that `train --dataset` knows: its shape and labels, "
            "and a scale at which it is enough for the samples in FILE.",
        ),
    ] = None

    def in_app(self, data: "Dataset | None") -> "AppTask":
        """The task that is asked for, or the usual one."""
        from fedaccord.deployment.own_task import task_for_app

        times = self.survival if data is None else data.survival
        return task_for_app(self.task or ("cox" if times else "softmax"))

    def form(self, data: "Dataset | None") -> dict[str, Any]:
        """Of an example, in the terms: from a dataset, or from options."""
        given = [name for name in ("shape", "classes", "survival") if getattr(self, name)]
        if data is not None:
            if given:
                raise InvalidInput(
                    f"{flag_of(given[0])}: cannot be combined with --dataset, which determines it"
                )
            return {"shape": list(data.shape), "classes": data.classes}
        if self.survival and self.classes:
            raise InvalidInput("--survival: cannot be combined with --classes")
        if self.shape is None or not (self.classes or self.survival):
            raise InvalidInput(
                "the shape of an example is missing: use --shape and --classes (or --survival), or "
                "--dataset"
            )
        return {"shape": read_shape(self.shape), "classes": self.classes or 0}


@dataclass(frozen=True, kw_only=True)
class AppRuleOptions(RuleOptions):
    """What clients and server do in a round, for terms."""

    local: Annotated[
        Literal["gradient", "epochs", "steps"] | None,
        typer.Option(
            "--local",
            help="In a round each client takes one step on all its samples (gradient, the "
            "default), goes through them in mini-batches (epochs, the default with --batch or "
            "--epochs), or takes the same number of mini-batches as everyone (steps).",
        ),
    ] = None  # type: ignore[assignment]
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Learning rate of the local steps (default 0.5)."),
    ] = None

    def in_terms(self) -> dict[str, Any]:
        """The part of the table `[training]` that is about this."""
        from fedaccord.flower.local import training_in_terms

        rate = _RATE if self.rate is None else self.rate
        chosen = replace(self, local=self._usual_local, rate=rate)
        with flags_in_messages():
            return training_in_terms(chosen.rule(), chosen.server())

    @property
    def _usual_local(self) -> Literal["gradient", "epochs", "steps"]:
        if self.local is not None:
            return self.local
        if self.steps is not None:
            return "steps"
        return "gradient" if self.batch is None and self.epochs is None else "epochs"
