"""What is left when everyone lies: the game in which each client chooses its report.

Starting from the truth, one client after another changes to the report that is best for it while
the others' stay, until nobody changes in a whole round. Reports are ratios: to understate one's
data or patience does the same. Where that ends depends on the order, so it
is done in several; a run that does not settle says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedaccord.mechanisms.misreport.gains import Outcomes, Progress, gain, least_gain, outcomes
from fedaccord.mechanisms.misreport.reports import Lies, Reports, possible_lies
from fedaccord.mechanisms.misreport.rules import Rule
from fedaccord.record import Record

RANDOM = "random"
TRIED = 30
"""How many ratios a client tries in its turn, besides those next to other clients'."""
MOST_ROUNDS = 20
"""Rounds after which a run that has not settled is given up."""
SAME = 1e-4
"""Relative: totals this close are one equilibrium, reached with reports of different rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class ReportingRun(Record):
    """Where changing reports led, in one order."""

    order: str
    """In which order clients changed their reports."""
    seed: int | None
    """Of a random order."""
    settled: bool
    """Whether nobody gains by another report in the end."""
    rounds: int
    """How often everybody had a turn, the turns in which nobody changed included."""
    total: float
    """The samples that are trained on in the end."""
    misreporting: int
    """How many clients do not tell the truth in the end."""

    _headline: ClassVar = ("order", "settled", "total")

    def _facts(self) -> dict[str, Any]:
        return {
            "order": self.order,
            "seed": self.seed,
            "settled": self.settled,
            "rounds": self.rounds,
            "total": self.total,
            "misreporting": self.misreporting,
        }


def everyone_lies(
    rule: Rule, truth: Reports, seed: int, progress: Progress | None = None
) -> tuple[ReportingRun, ...]:
    """A run in each order; the random one has this seed.

    The runs go on side by side, so that what their clients try is computed together.
    """
    runs = [_Run(words, order, truth) for words, order in _orders(truth, seed)]
    while going := [run for run in runs if run.goes_on]:
        tries = [run.tries(rule, truth) for run in going]
        client = np.concatenate(
            [np.repeat(run.client, len(rows.ratio)) for run, rows in zip(going, tries, strict=True)]
        )
        found = outcomes(rule, truth, _stacked(tries), client)
        start = 0
        for run, rows in zip(going, tries, strict=True):
            part = slice(start, start + len(rows.ratio))
            run.choose(truth, rows, Outcomes(*(values[part] for values in found)))
            start = part.stop
        if progress is not None:
            progress(len(going))
    return tuple(run.record(rule, truth, seed) for run in runs)


class _Run:
    """One order of turns, and what everyone says so far."""

    def __init__(self, words: str, order: npt.NDArray[np.int64], truth: Reports) -> None:
        self.words, self.order, self.said = words, order, truth
        self.turns = self.unchanged = 0
        """How many turns there were, and how many since somebody changed its report."""

    @property
    def settled(self) -> bool:
        """Whether everybody has had a turn without changing anything."""
        return self.unchanged >= self.order.size

    @property
    def goes_on(self) -> bool:
        """Whether there is another turn."""
        return not self.settled and self.turns < MOST_ROUNDS * self.order.size

    @property
    def client(self) -> int:
        """Whose turn it is."""
        return int(self.order[self.turns % self.order.size])

    def tries(self, rule: Rule, truth: Reports) -> Reports:
        """What is said now, and below it everything else that the client could say."""
        client = np.array([self.client])
        lies, _ = possible_lies(truth, self.said, client, ("ratio",), TRIED, undercut=rule.undercut)
        options = Lies(
            *(
                np.concatenate(
                    [
                        getattr(self.said, field)[0, client],
                        getattr(truth, field)[0, client],
                        told[0],
                    ]
                )
                for field, told in lies._asdict().items()
            )
        )
        return self.said.if_one_says(np.repeat(client, options.ratio.size), options)

    def choose(self, truth: Reports, rows: Reports, found: Outcomes) -> None:
        """Change to the best of these reports, if it is better than the one now."""
        client = np.full(found.own.size, self.client)
        now = Outcomes(*(np.broadcast_to(values[0], values.shape) for values in found))
        gains = np.nan_to_num(gain(truth, client, now, found), nan=-np.inf)
        best = int(np.argmax(gains))
        self.turns += 1
        self.unchanged += 1
        if gains[best] > least_gain(truth, client[:1], now.own[:1])[0]:
            self.said, self.unchanged = rows.row(best), 0

    def record(self, rule: Rule, truth: Reports, seed: int) -> ReportingRun:
        """Where it ended."""
        return ReportingRun(
            order=self.words,
            seed=seed if self.words == RANDOM else None,
            settled=self.settled,
            rounds=-(-self.turns // self.order.size),
            total=float(rule.assign(self.said).total[0]),
            misreporting=int((self.said.ratio != truth.ratio).sum()),
        )


def _stacked(reports: list[Reports]) -> Reports:
    """Rows of reports, one below the other."""
    columns = (np.concatenate([getattr(rows, field) for rows in reports]) for field in Lies._fields)
    return Reports(reports[0].law, *columns)


def distinct_totals(runs: tuple[ReportingRun, ...]) -> list[float]:
    """The totals of the runs that settled, ascending, each once."""
    totals = sorted(run.total for run in runs if run.settled)
    return [
        total for n, total in enumerate(totals) if n == 0 or total > totals[n - 1] * (1.0 + SAME)
    ]


def _orders(truth: Reports, seed: int) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """The orders that are tried, in words and as positions."""
    given, ascending = np.arange(truth.size), np.argsort(truth.ratio[0], kind="stable")
    yield "as given", given
    yield "reverse", given[::-1]
    yield "ascending ratio", ascending
    yield "descending ratio", ascending[::-1]
    yield RANDOM, np.random.default_rng(seed).permutation(truth.size)
