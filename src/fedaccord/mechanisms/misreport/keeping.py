"""Whether a liar then does what it is asked for, or would rather slip.

It compares with what will really happen to it. Under reversion the others then do what the
announced equilibrium, computed from the reports, asks of them, and the liar responds as is best for
it; under suspension it trains alone. A client that has understated its ratio is asked for less than
it would keep to, so that it usually keeps to it.
"""

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.enforcement import ROUNDING
from fedaccord.agreement.punishment import Punishment, Reversion
from fedaccord.agreement.weight import effective_discount_factor
from fedaccord.game.filling import fill
from fedaccord.mechanisms.misreport.gains import Outcomes
from fedaccord.mechanisms.misreport.reports import Reports
from fedaccord.numbers import BoolArray, FloatArray


def keeps_to_it(
    punishment: Punishment,
    truth: Reports,
    rows: Reports,
    client: npt.NDArray[np.int64],
    asked: Outcomes,
) -> BoolArray:
    """Whether each liar keeps to what it is asked for after the reports in its row."""
    own, total = asked.own, asked.total
    others = total - own
    slip = _best_response(truth, client, others, most=own)
    slot_gain = own - slip - _loss(truth, client, others + slip, total)
    if isinstance(punishment, Reversion):
        announced = fill(rows.law.stop(rows.ratio), rows.samples)
        left = announced.total[:, 0] - announced.profile[np.arange(client.size), client]
    else:
        left = np.zeros(client.size)
    response = _best_response(truth, client, left, most=truth.samples[0, client])
    saving = response - own + _loss(truth, client, left + response, total)
    delta = effective_discount_factor(truth.discount_factor[0, client], punishment.slots)
    excess = (1.0 - delta) * slot_gain - delta * saving
    return np.asarray(excess <= ROUNDING * (own + total))


def _best_response(
    truth: Reports, client: npt.NDArray[np.int64], others: FloatArray, most: FloatArray
) -> FloatArray:
    return np.asarray(np.clip(truth.law.stop(truth.ratio)[0, client] - others, 0.0, most))


def _loss(
    truth: Reports, client: npt.NDArray[np.int64], less: FloatArray, total: FloatArray
) -> FloatArray:
    """What having `less` instead of `total` costs each client, in its own samples."""
    lost = truth.law_of(client).fall(less, total - less, total)
    return np.asarray(truth.ratio[0, client] * lost)
