"""Why there is no agreement, in words.

The conditions that an agreement has to meet are lifted one at a time: one that leaves an agreement
possible when it is lifted is what binds. If none does by itself, they are lifted together, and
those are named that are needed. Where even that leaves none, the reason is that of the numbers as
stated and the fitted law, which says how patient the clients would have to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedaccord.agreement import individual, uniform
from fedaccord.agreement.agreement import Agreement, FirstConverted
from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.monitoring import BELIEVED, Monitoring
from fedaccord.agreement.patience import smallest_discount_factor
from fedaccord.agreement.robust import Terms
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.law_rows import rows_of
from fedaccord.game.measured import beyond

ONE_ALONE = "it takes at least two clients to agree on something"
NOTHING_WHOLE = "in whole samples nothing is left of the agreement"

NO_USE = {
    "least total cost": "none lowers the total cost",
    "fair share": "to those with samples left, one more is worth less than it costs at any total",
}
TOO_FEW_AUDITS = "with so few audits nobody would train on more than at the equilibrium"
_NEVER_SEEN = "no slip would ever be seen, so nobody would train on more than at the equilibrium"
_NOT_FOR_ALL = "none holds for every law of the loss that fits the measurements"
_TOO_MILD = (
    "suspension deters too little: what a suspended client keeps, its old model or its fees, is "
    "worth too much to it"
)


_NEARLY_ONE = 1.0 - 1e-9
"""The discount factor of clients to whom later slots matter as much as this one."""


@dataclass(frozen=True)
class Condition:
    """What an agreement has to meet, and what would be if it had not."""

    lifted: Callable[[Terms], Terms | None]
    """The terms without it; None if they have no such condition."""
    fails: str
    """What none does that meets it."""
    unless: str
    """What would have to be the case for an agreement."""
    advice: str = ""
    """What to do about it."""
    about_law: bool = False
    """Whether the advice goes on with where the law was measured, and where it is used."""


def _without_ranges(terms: Terms) -> Terms | None:
    return None if terms.box is None else replace(terms, over_ranges=False)


def _as_the_fit_goes_on(terms: Terms) -> Terms | None:
    """Every law as steep as it is at the end of what was measured, and beyond as the fitted one."""
    law, everything = terms.law, terms.equilibrium.consortium.samples.sum()
    if terms.others is None or law.evidence is None or beyond(law, everything) is None:
        return None
    half = 0.5 * law.evidence.range[1]
    steeper = terms.others.fall(half, half).reshape(1, -1, 1) / law.fall(half, half)
    fitted = rows_of(law)
    rows = replace(fitted, value=fitted.value * steeper, evidence=None)
    floor = np.broadcast_to(rows.floor, (steeper.shape[1], 1))
    return replace(terms, others=replace(rows, floor=floor))


def _by_the_fitted_law(terms: Terms) -> Terms | None:
    return None if terms.others is None else replace(terms, others=None)


def _whoever_is_worse_off(terms: Terms) -> Terms | None:
    return replace(terms, nobody_worse=False) if terms.nobody_worse else None


def _with_every_slip_seen(terms: Terms) -> Terms | None:
    """Where nobody is audited at all, the reason says so."""
    ever = terms.monitoring.audits(terms.equilibrium.consortium).any()
    plain = terms.monitoring.is_plain or not ever
    return None if plain else replace(terms, monitoring=BELIEVED)


def _with_patience(terms: Terms) -> Terms | None:
    """Only with ranges or laws: otherwise the reason says how much patience it takes."""
    if terms.box is None and terms.others is None:
        return None
    consortium, ranges = terms.equilibrium.consortium, terms.equilibrium.consortium.ranges
    patient = np.full(consortium.size, _NEARLY_ONE)
    if ranges is not None:
        ranges = replace(ranges, discount_factor=np.stack([patient, patient]))
    changed = consortium._with(discount_factor=patient, ranges=ranges)
    equilibrium = replace(terms.equilibrium, consortium=changed)
    return replace(terms, equilibrium=equilibrium, margin=0.0)


_PATIENCE = Condition(
    _with_patience,
    "the clients are not patient enough",
    "later slots mattered to the clients as much as the present one",
)
CONDITIONS = (
    Condition(
        _without_ranges,
        "none holds for every combination of numbers within the ranges",
        "the numbers were exactly as stated",
        "narrower ranges are needed, or a harsher punishment",
    ),
    Condition(
        _as_the_fit_goes_on,
        "none holds for every way in which the loss may go on beyond what was measured",
        "it went on as the fitted law does",
        "measure with more samples",
        about_law=True,
    ),
    Condition(
        _by_the_fitted_law,
        _NOT_FOR_ALL,
        "the fitted law were true",
        "they are too vague, so measure with more seeds or test examples",
    ),
    Condition(
        _whoever_is_worse_off,
        "none that holds leaves every client at least as well off as at the equilibrium",
        "a client might be worse off than at the equilibrium",
    ),
    Condition(
        _with_every_slip_seen,
        "slips are seen too seldom, or too late, for anyone to train on more",
        "every slip were seen before the next slot",
    ),
    _PATIENCE,
)
"""In the order in which they are named. What is measured comes before what fits it: laws that go on
as the fitted one are fewer than all that fit."""


def why_none(terms: Terms, solve: Callable[[Terms], Agreement], reason: str | None) -> str | None:
    """Which conditions bind, found by solving without them; else the reason that was found."""

    def exists(lifted: Sequence[Condition]) -> bool:
        return solve(_without(terms, lifted)).exists

    there = [one for one in CONDITIONS if one.lifted(terms) is not None]
    binding = [one for one in there if exists([one])]
    if binding:
        first, *others = binding
        also = [
            one.unless
            for one in others
            if not (first.about_law and one.lifted is _by_the_fitted_law)
        ]
        said = f"{first.fails}, though one would if {first.unless}{_advice(terms, [first], solve)}"
        return said + (f"; one would also if {', or if '.join(also)}" if also else "")
    together = [one for one in there if one is not _PATIENCE]
    if len(together) > 1 and exists(together):
        for one in [*together]:
            fewer = [other for other in together if other is not one]
            together = fewer if exists(fewer) else together
        unless = " and ".join(one.unless for one in together)
        advice = _advice(terms, together, solve)
        return f"{together[0].fails}, though one would if {unless}{advice}"
    plain = [one for one in there if one.lifted in (_without_ranges, _by_the_fitted_law)]
    return solve(_without(terms, plain)).reason if plain else reason


def _without(terms: Terms, lifted: Sequence[Condition]) -> Terms:
    for one in lifted:
        terms = one.lifted(terms) or terms
    return terms


def _advice(terms: Terms, lifted: Sequence[Condition], solve: Callable[[Terms], Agreement]) -> str:
    """What to do, and for a law that goes beyond its measurements how far it does."""
    said = [one.advice for one in lifted if one.advice]
    if any(one.about_law for one in lifted):
        used = solve(_without(terms, lifted)).total
        said.append(beyond(terms.law, used) or "")
    return ": " + "; ".join(filter(None, said)) if any(said) else ""


def why_no_individual(
    equilibrium: Equilibrium, game: ScaledGame, *, margin: float, monitoring: Monitoring
) -> str:
    """Why no individual agreement asks for more than the equilibrium.

    The margin and the monitoring are those that the game was made with.
    """
    if len(game.pull) > 1:
        return _NOT_FOR_ALL
    least = individual.smallest_common_discount_factor(game)
    if (equilibrium.profile == game.samples).all():
        return "everyone already contributes all it has at the equilibrium"
    if equilibrium.consortium.size == 1:
        return ONE_ALONE
    if np.isnan(least):
        return "however patient the clients are, nobody could gain from contributing more"
    if not monitoring.audits(equilibrium.consortium).any():
        return _NEVER_SEEN
    if not game.steady:
        harsh = individual.largest_profiles(game.at_its_harshest())
        if game.worthwhile(harsh):
            return _TOO_MILD
    return f"the clients are not patient enough: it takes {_patience(least, game, margin)}"


def why_no_uniform(
    equilibrium: Equilibrium,
    game: ScaledGame,
    first: int,
    chosen: FirstConverted,
    *,
    whole: bool,
    margin: float,
    monitoring: Monitoring,
) -> str:
    """The same for uniform agreements, from client `first` on, or from any free rider (-1)."""
    if len(game.pull) > 1:
        return _NOT_FOR_ALL
    if equilibrium.consortium.size == 1:
        return ONE_ALONE
    if equilibrium.free_riders == 0:
        return "there is no free rider at the equilibrium to convert"
    if first < 0 and chosen == "paper":
        return "however patient the free riders are, none could gain from contributing more"
    if not monitoring.audits(equilibrium.consortium).any():
        return _NEVER_SEEN
    real = uniform.solve_uniform_rows(game, feasible_first=chosen == "feasible")
    if whole and game.worthwhile(real.profile):
        return NOTHING_WHOLE
    if not game.steady:
        harsh = game.at_its_harshest()
        plain = uniform.solve_uniform_rows(harsh, feasible_first=chosen == "feasible")
        if game.worthwhile(plain.profile):
            return _TOO_MILD
    least = None  # with unequal data, finding it takes thirty times as long as solving
    if equilibrium.consortium.equal_samples:
        least = smallest_discount_factor(
            equilibrium,
            "uniform",
            punishment=game.punishment.lasting(None),
            nobody_worse=game.nobody_worse,
            first_converted=chosen,
        )
    names = equilibrium.consortium.names
    who = f"converting {names[first]} and above" if first >= 0 else "converting any free rider"
    needed = _patience(least, game, margin)
    reason = f"the clients are not patient enough: {who} takes {needed}"
    other = uniform.solve_uniform_rows(game, feasible_first=True, whole=whole)
    if chosen == "paper" and game.worthwhile(other.profile):
        only = "only " if other.converted.sum() < real.converted.sum() else ""
        start = names[int(other.first.item())]
        reason += f"; converting {only}{start} and above works (first converted: feasible)"
    return reason


def _patience(least: float | None, game: ScaledGame, margin: float) -> str:
    """The discount factor required, if it is known, and the clients' effective ones."""
    after = f" after the margin of {margin:g}" if margin > 0 else ""
    if least is None:
        return f"more patience than they have{after}"
    low, high = game.patience.min(), game.patience.max()
    theirs = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    return f"discount factors above {least:.4g}, and theirs count as {theirs}{after}"
