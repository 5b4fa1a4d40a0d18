"""The uniform agreement as the paper computes it: Algorithm 2 as described, O(D).

Written for speed as far as the method allows: the thresholds of all clients at a level are
computed in one call, with Lemma 1's deviation in closed form.
"""

import numpy as np

import fedaccord as fa


def scan_levels(equilibrium: fa.Equilibrium, start: int = 1, step: int = 1) -> tuple[int, int]:
    """Algorithm 2: the largest whole level that all keep to, and how many levels were checked.

    With another `start` or `step` only some of the levels are checked.
    """
    consortium = equilibrium.consortium
    ratio, samples, alone = consortium.ratio, consortium.samples, equilibrium.profile
    total, root = equilibrium.total, np.sqrt(consortium.rounds)
    order = np.argsort(ratio, kind="stable")
    free = order[alone[order] == 0]

    # Line 2 (eq. 10 and 14): client l, the first free rider with a ratio above B_n.
    together = np.arange(free.size, 0, -1)
    able = ratio[free] > 2.0 * np.sqrt(consortium.rounds * total**3) / together
    if not able.any():
        return 0, 0
    converted = free[np.argmax(able) :]
    count = converted.size

    # Line 3 (eq. 12-13 and 16-17): x_l^th, by bisection on its implicit equation.
    def gains(level: float) -> bool:
        stake = 1.0 / np.sqrt(total) - 1.0 / np.sqrt(total + count * level)
        return bool(ratio[converted[0]] * stake >= root * level)

    low, high = 0.0, float(samples[0])
    if gains(high):
        low = high
    while high - low > 0.5:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gains(middle) else (low, middle)

    # Line 4 (eq. 22 and 24): the largest level at which no threshold exceeds delta.
    punished = ratio / (root * np.sqrt(total)) + alone
    profile = alone.copy()
    best = looked_at = 0
    for level in range(start, int(low) + 1, step):
        profile[converted] = level
        now = total + count * level
        others = now - profile
        least = np.clip(consortium.satiation - others, 0.0, samples)  # Lemma 1, eq. 6
        kept_to = ratio / (root * np.sqrt(now)) + profile
        slipped = ratio / (root * np.sqrt(others + least)) + least
        gain = kept_to - slipped
        stake = punished - slipped
        threshold = np.where(gain > 1e-9 * kept_to, gain / np.where(stake > 0, stake, 1e-300), 0.0)
        if (threshold <= consortium.discount_factor).all():  # eq. 19-20
            best = level
        looked_at += 1
    return best, looked_at
