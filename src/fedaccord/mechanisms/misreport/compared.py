"""The column "largest gain by lying" of a comparison."""

import numpy as np

from fedaccord.game.consortium import Consortium
from fedaccord.mechanisms.mechanism import Outcome
from fedaccord.mechanisms.misreport.reports import Reports
from fedaccord.mechanisms.misreport.rules import RULES
from fedaccord.mechanisms.misreport.search import best_lies
from fedaccord.numbers import FloatArray

_TRIED, _FEWEST, _MOST = 600, 5, 100
"""Reports of all clients together, and the fewest and most of each: so that comparing stays quick.
The best report is usually 0, which is among them."""
_MOST_CLIENTS = 400
"""In a larger consortium it would take longer than all the rest of a comparison."""
_SAME = 1e-6
"""Relative to all samples: profiles this close are the same."""


def largest_gain_by_lying(name: str, outcome: Outcome) -> float | None:
    """The largest gain by a false report, divided by what training costs the liar.

    None if it is not known: for a mechanism that is not looked at, for one whose amounts are not
    those that `rules` computes (of least total cost, for instance, or for ranges), for a clock that
    impatient clients would leave, and for very many clients.
    """
    consortium = outcome.consortium
    rule = RULES.get(name)
    if rule is None or consortium.size > _MOST_CLIENTS or _is_untruthful_clock(name, outcome):
        return None
    truth = Reports.true(consortium)
    [profile] = rule.assign(truth).profile
    if not _same(consortium, profile, outcome.contributions):
        return None
    each = int(np.clip(_TRIED // consortium.size, _FEWEST, _MOST))
    best = best_lies(rule, truth, np.arange(consortium.size), each)
    pays = (best.gain > 0.0) & (best.before.own > 0.0)
    share = np.divide(best.gain, best.before.own, out=np.zeros_like(best.gain), where=pays)
    return float(share.max())


def _same(consortium: Consortium, profile: FloatArray, contributions: FloatArray) -> bool:
    amounts = contributions * consortium.quality
    return bool((np.abs(profile - amounts) <= _SAME * amounts.sum()).all())


def _is_untruthful_clock(name: str, outcome: Outcome) -> bool:
    return name == "clock" and not outcome.truthful
