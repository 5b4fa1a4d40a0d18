"""Lots that everyone can draw again: numbers that depend on a digest and on what they are for.

Each number is SHA-256 of a canonical list, so whoever knows the digest finds the same ones, and
nobody knows them before the digest is known.

>>> lots = Lots("example", ["ab" * 32, 3, "St Mary"])
>>> lots.below(10), lots.distinct(3, 10)
(3, [0, 2, 7])
"""

from collections.abc import Iterator, Sequence

from fedaccord.signing.canonical import digest_of

_BITS = 256
_EXACT = 53
"""Bits of a number from 0 to 1, as many as a float has."""

Part = str | int


def digest_for(purpose: str, parts: Sequence[Part]) -> str:
    """The digest of a purpose, which separates it from all other uses, and what it is about."""
    return digest_of([f"fedaccord {purpose}", *parts])


class Lots:
    """A sequence of numbers that is fixed by its purpose and by what it is about."""

    def __init__(self, purpose: str, parts: Sequence[Part]) -> None:
        """`parts` are the digest that decides, and whatever tells this sequence from others."""
        self._purpose, self._parts, self._drawn = purpose, list(parts), 0

    def _next(self) -> int:
        self._drawn += 1
        return int(digest_for(self._purpose, [*self._parts, self._drawn]), 16)

    def fraction(self) -> float:
        """A number from 0 to less than 1, a multiple of 2^-53."""
        return float((self._next() >> (_BITS - _EXACT)) / (1 << _EXACT))

    def below(self, count: int) -> int:
        """A whole number from 0 to `count` - 1; numbers that would favour some are redrawn."""
        usable = (1 << _BITS) - (1 << _BITS) % count
        return next(number for number in self._numbers() if number < usable) % count

    def distinct(self, number: int, count: int) -> list[int]:
        """So many different whole numbers below `count` (Floyd's algorithm), in ascending order."""
        chosen: set[int] = set()
        for top in range(count - min(number, count), count):
            drawn = self.below(top + 1)
            chosen.add(top if drawn in chosen else drawn)
        return sorted(chosen)

    def _numbers(self) -> Iterator[int]:
        while True:
            yield self._next()
