"""The most that a client keeps to if an audit checks only some of its samples.

For a given part s the condition of `spot_checks`, with the weight of the punishment,

    (1 - delta) ((1 - late) g(s x)/v(s) + late g*(x)) + delta x - delta stake  <=  0

is concave in x with a derivative of at least delta, like the one of `bounds`, so that Newton's
method finds its root. u_n is the least of these roots. From any amount above u_n the most tempting
part leads to a smaller root, from there again, and so on down to u_n. For k = 1 and without delay
the most tempting part is 0, and the condition is linear:

    u_n = delta stake / (1 - (1 - delta) b).
"""

import numpy as np

from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.spot_checks import Odds, gained, most_tempting
from fedaccord.numbers import BoolArray, FloatArray

_MOST_STEPS = 200
"""Far more than are needed; the search stops when a step is within rounding."""
_SETTLED = 1e-15
"""Relative: a few units in the last place, below which a step is rounding."""


def is_linear(game: ScaledGame) -> bool:
    """Whether one sample is checked, and nothing is gained while a punishment is waited for."""
    return game.samples_checked == 1 and not game.late.any()


def checked_root(
    game: ScaledGame, total: FloatArray, allowance: FloatArray, most: FloatArray
) -> FloatArray:
    """Where the condition's left side is 0 for the most tempting part, at most `most`.

    `allowance` stands for delta times the stake.
    """
    if is_linear(game):
        steep = game.pull * game.law.slope(total)
        keeps = allowance / np.maximum(1.0 - (1.0 - game.patience) * steep, _SETTLED)
        return np.where(game.satiation >= total, most, np.clip(keeps, 0.0, most))
    checked = game.samples_checked
    assert checked is not None
    amount = np.broadcast_to(most, np.broadcast_shapes(most.shape, game.pull.shape)).copy()
    for _ in range(_MOST_STEPS):
        found = most_tempting(
            game.law, game.pull, game.satiation, amount=amount, total=total, checked=checked
        )
        lower = _root_of_part(game, Odds(found.part, checked), total, allowance, amount)
        lower = np.where(game.satiation >= total, most, np.minimum(lower, amount))
        done = bool((amount - lower <= _SETTLED * amount).all())
        amount = lower
        if done:
            break
    return amount


def _root_of_part(
    game: ScaledGame, odds: Odds, total: FloatArray, allowance: FloatArray, most: FloatArray
) -> FloatArray:
    """The root for a given part, by Newton's method, which climbs to it after the first step."""
    amount, impatience = most, 1.0 - game.patience
    for _ in range(_MOST_STEPS):
        gain = gained(game.law, game.pull, amount, total, odds)
        rise = odds.each * (1.0 - game.pull * game.law.slope(total - odds.part * amount))
        if game.late.any():
            kept = np.maximum(total - amount, game.satiation)
            whole = np.where(kept > game.satiation, 1.0 - game.pull * game.law.slope(kept), 0.0)
            gain = (1.0 - game.late) * gain + game.late * game.full_gain(amount, total)
            rise = (1.0 - game.late) * rise + game.late * whole
        value = impatience * gain + game.patience * amount - allowance
        slope = impatience * np.maximum(rise, 0.0) + game.patience
        step = np.divide(value, slope, out=np.zeros_like(value), where=slope > 0)
        after = np.clip(amount - step, 0.0, most)
        done = bool((np.abs(after - amount) <= _SETTLED * after).all())
        amount = after
        if done:
            break
    return np.where((slope > 0) | (value <= 0), amount, 0.0)


def is_concave_if_checked(game: ScaledGame) -> BoolArray:
    """Which clients' u_n is known to be concave and increasing in T, for one checked sample.

    It is if D r(T) <= delta / (1 - delta) for all totals, r being the rate at which log L'' falls.
    That rate is largest at the lowest total Z, where D r is at most the fall of log L'' over the D
    samples before it, since log L'' is convex.
    """
    if not is_linear(game):
        return np.zeros(game.pull.shape, dtype=bool)
    lowest = np.maximum(game.satiation, game.lowest)
    before = np.maximum(lowest - game.samples, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        fall = np.log(game.law.bend(before)) - np.log(game.law.bend(lowest))
        return np.asarray(fall <= game.patience / (1.0 - game.patience))


def linear_slope(game: ScaledGame, total: FloatArray, amount: FloatArray) -> FloatArray:
    """du_n/dT for one checked sample, where u_n is below D_n."""
    steep, bend = game.pull * game.law.slope(total), game.pull * game.law.bend(total)
    left = 1.0 - (1.0 - game.patience) * steep
    rise = game.patience * steep - amount * (1.0 - game.patience) * bend
    return np.divide(rise, left, out=np.zeros_like(rise), where=left > 0)
