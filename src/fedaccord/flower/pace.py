"""How often a node asks for messages, and the server for replies: Flower has no way to be told."""

_SHARE = 0.1
"""What is waited for is found at most this share of the waiting time later."""
_PAUSES = 0.05, 3.0
"""The shortest and the longest pause, in seconds. The longest is that of Flower's own node."""


def pause_after(waited: float, took: float) -> float:
    """Seconds until the next question, after some waiting and a question that took so long.

    A server that is slow to answer is asked less often, so that questions never take more than
    half of its time.

    >>> [pause_after(waited, took=0.01) for waited in (0.1, 2.0, 60.0)]
    [0.05, 0.2, 3.0]
    >>> pause_after(0.5, took=0.4)
    0.4
    """
    shortest, longest = _PAUSES
    return min(longest, max(shortest, _SHARE * waited, took))
