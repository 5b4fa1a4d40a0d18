"""What is left when everyone lies: the game in which each client chooses its report.

Starting from the truth, one client after another changes to the report that is best for it while
the others' stay, until nobody changes in a whole round. Reports are ratios: to understate one's
data or patience does the same. In its turn a client tries some on a coarse grid, and then between
the neighbours of the best, and again; it changes its report for a gain of a ten-thousandth of its
computation or more. Where that ends depends on the order, so it is done in several; a run that does
not settle says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.mechanisms.misreport.gains import Outcomes, Progress, gain, least_gain, outcomes
from fedaccord.mechanisms.misreport.reports import NOTHING, Lies, Reports, possible_lies
from fedaccord.mechanisms.misreport.rules import Rule
from fedaccord.numbers import FloatArray
from fedaccord.record import Record

RANDOM = "random"
TRIED = 30
"""How many ratios a client tries at first in its turn, besides those next to other clients'."""
CLOSER, TIMES = 12, 3
"""How many it then tries between the neighbours of the best, and how many times."""
WORTH_IT = 1e-4
"""Relative to what the client trains on: it changes its report for no smaller gain. Best replies
would go on for ever in ever smaller steps."""
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
        self.closer = 0
        """How many times the client whose turn it is has looked closer."""
        self.best = _Best(truth, 0.0)
        self.between = (0.0, 0.0)

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
        """What is said now, and below it what else the client could say."""
        client = np.array([self.client])
        known = [self.said.ratio[0, client], truth.ratio[0, client]]
        if self.closer:
            others = np.linspace(*self.between, CLOSER + 2)[1:-1]
        else:
            lies, _ = possible_lies(
                truth, self.said, client, ("ratio",), TRIED, undercut=rule.undercut
            )
            others = lies.ratio[0]
        ratio = np.concatenate([*known, others])
        rest = (np.full(ratio.size, each[0, self.client]) for each in self._unchanged())
        return self.said.if_one_says(np.repeat(client, ratio.size), Lies(ratio, *rest))

    def _unchanged(self) -> tuple[FloatArray, FloatArray]:
        return self.said.samples, self.said.discount_factor

    def choose(self, truth: Reports, rows: Reports, found: Outcomes) -> None:
        """Look closer at the best of these reports, or change to it at last if it is worth it."""
        client = np.full(found.own.size, self.client)
        now = Outcomes(*(np.broadcast_to(values[0], values.shape) for values in found))
        gains = np.nan_to_num(gain(truth, client, now, found), nan=-np.inf)
        place = int(np.argmax(gains))
        if self.closer == 0 or gains[place] > self.best.gain:
            self.best = _Best(rows.row(place), float(gains[place]))
        if self.closer < TIMES and gains.max() > 0.0:
            self._look_closer(rows.ratio[:, self.client])
            return
        self.turns, self.unchanged, self.closer = self.turns + 1, self.unchanged + 1, 0
        rounding = least_gain(truth, client[:1], now.own[:1]).item()
        if self.best.gain > max(WORTH_IT * now.own[0], rounding):
            self.said, self.unchanged = self.best.said, 0

    def _look_closer(self, tried: FloatArray) -> None:
        """Go on between the neighbours of the best ratio so far."""
        best = self.best.said.ratio[0, self.client]
        below, above = tried[tried < best], tried[tried > best]
        low, high = below.max(initial=0.0), above.min(initial=2.0 * best)
        self.between, self.closer = (max(low, NOTHING * high), high), self.closer + 1

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


class _Best(NamedTuple):
    """The best report that was found in a turn, and its gain against the present one."""

    said: Reports
    gain: float


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
