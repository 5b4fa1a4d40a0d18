"""The uniform agreement: one level for every converted client (Theorems 3-4, Algorithm 2).

With S the equilibrium's total, R the number of its free riders and ratios ascending, both theorems
say the same: client l, the first with r_n > B_n = 2 sqrt(G S^3) / (R - n + 1), and all
c = R - l + 1 free riders from it on can be converted, at any level up to x_th, where l stops
gaining. For any law of the loss the condition is b_n > 1 / (R - n + 1), b_n being what one more
sample is worth to the client at S. If each client has its own law, they are ordered by b_n, and
x_th is the level at which the first of them, not necessarily l, stops gaining.

Algorithm 2 then finds the largest level that every client keeps to (see `levels`).

With unequal data, a client with few samples contributes its share at a low level and no more than
it has at higher ones, so levels far above 0 can hold although those close to 0 do not. A client
that can be the first converted one must keep to the agreement at one end or the other; of those
clients, the first with a level at which all keep to it is the first *feasible* one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.enforcement import WORTHWHILE, ScaledGame
from fedaccord.agreement.levels import (
    Ladder,
    Rung,
    kept_by_all,
    largest_enforceable_level,
    largest_level_for_all,
    largest_whole_level,
)
from fedaccord.agreement.objectives import NEXT_TO_IT, best_between
from fedaccord.game.filling import TIE
from fedaccord.numbers import BoolArray, FloatArray

_TOGETHER = 131_072
"""How many clients are processed at once when candidates for the first converted are tried."""

_MOST_STEPS = 200
"""Far more than Newton's method takes; it stops when a step is within rounding."""
_SETTLED = 1e-15
"""Relative: a few units in the last place, below which a step is rounding."""


@dataclass(frozen=True)
class UniformRows:
    """For each row: who is converted, and at which level; numbers per row are columns."""

    converted: BoolArray
    level: FloatArray
    """x_cc^os, the largest level that every client keeps to; 0 if there is none."""
    largest_level: FloatArray
    """x_l^th, the largest level at which the first converted client still gains."""
    first: FloatArray
    """Position of client l; -1 if no free rider would gain, however patient."""
    profile: FloatArray
    """x^os: converted clients at the level, everyone else as at the equilibrium."""


def solve_uniform_rows(
    game: ScaledGame, *, feasible_first: bool = False, whole: bool = False
) -> UniformRows:
    """Algorithm 2 for every row.

    `feasible_first` converts from the first client for which the discount factors allow a level,
    instead of the paper's client l, which does not depend on them. `whole` asks for a whole level,
    and from everyone else for what it contributes at the equilibrium, rounded down.
    """
    if feasible_first:
        converted, first = _feasible(game, whole)
    else:
        ranked = _ranked_free_riders(game)
        converted, first = _converted(game, ranked, _gains(ranked))
    gaining = Ladder.build(game.under_reversion(), converted, game.equilibrium)
    largest = _largest_gaining_level(gaining, first)
    kept = np.floor(game.equilibrium) if whole else game.equilibrium
    ladder = Ladder.build(game, converted, kept)
    top = largest if game.reverts else ladder.top
    level = largest_whole_level(ladder) if whole else largest_enforceable_level(ladder, top)
    return UniformRows(converted, level, largest, first, ladder.profile(level))


def solve_uniform_for_all(
    game: ScaledGame, first: ScaledGame, *, feasible_first: bool = False, whole: bool = False
) -> UniformRows:
    """Algorithm 2 for rows that are games of the same clients, which keep to it in all of them.

    Who is converted, and what the others contribute, is as in the game `first`.
    """
    rows = solve_uniform_rows(first, feasible_first=feasible_first, whole=whole)
    if game is first:
        return rows
    kept = np.floor(first.equilibrium) if whole else first.equilibrium
    ladder = Ladder.build(first, rows.converted, kept)
    level = largest_level_for_all(ladder, game, rows.level, whole=whole)
    return replace(rows, level=level, profile=ladder.profile(level))


def at_best_level(
    game: ScaledGame,
    first: ScaledGame,
    rows: UniformRows,
    loss_of: Callable[[FloatArray], float],
    *,
    whole: bool,
) -> UniformRows:
    """The same converted clients, at the level of least loss that is enforceable in every row."""
    kept = np.floor(first.equilibrium) if whole else first.equilibrium
    ladder = Ladder.build(first, rows.converted, kept)

    def enforceable(level: float) -> FloatArray:
        if game is not first:
            return largest_level_for_all(ladder, game, np.array([[level]]), whole=whole)
        return largest_enforceable_level(ladder, np.array([[level]]))

    def loss(level: float) -> float:
        return loss_of(ladder.profile(enforceable(level))[0])

    top = rows.level.item()
    best = best_between(loss, 0.0, top)
    level = enforceable(best)
    if whole:
        near = np.arange(max(1.0, np.floor(best) - NEXT_TO_IT), min(top, best + NEXT_TO_IT) + 1.0)
        kept_to = near[ladder.highest(near, near) >= near]
        if game is not first:
            kept_to = near[kept_by_all(ladder, game, near)]
        losses = [loss_of(ladder.profile(np.array([[one]]))[0]) for one in kept_to.tolist()]
        level = np.array([[kept_to[int(np.argmin(losses))] if losses else top]])
    return replace(rows, level=level, profile=ladder.profile(level))


def smallest_common_discount_factor(
    game: ScaledGame, *, feasible_first: bool = False
) -> FloatArray:
    """The discount factor above which a uniform agreement exists if all clients have it.

    At a level just above 0, client n's threshold is (1 - b_n) / ((c - 1) b_n). It increases with
    the level as long as the client has more than that, so with equal data there is no agreement
    below it; with unequal data there may be. Under suspension any patience will do, if there is
    somebody to convert. NaN: there is none.
    """
    ranked = order, count, worth = _ranked_free_riders(game)
    if not game.reverts:
        any_will_do = feasible_first and not game.nobody_worse
        somebody = count > 0 if any_will_do else _gains(ranked).any(axis=-1, keepdims=True)
        return np.where(somebody, 0.0, np.nan)
    others = _converted_from(order, count) - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(others > 0, (1.0 - worth) / (others * worth), np.inf)
    if feasible_first:
        best = least.min(axis=-1, keepdims=True)
    else:
        _, first = _converted(game, ranked, _gains(ranked))
        rank = np.argmax(order == first, axis=-1, keepdims=True)
        best = np.where(first >= 0, np.take_along_axis(least, rank, axis=-1), np.inf)
    return np.where(best < 1.0, np.maximum(best, 0.0), np.nan)


_Ranked: TypeAlias = tuple[npt.NDArray[np.int64], FloatArray, FloatArray]


def _ranked_free_riders(game: ScaledGame) -> _Ranked:
    """Clients by ascending b_n, free riders first; the number of those; b_n in that order.

    Of clients with the same b_n the most patient come last, so that they are converted first.
    """
    free = game.equilibrium == 0
    key = np.where(free, game.worth if game.law.is_personal else game.pull, np.inf)
    if (game.patience == game.patience[:, :1]).all():
        order = np.argsort(key, axis=-1, kind="stable")
    else:
        order = np.lexsort((game.patience, key), axis=-1)
    worth = np.where(free, game.worth, 0.0)
    count = free.sum(axis=-1, keepdims=True).astype(np.float64)
    return order, count, np.take_along_axis(worth, order, axis=-1)


def _converted_from(order: npt.NDArray[np.int64], count: FloatArray) -> FloatArray:
    """c = R - n + 1 for each rank n: how many are converted if n is the first."""
    return np.asarray(count - np.arange(order.shape[-1]), dtype=np.float64)


def _gains(ranked: _Ranked) -> BoolArray:
    """By rank, whether r_n > B_n (eq. 10 and 14), beyond rounding."""
    order, count, worth = ranked
    return np.asarray(worth * _converted_from(order, count) > 1.0 + TIE)


def _converted(game: ScaledGame, ranked: _Ranked, gains: BoolArray) -> tuple[BoolArray, FloatArray]:
    """Who is converted, and the position of the first: the first rank that gains (client l)."""
    order, _, _ = ranked
    start = np.argmax(gains, axis=-1, keepdims=True)
    found = gains.any(axis=-1, keepdims=True)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[-1])[np.newaxis], axis=-1)
    converted = found & (ranks >= start) & (game.equilibrium == 0)
    first = np.where(found, np.take_along_axis(order, start, axis=-1), -1)
    return converted, first.astype(np.float64)


def _feasible(game: ScaledGame, whole: bool) -> tuple[BoolArray, FloatArray]:
    """Who is converted from the first feasible client on, and the position of that one."""
    ranked = _ranked_free_riders(game)
    here, throughout = _keeps_near_nothing(game, ranked)
    converted, first = _converted(game, ranked, throughout)
    if not whole and game.steady and (game.samples == game.samples[:, :1]).all():
        return converted, first  # with equal data, levels hold near 0 or nowhere
    unknown = not game.steady or game.samples_checked is not None
    could_be = here | _keeps_at_the_top(game, ranked) | unknown
    for row in range(len(converted)):
        one = game.rows(np.arange(len(converted)) == row)
        converted[row], first[row] = _first_of(one, np.flatnonzero(could_be[row]), whole)
    return converted, first


def _keeps_near_nothing(game: ScaledGame, ranked: _Ranked) -> tuple[BoolArray, BoolArray]:
    """By rank: if converted first, does it keep to a level just above 0; do all from it on?

    Under reversion client n needs more than (1/b - 1)/delta other converted clients. Under
    suspension any patience will do, but more than 1/b - 1 others are needed for it to gain.
    """
    order, count, worth = ranked
    together = _converted_from(order, count)
    patience = np.take_along_axis(game.patience, order, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if game.reverts:
            need = np.where(worth < 1.0, (1.0 / worth - 1.0) / patience, 0.0)
        else:
            gains = 1.0 / worth - 1.0 if game.nobody_worse else np.full_like(worth, -1.0)
            need = np.where(patience > 0, gains, np.inf)
    need = np.where(together > 0, need, -np.inf)
    hardest = np.maximum.accumulate(need[:, ::-1], axis=-1)[:, ::-1]
    some = together > 0
    return some & (together - 1.0 > need), some & (together - 1.0 > hardest)


def _keeps_at_the_top(game: ScaledGame, ranks: _Ranked) -> BoolArray:
    """By rank: does it keep to the agreement if it and all above it contribute all they have?

    A client's condition gets harder with the level and then easier: one that keeps to the
    agreement neither there nor near 0 does so at no level.
    """
    order, count, _ = ranks
    some = _converted_from(order, count) > 0
    ranked = game.along(order)
    given = np.where(some, ranked.samples, 0.0)[:, ::-1].cumsum(axis=-1)[:, ::-1]
    excess = ranked.excess(ranked.samples, game.start + given)
    return np.asarray(some & (excess <= ranked.sliver(ranked.samples)))


def _first_of(
    game: ScaledGame, candidates: npt.NDArray[np.int64], whole: bool
) -> tuple[BoolArray, float]:
    """The first rank of one row from which there is a worthwhile level, if any.

    One is tried at first, then twice as many at once, and so on.
    """
    kept = np.floor(game.equilibrium) if whole else game.equilibrium
    order, _, _ = _ranked_free_riders(game)
    ranks = np.empty_like(order)
    ranks[0, order[0]] = np.arange(order.size)
    tried, few = 0, 1
    while tried < candidates.size:
        starts = candidates[tried : tried + few, np.newaxis]
        converted = (ranks >= starts) & (game.equilibrium == 0)
        same = game.rows(np.zeros(len(starts), dtype=np.int64))
        ladder = Ladder.build(same, converted, np.repeat(kept, len(starts), axis=0))
        level = (
            largest_whole_level(ladder) if whole else largest_enforceable_level(ladder, ladder.top)
        )
        enough = ladder.total(level) > game.start * (1.0 + WORTHWHILE)
        if enough.any():
            n = int(np.argmax(enough))
            return converted[n], float(order[0, starts[n, 0]])
        tried, few = tried + few, max(1, min(2 * few, _TOGETHER // order.size))
    return np.zeros(order.size, dtype=bool), -1.0


def _largest_gaining_level(ladder: Ladder, first: FloatArray) -> FloatArray:
    """x_l^th, up to which client l gains; by bisection if somebody runs out of samples below it."""
    game = ladder.game
    nobody = first < 0
    if game.law.is_personal:
        return np.where(nobody, 0.0, _largest_level_for_all(ladder))
    rung = ladder.client(np.where(nobody, 0, first).astype(np.int64))
    one = rung.game
    level = np.minimum(_gaining_without_caps(one, ladder.count), ladder.top)
    lowest = np.where(ladder.converted, game.samples, np.inf).min(axis=-1, keepdims=True)
    uneven = ~nobody & (lowest < ladder.top)
    if uneven.any():
        gaining = Rung(_patient(one), rung.converted, rung.kept)
        # once it contributes all it has, it gains from anything more that the others contribute
        still = gaining.excess(ladder.top, ladder.total(ladder.top)) <= 0
        capped = ~still & (level > lowest)
        edge = ladder.edge(gaining, one.samples) if capped.any() else level
        level = np.where(uneven & still, ladder.top, np.where(uneven & capped, edge, level))
    return np.where(nobody, 0.0, level)


def _patient(game: ScaledGame) -> ScaledGame:
    """The same clients, as patient as can be: each keeps to whatever it gains from."""
    return game.with_patience(np.full_like(game.patience, np.nextafter(1.0, 0.0)))


def _largest_level_for_all(ladder: Ladder) -> FloatArray:
    """The level up to which every converted client gains, where each has its own law."""
    patient = Ladder.build(_patient(ladder.game), ladder.converted, ladder.kept)
    return largest_enforceable_level(patient, ladder.top)


def _gaining_without_caps(one: ScaledGame, count: npt.NDArray[np.int64]) -> FloatArray:
    """The positive root of z - a (L(S) - L(S + c z)), for the client l of each row and c clients.

    Under the paper's law (eq. 13 and 17) it is a quadratic in w = sqrt(S + c z), solved so that
    nothing cancels when z is small. The function is convex, so that for any other law Newton's
    method falls to the root from a L(S), which is beyond it.
    """
    start, pull, law = one.equilibrium_total, one.pull, one.law
    if [term.form for term in law.terms] == ["root"]:
        root = np.sqrt(start)
        reach = np.sqrt(start + 4.0 * pull * count / root)
        over = (2.0 * pull * count / root - 4.0 * start) / (reach + 3.0 * root)
        return np.asarray(over * (over + 2.0 * root) / np.maximum(count, 1))
    level = pull * law.loss(start)
    for _ in range(_MOST_STEPS):
        gap = count * level
        value, slope = (
            level - pull * law.fall(start, gap),
            1.0 - pull * count * law.slope(start + gap),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(slope > 0, np.clip(value / slope, 0.0, level), level)
        level = level - step
        if (step <= _SETTLED * level).all():
            break
    return np.asarray(level)
