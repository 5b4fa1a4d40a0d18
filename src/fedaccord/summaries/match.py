"""What is said about a match and the clients that slipped."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

import numpy as np

from fedaccord.agreement.patience import shortest_punishment
from fedaccord.game.money import amounts
from fedaccord.numbers import SUMS_DIFFER, BoolArray, count, write
from fedaccord.repeated.deviators import Deviator, Slip, deviator_of
from fedaccord.repeated.match import Match
from fedaccord.repeated.recorder import Event
from fedaccord.repeated.strategies import DeviateOnce, name_of, slips_of
from fedaccord.repeated.tolerance import Tolerance
from fedaccord.summaries.agreement import none_exists
from fedaccord.summaries.words import Noun

DESCRIBED = 10
"""Clients whose slips are described one by one; for others only their number is given."""
LINES = 12
"""Slips, alarms or phases that are described; the rest are counted."""
PICTURED = 3
"""Clients whose slips have a picture of their own."""


@dataclass(frozen=True, eq=False)
class Account:
    """A match in words, and the clients that slipped."""

    match: Match
    deviators: tuple[Deviator, ...]
    """Up to ten of the clients that slipped, those with planned slips first."""
    more_deviators: int
    """How many others slipped."""
    shortest_punishment: int | None
    """The fewest slots of punishment that enforce the agreement; None if no number does."""
    best_tolerance: Tolerance | None = None
    """The tolerance that costs least; None if there was nothing to choose."""
    noun: Noun = "client"
    """What an organisation is called in the sentences."""

    @property
    def terms(self) -> str:
        """What is agreed; or why nothing is, and what is played then."""
        agreement = self.match.agreement
        alone, agreed = write([agreement.equilibrium.total, agreement.total])
        if not agreement.exists:
            return (
                f"{none_exists(agreement)}: {agreement.reason}. "
                f"So everyone plays the equilibrium, {alone} samples in a slot."
            )
        article = "An" if agreement.kind == "individual" else "A"
        return (
            f"{article} {agreement.kind} agreement on {agreed} samples in a slot (equilibrium: "
            f"{alone}). {self._what_follows()} {self._enforcement()}"
        )

    @property
    def watch(self) -> str:
        """How well contributions are observed, and what is tolerated; empty if perfectly."""
        match, best, parts = self.match, self.best_tolerance, []
        if match.noise:
            noise = _percent(match.noise)
            parts.append(
                f"contributions are observed with an error of {noise} (standard deviation)"
            )
        if match.dropout:
            parts.append(f"a {self.noun} is absent from a slot with probability {match.dropout:g}")
        if (match.tolerance or match.noise) and match.agreement.exists:
            why = best is not None and best.tolerance == match.tolerance
            parts.append(
                f"a shortfall of up to {_percent(match.tolerance)} is tolerated"
                f"{', which costs least' if why else ''}"
            )
        text = "; ".join(parts)
        text = f"{text[:1].upper()}{text[1:]}." if text else ""
        if best is not None and not best.works:
            text += " With so much noise, no tolerance makes the agreement better than none."
        return text

    @property
    def phases(self) -> str:
        """Which slots were cooperating and which punishing; under suspension, who was out when."""
        if not self.match.agreement.exists:
            return "There is nothing to keep to, and nothing to punish."
        return self._who_was_out() if _suspends(self.match) else self._phases()

    def _phases(self) -> str:
        runs = list(_runs(self.match.punishing))
        named = [
            f"{span(first, last)} {'punishing' if phase else 'cooperating'}"
            for first, last, phase in runs[:LINES]
        ]
        if len(runs) > LINES:
            punished = int(self.match.punishing.sum())
            named.append(
                f"and {count(len(runs) - LINES, 'more change')}; "
                f"{punished:,} of {count(self.match.slots, 'slot')} are punishing"
            )
        only_one = len(runs) == 1 and self.match.slots == 1
        return f"{'Slot' if only_one else 'Slots'} {', '.join(named)}."

    def _who_was_out(self) -> str:
        match = self.match
        spells = [event for event in match.events if event.kind == "suspension"]
        if not spells:
            return "Nobody was out."
        told = [f"{spell.client} {_out_in(spell, match.slots)}" for spell in spells[:LINES]]
        if len(spells) > LINES:
            told.append(f"and {count(len(spells) - LINES, 'more suspension')}")
        return f"Out: {', '.join(told)}. The others went on."

    @property
    def slips(self) -> list[str]:
        """A line for each slip, in order; past a dozen they are counted."""
        told = [slip for deviator in self.deviators for slip in deviator.slips]
        told.sort(key=lambda slip: slip.first)
        lines = [slip_sentence(self.match, slip) for slip in told[:LINES]]
        if len(told) > LINES:
            lines.append(f"and {len(told) - LINES:,} more slips of these {self.noun}s")
        if self.more_deviators:
            lines.append(f"and {count(self.more_deviators, f'more {self.noun}')} slipped")
        return lines

    @property
    def slips_that_were_none(self) -> list[str]:
        """A line for each slip that was planned and did not happen."""
        lines = [
            no_slip_sentence(self.match, n, slip)
            for n, name in enumerate(self.match.agreement.consortium.names)
            for slip in slips_of(self.match.strategies[n])
            if not slipped(self.match, name, slip.slot)
        ]
        return some(lines, "planned slips")

    @property
    def nobody_slipped(self) -> str:
        """That nobody slipped; empty if somebody did."""
        return "" if self.match.slipped.any() else "Nobody slipped."

    @property
    def chance(self) -> list[str]:
        """A line each on false alarms, unseen slips and absences, where they are possible."""
        match, lines = self.match, []
        if match.noise and match.agreement.exists:
            lines.append(self._false_alarms())
        if match.missed_deviations:
            paid = single(float(match.missed_deviation_cost.sum()))
            lines.append(
                f"Unseen: {match.missed_deviations:,} of {count(match.deviations, 'slip')} "
                f"(counted per {self.noun} and slot), which cost all {self.noun}s together {paid}."
            )
        if match.dropout:
            share = match.absences / (match.slots * match.agreement.consortium.size)
            lines.append(
                f"Absences: {match.absences:,} (counted per {self.noun} and slot), "
                f"{_percent(share)}."
            )
        return lines

    @property
    def strategies(self) -> str:
        """Who does not play the agreed strategy; empty if all do."""
        by_strategy: dict[str, list[str]] = {}
        names = self.match.agreement.consortium.names
        for name, strategy in zip(names, self.match.strategies, strict=True):
            by_strategy.setdefault(name_of(strategy), []).append(name)
        keeping = by_strategy.pop("keep", [])
        told = [f"{self._who(clients)} {name}" for name, clients in by_strategy.items()]
        if told and keeping:
            told.append(f"{keeping[0] if len(keeping) == 1 else 'all others'} keep")
        return f"Strategies: {'; '.join(told)}." if told else ""

    def _who(self, clients: list[str]) -> str:
        size = self.match.agreement.consortium.size
        if len(clients) == size > 1:
            return f"all {count(size, self.noun)}"
        return ", ".join(clients) if len(clients) <= 5 else count(len(clients), self.noun)

    def _what_follows(self) -> str:
        lasting = self.match.agreement.punishment.duration
        if _suspends(self.match):
            return f"Whoever slips is out {lasting} and trains alone; the others go on."
        return f"A slip is punished {lasting}."

    def _enforcement(self) -> str:
        if self.shortest_punishment is None:
            return (
                f"No shorter {_noun(self.match)} enforces the agreement; with a margin one would."
            )
        slots = count(self.shortest_punishment, "slot")
        return f"The shortest {_noun(self.match)} that still enforces the agreement: {slots}."

    def _false_alarms(self) -> str:
        match = self.match
        if not match.false_alarms:
            return "False alarms: none."
        slots = dict.fromkeys(event.slot for event in match.events if event.kind == "false alarm")
        named = [f"{slot:,}" for slot in slots]
        where = ", ".join(named[:LINES]) + (", ..." if len(named) > LINES else "")
        paid = single(float(match.false_alarm_cost.sum()))
        return (
            f"False alarms: {match.false_alarms:,} ({'slot' if len(named) == 1 else 'slots'} "
            f"{where}); unearned {_noun(match)}s cost all {self.noun}s together {paid}."
        )


def account_of(match: Match, best_tolerance: Tolerance | None = None) -> Account:
    """Describe a match, which must have been played with its history."""
    agreement = match.agreement
    deviating = np.flatnonzero(match.slipped).tolist()
    planned_first = sorted(
        deviating, key=lambda n: not isinstance(match.strategies[n], DeviateOnce)
    )
    chosen = planned_first[:DESCRIBED]
    return Account(
        match=match,
        deviators=tuple(deviator_of(match, n) for n in chosen),
        more_deviators=len(deviating) - len(chosen),
        shortest_punishment=shortest_punishment(agreement) if agreement.exists else None,
        best_tolerance=best_tolerance,
    )


def _suspends(match: Match) -> bool:
    return match.agreement.punishment.kind == "suspension"


def _noun(match: Match) -> str:
    """What follows a slip, in a word."""
    return "suspension" if _suspends(match) else "punishment"


def _out_in(spell: Event, slots: int) -> str:
    """The slots in which a client is out, of those that were played."""
    last = min(spell.slot + spell.lasted - 1, slots)
    which = "slot" if spell.slot == last else "slots"
    return f"in {which} {span(spell.slot, int(last))}"


def _runs(phases: BoolArray) -> Iterable[tuple[int, int, bool]]:
    """First slot, last slot and value of each run."""
    edges = [0, *(np.flatnonzero(np.diff(phases)) + 1).tolist(), phases.size]
    for start, end in pairwise(edges):
        yield start + 1, end, bool(phases[start])


def some(lines: list[str], what: str) -> list[str]:
    """The first dozen lines, and how many more there are."""
    left_out = len(lines) - LINES
    return [*lines[:LINES], f"and {left_out:,} more {what}"] if left_out > 0 else lines


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


@dataclass(frozen=True)
class DeviatorRow:
    """What a table says about one client that slipped, every number formatted."""

    name: str
    slots: str
    paid: str
    paid_if_kept: str
    lost: str


def match_title(account: Account) -> str:
    """The whole match in a few words."""
    match, noun = account.match, account.noun
    if not match.agreement.exists:
        return f"{none_exists(match.agreement)}, so everyone acts selfishly"
    deviating = np.flatnonzero(match.slipped)
    played = count(match.slots, "slot")
    if deviating.size == 0:
        return f"{played} in which everyone kept to the agreement"
    if deviating.size > 1:
        return f"{count(deviating.size, noun)} slipped in {played}"
    [deviator] = account.deviators
    lost = deviator.extra_for_ever
    return f"{deviator.client} slipped, and {'lost' if lost > 0 else 'gained'} by it"


def share_punished(match: Match) -> str:
    """How much of the match was punishment."""
    if not match.agreement.exists:
        return "no agreement"
    if _suspends(match):
        assert match.suspended is not None
        return f"{int(match.suspended.any(axis=1).sum()):,} of them with someone out"
    return f"{match.slots_punished.size:,} of them punishing"


def deviator_rows(match: Match) -> list[DeviatorRow]:
    """The rows of a table of the clients that slipped."""
    deviating = np.flatnonzero(match.slipped)
    slots = Counter[str | None]()
    for event in match.events:
        if event.kind == "deviation":
            slots[event.client] += int(event.lasted)
    paid, kept = match.discounted_cost[deviating], match.discounted_cost_if_kept[deviating]
    consortium = match.agreement.consortium
    with np.errstate(invalid="ignore"):
        lost = amounts(paid - kept, consortium.currency)
    costs = amounts(np.concatenate([paid, kept]), consortium.currency, digits=6)
    names = [consortium.names[n] for n in deviating]
    columns = (names, costs[: paid.size], costs[paid.size :], lost)
    return [
        DeviatorRow(name, f"{slots[name]:,}", *row) for name, *row in zip(*columns, strict=True)
    ]


COST_NOTE = (
    "Costs of all slots for ever, discounted to the first. What a single slip saved and lost is "
    "discounted to the slot of the slip, against the same match without the client's slips; its "
    "last slip counts with all that follows, also after the last slot played."
)
"""What the table of clients that slipped means."""


def match_captions(account: Account) -> dict[str, tuple[str, str]]:
    """A heading and an explanation for each picture of a match; those of slips by client."""
    levels = ", between what was agreed and the equilibrium"
    exists = account.match.agreement.exists
    told = {
        "totals": ("How much was trained on.", f"All samples of a slot{levels if exists else ''}."),
        "events": ("What happened when.", _events_caption(account.match)),
        "tolerance": (
            "Which shortfall to tolerate.",
            "A small tolerance leads to false alarms, a large one lets everyone contribute less.",
        ),
    }
    for deviator in account.deviators[:PICTURED]:
        first = f"From slot {deviator.slips[0].first:,} on, discounted to that slot."
        told[f"slip of {deviator.client}"] = (f"What slipping cost {deviator.client}.", first)
    return told


def _events_caption(match: Match) -> str:
    if _suspends(match):
        return "Who was out in which slots, and events."
    return "The phase of each slot, and events."


def slip_sentence(match: Match, slip: Slip) -> str:
    """A slip, its punishment, and what the client and the others saved and lost by it."""
    contributed, agreed = write([slip.contributed, slip.agreed])
    parts = [
        f"{'slot' if slip.first == slip.last else 'slots'} {span(slip.first, slip.last)}: "
        f"{slip.client} trained on {contributed} instead of {agreed}"
    ]
    if match.agreement.exists:
        parts.append(_punishment(match, slip))
    if isfinite(slip.saved) and isfinite(slip.lost):
        parts.append(_outcome(slip.saved, slip.lost))
        parts += _others_outcome(match, slip)
    else:
        parts.append("nobody trained, so there is no model and the cost is infinite")
    return "; ".join(parts)


def no_slip_sentence(match: Match, n: int, planned: DeviateOnce) -> str:
    """That client n did not slip although it planned to, and why."""
    name = match.agreement.consortium.names[n]
    return f"slot {planned.slot:,}: {name} did not slip: {_why_not(match, n, planned)}"


def slipped(match: Match, name: str, slot: int) -> bool:
    """Whether a client slipped in a slot."""
    return any(
        event.kind == "deviation"
        and event.client == name
        and event.slot <= slot < event.slot + event.lasted
        for event in match.events
    )


def span(first: int, last: int) -> str:
    """One slot, or the first and the last of several."""
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def single(value: float) -> str:
    """A number that is not in a table, with three digits."""
    return write([value], digits=3)[0]


def _punishment(match: Match, slip: Slip) -> str:
    """The punishment that followed a slip."""
    if slip.last == match.slots:
        return "seen in the last slot played" if _seen(match, slip) else "unseen"
    for event in match.events:
        if event.slot != slip.last + 1:
            continue
        until = slip.last + event.lasted
        if event.kind == "punishment":
            return f"punishment {'for ever' if until == inf else f'until slot {until:,.0f}'}"
        if event.kind == "suspension" and event.client == slip.client:
            return f"it is out {_how_long(event.slot, until)} and trains alone"
    return f"no {_noun(match)} followed"


def _how_long(first: int, last: float) -> str:
    """The slots of a suspension, whether they were played or not."""
    if last == inf:
        return "for ever"
    return f"in {'slot' if first == last else 'slots'} {span(first, int(last))}"


def _seen(match: Match, slip: Slip) -> bool:
    assert match.observed is not None
    seen = match.observed[slip.last - 1, match.agreement.consortium.index(slip.client)]
    return bool(seen < slip.agreed * (1.0 - match.tolerance))


def _why_not(match: Match, n: int, planned: DeviateOnce) -> str:
    assert match.observed is not None
    assert match.client_punishing is not None
    assert match.suspended is not None
    assert match.contributions is not None
    if match.suspended[planned.slot - 1, n]:
        return "it was out then"
    if np.isnan(match.observed[planned.slot - 1, n]):
        return "it was absent"
    if not match.agreement.exists:
        return "there is no agreement to slip from"
    if match.client_punishing[planned.slot - 1, n]:
        return f"it was punishing then{_out_of_line(match, n, planned.slot)}"
    if planned.amount is not None:
        return "the amount is not less than agreed"
    if match.contributions[planned.slot - 1, n] > match.agreement.profile[n]:
        return "its best response is more than agreed, which is not a slip"
    return "its best response is what was agreed"


def _out_of_line(match: Match, n: int, slot: int) -> str:
    """What it trained on during a punishment if not its best response; nobody answers that."""
    assert match.contributions is not None
    trained_on = float(match.contributions[slot - 1, n])
    best = float(match.agreement.equilibrium.profile[n])
    if trained_on == best:
        return ""
    written, best_written = write([trained_on, best])
    return f", and trained on {written} although {best_written} is its best response"


def _outcome(saved: float, lost: float) -> str:
    now, later = single(abs(saved)), single(abs(lost))
    if saved >= 0:
        after = "lost nothing" if lost == 0 else f"lost {later}" if lost > 0 else f"{later} later"
        return f"it saved {now} and {after}"
    after = "" if lost == 0 else f" and {'' if lost > 0 else 'saved '}{later} later"
    return f"it lost {now}{after}"


def _others_outcome(match: Match, slip: Slip) -> list[str]:
    """What the others lost together, if anything, and how much of it by the punishment."""
    least = SUMS_DIFFER * float(match.discounted_cost.sum())
    if not abs(slip.others_lost) > least:
        return []
    told = f"the others {'lost' if slip.others_lost > 0 else 'saved'} "
    told += f"{single(abs(slip.others_lost))} together"
    if slip.others_lost_after > least:
        told += f", {single(slip.others_lost_after)} of it by the {_noun(match)}"
    return [told]
