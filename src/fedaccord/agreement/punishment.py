"""Punishments that end: how short may one be and still enforce an agreement?

Slipping gains a client `gain` once and costs it `saving` in each slot of the punishment. After
T slots everyone returns to the agreement, so it keeps on when

    gain <= (delta + delta^2 + ... + delta^T) saving.

Nobody gains by slipping within the punishment, either: each of its slots is played at the
stage game's equilibrium, and what follows does not depend on it.
"""

from dataclasses import replace

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.enforcement import scale_one

_NOTHING = 1e-9
"""As the certificate's tolerance: less slack than this is none, and a lesser gain tempts nobody."""

_ROUNDING = 1e-12
"""Of a client's contributions: gains are known no better. An agreement that was solved for T
slots takes T, and not one more because of the last digits."""


def shortest_punishment(agreement: Agreement) -> int | None:
    """The fewest slots of punishment that enforce the agreement; None: not even for ever.

    An agreement with no slack at all (the most data, no margin) is enforced by punishment
    for ever only, which no number of slots reaches: that is None as well. The certificate's
    tolerance makes nothing shorter: it may accept a few slots less where there is hardly any
    slack.
    """
    if not certify(replace(agreement, punishment_slots=None)).holds:
        return None
    game = scale_one(agreement.equilibrium)
    contribution, total = agreement.profile[np.newaxis], np.array([[agreement.total]])
    gain, saving = game.gain(contribution, total), game.saving(contribution, total)
    tempted = gain > _NOTHING * (contribution + game.alone)
    gain -= _ROUNDING * (contribution + game.alone)
    delta, gain, saving = game.patience[tempted], gain[tempted], saving[tempted]
    if (saving <= 0).any() or (delta <= 0).any():
        return None
    # the condition above solved for T: delta (1 - delta^T) / (1 - delta) >= gain / saving
    spare = 1.0 - (gain / saving) * (1.0 - delta) / delta
    if (spare <= _NOTHING).any():
        return None
    slots = np.log(spare) / np.log(delta)
    return max(1, int(np.ceil(slots.max(initial=1.0))))
