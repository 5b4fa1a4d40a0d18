"""The repeated game, played slot by slot: strategies, deviations, dropouts, noisy monitoring."""

from fedaccord.repeated.match import Match, play
from fedaccord.repeated.recorder import Event
from fedaccord.repeated.strategies import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    Friedman,
    GrimTrigger,
    KeepAndPunish,
    Loyal,
    Myopic,
    Selfish,
    Steady,
    Strategy,
    View,
)
from fedaccord.repeated.tolerance import Tolerance, find_tolerance

__all__ = [
    "DeviateOnce",
    "Event",
    "Forgiving",
    "FreeRide",
    "Friedman",
    "GrimTrigger",
    "KeepAndPunish",
    "Loyal",
    "Match",
    "Myopic",
    "Selfish",
    "Steady",
    "Strategy",
    "Tolerance",
    "View",
    "find_tolerance",
    "play",
]
