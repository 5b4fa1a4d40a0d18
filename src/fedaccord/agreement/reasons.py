"""Why there is no agreement, in words."""

import numpy as np

from fedaccord.agreement import individual, uniform
from fedaccord.agreement.agreement import FirstConverted
from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.monitoring import Monitoring
from fedaccord.agreement.patience import smallest_discount_factor
from fedaccord.game.equilibrium import Equilibrium

ONE_ALONE = "it takes at least two clients to agree on something"
NOTHING_WHOLE = "in whole samples nothing is left of the agreement"

NO_USE = {
    "least total cost": "none lowers the total cost",
    "fair share": "to those with samples left, one more is worth less than it costs at any total",
}
TOO_FEW_AUDITS = "with so few audits nobody would train on more than at the equilibrium"
_NEVER_SEEN = "no slip would ever be seen, so nobody would train on more than at the equilibrium"
NOT_IN_BOX = (
    "none holds for every combination of numbers within the ranges, though one would if the "
    "numbers were exactly as stated: narrower ranges are needed, or a harsher punishment"
)
_NOT_FOR_ALL = (
    "none holds for every law of the loss that fits the measurements, which are too vague: measure "
    "with more seeds or test examples"
)
_TOO_MILD = (
    "suspension deters too little: what a suspended client keeps, its old model or its fees, is "
    "worth too much to it"
)


def why_no_individual(
    equilibrium: Equilibrium, game: ScaledGame, *, margin: float, monitoring: Monitoring
) -> str:
    """Why no individual agreement asks for more than the equilibrium.

    With several rows there is one for the first of them: a reason is asked for only after that. The
    margin and the monitoring are those that the game was made with.
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
