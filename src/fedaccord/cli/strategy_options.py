"""The options that say what clients do in a match: `--deviate` and `--strategy`."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from fedaccord.checks import client_meant, normalised
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.game.consortium import Consortium
    from fedaccord.repeated.strategies import Strategy


MOST_SLIPS = 100
"""The most slips of one client: each is a strategy within a strategy."""
_EVERYONE = ("all", "*")


@dataclass(frozen=True)
class _Slip:
    slot: int
    amount: float | None


def read_strategies(
    consortium: "Consortium", slots: int, deviate: Sequence[str], strategy: Sequence[str]
) -> dict[str, "Strategy"]:
    """Strategies by the client's name; all mistakes are reported at once.

    A client with both a strategy and slips plays the strategy in all other slots.
    """
    from fedaccord.repeated.strategies import DeviateOnce, KeepAndPunish

    problems: list[str] = []
    strategies = _read_all(strategy, consortium, problems)
    slips = _read_slips(deviate, consortium, slots, problems)
    if problems:
        raise InvalidInput(problems)
    for name, planned in slips.items():
        for slip in planned:
            otherwise = strategies.get(name, KeepAndPunish())
            strategies[name] = DeviateOnce(slip.slot, slip.amount, otherwise)
    return strategies


def _read_all(
    given: Sequence[str], consortium: "Consortium", problems: list[str]
) -> dict[str, "Strategy"]:
    """Each `--strategy NAME=STRATEGY`; a client's own takes precedence over one for all."""
    from fedaccord.repeated.strategies import strategy_called

    own: dict[str, Strategy] = {}
    shared: dict[str, Strategy] = {}
    shared_from = ""
    for text in given:
        place = f"--strategy {text}"
        name, equals, word = normalised(text).rpartition("=")
        if not (equals and name and word):
            example = f"{consortium.names[-1]}=selfish"
            problems.append(f"{place}: must be NAME=STRATEGY, for instance {example}")
            continue
        everyone = name in _EVERYONE and name not in consortium.names
        try:
            read = strategy_called(word)
            if not everyone:
                name = client_meant(name, consortium.names)
        except InvalidInput as error:
            problems.append(f"{place}: {error}")
            continue
        if everyone and shared_from:
            problems.append(f"{place}: everyone already has a strategy ({shared_from})")
        elif everyone:
            shared, shared_from = dict.fromkeys(consortium.names, read), text
        elif name in own:
            problems.append(f"{place}: {name} already has a strategy")
        else:
            own[name] = read
    return shared | own


def _read_slips(
    given: Sequence[str], consortium: "Consortium", slots: int, problems: list[str]
) -> dict[str, list[_Slip]]:
    """Each `--deviate NAME@SLOT[:AMOUNT]`."""
    slips: dict[str, list[_Slip]] = {}
    for text in given:
        try:
            name, slip = _read_slip(text, consortium, slots)
            planned = slips.setdefault(name, [])
            if any(other.slot == slip.slot for other in planned):
                raise InvalidInput(f"{name} already slips in slot {slip.slot}")
            if len(planned) == MOST_SLIPS:
                raise InvalidInput(f"at most {MOST_SLIPS} slips of one client can be planned")
            planned.append(slip)
        except InvalidInput as error:
            problems.append(f"--deviate {text}: {error}")
    return slips


def _read_slip(text: str, consortium: "Consortium", slots: int) -> tuple[str, _Slip]:
    name, _, rest = normalised(text).rpartition("@")
    slot, colon, amount = rest.partition(":")
    if not (name and slot) or (colon and not amount):
        someone = consortium.names[-1]
        raise InvalidInput(
            f"must be NAME@SLOT or NAME@SLOT:AMOUNT, for instance {someone}@5 or {someone}@5:0"
        )
    name = client_meant(name, consortium.names)
    try:
        number = int(slot)
    except ValueError:
        raise InvalidInput(f"the slot must be a whole number, got {slot!r}") from None
    if not 1 <= number <= slots:
        raise InvalidInput(f"the slot must be from 1 to {slots}, got {number}")
    if not colon:
        return name, _Slip(number, None)
    samples = float(consortium.samples[consortium.index(name)])
    try:
        value = float(amount)
    except ValueError:
        raise InvalidInput(f"the amount must be a number, got {amount!r}") from None
    if not (isfinite(value) and 0 <= value <= samples):
        raise InvalidInput(
            f"the amount must be from 0 to {samples:.15g}, all its samples, got {amount}"
        )
    return name, _Slip(number, value)
