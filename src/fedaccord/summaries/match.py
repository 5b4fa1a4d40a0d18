"""What is said about a match and the clients that slipped."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.punishment import shortest_punishment
from fedaccord.numbers import BoolArray, count, write
from fedaccord.repeated.deviators import Deviator, Slip, deviator_of
from fedaccord.repeated.match import Match
from fedaccord.repeated.strategies import DeviateOnce, name_of, slips_of
from fedaccord.repeated.tolerance import Tolerance

DESCRIBED = 10
"""Clients that slipped of which each slip is told; of others only what they paid."""
LINES = 12
"""Slips, alarms or phases that are spelled out; the rest are counted."""


@dataclass(frozen=True, eq=False)
class Account:
    """A match told: sentences, and the clients that slipped."""

    match: Match
    deviators: tuple[Deviator, ...]
    """Some of those who slipped, those with planned slips first of all."""
    more_deviators: int
    """How many others slipped."""
    shortest_punishment: int | None
    """The fewest slots of punishment that enforce the agreement; None: no number does."""
    best_tolerance: Tolerance | None = None
    """The tolerance that costs least, and why; None: there was nothing to choose."""

    @property
    def terms(self) -> str:
        """What is agreed; or why nothing is, and what is played then."""
        agreement = self.match.agreement
        alone, agreed = write([agreement.equilibrium.total, agreement.total])
        if not agreement.exists:
            return (
                f"{agreement.none_exists}: {agreement.reason}. "
                f"So everyone plays the equilibrium, {alone} samples in a slot."
            )
        article = "An" if agreement.kind == "individual" else "A"
        return (
            f"{article} {agreement.kind} agreement on {agreed} samples in a slot (equilibrium: "
            f"{alone}). A slip is punished {punishment(agreement)}. {self._enforcement()}"
        )

    @property
    def watch(self) -> str:
        """How well contributions are seen, and what is put up with; nothing if all is plain."""
        match, best, parts = self.match, self.best_tolerance, []
        if match.noise:
            noise = _percent(match.noise)
            parts.append(f"contributions are misread by {noise} (standard deviation)")
        if match.dropout:
            parts.append(f"a client is absent from a slot with probability {match.dropout:g}")
        if (match.tolerance or match.noise) and match.agreement.exists:
            why = best is not None and best.tolerance == match.tolerance
            parts.append(
                f"a shortfall of up to {_percent(match.tolerance)} is put up with"
                f"{', the tolerance that costs least' if why else ''}"
            )
        text = "; ".join(parts)
        text = f"{text[:1].upper()}{text[1:]}." if text else ""
        if best is not None and not best.works:
            text += " With so much noise no tolerance makes the agreement better than none."
        return text

    @property
    def phases(self) -> str:
        """From which slot to which there was which phase."""
        runs = list(_runs(self.match.punishing))
        named = [
            f"{_span(first, last)} {'punishing' if phase else 'cooperating'}"
            for first, last, phase in runs[:LINES]
        ]
        if len(runs) > LINES:
            punished = int(self.match.punishing.sum())
            named.append(
                f"and {count(len(runs) - LINES, 'more change')}: "
                f"in all {punished:,} of {count(self.match.slots, 'slot')} punishing"
            )
        only_one = len(runs) == 1 and self.match.slots == 1
        return f"{'Slot' if only_one else 'Slots'} {', '.join(named)}."

    @property
    def slips(self) -> list[str]:
        """A line for each slip, in order; very many are counted."""
        told = [slip for deviator in self.deviators for slip in deviator.slips]
        told.sort(key=lambda slip: slip.first)
        lines = [self._slip(slip) for slip in told[:LINES]]
        if len(told) > LINES:
            lines.append(f"and {len(told) - LINES:,} more slips of these clients")
        if self.more_deviators:
            lines.append(f"and {count(self.more_deviators, 'more client')} slipped")
        return lines

    @property
    def slips_that_were_none(self) -> list[str]:
        """A line for each slip that was planned and did not come to be."""
        lines = [
            f"slot {slip.slot:,}: {name} did not slip: {self._why_not(n, slip)}"
            for n, name in enumerate(self.match.agreement.consortium.names)
            for slip in slips_of(self.match.strategies[n])
            if not self._slipped(name, slip.slot)
        ]
        return _some(lines, "planned slips")

    @property
    def chance(self) -> list[str]:
        """A line each on false alarms, slips that nobody saw, and absences, if there could be."""
        match, lines = self.match, []
        if match.noise and match.agreement.exists:
            lines.append(self._false_alarms())
        if match.missed_deviations:
            paid = _number(float(match.missed_deviation_cost.sum()))
            lines.append(
                f"Unseen: {match.missed_deviations:,} of {count(match.deviations, 'slip')} "
                f"(each client and slot counted), which cost all clients together {paid}."
            )
        if match.dropout:
            share = match.absences / (match.slots * match.agreement.consortium.size)
            lines.append(
                f"Absences: {match.absences:,} (each client and slot counted), {_percent(share)}."
            )
        return lines

    @property
    def strategies(self) -> str:
        """Who does not play what everyone signs; nothing if all do."""
        by_strategy: dict[str, list[str]] = {}
        names = self.match.agreement.consortium.names
        for name, strategy in zip(names, self.match.strategies, strict=True):
            by_strategy.setdefault(name_of(strategy), []).append(name)
        keeping = by_strategy.pop("keep", [])
        told = [f"{_who(clients, len(names))} {name}" for name, clients in by_strategy.items()]
        if told and keeping:
            told.append(f"{keeping[0] if len(keeping) == 1 else 'all others'} keep")
        return f"Strategies: {'; '.join(told)}." if told else ""

    def _enforcement(self) -> str:
        if self.shortest_punishment is None:
            return (
                "Nothing shorter enforces the agreement; with a margin some number of slots would."
            )
        slots = count(self.shortest_punishment, "slot")
        return f"The shortest punishment that still enforces the agreement: {slots}."

    def _slip(self, slip: Slip) -> str:
        contributed, agreed = write([slip.contributed, slip.agreed])
        parts = [
            f"{'slot' if slip.first == slip.last else 'slots'} {_span(slip.first, slip.last)}: "
            f"{slip.client} trained on {contributed} instead of {agreed}"
        ]
        if self.match.agreement.exists:
            parts.append(self._punishment(slip))
        if isfinite(slip.saved) and isfinite(slip.lost):
            parts.append(_outcome(slip.saved, slip.lost))
        else:
            parts.append("without anyone training there is no model, and no end to the cost")
        return "; ".join(parts)

    def _punishment(self, slip: Slip) -> str:
        """The punishment that followed a slip."""
        match = self.match
        if slip.last == match.slots:
            return "seen in the last slot played" if self._seen(slip) else "unseen"
        for event in match.events:
            if event.kind == "punishment" and event.slot == slip.last + 1:
                until = slip.last + event.lasted
                return f"punishment {'for ever' if until == inf else f'until slot {until:,.0f}'}"
        return "no punishment followed"

    def _seen(self, slip: Slip) -> bool:
        match = self.match
        assert match.observed is not None
        seen = match.observed[slip.last - 1, match.agreement.consortium.index(slip.client)]
        return bool(seen < slip.agreed * (1.0 - match.tolerance))

    def _slipped(self, name: str, slot: int) -> bool:
        return any(
            event.kind == "deviation"
            and event.client == name
            and event.slot <= slot < event.slot + event.lasted
            for event in self.match.events
        )

    def _why_not(self, n: int, slip: DeviateOnce) -> str:
        match = self.match
        assert match.observed is not None
        assert match.client_punishing is not None
        if np.isnan(match.observed[slip.slot - 1, n]):
            return "it was absent"
        if not match.agreement.exists:
            return "there is no agreement to slip from"
        if match.client_punishing[slip.slot - 1, n]:
            return f"it was punishing then{self._out_of_line(n, slip)}"
        if slip.amount is not None:
            return "what it was to give is no less than agreed"
        assert match.contributions is not None
        if match.contributions[slip.slot - 1, n] > match.agreement.profile[n]:
            return "more than agreed suits it best, and giving more is no slip"
        return "what was agreed is what suits it best"

    def _out_of_line(self, n: int, slip: DeviateOnce) -> str:
        """What it did in a punishment in place of what suits it best; nobody answers that."""
        match = self.match
        assert match.contributions is not None
        trained_on = float(match.contributions[slip.slot - 1, n])
        best = float(match.agreement.equilibrium.profile[n])
        if trained_on == best:
            return ""
        written, best_written = write([trained_on, best])
        return f", and trained on {written} where {best_written} is cheapest for it"

    def _false_alarms(self) -> str:
        match = self.match
        if not match.false_alarms:
            return "False alarms: none."
        slots = dict.fromkeys(event.slot for event in match.events if event.kind == "false alarm")
        named = [f"{slot:,}" for slot in slots]
        where = ", ".join(named[:LINES]) + (", ..." if len(named) > LINES else "")
        paid = _number(float(match.false_alarm_cost.sum()))
        return (
            f"False alarms: {match.false_alarms:,} ({'slot' if len(named) == 1 else 'slots'} "
            f"{where}); punishments that nobody had earned cost all clients together {paid}."
        )


def account_of(match: Match, best_tolerance: Tolerance | None = None) -> Account:
    """Tell a match, which must have been played with its history."""
    agreement = match.agreement
    slipped = np.flatnonzero(match.slipped).tolist()
    planned_first = sorted(slipped, key=lambda n: not isinstance(match.strategies[n], DeviateOnce))
    chosen = planned_first[:DESCRIBED]
    return Account(
        match=match,
        deviators=tuple(deviator_of(match, n) for n in chosen),
        more_deviators=len(slipped) - len(chosen),
        shortest_punishment=shortest_punishment(agreement) if agreement.exists else None,
        best_tolerance=best_tolerance,
    )


# --- Words ---------------------------------------------------------------------------------


def punishment(agreement: Agreement) -> str:
    """How long a slip is punished."""
    slots = agreement.punishment_slots
    return "for ever" if slots is None else f"for {count(slots, 'slot')}"


def _runs(phases: BoolArray) -> Iterable[tuple[int, int, bool]]:
    """First slot, last slot and value of each run."""
    edges = [0, *(np.flatnonzero(np.diff(phases)) + 1).tolist(), phases.size]
    for start, end in pairwise(edges):
        yield start + 1, end, bool(phases[start])


def _span(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def _who(clients: list[str], size: int) -> str:
    if len(clients) == size > 1:
        return f"all {size:,} clients"
    return ", ".join(clients) if len(clients) <= 5 else count(len(clients), "client")


def _outcome(saved: float, lost: float) -> str:
    now, later = _number(abs(saved)), _number(abs(lost))
    if saved >= 0:
        after = "lost nothing" if lost == 0 else f"lost {later}" if lost > 0 else f"{later} later"
        return f"it saved {now} and {after}"
    after = "" if lost == 0 else f" and {'' if lost > 0 else 'saved '}{later} later"
    return f"it lost {now}{after}"


def _some(lines: list[str], what: str) -> list[str]:
    left_out = len(lines) - LINES
    return [*lines[:LINES], f"and {left_out:,} more {what}"] if left_out > 0 else lines


def _number(value: float) -> str:
    """A number that stands alone."""
    return write([value], digits=3)[0]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


_SLIPS_SHOWN = 3
"""Clients that slipped with a picture of their own."""


@dataclass(frozen=True)
class DeviatorRow:
    """What is said about one client that slipped, every number written out."""

    name: str
    slots: str
    paid: str
    paid_if_kept: str
    lost: str


def match_title(account: Account) -> str:
    """The whole match in a few words."""
    match = account.match
    if not match.agreement.exists:
        return f"{match.agreement.none_exists}, so everyone acts alone"
    slipped = np.flatnonzero(match.slipped)
    played = count(match.slots, "slot")
    if slipped.size == 0:
        return f"{played} in which everyone kept to the agreement"
    if slipped.size > 1:
        return f"{count(slipped.size, 'client')} slipped in {played}"
    [deviator] = account.deviators
    lost = deviator.extra_for_ever
    return f"{deviator.client} slipped, and {'lost' if lost > 0 else 'gained'} by it"


def deviator_rows(match: Match) -> list[DeviatorRow]:
    """What to say about each client that slipped."""
    slipped = np.flatnonzero(match.slipped)
    slots = Counter[str | None]()
    for event in match.events:
        if event.kind == "deviation":
            slots[event.client] += int(event.lasted)
    paid, kept = match.discounted_cost[slipped], match.discounted_cost_if_kept[slipped]
    with np.errstate(invalid="ignore"):
        lost = write(paid - kept)
    costs = write(np.concatenate([paid, kept]), digits=6)
    names = [match.agreement.consortium.names[n] for n in slipped]
    columns = (names, costs[: paid.size], costs[paid.size :], lost)
    return [
        DeviatorRow(name, f"{slots[name]:,}", *row) for name, *row in zip(*columns, strict=True)
    ]
