"""How much a punishment weighs: what losing 1 in each of its slots counts in the slot of a slip.

A client keeps to an agreement if what a slip gains is at most the weight w times what a slot of the
punishment costs it more. A punishment of weight w is equivalent to one without end at the
*effective* discount factor w / (1 + w), with which all solvers compute. It takes into account

- the length: T slots weigh W = delta + delta^2 + ... + delta^T;
- audits: a slip is seen with probability q, so w = q W;
- false alarms: punishments begin with probability Q (of anyone's alarm under reversion, of its own,
  e, under suspension) although nobody slips, and with Q + r if the client does: w = r W / (1 + Q W)
  with r = (q - e) times the probability that no other client's alarm starts one anyway;
- delay: a slip that is seen is punished from J slots later on, and until then the client slips
  again and again, which is punished once: w = q delta^(J-1) W / (1 + q A),
  A = delta + ... + delta^(J-1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.monitoring import BELIEVED, Monitoring, Rates
from fedaccord.agreement.punishment import Punishment, Reversion
from fedaccord.checks import check_number
from fedaccord.numbers import FloatArray


@dataclass(frozen=True)
class Weight:
    """How much the punishment weighs for each client."""

    patience: FloatArray
    """The effective discount factor, w / (1 + w)."""
    late: FloatArray
    """q A / (1 + q A): of all that a slip gains, the part gained while it is not yet punished."""


def weight_of(
    discount_factor: FloatArray,
    rates: Rates,
    punishment: Punishment,
    monitoring: Monitoring = BELIEVED,
    margin: float = 0.0,
) -> Weight:
    """The weight for clients with these discount factors and rates (last axis: clients)."""
    check_number("margin", margin, least=0, below=1)
    delta: FloatArray = np.maximum(discount_factor - margin, 0.0)
    lasting = effective_discount_factor(delta, punishment.slots)
    if monitoring.is_plain:
        return Weight(lasting, np.zeros_like(lasting))
    before, others_quiet = accusations(rates.false_alarm, punishment)
    rise = others_quiet * (rates.audit - rates.false_alarm)
    waiting, later = meanwhile(delta, monitoring.seen_late)
    # with w = rise later W / (1 + before W + rise waiting), and W = lasting / (1 - lasting)
    lost = rise * later * lasting
    others = (1.0 - lasting) * (1.0 + rise * waiting) + before * lasting
    freely = rise * waiting
    return Weight(np.asarray(lost / (lost + others)), np.asarray(freely / (1.0 + freely)))


def accusations(false_alarm: FloatArray, punishment: Punishment) -> tuple[FloatArray, FloatArray]:
    """How likely a punishment begins for each client although it does not slip.

    Also how likely it is that none begins because of another client.
    """
    if not isinstance(punishment, Reversion):
        return false_alarm, np.ones_like(false_alarm)
    with np.errstate(divide="ignore"):
        quiet = np.log1p(-false_alarm)
    anyone = quiet.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):  # with an alarm in every slot nobody has anything to lose
        others = np.nan_to_num(np.exp(anyone - quiet))
    return np.broadcast_to(-np.expm1(anyone), quiet.shape), others


def meanwhile(delta: FloatArray, seen_late: int) -> tuple[FloatArray, FloatArray]:
    """A and delta^(J-1) above."""
    if seen_late == 1:
        return np.zeros_like(delta), np.ones_like(delta)
    later = delta ** (seen_late - 1)
    return np.asarray(delta * (1.0 - later) / (1.0 - delta)), np.asarray(later)


def effective_discount_factor(
    discount_factor: npt.ArrayLike, punishment_slots: int | None
) -> FloatArray:
    """The discount factor at which a punishment without end weighs as much as T slots at delta.

    A deviation loses the saving of delta + delta^2 + ... + delta^T slots; without end that sum is
    delta / (1 - delta). Equating the two: delta (1 - delta^T) / (1 - delta^(T+1)).

    >>> float(effective_discount_factor(0.8, None)), float(effective_discount_factor(0.8, 5))
    (0.8, 0.728...)
    """
    delta = np.asarray(discount_factor, dtype=np.float64)
    if punishment_slots is None:
        return delta
    if punishment_slots == 1:
        return np.asarray(delta / (1.0 + delta))
    # 1 - delta^T without cancellation for delta just under 1
    with np.errstate(divide="ignore"):
        log = np.log(delta)
    lost = np.expm1(punishment_slots * log)
    result: FloatArray = delta * lost / np.expm1((punishment_slots + 1) * log)
    return result
