"""What is said about a consortium that changes: its states, its agreement, and a match."""

from dataclasses import dataclass
from math import inf

import numpy as np

from fedaccord.agreement.changing import ChangingAgreement
from fedaccord.agreement.changing_certificate import ChangingCertificate, certify_changing
from fedaccord.agreement.changing_solver import solve_each_for_ever
from fedaccord.agreement.punishment import Reversion
from fedaccord.game.changing import ChangingConsortium
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray, count, write
from fedaccord.repeated.changing import ChangingMatch
from fedaccord.repeated.recorder import Event
from fedaccord.repeated.strategies import slips_of
from fedaccord.summaries.match import single, some
from fedaccord.summaries.words import listed

_SAME = 1e-6
"""Relative: totals that differ by less are the same in a sentence."""

NOT_THE_LARGEST = (
    "It need not be the {} agreement that holds: asking for less in one state may allow more in "
    "another, which is not tried."
)
COST_NOTE = (
    "Costs of all slots for ever, discounted to the first; those after the last slot played are "
    "expected ones, over the states that may follow."
)


@dataclass(frozen=True, eq=False)
class ChangingSolution:
    """An agreement with its proof, beside what each state would agree on if it lasted."""

    certificate: ChangingCertificate
    for_ever: ChangingCertificate
    """Of the agreements that each state would have if it lasted for ever."""

    @property
    def agreement(self) -> ChangingAgreement:
        """The agreement."""
        return self.certificate.agreement


def changing_solution(agreement: ChangingAgreement) -> ChangingSolution:
    """Prove an agreement, and what each state would agree on by itself."""
    alone = solve_each_for_ever(
        agreement.changing,
        objective=agreement.objective,
        margin=agreement.margin,
        punishment=agreement.punishment,
    )
    return ChangingSolution(certify_changing(agreement), certify_changing(alone))


def chain_sentences(changing: ChangingConsortium) -> list[str]:
    """What may follow each state."""
    told = []
    for o, (name, row) in enumerate(zip(changing.states, changing.transitions, strict=True)):
        if row[o] == 1.0:
            told.append(f"{_quoted(name)} lasts for ever{_away(changing, o)}.")
            continue
        after = [f"{_quoted(changing.states[p])} {100 * row[p]:.4g} %" for p in np.flatnonzero(row)]
        told.append(f"After a slot of {_quoted(name)}{_away(changing, o)}: {', '.join(after)}.")
    return some([f"It starts in {_quoted(changing.states[0])}.", *told], "states")


def _away(changing: ChangingConsortium, o: int) -> str:
    away = [changing.names[n] for n in np.flatnonzero(~changing.present[o]).tolist()]
    return f" (without {listed(away)})" if away else ""


def _quoted(name: str) -> str:
    return f'"{name}"'


def solution_sentences(solution: ChangingSolution) -> list[str]:
    """Whether it holds, who is closest, what change costs, and what is not claimed."""
    agreement, certificate = solution.agreement, solution.certificate
    if not agreement.exists:
        return [
            "There is no agreement in any state that asks for more than selfish play.",
            *_fitted_law(agreement),
        ]
    return [
        _verdict(certificate),
        *_what_change_costs(solution),
        _if_each_lasted(solution.for_ever),
        *_not_the_best(agreement),
        *_fitted_law(agreement),
    ]


def _not_the_best(agreement: ChangingAgreement) -> list[str]:
    if agreement.largest:
        return []
    best = "largest" if agreement.objective == "most data" else "cheapest"
    return [NOT_THE_LARGEST.format(best)]


def _verdict(certificate: ChangingCertificate) -> str:
    agreement = certificate.agreement
    if not certificate.holds:
        who = _who_slips(certificate) or ["a client would gain by not carrying out the punishment"]
        return f"Refuted, with {agreement.punishment}: {listed(who)}."
    return (
        f"Proved for every client in every state, with {agreement.punishment}: nobody gains by "
        f"slipping. The one closest to slipping is {certificate.closest_client} in "
        f"{_quoted(certificate.closest_state)}: its best slip gains "
        f"{100 * certificate.used[certificate.closest]:.4g} % of what it would lose afterwards."
    )


def _what_change_costs(solution: ChangingSolution) -> list[str]:
    """By how much the totals differ from what each state would agree on if it lasted for ever."""
    agreement, lasting = solution.agreement, solution.for_ever.agreement
    told = []
    for o, name in enumerate(agreement.changing.states):
        agreed, other = agreement.totals[o], lasting.totals[o]
        if abs(agreed - other) <= _SAME * other:
            continue
        total, gap = write([agreed])[0], write([abs(agreed - other)])[0]
        word = "fewer" if agreed < other else "more"
        told.append(
            f"{total} samples are agreed in {_quoted(name)}: {gap} {word} than if it lasted for "
            "ever."
        )
    if not told:
        return ["That the state may change costs no data: each agrees on as much as if it lasted."]
    return some(told, "states with another total")


def _if_each_lasted(certificate: ChangingCertificate) -> str:
    """Whether the agreements of each state by itself would hold."""
    who = _who_slips(certificate)
    if not who:
        return "What each state would agree on if it lasted for ever holds as well."
    return f"What each state would agree on if it lasted for ever does not hold: {listed(who)}."


def _who_slips(certificate: ChangingCertificate) -> list[str]:
    """Who would slip in which state."""
    return [
        f"{listed(certificate.slipping(o))} would slip in {_quoted(name)}"
        for o, name in enumerate(certificate.agreement.changing.states)
        if certificate.slipping(o)
    ]


def _fitted_law(agreement: ChangingAgreement) -> list[str]:
    if agreement.changing.everyone.law.evidence is None:
        return []
    return ["With states the fitted law alone is used, not all laws that fit the measurements."]


def holds_in(certificate: ChangingCertificate, o: int) -> str:
    """Whether everyone keeps to the amounts of a state, for a cell of a table."""
    slipping = certificate.slipping(o)
    return "yes" if not slipping else f"no: {listed(slipping, 2)}"


def match_sentences(match: ChangingMatch) -> list[str]:
    """What is agreed, what follows a slip, and who slipped."""
    agreement = match.agreement
    duration = agreement.punishment.duration
    follows = (
        f"A slip is punished {duration}: everyone plays the equilibrium of the state."
        if isinstance(agreement.punishment, Reversion)
        else f"Whoever slips is out {duration} and trains alone; the others go on."
    )
    told = [_slip_sentence(event) for event in match.events if event.kind == "deviation"]
    return [
        follows,
        *some([*told, *_planned_in_vain(match)], "slips"),
        *([] if match.slipped.any() else ["Nobody slipped."]),
    ]


def _slip_sentence(event: Event) -> str:
    agreed, contributed = write([event.agreed or 0.0, event.contributed or 0.0])
    return f"Slot {event.slot}: {event.client} trains on {contributed} samples instead of {agreed}."


def _planned_in_vain(match: ChangingMatch) -> list[str]:
    """The slips that were planned and did not happen."""
    changing, told = match.agreement.changing, []
    for n, strategy in enumerate(match.strategies):
        for slip in slips_of(strategy):
            if match.slipped[slip.slot - 1, n]:
                continue
            here = changing.present[match.state[slip.slot - 1], n]
            why = "it trains on no less than agreed" if here else "it is away"
            told.append(f"Slot {slip.slot}: {changing.names[n]} does not slip: {why}.")
    return told


def runs_of_slots(match: ChangingMatch) -> list[tuple[str, ...]]:
    """Slots in a row that are alike: which, their state, phase, total, and who is out."""
    keys = list(
        zip(match.states, match.phases, match.totals.tolist(), match.names_out, strict=True)
    )
    totals = write(match.totals)
    rows: list[tuple[str, ...]] = []
    first = 0
    for slot in range(1, match.slots + 1):
        if slot < match.slots and keys[slot] == keys[first]:
            continue
        state, phase, _, out = keys[first]
        slots = str(slot) if first == slot - 1 else f"{first + 1}-{slot}"
        rows.append((slots, state, phase, totals[first], ", ".join(out)))
        first = slot
    return rows


def slipper_rows(match: ChangingMatch) -> list[tuple[str, ...]]:
    """What those that slipped paid, would have paid, and lost by it."""
    paid, kept = match.discounted_cost, match.discounted_cost_if_kept
    rows: list[tuple[str, ...]] = []
    for n in np.flatnonzero(match.slipped.any(axis=0)).tolist():
        lost = paid[n] - kept[n] if paid[n] < inf else inf
        rows.append((match.agreement.changing.names[n], *map(single, (paid[n], kept[n], lost))))
    return rows


def size_sentence(changing: ChangingConsortium) -> str:
    """How large the consortium is, and how many states it has."""
    samples = write([float(changing.everyone.samples.sum())])[0]
    return (
        f"{count(changing.everyone.size, 'client')} with {samples} samples in total as usual, "
        f"{count(changing.size, 'state')}"
    )


def turnover_sentences(consortium: Consortium) -> list[str]:
    """What the discount factors take into account already; nothing if there is nothing."""
    turnover = consortium.turnover
    if turnover is None:
        return []
    why = []
    if turnover.leaves.any():
        rates = _shares(turnover.leaves)
        why.append(f"a client leaves after a slot with a probability of {rates}, and is replaced")
    if turnover.growth:
        word = "grow" if turnover.growth > 0 else "shrink"
        share = f"{100 * abs(turnover.growth):.4g} %"
        why.append(
            f"data sizes and satiation points {word} by {share} a slot, and so do the amounts "
            "(those below are for the first slot)"
        )
    n = int(np.argmax(turnover.stated))
    counts = f"{turnover.stated[n]:.4g} counts as {consortium.discount_factor[n]:.4g}"
    because = " and ".join(why)
    return [f"{because[0].upper()}{because[1:]}: a discount factor of {counts}."]


def _shares(rates: FloatArray) -> str:
    low, high = (f"{100 * rate:.4g}" for rate in (rates.min(), rates.max()))
    return f"{low} %" if low == high else f"{low} to {high} %"
