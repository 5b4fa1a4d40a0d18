"""What is said about audits: how slips are seen, how few would do, and what there is room for."""

from __future__ import annotations

from math import ceil, floor, inf, log10

import numpy as np

from fedaccord.agreement.audits import AuditBudgets, LeastAudits, least_audits
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.false_alarms import false_alarms
from fedaccord.game.money import money
from fedaccord.numbers import count, write
from fedaccord.summaries.words import Noun

MOST_EXAMINED = 10_000
"""Clients up to which it is said how few audits would do, which takes a while."""


def audit_sentences(
    certificate: Certificate, noun: Noun = "client", *, checks: bool = True
) -> list[str]:
    """How slips are seen, how few audits would do, and how much worse they could be.

    Nothing about an agreement that does not exist or hold. How few samples need be checked takes
    longest to find, and is left out without `checks`.
    """
    agreement = certificate.agreement
    if not (agreement.exists and certificate.holds) or agreement.consortium.size > MOST_EXAMINED:
        return []
    least = least_audits(certificate)
    if not least.enough or least.per_slot == 0.0:
        return []
    samples = _samples(least, noun) if checks else ""
    said = [_seen(certificate, noun), _few_enough(least, noun), samples, _room(least, noun)]
    return [sentence for sentence in [*said, _undeserved(certificate, noun)] if sentence]


def _seen(certificate: Certificate, noun: Noun) -> str:
    """How slips are seen, unless it is for certain."""
    monitoring = certificate.agreement.monitoring
    if monitoring.is_plain:
        return ""
    if monitoring.is_certain:
        return f"Every slip is seen, and punished from {monitoring.seen_late} slots later on."
    audits = monitoring.audits(certificate.agreement.consortium)
    return (
        f"Slips are seen by audits, {_number(audits.sum())} in a slot on average: each {noun} is "
        f"{monitoring}."
    )


def _few_enough(least: LeastAudits, noun: Noun) -> str:
    """The fewest audits that keep everyone to the agreement, rounded up."""
    rates = least.probability[least.probability > 0]
    low, high = f"{rates.min():.2g}", f"{rates.max():.2g}"
    each = f"with probability {low}" if low == high else f"with probability {low} to {high}"
    any_slip = ""
    if least.agreement.monitoring.samples_checked is None:
        any_slip = f" that {'find' if least.per_slot > 1 else 'finds'} any slip"
    return (
        f"With {so_many_audits(least.per_slot)}{any_slip}, shared out as needed (each {noun} "
        f"{each}), nobody gains by slipping."
    )


def so_many_audits(per_slot: float) -> str:
    """At least so many audits, in words that are easy to plan with.

    >>> so_many_audits(0.288), so_many_audits(0.9), so_many_audits(1.29)
    ('one audit in 3 slots', 'one audit in a slot', '1.3 audits in a slot')
    """
    if per_slot > 1.0:
        return f"{_number(per_slot)} audits in a slot"
    slots = floor(1.0 / per_slot * (1.0 + 1e-9))
    return "one audit in a slot" if slots == 1 else f"one audit in {slots:,} slots"


def _number(value: float) -> str:
    """Rounded up to two digits, so that it is enough."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return f"{ceil(value / step - 1e-9) * step:.3g}"


def _samples(least: LeastAudits, noun: Noun) -> str:
    """How few samples need be checked."""
    monitoring = least.agreement.monitoring
    if monitoring.samples_checked is not None:
        return ""
    if (least.checks <= 1.0).all():
        drawn = f"a single sample, drawn at random from those that the {noun} claims"
        needed = so_many_audits(least.checks.sum())
        if needed == so_many_audits(least.per_slot):
            return f"That is enough even if an audit checks only {drawn}, and so misses some slips."
        return f"If an audit checks {drawn}, it misses some slips: then it takes {needed}."
    most = float(least.samples_to_check.max())
    if most == inf:
        return ""
    return f"An audit has to check no more than {count(int(most), 'sample')}, drawn at random."


def _room(least: LeastAudits, noun: Noun) -> str:
    """How many slips audits could miss if everyone were audited in every slot."""
    missed = 1.0 - float(least.probability.max())
    if missed < 0.01:
        return ""
    return (
        f"If every {noun} is audited in every slot, you could afford audits that miss "
        f"{floor(100 * missed)} % of the slips."
    )


def _undeserved(certificate: Certificate, noun: Noun) -> str:
    """What false alarms cost, if there are any, and if fewer of them were acted on."""
    agreement = certificate.agreement
    if not agreement.monitoring.accuses_falsely:
        return ""
    found = false_alarms(agreement)
    currency, total = agreement.consortium.currency, write([found.long_run_total])[0]
    paid = money(float(found.cost.sum()), currency)
    said = (
        f"False alarms cost all {noun}s together {paid} in a slot on average; in the long run "
        f"{total} samples are trained on in a slot."
    )
    share = float(np.nanmax(found.act_on, initial=0.0))
    if np.isnan(found.mildest_cost).any() or share > 1.0:
        return said
    mildest = money(float(found.mildest_cost.sum()), currency)
    return (
        f"{said} It would be enough to suspend by lot, {100 * share:.2g} % of the accused or "
        f"fewer, depending on the {noun}: then they would cost {mildest}."
    )


def budget_sentences(budgets: AuditBudgets, least: LeastAudits) -> list[str]:
    """What the smallest budget buys, and from when on more audits buy nothing."""
    exists = [agreement.exists for agreement in budgets.agreements]
    said = []
    if not all(exists):
        most = max(b for b, some in zip(budgets.budgets, exists, strict=True) if not some)
        said.append(f"With {most:g} audits in a slot or fewer there is no agreement at all.")
    if least.enough:
        said.append(
            f"More than {_number(least.per_slot)} audits in a slot buy nothing: the largest "
            "agreement needs no more."
        )
    return said
