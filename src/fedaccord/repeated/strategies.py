"""Strategies: what a client contributes, given what it has observed so far.

A strategy is a few lines: `contribution(view)` returns how many samples to train on in the next
slot. The view's numbers are arrays, one entry for each client that plays the strategy, so one line
of arithmetic serves one client or a thousand. A function of a view will do as well; it is called
for one client at a time.

>>> import fedaccord as fa
>>> agreement = fa.solve_agreement(fa.paper_consortium(), kind="uniform")
>>> def half_hearted(view):
...     return 0.5 * view.agreed
>>> match = fa.play(agreement, {"client-7": half_hearted}, slots=3)
>>> match.totals.round().tolist()
[883465.0, 509047.0, 509047.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from fedaccord.checks import shown, unknown, wrong_number, wrong_whole
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.filling import TIE
from fedaccord.numbers import BoolArray, FloatArray


@dataclass(frozen=True)
class View:
    """What the clients that play one strategy know when a slot begins. Slots count from 1."""

    slot: int
    """The slot that begins."""
    clients: npt.NDArray[np.int64]
    """Their positions in the consortium."""
    agreed: FloatArray
    """What the agreement asks of each of them."""
    equilibrium: FloatArray
    """What each of them contributes at the equilibrium."""
    samples: FloatArray
    """D_n of each of them."""
    satiation: FloatArray
    """h_n of each of them."""
    quality: FloatArray
    """q_n of every client of the consortium, 1 unless it says otherwise: totals count by it."""
    agreed_total: float
    """What the agreement asks of all clients of the consortium together that are not out."""
    last_alarm: int | None
    """The latest slot in which they cooperated and observed a slip; None: never so far."""
    punishing: bool
    """Whether they are punishing a slip in this slot; never under suspension."""
    last: FloatArray | None
    """What every client of the consortium was observed to contribute in the previous slot, 0 for
    one that was absent or out; None in the first slot."""
    out: BoolArray
    """Which clients of the consortium are suspended in this slot. What a strategy answers for one
    of them is ignored: it trains alone."""
    slots_left: FloatArray
    """For how many slots, this one included, each of these clients is still out; 0: it is not."""

    @property
    def suspended(self) -> BoolArray:
        """Which of these clients are out."""
        return self.out[self.clients]


@runtime_checkable
class Strategy(Protocol):
    """What a client does in the next slot, and until when it will repeat that.

    A slip is punished for as long as the agreement says. Under reversion a strategy that punishes
    for another length has an attribute `punishes_for` as well: a number of slots, or infinity.
    """

    def contribution(self, view: View) -> FloatArray:
        """How many samples each client of the view trains on."""
        ...

    def steady_until(self, view: View) -> float:
        """The last slot with this same answer, if the phase lasts and no slip is observed.

        A slot before `view.slot` means that it cannot be said. The strategy is then asked in every
        slot, and after the match it is assumed to repeat its last answer.
        """
        ...


class Steady:
    """A strategy that repeats itself until the phase changes or a slip is observed."""

    def steady_until(self, view: View) -> float:  # noqa: ARG002  others look at it
        """For ever."""
        return inf


@dataclass(frozen=True)
class KeepAndPunish(Steady):
    """Keep to the agreement, and punish a slip for as long as it says: what everyone signs.

    A trigger strategy; with a reversion without end it is the grim trigger. Under suspension there
    is nothing to do but to go on: the server sends the model only to clients that are not out.
    """

    def contribution(self, view: View) -> FloatArray:
        """The agreed amount, or the equilibrium's in a punishment."""
        return view.equilibrium if view.punishing else view.agreed


@dataclass(frozen=True)
class GrimTrigger(KeepAndPunish):
    """Keep to the agreement until anyone slips, then play the equilibrium for ever.

    The paper's strategy. Known as grim trigger, grudger, Nash reversion or Friedman's trigger
    strategy; J. W. Friedman, "A non-cooperative equilibrium for supergames", Review of Economic
    Studies 38 (1971).
    """

    @property
    def punishes_for(self) -> float:
        """For ever, whatever the agreement says."""
        return inf


Friedman = GrimTrigger
"""The grim trigger, by the name of its author."""


@dataclass(frozen=True)
class Forgiving(KeepAndPunish):
    """Keep to the agreement, and play the equilibrium for some slots after a slip.

    Known as limited (or finite) punishment, or forgiving trigger; E. J. Green and R. H. Porter,
    "Noncooperative collusion under imperfect price information", Econometrica 52 (1984).
    """

    slots: int

    def __post_init__(self) -> None:
        """Check the length of the punishment."""
        if wrong := wrong_whole(self.slots):
            raise InvalidInput(Problem("slots", f"slots {wrong}", "forgiving"))

    @property
    def punishes_for(self) -> float:
        """This many slots, whatever the agreement says."""
        return self.slots


@dataclass(frozen=True)
class Selfish(Steady):
    """The equilibrium, in every slot: always the stage game's Nash equilibrium, always defect."""

    def contribution(self, view: View) -> FloatArray:
        """What the client contributes at the equilibrium."""
        return view.equilibrium


@dataclass(frozen=True)
class Myopic:
    """The best response to what the others were last observed to do (Lemma 1).

    Known as myopic best response, or Cournot adjustment.
    """

    def contribution(self, view: View) -> FloatArray:
        """The rest up to the satiation point; the agreed amount in the first slot."""
        if view.last is None:
            return view.agreed
        active = np.where(view.out, 0.0, view.last * view.quality)
        others = active.sum() - active[view.clients]
        return _best_response(view, others)

    def steady_until(self, view: View) -> float:
        """It cannot be said: the strategy looks again after every slot."""
        return view.slot - 1


@dataclass(frozen=True)
class FreeRide(Steady):
    """Nothing, in every slot: always free-ride, the extreme form of always defect."""

    def contribution(self, view: View) -> FloatArray:
        """No samples."""
        return np.zeros_like(view.agreed)


@dataclass(frozen=True)
class Loyal(Steady):
    """The agreed amount, whatever happens: always cooperate."""

    def contribution(self, view: View) -> FloatArray:
        """What was agreed."""
        return view.agreed


@dataclass(frozen=True)
class DeviateOnce:
    """Slip in one slot, and keep to the agreement otherwise: a one-shot deviation."""

    slot: int
    amount: float | None = None
    """What it contributes in that slot; None: the amount that saves it most."""
    otherwise: AnyStrategy = field(default_factory=KeepAndPunish)
    """What it plays in all other slots."""

    def __post_init__(self) -> None:
        """Check the slot and the amount."""
        if wrong := wrong_whole(self.slot):
            raise InvalidInput(Problem("slot", f"slot {wrong}", "deviate once"))
        if self.amount is not None and (wrong := wrong_number(self.amount, least=0)):
            raise InvalidInput(Problem("amount", f"amount {wrong}", "deviate once"))
        object.__setattr__(self, "otherwise", as_strategy(self.otherwise))

    @property
    def usual(self) -> Strategy:
        """The strategy that it plays in all other slots."""
        return as_strategy(self.otherwise)

    @property
    def punishes_for(self) -> float | None:
        """As long as the strategy of all other slots does."""
        return getattr(self.otherwise, "punishes_for", None)

    def contribution(self, view: View) -> FloatArray:
        """The slip in its slot. In a punishment the best amount is the equilibrium's."""
        if view.slot != self.slot:
            return self.usual.contribution(view)
        if self.amount is not None:
            return np.full_like(view.agreed, self.amount)
        if view.punishing:
            return view.equilibrium
        own = view.agreed * view.quality[view.clients]
        counted = np.where(view.suspended, 0.0, own)  # of the agreed total
        return _best_response(view, view.agreed_total - counted)

    def steady_until(self, view: View) -> float:
        """Until just before the slip, or until just after it."""
        if view.slot == self.slot:
            return self.slot
        until = self.usual.steady_until(view)
        return min(until, self.slot - 1) if view.slot < self.slot else until


@dataclass(frozen=True)
class OneByOne:
    """A strategy made of a function from a view of one client to its contribution."""

    function: Callable[[View], object]

    def contribution(self, view: View) -> FloatArray:
        """Call the function for each client in turn."""
        return np.array([_number(self.function(one), view.slot) for one in _one_by_one(view)])

    def steady_until(self, view: View) -> float:
        """It cannot be said, so the function is called in every slot."""
        return view.slot - 1


AnyStrategy: TypeAlias = Strategy | Callable[[View], object]
"""A strategy, or a function from a view of one client to its contribution."""


def as_strategy(given: object) -> Strategy:
    """A strategy unchanged; a function, or an object with only `contribution`, made into one."""
    if isinstance(given, Strategy) and not isinstance(given, type):
        return given
    answer = getattr(given, "contribution", given)
    if isinstance(given, type) or not callable(answer):
        raise InvalidInput(f"a strategy must be a function of a view, got {given!r}")
    return OneByOne(answer)


def answer_of(strategy: Strategy, view: View, names: Sequence[str]) -> FloatArray:
    """What a strategy answers, checked; `names` are those of all clients."""
    given, size = strategy.contribution(view), view.agreed.size
    try:
        answer = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        answer = np.empty(0)
    if answer.ndim == 0:
        answer = np.full_like(view.agreed, answer)
    if answer.shape != view.agreed.shape:
        wanted = "one number" if size == 1 else f"{size} numbers, one per client"
        raise InvalidInput(
            f"the strategy of {names[view.clients[0]]} must answer with {wanted}, "
            f"got {given!r} in slot {view.slot}"
        )
    wrong = ~((answer >= 0) & (answer <= view.samples))
    if wrong.any():
        n = int(np.argmax(wrong))
        raise InvalidInput(
            f"the strategy of {names[view.clients[n]]} answered {answer[n]:.15g} in slot "
            f"{view.slot}: must be from 0 to {view.samples[n]:.15g}"
        )
    return answer


def slips_of(strategy: Strategy) -> Iterator[DeviateOnce]:
    """The slips that a strategy plans, one within another."""
    while isinstance(strategy, DeviateOnce):
        yield strategy
        strategy = strategy.usual


def without_slips(strategy: Strategy) -> Strategy:
    """The strategy of a client without its slips: what it plays otherwise, or what it signed."""
    if isinstance(strategy, DeviateOnce):
        return without_slips(strategy.usual)
    return strategy if isinstance(strategy, KeepAndPunish | Loyal) else KeepAndPunish()


def _best_response(view: View, others: FloatArray) -> FloatArray:
    """Each client's best response if the others contribute this much (Lemma 1)."""
    wanted = view.satiation - others
    wanted = np.where(wanted > TIE * view.satiation, wanted, 0.0)
    return np.asarray(np.minimum(wanted / view.quality[view.clients], view.samples))


def _one_by_one(view: View) -> Iterator[View]:
    """The view of each of its clients."""
    for n in range(len(view.clients)):
        one = slice(n, n + 1)
        yield replace(
            view,
            clients=view.clients[one],
            agreed=view.agreed[one],
            equilibrium=view.equilibrium[one],
            samples=view.samples[one],
            satiation=view.satiation[one],
            slots_left=view.slots_left[one],
        )


def _number(answer: object, slot: int) -> float:
    """What a function returned, as one number."""
    try:
        return float(np.asarray(answer, dtype=np.float64).item())
    except (TypeError, ValueError):
        raise InvalidInput(
            f"a strategy must answer with one number, got {answer!r} in slot {slot}"
        ) from None


STRATEGIES: dict[str, Strategy] = {
    "keep": KeepAndPunish(),
    "grim-trigger": GrimTrigger(),
    "selfish": Selfish(),
    "myopic": Myopic(),
    "free-ride": FreeRide(),
    "loyal": Loyal(),
}
"""The strategies that have a name on the command line, beside `forgiving:N`."""
_ALIASES = {"friedman": "grim-trigger"}
_KNOWN = (*STRATEGIES, "forgiving:N")


def strategy_called(name: str) -> Strategy:
    """The strategy of this name; `forgiving:3` punishes for 3 slots.

    >>> strategy_called("grim-trigger") == strategy_called("friedman") == GrimTrigger()
    True
    """
    name = _ALIASES.get(name, name)
    if name in STRATEGIES:
        return STRATEGIES[name]
    word, colon, slots = name.partition(":")
    if word == "forgiving":
        if not (slots.isascii() and slots.isdigit() and int(slots) > 0):
            given = f"got {shown(slots)}" if colon else "as in forgiving:3"
            raise InvalidInput(f"forgiving:N needs a whole number of slots, 1 or more, {given}")
        return Forgiving(int(slots))
    raise InvalidInput(f"unknown strategy {shown(name)}: {unknown(name, _KNOWN)}")


def name_of(strategy: Strategy) -> str:
    """The name of a strategy; for one with planned slips, that of what it plays otherwise."""
    if isinstance(strategy, DeviateOnce):
        return name_of(strategy.usual)
    if isinstance(strategy, Forgiving):
        return f"forgiving:{strategy.slots}"
    for name, known in STRATEGIES.items():
        if strategy == known:
            return name
    own = strategy.function if isinstance(strategy, OneByOne) else type(strategy)
    return getattr(own, "__name__", type(own).__name__)
