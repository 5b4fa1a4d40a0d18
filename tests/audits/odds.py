"""How likely each level is to find each cheat, if its audit is drawn; computed, not measured."""

from scipy.stats import hypergeom

from tests.audits.cheats import CHANGED, CHEATED, IN_THE_DATA, OPENED, RECORDS, ROUNDS

ALL_RECORDS_TELL = (
    "duplicated samples",
    "nearly duplicated samples",
    "records shared with another member",
)
"""Cheats that show when the records are compared with one another."""
OPENED_RECORDS_TELL = ("samples changed after commitment", "a Merkle tree with holes")
"""Cheats that show if one of the wrong records is opened."""


def found_when_opened(cheat: str) -> float:
    """The probability that the opening of five records shows a cheat."""
    if cheat in ALL_RECORDS_TELL:
        return 1.0
    if cheat in OPENED_RECORDS_TELL:
        return float(1.0 - hypergeom.pmf(0, RECORDS, round(CHANGED * RECORDS), OPENED))
    return 0.0


def found_when_replayed(cheat: str) -> float:
    """The probability that the replay of a drawn round shows a cheat, after the opening."""
    return 1.0 if cheat in IN_THE_DATA else CHEATED / ROUNDS
