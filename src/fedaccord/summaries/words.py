"""Words and lists that the sentences of several modules need."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.game.consortium import Consortium
from fedaccord.game.money import amounts, money
from fedaccord.numbers import BoolArray, FloatArray

Noun = Literal["client", "member"]
"""What an organisation is called: a client, but a member on pages that directors read."""


def with_noun(sentence: str, noun: Noun, names: Sequence[str]) -> str:
    """A sentence about clients with another noun; whoever has such a name keeps it.

    >>> with_noun("Clients pay Client 7: a client's share.", "member", ["Client 7"])
    "Members pay Client 7: a member's share."
    """
    if noun == "client":
        return sentence
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    parts = re.compile(rf"(?P<name>{known})|\bclient|\bClient")

    def said(found: re.Match[str]) -> str:
        if found["name"]:
            return found[0]
        return noun if found[0] == "client" else noun.capitalize()

    return parts.sub(said, sentence)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence; of many only the first.

    >>> listed(["A", "B", "C"]), listed([str(n) for n in range(9)], 3)
    ('A, B and C', '0, 1, 2 and 6 others')
    """
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most:,} others"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


Remark = Literal["indifferent", "worse off", "cheaper"]
"""A sentence after which a command names the option that changes what it says."""
Hints: TypeAlias = Mapping[Remark, str]
"""What a command adds to remarks, in parentheses."""


NO_HINTS: Hints = {}


def hinted(sentence: str, hint: str | None) -> str:
    """A sentence with what a command adds to it.

    >>> hinted("A margin would leave room.", "--margin 0.01"), hinted("", "--margin 0.01")
    ('A margin would leave room. (--margin 0.01)', '')
    """
    return f"{sentence} ({hint})" if sentence and hint else sentence


def names_of(agreement: Agreement, chosen: BoolArray) -> list[str]:
    """The names of the chosen clients."""
    return [agreement.consortium.names[n] for n in np.flatnonzero(chosen).tolist()]


def ends_of(values: FloatArray, currency: str) -> str:
    """The smallest and the largest of some amounts: "3 to 12 EUR", or "3 EUR" if they are the same.

    >>> ends_of(np.array([12.0, 3.0]), "EUR"), ends_of(np.array([3.0]), "")
    ('3 to 12 EUR', '3')
    """
    written = amounts(values, currency)
    low, high = written[int(values.argmin())], written[int(values.argmax())]
    return money(low if low == high else f"{low} to {high}", currency)


def in_unit(consortium: Consortium) -> str:
    """What a heading over money ends with: ", EUR"; nothing if the currency was not said."""
    return f", {consortium.currency}" if consortium.currency else ""
