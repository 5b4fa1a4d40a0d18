"""`best_misreport`: each client's most profitable lie, and what is left when everyone lies.

>>> from fedaccord.game.paper import paper_consortium
>>> individual = best_misreport(paper_consortium(clients=20, samples=50_000))
>>> individual.gaining, individual.best_liar, round(individual.largest_gain, 3)
(20, 'client-1', 0.959)
>>> best_misreport(paper_consortium(clients=20, samples=50_000), "serial clock").largest_gain
0.0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_type, check_whole, unknown
from fedaccord.errors import InvalidInput
from fedaccord.game.alone import alone_cost
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium, best_response, solve_equilibrium
from fedaccord.mechanisms.mechanism import ROUNDING
from fedaccord.mechanisms.misreport.everyone import ReportingRun, everyone_lies
from fedaccord.mechanisms.misreport.gains import LEAST_GAIN, Progress
from fedaccord.mechanisms.misreport.misreport import Misreport, Misreports
from fedaccord.mechanisms.misreport.reports import NOTHING, Reports
from fedaccord.mechanisms.misreport.rules import RULES, Rule
from fedaccord.mechanisms.misreport.search import BestLies, best_lies
from fedaccord.mechanisms.posted import Posted
from fedaccord.numbers import FloatArray

REPORTS = 200
"""How many reports of each client are tried unless something else is asked for."""
_MOST_NUMBERS = 2e9
"""The largest number of clients x reports x clients that is tried: an hour's work."""
_POSTED = Posted()

_ASKING = list(RULES)
NAMES = (*_ASKING[:-3], _POSTED.name, *_ASKING[-3:])
"""The mechanisms that can be looked at, in the order in which they are shown."""


@overload
def best_misreport(  # type: ignore[overload-overlap]
    consortium: Consortium,
    mechanism: str = "individual",
    *,
    reports: int = REPORTS,
    clients: Sequence[str] | None = None,
    everyone: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Misreport: ...
@overload
def best_misreport(
    consortium: Consortium,
    mechanism: Iterable[str] | None,
    *,
    reports: int = REPORTS,
    clients: Sequence[str] | None = None,
    everyone: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Misreports: ...
def best_misreport(
    consortium: Consortium,
    mechanism: str | Iterable[str] | None = "individual",
    *,
    reports: int = REPORTS,
    clients: Sequence[str] | None = None,
    everyone: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Misreport | Misreports:
    """Each client's most profitable report while the others tell the truth.

    A client may misreport its ratio, its data size (only less than it has) or its discount factor,
    whichever the mechanism asks for and does not verify. What counts is its true cost under what
    the mechanism then computes. Reports are searched on a grid.

    Args:
        consortium: The clients as they are; ranges play a part for "posted" only.
        mechanism: A name, or several for a record of all; None for every mechanism.
        reports: How many reports of each client are tried.
        clients: The names of the clients that may lie; all unless given.
        everyone: Also find what is left when everyone lies, by best replies in several orders.
        seed: Of the random one of these orders.
        progress: Called with the number of reports, or turns, since the last call.
    """
    check_type("consortium", consortium, Consortium)
    check_whole("reports", reports)
    several = not isinstance(mechanism, str)
    wanted = [mechanism] if isinstance(mechanism, str) else mechanism
    names = [find_name(name) for name in (NAMES if wanted is None else wanted)]
    if not names:
        raise InvalidInput("there must be at least one", field="mechanism")
    liars = _positions(consortium, clients)
    _check_work(consortium, liars.size, reports)
    study = _Study(solve_equilibrium(consortium), liars, reports, everyone, seed, progress)
    found = tuple(study.of(name) for name in dict.fromkeys(names))
    return Misreports(consortium, found) if several else found[0]


def find_name(name: str) -> str:
    """The mechanism of this name; hyphens stand for spaces."""
    spaced = name.replace("-", " ")
    if spaced not in NAMES:
        raise InvalidInput(f"there is no {name!r}: {unknown(spaced, NAMES)}", field="mechanism")
    return spaced


def _positions(consortium: Consortium, clients: Sequence[str] | None) -> npt.NDArray[np.int64]:
    if clients is None:
        return np.arange(consortium.size)
    if isinstance(clients, str) or not clients:
        raise InvalidInput("must be a list of names", field="clients")
    return np.array(list(dict.fromkeys(consortium.index(name) for name in clients)))


def _check_work(consortium: Consortium, liars: int, reports: int) -> None:
    if liars * reports * consortium.size > _MOST_NUMBERS:
        raise InvalidInput(
            f"{reports:,} reports of each of {liars:,} clients are too many to try in a consortium "
            f"of {consortium.size:,}; try fewer, or only some clients",
            field="reports",
        )


@dataclass(frozen=True)
class _Study:
    """What all mechanisms are looked at with."""

    equilibrium: Equilibrium
    liars: npt.NDArray[np.int64]
    reports: int
    everyone: bool
    seed: int
    progress: Progress | None

    def of(self, name: str) -> Misreport:
        """The best reports under one mechanism."""
        return self._posted() if name == _POSTED.name else self._asked(RULES[name])

    def _asked(self, rule: Rule) -> Misreport:
        """A mechanism that asks clients for their numbers."""
        consortium, liars = self.equilibrium.consortium, self.liars
        truth = Reports.true(consortium)
        best = best_lies(rule, truth, liars, self.reports, self.progress)
        runs: tuple[ReportingRun, ...] = ()
        if self.everyone and not rule.responds:
            runs = everyone_lies(rule, truth, self.seed, self.progress)
        report, factor = _in_words(consortium, liars, best)
        quality = consortium.quality[liars]
        return self._record(
            best.before.own / quality,
            best.before.access,
            name=rule.name,
            asks=rule.asks,
            objective=rule.objective,
            punishment=rule.punishment,
            truthful_total=float(best.before.total[0]),
            reports=best.tried,
            fields=best.fields,
            report=report,
            factor=factor,
            gain=best.gain * consortium.cost_per_sample[liars] / quality,
            total=best.after.total,
            keeps=best.keeps,
            everyone=runs,
        )

    def _posted(self) -> Misreport:
        """Posted amounts depend on no report: all that a client can do is to refuse."""
        consortium, liars = self.equilibrium.consortium, self.liars
        outcome = _POSTED.outcome(consortium)
        # whoever accepts may also train on more than it is asked for
        others = outcome.total - consortium.quality * outcome.contributions
        wanted = np.maximum(best_response(consortium, others), outcome.contributions)
        accepted = cost(consortium, wanted, others + consortium.quality * wanted)
        gain = (accepted - alone_cost(consortium))[liars]
        refuses = gain > LEAST_GAIN * (consortium.cost_per_sample * consortium.samples)[liars]
        own = outcome.contributions[liars]
        unchanged = ReportingRun("as given", None, True, 0, outcome.total, 0)
        return self._record(
            own,
            outcome.access[liars],
            name=_POSTED.name,
            asks=(),
            objective="least total cost",
            punishment=outcome.punishment,
            truthful_total=outcome.total,
            reports=1,
            fields=tuple("refusal" if each else None for each in refuses),
            report=np.full(liars.size, np.nan),
            factor=np.full(liars.size, np.nan),
            gain=np.where(refuses, gain, 0.0),
            total=outcome.total - np.where(refuses, own * consortium.quality[liars], 0.0),
            keeps=np.ones(liars.size, dtype=bool),
            everyone=(unchanged,) if self.everyone else (),
        )

    def _record(self, own: FloatArray, access: FloatArray, **found: Any) -> Misreport:
        """With what each client trains on, and what its model is trained on, if all are honest."""
        consortium, liars = self.equilibrium.consortium, self.liars
        contributions, models = np.zeros(consortium.size), np.ones(consortium.size)
        contributions[liars], models[liars] = own, access
        honest = cost(consortium, contributions, models)[liars]
        before = self.equilibrium.cost[liars]
        saving = before - honest
        return Misreport(
            consortium=consortium,
            equilibrium_total=self.equilibrium.total,
            names=tuple(consortium.names[n] for n in liars),
            computation=consortium.cost_per_sample[liars] * own,
            saving=np.where(saving > ROUNDING * before, saving, 0.0),
            **found,
        )


def _in_words(
    consortium: Consortium, liars: npt.NDArray[np.int64], best: BestLies
) -> tuple[FloatArray, FloatArray]:
    """What each client says, in its own units, and that divided by the truth; NaN for the truth."""
    told = {
        "ratio": (best.lies.ratio / consortium.quality[liars], consortium.ratio),
        "samples": (best.lies.samples / consortium.quality[liars], consortium.samples),
        "discount_factor": (best.lies.discount_factor, consortium.discount_factor),
    }
    report, factor = np.full(liars.size, np.nan), np.full(liars.size, np.nan)
    for n, field in enumerate(best.fields):
        if field is not None:
            said, true = told[field][0][n], told[field][1][liars[n]]
            share = said / true if true > 0 else np.nan
            is_nothing = share < 2.0 * NOTHING
            report[n], factor[n] = (0.0, 0.0) if is_nothing else (said, share)
    return report, factor
