"""Punishments that end: how short may one be and still enforce an agreement?

A deviation gains a client `gain` once and costs it `saving` in each slot of the punishment. After
T slots everyone returns to the agreement, so the client keeps to it if

    gain <= (delta + delta^2 + ... + delta^T) saving.

Nobody gains by deviating during the punishment, either: in each of its slots the stage game's
equilibrium is played, and what follows does not depend on it.
"""

from dataclasses import replace

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import TOLERANCE, certify
from fedaccord.agreement.enforcement import SOLVED, scale_one


def shortest_punishment(agreement: Agreement) -> int | None:
    """The fewest slots of punishment that enforce the agreement; None if no number of them does.

    An agreement without any slack (the most data, no margin) needs a punishment without end, so
    the answer is None for it, too. The certificate's tolerance is not used to shorten the
    punishment: where there is hardly any slack, `certify` may accept a few slots less.
    """
    if not certify(replace(agreement, punishment_slots=None)).holds:
        return None
    game = scale_one(agreement.equilibrium)
    contribution, total = agreement.profile[np.newaxis], np.array([[agreement.total]])
    gain, saving = game.gain(contribution, total), game.saving(contribution, total)
    tempted = gain > TOLERANCE * (contribution + game.alone)
    gain -= SOLVED * (contribution + game.alone)  # solved for T slots, it takes T and not T + 1
    delta, gain, saving = game.patience[tempted], gain[tempted], saving[tempted]
    if (saving <= 0).any() or (delta <= 0).any():
        return None
    # the condition above solved for T: delta (1 - delta^T) / (1 - delta) >= gain / saving
    spare = 1.0 - (gain / saving) * (1.0 - delta) / delta
    if (spare <= TOLERANCE).any():
        return None
    slots = np.log(spare) / np.log(delta)
    return max(1, int(np.ceil(slots.max(initial=1.0))))
