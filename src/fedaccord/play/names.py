"""Strategies by name, as they are written on a command line.

>>> strategy_called("forgiving:3")
Forgiving(slots=3)
>>> name_of(strategy_called("free-ride"))
'free-ride'
"""

from fedaccord.errors import InvalidInput
from fedaccord.game.mistakes import unknown
from fedaccord.play.strategies import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    Friedman,
    KeepAndPunish,
    Loyal,
    Myopic,
    OneByOne,
    Selfish,
    Strategy,
)

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
