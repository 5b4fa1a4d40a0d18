"""What is said about two agreements side by side: what a change does to whom.

Members are the same if they have the same name; what one of them pays in a slot is compared. Where
there is no agreement, they pay what acting selfishly costs.
"""

from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.game.money import amounts
from fedaccord.numbers import FloatArray, count, write
from fedaccord.summaries.words import Noun, ends_of, listed

_SAME = 1e-9
"""Relative to what a member pays: less is rounding."""


@dataclass(frozen=True)
class DifferenceRow:
    """What a change does to one member, every number formatted."""

    name: str
    before: str
    """Samples that it trains on; empty if it was not there."""
    after: str
    pays: str
    """How much more it pays in a slot, with its sign; empty if it cannot be compared."""


@dataclass(frozen=True)
class Difference:
    """Two agreements, and those who are in both."""

    before: Agreement
    after: Agreement

    @property
    def _both(self) -> list[str]:
        here = set(self.after.consortium.names)
        return [name for name in self.before.consortium.names if name in here]

    @property
    def pays_more(self) -> dict[str, float]:
        """How much more each one that is in both pays in a slot."""
        sides = [
            dict(zip(side.consortium.names, side.cost.tolist(), strict=True))
            for side in (self.before, self.after)
        ]
        return {name: sides[1][name] - sides[0][name] for name in self._both}

    def rows(self) -> list[DifferenceRow]:
        """The rows of a table, who left last."""
        pays = self.pays_more
        written = dict(
            zip(
                pays,
                _signed(np.array(list(pays.values())), self.after.consortium.currency),
                strict=True,
            )
        )
        sides = [_amounts(self.before), _amounts(self.after)]
        names = [*self.after.consortium.names, *(n for n in sides[0] if n not in sides[1])]
        return [
            DifferenceRow(
                name, sides[0].get(name, ""), sides[1].get(name, ""), written.get(name, "")
            )
            for name in names
        ]


def _amounts(agreement: Agreement) -> dict[str, str]:
    return dict(zip(agreement.consortium.names, write(agreement.profile), strict=True))


def _signed(values: FloatArray, currency: str) -> list[str]:
    return [
        text if text.startswith("-") or value == 0 else f"+{text}"
        for text, value in zip(amounts(values, currency), values.tolist(), strict=True)
    ]


def difference_sentences(difference: Difference, noun: Noun = "client") -> list[str]:
    """How the total changes, and who gains and who loses by it."""
    return [_exists(difference), _total(difference), *_who(difference, noun)]


def _exists(difference: Difference) -> str:
    before, after = difference.before.exists, difference.after.exists
    if before and not after:
        return f"There would be no agreement any more: {difference.after.reason}."
    if after and not before:
        return "There would be an agreement, where there is none now."
    return "There would still be an agreement." if after else "There would still be no agreement."


def _total(difference: Difference) -> str:
    before, after = difference.before.total, difference.after.total
    was, now, by = write([before, after, abs(after - before)])
    if was == now:
        return f"They would train on as many samples in a slot as now, {now}."
    more = "more" if after > before else "fewer"
    return f"They would train on {now} samples in a slot instead of {was}: {by} {more}."


def _who(difference: Difference, noun: Noun) -> list[str]:
    """Who pays less, and who more, of those who are in both."""
    changes = difference.pays_more
    costs = dict(
        zip(
            difference.before.consortium.names,
            np.abs(difference.before.cost).tolist(),
            strict=True,
        )
    )
    currency = difference.after.consortium.currency
    said = []
    for word, sign in (("less", -1.0), ("more", 1.0)):
        some = {n: sign * c for n, c in changes.items() if sign * c > _SAME * costs[n]}
        if some:
            change = ends_of(np.array(list(some.values())), currency)
            who = listed(list(some))
            if len(some) == len(changes) > 1:
                who = f"all {count(len(some), noun)} that are in both"
            pays = "pays" if len(some) == 1 else "pay"
            said.append(f"{who[0].upper()}{who[1:]} {pays} {change} {word} in a slot.")
    return said or [f"No {noun} would pay more or less."]
