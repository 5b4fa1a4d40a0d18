"""Who is accused of a slip in each slot, and when that is acted on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from fedaccord.agreement.agreement import KEPT, Agreement
from fedaccord.agreement.monitoring import Monitoring, Rates
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.repeated.random_slots import Block


@dataclass(frozen=True)
class Judgement:
    """How contributions are judged."""

    monitoring: Monitoring
    rates: Rates
    agreed: FloatArray
    least: FloatArray
    """A client that seems to contribute less than this falls short."""

    @classmethod
    def of(cls, agreement: Agreement, tolerance: float) -> Judgement:
        """As the agreement says, with a tolerance."""
        monitoring, agreed = agreement.monitoring, agreement.profile
        rates = monitoring.rates(agreement.consortium)
        return cls(monitoring, rates, agreed, agreed * (1.0 - tolerance - KEPT))

    def accused(self, profile: FloatArray, rows: Block) -> BoolArray:
        """By slot, who is accused; a single row if all slots are the same.

        Without audits, everyone that seems to fall short. With them, whoever is drawn: of those
        that do not fall short, as many as are accused falsely.
        """
        short = _short(profile, self.least, rows.error)
        if rows.drawn is not None:
            audit, false = self.rates
            seen = self.monitoring.seen(self._missing(profile, rows.error))
            short = rows.drawn < np.where(short, false + (audit - false) * seen, false)
        return short if rows.absent is None else short & ~rows.absent

    def _missing(self, profile: FloatArray, error: FloatArray | None) -> FloatArray:
        """The part of what was agreed that seems to be missing."""
        seen = profile if error is None else profile * (1.0 + error)
        part = np.divide(seen, self.agreed, out=np.ones_like(seen), where=self.agreed > 0)
        return np.clip(1.0 - part, 0.0, 1.0)


def _short(profile: FloatArray, least: FloatArray, error: FloatArray | None) -> BoolArray:
    """By slot, who seems to contribute less than `least`; a single row if all are the same."""
    if error is None:
        return np.asarray((profile < least)[np.newaxis])
    # profile * (1 + error) < least, with fewer operations per slot
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        margin = np.where(least > 0, least / profile - 1.0, -np.inf)
    return np.asarray(error < margin)


class Pending:
    """Accusations that have not been acted on yet, each with the slot in which they will be."""

    def __init__(self, late: int) -> None:
        self.late = late
        self.waiting: list[tuple[int, BoolArray, BoolArray]] = []

    @property
    def same_until(self) -> float:
        """The last slot before the next one is acted on."""
        return min((due - 1 for due, _, _ in self.waiting), default=inf)

    def key(self, slot: int) -> tuple[bytes | int, ...]:
        """All that the future depends on."""
        parts = [(due - slot, seen.tobytes(), false.tobytes()) for due, seen, false in self.waiting]
        return tuple(part for each in parts for part in each)

    def add(self, slot: int, seen: BoolArray, falsely: BoolArray) -> None:
        """Accusations of a slot; further slips of whoever is accused already change nothing."""
        for _, before, _ in self.waiting:
            seen = seen & ~before
        if seen.any():
            self.waiting.append((slot + self.late, seen, falsely & seen))

    def due(self, slot: int) -> Iterator[tuple[BoolArray, BoolArray]]:
        """Those that are acted on in a slot."""
        while self.waiting and self.waiting[0][0] <= slot:
            _, seen, falsely = self.waiting.pop(0)
            yield seen, falsely
