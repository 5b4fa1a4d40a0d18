"""What happened in a slot, in sentences for directors, from the entries of a ledger alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from fedaccord.checks import escaped
from fedaccord.flower.events import score_in_words, suspended_in_words, suspensions
from fedaccord.flower.narration import why_refused, why_void
from fedaccord.flower.server_events import NOT_DONE, Missing
from fedaccord.numbers import count
from fedaccord.protocol import facts
from fedaccord.protocol.messages import BasisName, Phase, Stage, VerdictName
from fedaccord.protocol.rounds import rounds_of
from fedaccord.protocol.state import State
from fedaccord.summaries.words import listed

Level: TypeAlias = Literal["info", "warning", "error"]

PHASES: dict[Phase, str] = {
    "cooperating": "Everyone cooperates.",
    "punishing": "After a slip, each member trains on what pays for itself, and no more.",
}
"""What a phase means."""
VERDICTS: dict[VerdictName, str] = {
    "kept": "kept to it",
    "deviation": "trained on less",
    "absence": "absent",
    "refused": "refused",
    "suspended": "suspended",
}
"""What a verdict says about a member."""
ASKS: dict[Stage, str] = {
    "report": "to report",
    "rank": "to confirm a place in the order",
    "clock": "to answer the clock",
    "offer": "to answer an offer",
    "train": "to train",
    "tier": "to receive a model",
    "settle": "to receive the settlement",
    "consent": "to answer a proposal",
}
"""What a member is asked in each stage."""
WHAT_TRAINS: dict[BasisName, str] = {
    "agreement": "the agreement",
    "equilibrium": "what pays each member by itself",
}
_WHY_EQUILIBRIUM = {
    "punishing": "somebody slipped before",
    "no agreement": "there is no agreement that all would keep to",
    "refused": "somebody refused",
}


@dataclass(frozen=True)
class Moment:
    """Something that happened, and when."""

    at: str
    text: str
    level: Level = "info"


def because(client: str, stage: Stage, reason: str | None) -> str:
    """Why a member has no valid answer, as far as the ledger says it.

    >>> because("A", "report", None), because("A", "train", "says that it failed")
    ('no answer came in time', 'it failed at its own side; its own log says why')
    """
    if reason is None:
        return "no answer came in time"
    why = why_refused(reason)
    return Missing(client=client, stage=stage, why=why, reason=reason).because


# --- A slot, told in order -----------------------------------------------------------------


@dataclass
class _Group:
    """Facts of one kind that were written one after the other."""

    kind: str
    at: str
    facts: list[Any] = field(default_factory=list)
    sentences: list[tuple[str, Level]] | None = None
    """What was said about it, once it is complete."""


class SlotStory:
    """Listens to the entries of a slot, and tells them."""

    def __init__(self) -> None:
        """Before the first entry."""
        self._groups: list[_Group] = []
        self._reasons: dict[str, str] = {}
        self._trained: list[str] = []
        self.averaged = 0
        """Rounds that ended with a new model."""
        self.void: str | None = None
        """Why nothing was trained, if the slot is settled and nothing was."""

    def hear(self, at: str, fact: facts.TypedFact, state: State) -> None:
        """Take one more entry; `state` is what the server knows after it."""
        if isinstance(fact, facts.Fault):
            if fact.client is not None:
                self._reasons[fact.client] = fact.reason
            return
        if isinstance(fact, facts.Contribution):
            self._trained += [fact.client] if fact.samples else []
            return
        if isinstance(fact, facts.Round):
            self._end_round(at, fact, state)
        if fact.kind not in _TELL:
            return
        last = self._groups[-1] if self._groups else None
        if last is None or last.kind != fact.kind or fact.kind not in _TOGETHER:
            last = _Group(fact.kind, at)
            self._groups.append(last)
        last.facts.append(fact)
        last.sentences = _TELL[fact.kind](self, last.facts, state)

    @property
    def moments(self) -> list[Moment]:
        """All of it, the latest first."""
        return [
            Moment(group.at, escaped(text), level)
            for group in reversed(self._groups)
            for text, level in reversed(group.sentences or [])
        ]

    def reason_of(self, absence: facts.Absence) -> str:
        """Why a member was absent."""
        return because(absence.client, absence.stage, self._reasons.get(absence.client))

    # --- One kind each ---------------------------------------------------------------------

    def _begin(self, told: Sequence[facts.Slot], state: State) -> list[tuple[str, Level]]:
        slot = state.current
        said = f"Slot {slot.number} began. {PHASES[told[0].phase]}"
        if slot.out:
            said += f" Suspended: {suspended_in_words(suspensions(slot.out, slot.number))}."
        if slot.returned:
            said += f" Back early: {listed(slot.returned)}."
        return [(said, "info")]

    def _there(self, told: Sequence[facts.Said], _: State) -> list[tuple[str, Level]]:
        names = [one.client for one in told]
        there = "is there" if len(names) == 1 else "are there"
        return [(f"{listed(names)} {'reported' if told[0].kind == 'report' else there}.", "info")]

    def _absent(self, told: Sequence[facts.Absence], _: State) -> list[tuple[str, Level]]:
        return [
            (f"{one.client} {NOT_DONE[one.stage]}: {self.reason_of(one)}.", "warning")
            for one in told
        ]

    def _clock(self, told: Sequence[facts.Clock], state: State) -> list[tuple[str, Level]]:
        steps = state.rules.clock_steps or told[0].step
        end = ", and is over" if told[0].over else ""
        return [(f"The clock is at {told[0].step} of {steps} steps{end}.", "info")]

    def _stops(self, told: Sequence[facts.Stay], _: State) -> list[tuple[str, Level]]:
        stopped = [one.client for one in told if not one.stays]
        return [(f"{listed(stopped)} stopped the clock.", "info")] if stopped else []

    def _attempt(self, told: Sequence[facts.Agreement], _: State) -> list[tuple[str, Level]]:
        if told[0].exists:
            return []
        return [(f"There is no agreement to offer: {told[0].reason}.", "warning")]

    def _offers(self, told: Sequence[facts.Offer], _: State) -> list[tuple[str, Level]]:
        total = count(sum(one.contribution for one in told), "sample")
        return [(f"Offers went out to {count(len(told), 'member')}: {total} in all.", "info")]

    def _answers(self, told: Sequence[facts.Answer], _: State) -> list[tuple[str, Level]]:
        said = list[tuple[str, Level]]()
        if yes := [one.client for one in told if one.accepts]:
            said.append((f"{listed(yes)} accepted.", "info"))
        if no := [one.client for one in told if not one.accepts]:
            said.append((f"{listed(no)} refused.", "warning"))
        return said

    def _plan(self, told: Sequence[facts.Basis], _: State) -> list[tuple[str, Level]]:
        basis, total = told[0], count(sum(told[0].contributions.values()), "sample")
        why = _WHY_EQUILIBRIUM.get(basis.reason or "", basis.reason)
        because = f", because {why}" if why else ""
        return [(f"Training begins by {WHAT_TRAINS[basis.basis]}, {total}{because}.", "info")]

    def _end_round(self, at: str, one: facts.Round, state: State) -> None:
        """Rounds one after the other in which the same happened are told together."""
        names, self._trained = self._trained, []
        self.averaged += one.averaged
        how = f"{listed(names)} trained on {count(one.total, 'sample')}" if one.averaged else ""
        last = self._groups[-1] if self._groups else None
        if last is None or last.kind != f"round {how}":
            last = _Group(f"round {how}", at)
            self._groups.append(last)
        last.at = at
        last.facts.append(one)
        first, rounds = last.facts[0].turn, rounds_of(state.current, state.rules)
        where = f"Round {one.turn} of {rounds}"
        if first != one.turn:
            where, how = f"Rounds {first} to {one.turn} of {rounds}", how and f"{how} in each"
        if one.averaged:
            score = score_in_words(one.loss, one.accuracy, one.measure)
            then = f"; the server then measured {score}" if score else ""
            last.sentences = [(f"{where}: {how}{then}.", "info")]
        else:
            few = f"{where}: too few members trained, so the model is as before."
            last.sentences = [(few, "warning")]

    def _verdicts(self, told: Sequence[facts.Verdict], _: State) -> list[tuple[str, Level]]:
        said = list[tuple[str, Level]]()
        if kept := [one.client for one in told if one.verdict == "kept"]:
            said.append((f"{listed(kept)} kept to it.", "info"))
        said += [(_verdict(one), "warning") for one in told if one.verdict not in _QUIET]
        return said

    def _settled(self, told: Sequence[facts.Settlement], state: State) -> list[tuple[str, Level]]:
        end, slot, terms = told[0], state.current, state.rules
        self.void = why_void(slot, terms, void=end.void, averaged=self.averaged, noun="member")
        out = suspensions(end.suspended, end.slot + 1)
        then = f" Suspended in slot {end.slot + 1}: {suspended_in_words(out)}." if out else ""
        if self.void is not None:
            return [(f"The slot is void, nothing was trained: {self.void}.{then}", "error")]
        work = f"{count(self.averaged, 'round')} on {count(end.total, 'sample')}"
        return [(f"The slot is settled: {work}.{then}", "info")]

    def _told(self, told: Sequence[facts.Told], _: State) -> list[tuple[str, Level]]:
        names = told[0].clients
        return [(f"{listed(names) if names else 'Nobody'} received the settlement.", "info")]

    def _late(self, told: Sequence[facts.Late], _: State) -> list[tuple[str, Level]]:
        return [
            (
                f"{one.client} shows a signed answer to slot {one.answers.slot} that the server "
                "did not take: whether it came in time cannot be decided.",
                "warning",
            )
            for one in told
        ]

    def _proposed(self, told: Sequence[facts.Proposal], _: State) -> list[tuple[str, Level]]:
        return [(f"Proposed to {told[0].in_words}: {told[0].reason}.", "info")]

    def _consents(self, told: Sequence[facts.Consent], _: State) -> list[tuple[str, Level]]:
        said = list[tuple[str, Level]]()
        for agrees, word in ((True, "agreed"), (False, "did not agree")):
            if names := [one.client for one in told if one.agrees == agrees]:
                said.append((f"{listed(names)} {word}.", "info"))
        return said

    def _decided(self, told: Sequence[facts.Decision], _: State) -> list[tuple[str, Level]]:
        outcome = "accepted" if told[0].accepted else "not accepted"
        return [(f"The proposal to {told[0].in_words} was {outcome}.", "info")]

    def _audits(self, told: Sequence[facts.Audit], _: State) -> list[tuple[str, Level]]:
        return [(audit_sentence(one.verdict), _LEVELS[one.verdict.outcome]) for one in told]

    def _attested(self, told: Sequence[facts.Attested], _: State) -> list[tuple[str, Level]]:
        return [
            (
                f"{one.client} attached evidence ({one.attestation.kind}) to its training in slot "
                f"{one.attested}.",
                "info",
            )
            for one in told
        ]

    def _terms(self, told: Sequence[facts.Terms], _: State) -> list[tuple[str, Level]]:
        return [(f"Terms of {count(len(told[0].terms.clients), 'member')} take effect.", "info")]


_LEVELS: dict[str, Level] = {"passed": "info", "failed": "error", "refused": "error"}
_QUIET = ("kept", "suspended")
_TOGETHER = (
    *("report", "presence", "absence", "stay", "offer", "answer", "verdict", "late"),
    *("consent", "audit", "attestation"),
)
"""Kinds of which one sentence is about several entries."""
_TELL: dict[str, Callable[[SlotStory, Any, State], list[tuple[str, Level]]]] = {
    "slot": SlotStory._begin,
    "report": SlotStory._there,
    "presence": SlotStory._there,
    "absence": SlotStory._absent,
    "clock": SlotStory._clock,
    "stay": SlotStory._stops,
    "agreement": SlotStory._attempt,
    "offer": SlotStory._offers,
    "answer": SlotStory._answers,
    "basis": SlotStory._plan,
    "verdict": SlotStory._verdicts,
    "settlement": SlotStory._settled,
    "told": SlotStory._told,
    "late": SlotStory._late,
    "proposal": SlotStory._proposed,
    "consent": SlotStory._consents,
    "decision": SlotStory._decided,
    "audit": SlotStory._audits,
    "attestation": SlotStory._attested,
    "terms": SlotStory._terms,
}


def _verdict(one: facts.Verdict) -> str:
    parts = []
    if one.agreed is not None:
        parts.append(f"trained on {one.contributed or 0:,} of {one.agreed:,} samples")
    if one.rounds_absent:
        parts.append(f"absent in {count(one.rounds_absent, 'round')}")
    about = f" ({', '.join(parts)})" if parts else ""
    return f"Verdict on {one.client}: {VERDICTS[one.verdict]}{about}."


def audit_sentence(verdict: Any) -> str:
    """An auditor's finding."""
    found = {"passed": "found nothing wrong", "failed": "failed it", "refused": "was shown nothing"}
    why = f": {verdict.reason}" if verdict.reason else ""
    where = f"round {verdict.turn} of slot {verdict.slot}"
    return (
        f"{verdict.auditor} audited {verdict.client} in {where}, and {found[verdict.outcome]}{why}."
    )
