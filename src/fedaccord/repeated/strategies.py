"""What a client does, given what it has observed so far.

A strategy is a few lines: `contribution(view)` returns how many samples to train on in the
slot to come. The view's numbers are arrays, one entry for each client that plays the strategy,
so one line of arithmetic serves one client and a thousand. A plain function of a view will do
as well; it is asked for one client at a time.

>>> from fedaccord.game.paper import paper_consortium
>>> from fedaccord.agreement.solve import solve_agreement
>>> from fedaccord.repeated.match import play
>>> agreement = solve_agreement(paper_consortium(), kind="uniform")
>>> def half_hearted(view):
...     return 0.5 * view.agreed
>>> match = play(agreement, {"client-7": half_hearted}, slots=3)
>>> match.totals.round().tolist()
[883465.0, 509047.0, 509047.0]
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from fedaccord.checks import unknown
from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray

_ROUNDING = 1e-12
"""Of a satiation point: who misses it by less has nothing to add."""


@dataclass(frozen=True)
class View:
    """What the clients that play one strategy know when a slot begins. Slots count from 1."""

    slot: int
    """The slot to come."""
    clients: npt.NDArray[np.int64]
    """Their positions in the consortium."""
    agreed: FloatArray
    """What the agreement asks of each."""
    alone: FloatArray
    """What each would contribute at the equilibrium."""
    samples: FloatArray
    satiation: FloatArray
    agreed_total: float
    """What the agreement asks of all clients together."""
    last_alarm: int | None
    """The latest slot in which they cooperated and saw someone slip; None: never yet."""
    punishing: bool
    """Whether a slip is still to be punished in this slot."""
    last: FloatArray | None
    """What every client of the consortium was seen to contribute in the slot before: 0 for an
    absent one. None in the first slot."""


@runtime_checkable
class Strategy(Protocol):
    """What a client does in the slot to come, and until when it will do just that.

    How long a slip is to be punished is for the agreement to say. A strategy that knows better
    has an attribute `punishes_for` as well: a number of slots, or infinity.
    """

    def contribution(self, view: View) -> FloatArray:
        """How many samples each client of the view trains on."""
        ...

    def steady_until(self, view: View) -> float:
        """The last slot with this same answer if the phase lasts and no one is seen to slip.

        A slot before the one to come: nobody can say. It is then asked in every slot, and
        taken to go on with what it did last when the match is over.
        """
        ...


class Steady:
    """A strategy that repeats itself until the phase changes or someone is seen to slip."""

    def steady_until(self, view: View) -> float:  # noqa: ARG002  others look at it
        """For good."""
        return inf


@dataclass(frozen=True)
class KeepAndPunish(Steady):
    """Keep to the agreement, and punish a slip for as long as it says. What everyone signs."""

    def contribution(self, view: View) -> FloatArray:
        """The agreed amount, or the equilibrium's in a punishment."""
        return view.alone if view.punishing else view.agreed


@dataclass(frozen=True)
class Friedman(KeepAndPunish):
    """Keep to the agreement until anyone slips, then the equilibrium for ever: the paper's."""

    @property
    def punishes_for(self) -> float:
        """For ever, whatever the agreement says."""
        return inf


@dataclass(frozen=True)
class Forgiving(KeepAndPunish):
    """Keep to the agreement, revert to the equilibrium for some slots after a slip."""

    slots: int

    def __post_init__(self) -> None:
        """A punishment has a length."""
        _check_whole("forgiving", "slots", self.slots)

    @property
    def punishes_for(self) -> float:
        """So many slots, whatever the agreement says."""
        return self.slots


@dataclass(frozen=True)
class Selfish(Steady):
    """The equilibrium, every slot."""

    def contribution(self, view: View) -> FloatArray:
        """What suits the client when all are selfish."""
        return view.alone


@dataclass(frozen=True)
class Myopic:
    """The best response to what the others were last seen to do (Lemma 1)."""

    def contribution(self, view: View) -> FloatArray:
        """Whatever is missing to the satiation point; the agreed amount at the start."""
        if view.last is None:
            return view.agreed
        others = view.last.sum() - view.last[view.clients]
        return _best_response(view, others)

    def steady_until(self, view: View) -> float:
        """Nobody can say: it looks again after every slot."""
        return view.slot - 1


@dataclass(frozen=True)
class FreeRide(Steady):
    """Nothing, ever."""

    def contribution(self, view: View) -> FloatArray:
        """No samples."""
        return np.zeros_like(view.agreed)


@dataclass(frozen=True)
class Loyal(Steady):
    """The agreed amount whatever happens."""

    def contribution(self, view: View) -> FloatArray:
        """What was agreed."""
        return view.agreed


@dataclass(frozen=True)
class DeviateOnce:
    """Slip in one slot, to `amount` or as well as one can, and otherwise keep to the agreement."""

    slot: int
    amount: float | None = None
    otherwise: "AnyStrategy" = field(default_factory=KeepAndPunish)

    def __post_init__(self) -> None:
        """A slip has a slot, and an amount that could be given."""
        _check_whole("deviate once", "slot", self.slot)
        if self.amount is not None and not 0 <= self.amount < inf:
            raise InvalidInput(f"deviate once: amount must be 0 or more, got {self.amount!r}")
        object.__setattr__(self, "otherwise", as_strategy(self.otherwise))

    @property
    def usual(self) -> Strategy:
        """What it does in all other slots."""
        return as_strategy(self.otherwise)

    @property
    def punishes_for(self) -> float | None:
        """As long as it does otherwise."""
        return getattr(self.otherwise, "punishes_for", None)

    def contribution(self, view: View) -> FloatArray:
        """The slip in its slot. In a punishment the equilibrium is as well as one can."""
        if view.slot != self.slot:
            return self.usual.contribution(view)
        if self.amount is not None:
            return np.full_like(view.agreed, self.amount)
        if view.punishing:
            return view.alone
        return _best_response(view, view.agreed_total - view.agreed)

    def steady_until(self, view: View) -> float:
        """Until just before the slip, or until just after it."""
        if view.slot == self.slot:
            return self.slot
        until = self.usual.steady_until(view)
        return min(until, self.slot - 1) if view.slot < self.slot else until


@dataclass(frozen=True)
class OneByOne:
    """Any function from a view of one client to its contribution, made a strategy."""

    function: Callable[[View], object]

    def contribution(self, view: View) -> FloatArray:
        """Ask the function for each client in turn."""
        return np.array([_number(self.function(one), view.slot) for one in _one_by_one(view)])

    def steady_until(self, view: View) -> float:
        """Nobody can say, so it is asked in every slot."""
        return view.slot - 1


AnyStrategy: TypeAlias = Strategy | Callable[[View], object]


def as_strategy(given: object) -> Strategy:
    """A strategy as it is; a function, or an object with `contribution` alone, made one."""
    if isinstance(given, Strategy) and not isinstance(given, type):
        return given
    answer = getattr(given, "contribution", given)
    if isinstance(given, type) or not callable(answer):
        raise InvalidInput(f"a strategy must be a function of a view, got {given!r}")
    return OneByOne(answer)


def slips_of(strategy: Strategy) -> Iterator[DeviateOnce]:
    """The slips that a strategy plans, one within another."""
    while isinstance(strategy, DeviateOnce):
        yield strategy
        strategy = strategy.usual


def _best_response(view: View, others: FloatArray) -> FloatArray:
    """What suits each client when the others give so much (Lemma 1), rounding aside."""
    wanted = view.satiation - others
    wanted = np.where(wanted > _ROUNDING * view.satiation, wanted, 0.0)
    return np.asarray(np.minimum(wanted, view.samples))


def _one_by_one(view: View) -> Iterator[View]:
    """The view of each of its clients."""
    for n in range(len(view.clients)):
        one = slice(n, n + 1)
        yield replace(
            view,
            clients=view.clients[one],
            agreed=view.agreed[one],
            alone=view.alone[one],
            samples=view.samples[one],
            satiation=view.satiation[one],
        )


def _number(answer: object, slot: int) -> float:
    """One number from whatever a function returned."""
    try:
        return float(np.asarray(answer, dtype=np.float64).item())
    except (TypeError, ValueError):
        raise InvalidInput(
            f"a strategy must answer with one number, got {answer!r} in slot {slot}"
        ) from None


def _check_whole(strategy: str, field: str, value: object) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:  # type: ignore[operator]
        raise InvalidInput(f"{strategy}: {field} must be a whole number, 1 or more, got {value!r}")


STRATEGIES: dict[str, Strategy] = {
    "keep": KeepAndPunish(),
    "friedman": Friedman(),
    "selfish": Selfish(),
    "myopic": Myopic(),
    "free-ride": FreeRide(),
    "loyal": Loyal(),
}
_KNOWN = (*STRATEGIES, "forgiving:N")


def strategy_called(name: str) -> Strategy:
    """The strategy of this name; `forgiving:3` punishes for 3 slots."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    word, colon, slots = name.partition(":")
    if word == "forgiving":
        if not (slots.isascii() and slots.isdigit() and int(slots) > 0):
            given = f"got {slots!r}" if colon else "as in forgiving:3"
            raise InvalidInput(f"forgiving:N needs a whole number of slots, 1 or more, {given}")
        return Forgiving(int(slots))
    raise InvalidInput(f"unknown strategy {name!r}: {unknown(name, _KNOWN)}")


def name_of(strategy: Strategy) -> str:
    """Its name: of one with planned slips what it does otherwise, of another its own."""
    if isinstance(strategy, DeviateOnce):
        return name_of(strategy.usual)
    if isinstance(strategy, Forgiving):
        return f"forgiving:{strategy.slots}"
    for name, known in STRATEGIES.items():
        if strategy == known:
            return name
    own = strategy.function if isinstance(strategy, OneByOne) else type(strategy)
    return getattr(own, "__name__", type(own).__name__)
