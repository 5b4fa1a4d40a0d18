"""The random numbers of a match: who is absent, by how much each is misread, whom audits accuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord.numbers import BoolArray, FloatArray

_TOGETHER = 200_000
"""How many numbers are drawn at once, so that memory does not grow with the slots."""


@dataclass(frozen=True)
class Block:
    """The random numbers of some slots in a row."""

    first: int
    last: float
    """The last of the slots; may be infinite if nothing is random."""
    absent: BoolArray | None = None
    """One row per slot: who is absent; None: nobody."""
    error: FloatArray | None = None
    """One row per slot: by what fraction each contribution is misread; None: by nothing."""
    drawn: FloatArray | None = None
    """One row per slot: a number from 0 to 1 for each client, which is accused if it is less than
    the probability of that; None: whoever slips is."""

    @property
    def is_random(self) -> bool:
        """Whether slots may differ."""
        return not (self.absent is None and self.error is None and self.drawn is None)

    def rows(self, first: int, length: float) -> Block:
        """The rows of `length` slots from `first` on."""

        def part(values: Any) -> Any:
            start = first - self.first
            return None if values is None else values[start : start + int(length)]

        columns = map(part, (self.absent, self.error, self.drawn))
        return Block(first, first + length - 1, *columns)


class MatchRng:
    """Draws the same numbers for the same seed, however the slots are cut into stretches."""

    def __init__(
        self, size: int, slots: int, noise: float, dropout: float, seed: int, *, audited: bool
    ) -> None:
        self.size, self.slots, self.noise, self.dropout = size, slots, noise, dropout
        self.audited = audited
        seeds = np.random.SeedSequence(seed).spawn(3)
        self.absence, self.error, self.audits = map(np.random.default_rng, seeds)
        self.block = Block(first=0, last=0)

    def block_of(self, slot: int) -> Block:
        """The block that a slot is in; slots must be asked for in order."""
        if slot > self.block.last:
            certain = self.noise == self.dropout == 0 and not self.audited
            height = self.slots if certain else _TOGETHER // self.size or 1
            last = min(self.slots, slot + height - 1)
            shape = (last - slot + 1, self.size)
            self.block = Block(
                first=slot,
                last=last,
                absent=self.absence.random(shape) < self.dropout if self.dropout else None,
                error=self.error.normal(0.0, self.noise, shape) if self.noise else None,
                drawn=self.audits.random(shape) if self.audited else None,
            )
        return self.block
