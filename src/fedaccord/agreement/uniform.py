"""The uniform agreement: one level for every converted client (Theorems 3-4, Algorithm 2).

With S the equilibrium's total, R the number of its free riders and ratios ascending, both theorems
say the same: client l, the first with r_n > B_n = 2 sqrt(G S^3) / (R - n + 1), and all
c = R - l + 1 free riders from it on can be converted, at any level up to x_th, where l stops
gaining.

Algorithm 2 then finds the largest level that every client keeps to (see `levels`).

With unequal data, a client with few samples contributes its share at a low level and no more than
it has at higher ones, so levels far above 0 can hold although those close to 0 do not. A client
that can be the first converted one must keep to the agreement at one end or the other; of those
clients, the first with a level at which all keep to it is the first *feasible* one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.enforcement import WORTHWHILE, ScaledGame
from fedaccord.agreement.levels import Ladder, Rung, largest_enforceable_level, largest_whole_level
from fedaccord.game.filling import TIE
from fedaccord.numbers import BoolArray, FloatArray

_TOGETHER = 131_072
"""How many clients are processed at once when candidates for the first converted are tried."""


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
    converted, first = _feasible(game, whole) if feasible_first else _converted(game, _gains(game))
    largest = _largest_gaining_level(Ladder.build(game, converted, game.alone), first)
    kept = np.floor(game.alone) if whole else game.alone
    ladder = Ladder.build(game, converted, kept)
    level = largest_whole_level(ladder) if whole else largest_enforceable_level(ladder, largest)
    return UniformRows(converted, level, largest, first, ladder.profile(level))


def smallest_common_discount_factor(
    game: ScaledGame, *, feasible_first: bool = False
) -> FloatArray:
    """The discount factor above which a uniform agreement exists if all clients have it.

    At a level just above 0, client n's threshold is (1 - b_n) / ((c - 1) b_n) with
    b_n = (h_n / S)^1.5. It increases with the level as long as the client has more than that, so
    with equal data there is no agreement below it; with unequal data there may be. NaN: there is
    none.
    """
    order, count, worth = _ranked_free_riders(game)
    others = _converted_from(order, count) - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(others > 0, (1.0 - worth) / (others * worth), np.inf)
    if feasible_first:
        best = least.min(axis=-1, keepdims=True)
    else:
        _, first = _converted(game, _gains(game))
        rank = np.argmax(order == first, axis=-1, keepdims=True)
        best = np.where(first >= 0, np.take_along_axis(least, rank, axis=-1), np.inf)
    return np.where(best < 1.0, np.maximum(best, 0.0), np.nan)


def _ranked_free_riders(game: ScaledGame) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
    """Clients by ascending ratio, free riders first; the number of those; b_n in that order."""
    free = game.alone == 0
    order = np.argsort(np.where(free, game.pull, np.inf), axis=-1, kind="stable")
    worth = np.where(free, (game.satiation / game.alone_total) ** 1.5, 0.0)
    count = free.sum(axis=-1, keepdims=True).astype(np.float64)
    return order, count, np.take_along_axis(worth, order, axis=-1)


def _converted_from(order: npt.NDArray[np.int64], count: FloatArray) -> FloatArray:
    """c = R - n + 1 for each rank n: how many are converted if n is the first."""
    return np.asarray(count - np.arange(order.shape[-1]), dtype=np.float64)


def _gains(game: ScaledGame) -> BoolArray:
    """By rank, whether r_n > B_n (eq. 10 and 14), beyond rounding."""
    order, count, worth = _ranked_free_riders(game)
    return np.asarray(worth * _converted_from(order, count) > 1.0 + TIE)


def _converted(game: ScaledGame, gains: BoolArray) -> tuple[BoolArray, FloatArray]:
    """Who is converted, and the position of the first: the first rank that gains (client l)."""
    order, _, _ = _ranked_free_riders(game)
    start = np.argmax(gains, axis=-1, keepdims=True)
    found = gains.any(axis=-1, keepdims=True)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[-1])[np.newaxis], axis=-1)
    converted = found & (ranks >= start) & (game.alone == 0)
    first = np.where(found, np.take_along_axis(order, start, axis=-1), -1)
    return converted, first.astype(np.float64)


def _feasible(game: ScaledGame, whole: bool) -> tuple[BoolArray, FloatArray]:
    """Who is converted from the first feasible client on, and the position of that one."""
    here, throughout = _keeps_near_nothing(game)
    converted, first = _converted(game, throughout)
    if not whole and (game.samples == game.samples[:, :1]).all():
        return converted, first  # with equal data, levels hold near 0 or nowhere
    could_be = here | _keeps_at_the_top(game)
    for row in range(len(converted)):
        one = game.rows(np.arange(len(converted)) == row)
        converted[row], first[row] = _first_of(one, np.flatnonzero(could_be[row]), whole)
    return converted, first


def _keeps_near_nothing(game: ScaledGame) -> tuple[BoolArray, BoolArray]:
    """By rank: if converted first, does it keep to a level just above 0; do all from it on?

    Client n needs more than (1/b - 1)/delta other converted clients.
    """
    order, count, worth = _ranked_free_riders(game)
    together = _converted_from(order, count)
    patience = np.take_along_axis(game.patience, order, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        need = np.where(worth < 1.0, (1.0 / worth - 1.0) / patience, 0.0)
    need = np.where(together > 0, need, -np.inf)
    hardest = np.maximum.accumulate(need[:, ::-1], axis=-1)[:, ::-1]
    some = together > 0
    return some & (together - 1.0 > need), some & (together - 1.0 > hardest)


def _keeps_at_the_top(game: ScaledGame) -> BoolArray:
    """By rank: does it keep to the agreement if it and all above it contribute all they have?

    A client's condition gets harder with the level and then easier: one that keeps to the
    agreement neither there nor near 0 does so at no level.
    """
    order, count, _ = _ranked_free_riders(game)
    some = _converted_from(order, count) > 0
    pull, satiation, data, patience, alone = (
        np.take_along_axis(values, order, axis=-1)
        for values in (game.pull, game.satiation, game.samples, game.patience, game.alone)
    )
    ranked = ScaledGame(pull, satiation, data, patience, alone, game.alone_total)
    given = np.where(some, data, 0.0)[:, ::-1].cumsum(axis=-1)[:, ::-1]
    excess = ranked.excess(data, game.alone_total + given)
    return np.asarray(some & (excess <= ranked.sliver(data)))


def _first_of(
    game: ScaledGame, candidates: npt.NDArray[np.int64], whole: bool
) -> tuple[BoolArray, float]:
    """The first rank of one row from which there is a worthwhile level, if any.

    One is tried at first, then twice as many at once, and so on.
    """
    kept = np.floor(game.alone) if whole else game.alone
    order, _, _ = _ranked_free_riders(game)
    ranks = np.empty_like(order)
    ranks[0, order[0]] = np.arange(order.size)
    tried, few = 0, 1
    while tried < candidates.size:
        starts = candidates[tried : tried + few, np.newaxis]
        converted = (ranks >= starts) & (game.alone == 0)
        same = game.rows(np.zeros(len(starts), dtype=np.int64))
        ladder = Ladder.build(same, converted, np.repeat(kept, len(starts), axis=0))
        level = (
            largest_whole_level(ladder) if whole else largest_enforceable_level(ladder, ladder.top)
        )
        enough = ladder.total(level) > game.alone_total * (1.0 + WORTHWHILE)
        if enough.any():
            n = int(np.argmax(enough))
            return converted[n], float(order[0, starts[n, 0]])
        tried, few = tried + few, max(1, min(2 * few, _TOGETHER // order.size))
    return np.zeros(order.size, dtype=bool), -1.0


def _largest_gaining_level(ladder: Ladder, first: FloatArray) -> FloatArray:
    """x_l^th: in closed form if nobody runs out of samples below it, otherwise by bisection.

    The paper's implicit eq. 13 and 17 is a quadratic in w = sqrt(S + c x), solved so that nothing
    cancels when x is small.
    """
    game = ladder.game
    nobody = first < 0
    rung = ladder.client(np.where(nobody, 0, first).astype(np.int64))
    one = rung.game
    root = np.sqrt(game.alone_total)
    reach = np.sqrt(game.alone_total + 4.0 * one.pull * ladder.count / root)
    over = (2.0 * one.pull * ladder.count / root - 4.0 * game.alone_total) / (reach + 3.0 * root)
    closed = over * (over + 2.0 * root) / np.maximum(ladder.count, 1)
    level = np.minimum(closed, ladder.top)
    lowest = np.where(ladder.converted, game.samples, np.inf).min(axis=-1, keepdims=True)
    uneven = ~nobody & (lowest < ladder.top)
    if uneven.any():
        patient = one.with_patience(np.full_like(one.patience, np.nextafter(1.0, 0.0)))
        gaining = Rung(patient, rung.converted, rung.kept)
        # once it contributes all it has, it gains from anything more that the others contribute
        still = gaining.excess(ladder.top, ladder.total(ladder.top)) <= 0
        capped = ~still & (level > lowest)
        edge = ladder.edge(gaining, one.samples) if capped.any() else level
        level = np.where(uneven & still, ladder.top, np.where(uneven & capped, edge, level))
    return np.where(nobody, 0.0, level)
