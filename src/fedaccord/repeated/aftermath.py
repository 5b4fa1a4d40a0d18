"""What follows an alarm: the state of a match, one counter for each client.

An alarm starts the counters of some clients, each counts down by itself, and afterwards its client
is as it was before. The two punishments differ in whom an alarm concerns, and in what a client does
while its counter runs:

- `Reverting`: everyone who cooperates starts to punish, and plays the equilibrium.
- `Suspending`: only the accused is concerned. It is *out*: it is sent no model and trains alone on
  m_n of its samples, while the others go on with their agreed amounts. Several may be out at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.punishment import Suspension
from fedaccord.errors import InvalidInput
from fedaccord.game.alone import alone_cost
from fedaccord.game.cost import cost
from fedaccord.numbers import BoolArray, FloatArray

SpellKind = Literal["punishment", "suspension"]


@dataclass(frozen=True)
class Standing:
    """Where everyone stands in a slot."""

    punishing: BoolArray
    """Who plays the equilibrium because of a slip."""
    out: BoolArray
    """Who is suspended: it gets no model and trains alone."""
    judged: BoolArray
    """Whose contribution is compared with what was agreed."""
    undeserved: BoolArray
    """Who would contribute what was agreed if there had been no false alarm."""
    left: FloatArray
    """For how many slots, this one included, each client is still out."""
    agreed_total: float
    """What the agreement asks of all that are not out."""

    @property
    def keeping(self) -> BoolArray:
        """Who is expected to keep to the agreement."""
        return ~(self.punishing | self.out)


@dataclass(frozen=True)
class Spell:
    """Slots in a row, up to the last one played, in which a counter ran."""

    kind: SpellKind
    client: int | None
    """The client whose counter it is; None: everyone's."""
    during: BoolArray
    """Whether it ran in each slot."""
    until: float
    """When the latest one ends."""


class Aftermath(ABC):
    """One counter for each client, and what it means."""

    def __init__(self, agreement: Agreement, lengths: FloatArray) -> None:
        """All counters at 0; `lengths` is what each is set to."""
        size = agreement.consortium.size
        self.agreement, self.lengths = agreement, lengths
        self.until = np.zeros(size)
        """The last slot in which each counter runs."""
        self.last_alarm = np.zeros(size, dtype=np.int64)
        """The latest slot whose alarm concerned each client; 0: none did."""
        self.undeserved = np.zeros(size, dtype=bool)
        """Whether that was a false alarm."""

    def running(self, slot: int) -> BoolArray:
        """Whose counter runs in a slot."""
        return np.asarray(slot <= self.until)

    def left(self, slot: int) -> FloatArray:
        """For how many slots each counter still runs, this one included."""
        return np.maximum(self.until - slot + 1, 0)

    def same_until(self, slot: int) -> float:
        """The last slot before a counter runs out."""
        return float(self.until.min(where=self.running(slot), initial=inf))

    def key(self, slot: int) -> tuple[bytes, ...]:
        """All that the future depends on: counters, and how long ago the alarms were."""
        left = self.left(slot)
        for_ever = (self.last_alarm == 0) | (left == inf)
        since = np.where(for_ever, inf, slot - self.last_alarm)
        return left.tobytes(), since.tobytes(), self.undeserved.tobytes()

    def _start(self, who: BoolArray, slot: int) -> None:
        """Let some counters run from the next slot on."""
        self.until[who] = slot + self.lengths[who]

    @abstractmethod
    def alarm(self, slot: int, seen: BoolArray, falsely: BoolArray) -> None:
        """Start the counters of whom an alarm concerns."""

    @abstractmethod
    def standing(self, slot: int) -> Standing:
        """Where everyone stands in a slot."""

    @abstractmethod
    def falsely(self, seen: BoolArray, less: BoolArray) -> BoolArray:
        """Who is accused of a slip that nobody made, if `less` contribute less than agreed."""

    @abstractmethod
    def false_alarms(self, falsely: BoolArray) -> int:
        """How many punishments these start."""

    @abstractmethod
    def paid(self, contributions: FloatArray, gone: BoolArray, in_use: FloatArray) -> FloatArray:
        """What slots (rows) cost each client.

        `gone` are those that are out or absent. `in_use` is the total behind the last model, which
        stays in use if everyone who would train is absent; 0: nobody would.
        """

    @abstractmethod
    def spells(self, punishing: BoolArray, out: BoolArray) -> Iterator[Spell]:
        """Whose counters ran when, given who punished in each slot, and who was out."""


class Reverting(Aftermath):
    """Whoever observes a slip while it cooperates plays the equilibrium for some slots.

    What it observes meanwhile makes no difference. So clients that punish equally long are always
    in the same phase.
    """

    def alarm(self, slot: int, seen: BoolArray, falsely: BoolArray) -> None:
        """All who cooperated punish, whoever is accused."""
        del seen
        cooperating = ~self.running(slot)
        self._start(cooperating, slot)
        self.undeserved[cooperating] = falsely.any()
        self.last_alarm[cooperating] = slot

    def standing(self, slot: int) -> Standing:
        """All are judged, by those that cooperate, if there are any."""
        punishing = self.running(slot)
        size = punishing.size
        unearned = bool(punishing.any()) and bool(self.undeserved[punishing].all())
        return Standing(
            punishing=punishing,
            out=np.zeros(size, dtype=bool),
            judged=np.full(size, not punishing.all()),
            undeserved=np.full(size, unearned),
            left=np.zeros(size),
            agreed_total=self.agreement.total,
        )

    def falsely(self, seen: BoolArray, less: BoolArray) -> BoolArray:
        """All accused, if none of them slipped: one slip is enough for a punishment."""
        return seen & (not (seen & less).any())

    def false_alarms(self, falsely: BoolArray) -> int:
        """One, however many are accused."""
        return int(falsely.any())

    def paid(self, contributions: FloatArray, gone: BoolArray, in_use: FloatArray) -> FloatArray:
        """F_n (eq. 5): an absent client gets the model as well."""
        del gone
        total = self.agreement.consortium.totals_of(contributions)
        total = np.where(total > 0, total, in_use)
        return cost(self.agreement.consortium, contributions, total[:, np.newaxis])

    def spells(self, punishing: BoolArray, out: BoolArray) -> Iterator[Spell]:
        """Those of most clients."""
        del out
        middle = float(np.sort(self.until)[(self.until.size - 1) // 2])
        yield Spell("punishment", None, punishing, middle)


class Suspending(Aftermath):
    """Whoever is observed to slip is out for some slots; the others go on.

    Without a model of the slot a client trains alone. That is so for a client that is out, for an
    absent one (absence is not a slip, but it must not be a free ride), and for all if nobody
    trains.
    """

    def __init__(self, agreement: Agreement, lengths: FloatArray) -> None:
        """Nobody is out."""
        super().__init__(agreement, lengths)
        self.alone = suspended_cost(agreement)

    def alarm(self, slot: int, seen: BoolArray, falsely: BoolArray) -> None:
        """The accused are out; everyone learns of it."""
        self._start(seen, slot)
        self.undeserved[seen] = falsely[seen]
        self.last_alarm[:] = slot

    def standing(self, slot: int) -> Standing:
        """Those that are not out are judged."""
        out = self.running(slot)
        agreed = self.agreement.profile * self.agreement.consortium.quality
        return Standing(
            punishing=np.zeros(out.size, dtype=bool),
            out=out,
            judged=~out,
            undeserved=out & self.undeserved,
            left=self.left(slot),
            agreed_total=float(agreed[~out].sum()),
        )

    def falsely(self, seen: BoolArray, less: BoolArray) -> BoolArray:
        """Each accused client that did not slip."""
        return seen & ~less

    def false_alarms(self, falsely: BoolArray) -> int:
        """One for each client."""
        return int(falsely.sum())

    def paid(self, contributions: FloatArray, gone: BoolArray, in_use: FloatArray) -> FloatArray:
        """F_n of who gets the model; being alone costs the others V_n."""
        del in_use
        total = self.agreement.consortium.totals_of(contributions)[:, np.newaxis]
        together = cost(self.agreement.consortium, contributions, total)
        return np.where(gone | (total == 0), self.alone, together)

    def spells(self, punishing: BoolArray, out: BoolArray) -> Iterator[Spell]:
        """Those of each client that was out."""
        del punishing
        for n in np.flatnonzero(out.any(axis=0)).tolist():
            yield Spell("suspension", n, out[:, n], float(self.until[n]))


def suspended_cost(agreement: Agreement) -> FloatArray:
    """What a slot of suspension costs each client: V_n, or less with an old model.

    An old model is worth `model_keeps` times the agreed total, and using it needs no training.
    """
    terms, consortium = agreement.punishment, agreement.consortium
    assert isinstance(terms, Suspension)
    paid = alone_cost(consortium)
    if terms.model_keeps:
        paid = np.minimum(paid, cost(consortium, 0.0, terms.model_keeps * agreement.total))
    fees = consortium.communication_cost + consortium.server_fee
    return paid - fees if terms.fees_saved else paid


def aftermath_of(agreement: Agreement, own_lengths: list[float | None]) -> Aftermath:
    """The agreement's punishment; a strategy may punish for a length of its own (or None).

    Where no agreement exists the equilibrium is played, and nobody is suspended from that.
    """
    punishment = agreement.punishment
    agreed = inf if punishment.slots is None else punishment.slots
    lengths = np.array([agreed if own is None else own for own in own_lengths], dtype=np.float64)
    if not isinstance(punishment, Suspension) or not agreement.exists:
        return Reverting(agreement, lengths)
    if punishment.or_reversion:
        raise InvalidInput(
            "the harsher of both can be solved and proved, but not played: choose one for all",
            field="punishment",
        )
    for name, own in zip(agreement.consortium.names, own_lengths, strict=True):
        if own is not None:
            raise InvalidInput(
                f"the strategy of {name} punishes for a length of its own, but a suspension "
                "lasts as long as the agreement says"
            )
    return Suspending(agreement, lengths)
