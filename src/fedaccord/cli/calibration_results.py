"""What `calibrate` found: in words, as JSON, and in a consortium's file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rich.console import Console

from fedaccord.errors import FedaccordError
from fedaccord.files.consortium_text import consortium_text
from fedaccord.game.consortium import Consortium
from fedaccord.training.calibration import Losses, Speed
from fedaccord.training.law import Law
from fedaccord.training.task import Model


@dataclass(frozen=True, eq=False)
class Calibration:
    """Measurements, and what follows from them."""

    model: Model
    rounds: int
    speed: Speed
    losses: Losses
    price_per_second: float | None
    value_of_loss: float | None

    @cached_property
    def law(self) -> Law:
        """Fitted to all totals and rounds."""
        return self.losses.law()

    @cached_property
    def law_at_the_end(self) -> Law:
        """Fitted to all totals after the last round: what the game needs."""
        return self.losses.law_at_the_end()

    @property
    def cost_per_sample(self) -> float | None:
        """E, for a slot: each sample is trained on in every round."""
        if self.price_per_second is None:
            return None
        return self.price_per_second * self.speed.seconds * self.rounds

    @property
    def valuation(self) -> float | None:
        """rho = v a; None if nobody said what a loss costs, or data is worth nothing."""
        worth = self.law_at_the_end.data
        return self.value_of_loss * worth if self.value_of_loss and worth > 0 else None

    def written_into(self, consortium: Consortium, names: Sequence[str]) -> str:
        """The consortium's file with these numbers for the clients called so."""
        measured: dict[str, Any] = {
            "cost_per_sample": self.cost_per_sample,
            "valuation": self.valuation,
        }
        measured = {field: value for field, value in measured.items() if value is not None}
        if not measured:
            raise FedaccordError(
                "--out: not written: more data does not lower the loss at all, so there is no "
                "valuation to put into the file"
            )
        clients = [
            replace(client, **measured) if client.name in set(names) else client
            for client in consortium
        ]
        fresh = Consortium.of(
            clients,
            rounds=consortium.rounds,
            server_fee=consortium.server_fee,
            name=consortium.name,
        )
        return consortium_text(fresh, self._sentences())

    def print(self, console: Console) -> None:
        """In words."""
        for sentence in self._sentences():
            console.print(sentence)

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "dataset": self.model.dataset.name,
            "task": self.model.task.name,
            "rounds": self.rounds,
            "seconds_per_sample": self.speed.seconds,
            "cost_per_sample": self.cost_per_sample,
            "valuation": self.valuation,
            "law": self.law.to_dict(),
            "law_at_the_end": self.law_at_the_end.to_dict(),
            "losses": self.losses.to_dict()["losses"],
        }

    def _sentences(self) -> list[str]:
        seconds = self.speed.seconds
        slower = self.speed.slowest / seconds
        lines = [
            f"Measured with {self.model.task.name} on {self.model.dataset.name}: "
            f"{seconds:.3g} seconds for a sample in a round (up to {slower:.1f} times that), "
            f"{seconds * self.rounds:.3g} in a slot of {self.rounds} rounds."
        ]
        if self.cost_per_sample is None:
            lines.append("--price-per-second, or --chip and --hertz, turn that into a cost.")
        else:
            lines.append(f"cost_per_sample = {self.cost_per_sample:.4g}")
        lines += [
            f"All rounds: {_formula(self.law, 'G')}. {_verdict(self.law)}",
            f"After {self.rounds} rounds: {_formula(self.law_at_the_end, str(self.rounds))}. "
            f"{_verdict(self.law_at_the_end)}",
        ]
        if self.valuation is not None:
            lines.append(f"valuation = {self.valuation:.4g} (what a loss of 1 costs, times a)")
            if not self.law_at_the_end.fits:
                lines.append("Do not rely on that valuation: the law does not fit.")
        elif self.value_of_loss is None:
            lines.append("--value-of-loss turns a into a valuation.")
        return lines


def _formula(law: Law, rounds: str) -> str:
    last = f" + {law.rounds:.4g} / G" if rounds == "G" else ""
    floor = law.floor if rounds == "G" else law.floor + law.rounds / float(rounds)
    return f"test loss = {law.data:.4g} / sqrt(X {rounds}){last} + {floor:.4g}"


def _verdict(law: Law) -> str:
    error = f"Typical error {law.error:.3g}."
    if law.fits:
        return f"{error} The law fits: it explains {100 * law.explained:.1f} % of the variance."
    return f"{error} The law does NOT fit: {', and '.join(law.objections)}."
