"""`calibrate`: measures the numbers that a consortium file asks for, with a real model.

What a sample costs follows from the time that it takes on this machine, at a price per second or by
eq. 4 of the paper. What data is worth follows from the law that is fitted to the losses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord.checks import check_installed, check_whole
from fedaccord.data.dataset import Dataset
from fedaccord.errors import FedaccordError, InvalidInput, Problem
from fedaccord.files.consortium import load_consortium
from fedaccord.record import Record, Tables, jsonable
from fedaccord.trials.setting import Progress, find_model, local_steps

if TYPE_CHECKING:
    from fedaccord.training.calibration import Losses, Speed
    from fedaccord.training.engine import GradientStep, LocalEpochs
    from fedaccord.training.law import Law
    from fedaccord.training.task import Model, Task


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Record):
    """What was measured, and the numbers that follow from it."""

    model: "Model"
    rounds: int
    """G, in a slot."""
    speed: "Speed"
    losses: "Losses"
    price_per_second: float | None = None
    """What a second of this machine costs."""
    value_of_loss: float | None = None
    """v, what a test loss higher by 1 costs a client per slot."""

    @cached_property
    def law(self) -> "Law":
        """The law of the loss, fitted to all totals and rounds."""
        return self.losses.law()

    @cached_property
    def law_at_the_end(self) -> "Law":
        """The law fitted to all totals after the last round: what the game needs."""
        return self.losses.law_at_the_end()

    @property
    def cost_per_sample(self) -> float | None:
        """E, per slot: each sample is trained on in every round. None without a price."""
        if self.price_per_second is None:
            return None
        return self.price_per_second * self.speed.seconds * self.rounds

    @property
    def valuation(self) -> float | None:
        """rho = v a. None without a value of the loss, or if more data does not lower the loss."""
        worth = self.law_at_the_end.data
        return self.value_of_loss * worth if self.value_of_loss and worth > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """The numbers, both laws and all losses."""
        return {
            **jsonable(self._facts()),
            "law": self.law.to_dict(),
            "law_at_the_end": self.law_at_the_end.to_dict(),
            "losses": self.losses.to_dict()["losses"],
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "dataset": self.model.dataset.name,
            "task": self.model.task.name,
            "rounds": self.rounds,
            "seconds_per_sample": self.speed.seconds,
            "cost_per_sample": self.cost_per_sample,
            "valuation": self.valuation,
        }

    def _tables(self) -> Tables:
        return self.losses._tables()

    def written_into(
        self,
        file: str | Path,
        clients: Iterable[str] | None = None,
        comments: Sequence[str] = (),
    ) -> str:
        """The text of a consortium file with these numbers for some clients, or for all.

        Its own comments stay, and `comments` go to the top (see `files.consortium_text`).
        """
        from fedaccord.files.consortium_text import with_numbers

        measured = {"cost_per_sample": self.cost_per_sample, "valuation": self.valuation}
        numbers = {field: value for field, value in measured.items() if value is not None}
        if not numbers:
            raise FedaccordError(
                "there is no number to write: more data does not lower the loss at all, so there "
                "is no valuation"
                if self.value_of_loss
                else "there is no number to write: neither a price nor a value of the loss is given"
            )
        names = load_consortium(file).names if clients is None else clients
        return with_numbers(file, dict.fromkeys(names, numbers), comments)


def calibrate(
    dataset: "str | Dataset | None" = None,
    *,
    task: "str | Task" = "softmax",
    local: "GradientStep | LocalEpochs | None" = None,
    rounds: int = 50,
    price_per_second: float | None = None,
    chip: float | None = None,
    hertz: float | None = None,
    value_of_loss: float | None = None,
    seeds: int = 3,
    progress: "Progress | None" = None,
) -> "Calibration":
    """Measure what a sample costs on this machine, and what data is worth to a model.

    Args:
        dataset: `digits` (the default), `breast-cancer`, `mnist`, one that another package adds, or
            a `Dataset`.
        task: `softmax`, `mlp`, `cnn`, one that another package adds, or a `Task`.
        local: what a client does in a round: `GradientStep()` (the default) or `LocalEpochs()`.
        rounds: rounds in a slot.
        price_per_second: what a second of this machine costs; turns seconds into a cost.
        chip: instead, by eq. 4 of the paper: the chip's coefficient, together with `hertz`.
        hertz: the chip's clock speed.
        value_of_loss: what a test loss higher by 1 costs a client per slot; turns the law's
            coefficient into a valuation.
        seeds: how many runs for each amount of data.
        progress: called as the work proceeds; see `Progress`.
    """
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.calibration import measure_losses, measure_speed

    price = _price(price_per_second, chip, hertz)
    _check_positive("value_of_loss", value_of_loss)
    check_whole("rounds", rounds, least=1)
    check_whole("seeds", seeds, least=1)
    steps = local_steps(local)
    model = find_model(dataset, task, progress)

    def tell(done: int, of: int) -> None:
        if progress is not None:
            progress(done, of, "Training")

    if progress is not None:
        progress(0, 0, "Timing")
    speed = measure_speed(model, steps)
    losses = measure_losses(model, steps, rounds, seeds=seeds, progress=tell)
    found = Calibration(model, rounds, speed, losses, price, value_of_loss)
    _check_positive("cost_per_sample", found.cost_per_sample, "the cost per sample")
    _check_positive("valuation", found.valuation, "the valuation")
    return found


def _price(per_second: float | None, chip: float | None, hertz: float | None) -> float | None:
    """What a second costs: as given, or chip / 2 x hertz^3, which is eq. 4 for a second.

    A sample takes cycles = seconds x hertz, and costs chip / 2 x cycles x hertz^2.
    """
    if (chip is None) != (hertz is None):
        missing, given = ("hertz", "chip") if hertz is None else ("chip", "hertz")
        raise InvalidInput(f"must be given together with {given}", field=missing)
    if chip is not None and per_second is not None:
        raise InvalidInput("must be given alone, without chip and hertz", field="price_per_second")
    _check_positive("price_per_second", per_second)
    _check_positive("chip", chip)
    _check_positive("hertz", hertz)
    if chip is not None and hertz is not None:
        per_second = chip / 2 * hertz * hertz * hertz  # a power would raise OverflowError
        _check_positive("hertz", per_second, "what a second costs")
    return per_second


def _check_positive(field: str, value: float | None, place: str = "") -> None:
    if value is not None and not 0 < value < inf:
        raise InvalidInput(Problem(field, f"must be more than 0 and finite, got {value:g}", place))
