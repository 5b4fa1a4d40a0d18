"""The repeated game played out: strategies, slips, crashes and misreadings."""

from fedaccord.play.book import Event
from fedaccord.play.match import Match, play
from fedaccord.play.strategies import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    Friedman,
    KeepAndPunish,
    Loyal,
    Myopic,
    Selfish,
    Steady,
    Strategy,
    View,
)
from fedaccord.play.tolerance import Tolerance, find_tolerance

__all__ = [
    "DeviateOnce",
    "Event",
    "Forgiving",
    "FreeRide",
    "Friedman",
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
