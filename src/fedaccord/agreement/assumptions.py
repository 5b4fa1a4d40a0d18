"""What a certificate has to assume, and how far off each assumption may be.

Everything here follows from one number per client: the least by which a slot of the punishment must
be dearer than the loss of the agreed model, E x + gain / w, for a slip not to pay (w: how much the
punishment weighs, see `watch`). Where a client saves its fees meanwhile, being alone must cost it
that much more. With the harsher of both punishments, clients that reversion keeps to the agreement
do not count.

An agreement that was made for ranges or for many laws has the least margins of all of them: those
at the numbers and the law that tempt a client most, as for the least audit probability.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.examined import Faced
from fedaccord.agreement.loss import terms_of
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.agreement.search import lost_by, total_of
from fedaccord.agreement.slips import Slips
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.agreement.watch import Watch
from fedaccord.game.consortium import Consortium
from fedaccord.game.money import amounts, money
from fedaccord.numbers import FloatArray, at_most, count

_LARGEST = 1e9
"""Margins beyond this are not limits."""

_HALVINGS = 60
"""Bisection steps that determine a margin to the last bit."""

_MOST_DELAY = 1_000
"""Slots after which a slip that nobody has seen is not looked for any longer."""


@dataclass(frozen=True)
class Margins:
    """How much weaker suspension may be than assumed before somebody slips."""

    model_keeps: float
    """kappa: the share of the agreed data that an old model may be worth."""
    worth_alone: float
    """nu: how many times as much as others' samples a client's own may be worth to it alone."""
    fees: float
    """What a suspended client may save in a slot, in money, besides what the agreement says;
    infinite if suspension is not what keeps anybody."""
    delay: int
    """How many slots it may take until a slip is seen; 1: it is seen before the next slot."""


def margins_of(agreement: Agreement, faced: Iterable[Faced]) -> Margins:
    """The margins of an agreement that holds: the least over all that clients may face."""
    found = [_margins(agreement, one) for one in faced]
    return Margins(
        model_keeps=min(one.model_keeps for one in found),
        worth_alone=min(one.worth_alone for one in found),
        fees=min(one.fees for one in found),
        delay=min(one.delay for one in found),
    )


def _margins(agreement: Agreement, faced: Faced) -> Margins:
    """The margins of one consortium, or of every client at several types."""
    types, slips, watch, saving, against_reversion = faced
    delta, price = types.discount_factor, types.cost_per_sample
    profile = np.tile(agreement.profile, types.size // agreement.profile.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain, weight = watch.gained(delta, slips), watch.weight(delta)
        lost = np.where(gain > 0, gain / weight, 0.0)
    least = price * profile + lost + _fees_saved(agreement.punishment, types)
    deterred = np.ones(types.size, dtype=bool)  # by suspension, not by reversion in its place
    if against_reversion is not None:
        deterred = against_reversion < lost
    spare = np.where(saving - lost > TOLERANCE * price * profile, saving - lost, 0.0)
    total = total_of(agreement.consortium, agreement.profile)
    alone = _worth_alone(types, total, least)
    return Margins(
        model_keeps=float(_worth_old(types, total, least).min(where=deterred, initial=1.0)),
        worth_alone=float(alone.min(where=deterred, initial=_LARGEST)),
        fees=float(spare.min(where=deterred, initial=np.inf)),
        delay=_delay(watch, delta, slips, saving),
    )


def _fees_saved(punishment: Punishment, consortium: Consortium) -> FloatArray | float:
    """What a suspended client saves by the agreement, in money."""
    if isinstance(punishment, Suspension) and punishment.fees_saved:
        return consortium.communication_cost + consortium.server_fee
    return 0.0


def _worth_old(consortium: Consortium, total: np.float64, least: FloatArray) -> FloatArray:
    """The share of `total` that an old model may be worth before using it costs too little.

    It must cost a client at least `least` more than the agreement's model does.
    """
    low, high = np.full_like(least, np.log(1.0 / _LARGEST)), np.zeros_like(least)
    terms = terms_of(consortium.law)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = lost_by(consortium, total * np.exp(middle), total, terms) >= least
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.exp(low)


def _worth_alone(consortium: Consortium, total: np.float64, least: FloatArray) -> FloatArray:
    """How much a client's own samples may be worth before being alone costs too little.

    With samples worth nu each, it trains on those up to its satiation point divided by nu.
    """
    low, high = np.zeros_like(least), np.full_like(least, np.log(_LARGEST))
    ratio, price = consortium.quality * consortium.ratio, consortium.cost_per_sample
    terms = terms_of(consortium.law)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        worth = np.exp(middle)
        reached = consortium.law.stop(ratio * worth)
        each = worth * consortium.quality
        amount = np.minimum(reached / each, consortium.samples)
        lost = lost_by(consortium, each * amount, total, terms)
        enough = lost + price * amount >= least
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.exp(low)


def _delay(watch: Watch, delta: FloatArray, slips: Slips, saving: FloatArray) -> int:
    """The largest J at which everyone keeps to it, counted up from the agreed one.

    With false alarms it is not known for J > 1.
    """
    agreed = watch.monitoring.seen_late
    if watch.monitoring.accuses_falsely:
        return agreed
    lost = watch.rise * watch.begun(delta, saving)
    waiting, factor = watch.waiting(delta), delta ** (agreed - 1)
    for slots in range(agreed, _MOST_DELAY):
        lost, factor = lost * delta, factor * delta
        waiting = waiting + factor
        if (slips.tempting + watch.rise * waiting * slips.largest > lost).any():
            return slots
    return max(_MOST_DELAY, agreed)


def assumptions_of(agreement: Agreement, margins: Margins) -> tuple[str, ...]:
    """What is assumed and not proved, in sentences, with the margin that each has."""
    numbers = "as stated" if agreement.ranges is None else "within their ranges"
    costs = f"Costs follow the law of the loss, and each client's numbers are {numbers}."
    seen = _seen(agreement)
    if isinstance(agreement.punishment, Reversion) or np.isinf(margins.fees):
        return (costs, *seen)
    if margins.delay > agreement.monitoring.seen_late:
        late = f"The agreement would still hold if that took {count(margins.delay, 'slot')}."
        seen = (*seen[:-1], f"{seen[-1]} {late}")
    worth = at_most(margins.worth_alone, "{:,.3g}".format)
    share = f"{at_most(100 * margins.model_keeps, '{:.3g}'.format)} %"
    return (
        costs,
        *seen,
        "An old model loses its worth: it would hold as long as the last model is worth no more "
        f"than {share} of the agreed data to a suspended client.",
        f"Nobody passes the model on to a suspended client: a copy worth more than {share} of the "
        "agreed data would undo the threat.",
        "Alone, a client's model is as good as the law says for its own samples: it would hold as "
        f"long as they are worth no more than {worth} times as much to it.",
        _saved_in_words(agreement, margins.fees),
    )


def _seen(agreement: Agreement) -> tuple[str, ...]:
    """What is assumed about how a slip is seen; the last sentence is about when."""
    monitoring, suspends = agreement.monitoring, isinstance(agreement.punishment, Suspension)
    if monitoring.is_plain:
        return ("Everyone sees after a slot what each client trained on.",)
    said = [
        "Nobody knows before a slot whether it will be audited; the draws of different clients may "
        "depend on each other. A slip that no audit finds changes nothing later.",
    ]
    if monitoring.samples_checked is None:
        said.append("An audit finds any shortfall.")
    else:
        said.append(
            "A check decides for certain whether that sample was trained on, and says nothing of "
            "its quality. Which of the claimed samples are checked is drawn at random."
        )
    if monitoring.accuses_falsely:
        others = ", and what other clients' false alarms cost it is not counted" * suspends
        said.append(f"Each client's false alarms are independent of everything else{others}.")
    when = "What an audit finds is acted on before the next slot."
    if monitoring.seen_late > 1:
        when = (
            f"What an audit finds is acted on {monitoring.seen_late:,} slots later; the client may "
            "know until then, and slip, but nobody else does."
        )
    return (*said, when)


def _saved_in_words(agreement: Agreement, fees: float) -> str:
    """What a suspended client may save besides what the agreement takes into account."""
    punishment = agreement.punishment
    known = isinstance(punishment, Suspension) and punishment.fees_saved
    besides = "besides the training and the fees" if known else "besides the training"
    if fees == 0.0:
        return f"Being suspended saves nothing {besides}."
    currency = agreement.consortium.currency
    amount = money(at_most(fees, lambda limit: amounts([limit], currency)[0]), currency)
    return f"Being suspended saves no more than {amount} in a slot, {besides}."
