"""One audit from beginning to end: what the ledger says against what the member shows.

It runs on the member's premises. The result says what was checked and what was found; it contains
digests and no records.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fedaccord.audits.commitment import RoundInputs
from fedaccord.audits.merkle import MerkleTree
from fedaccord.audits.opening import (
    OpenedRecord,
    copies_of,
    shared_records,
    wrong_openings,
)
from fedaccord.audits.records import Records, keyed_digests
from fedaccord.audits.replay import replay
from fedaccord.audits.settings import AuditTerms
from fedaccord.audits.stated import Stated, drawn_records
from fedaccord.audits.trace import TracedRound
from fedaccord.audits.verdict import Outcome
from fedaccord.training.arrays import Arrays, digest
from fedaccord.training.rules import LocalRule
from fedaccord.training.task import Model


@dataclass(frozen=True, eq=False)
class Shown:
    """What a member shows an auditor; its records are the examples of the model's dataset."""

    model: Model
    local: LocalRule
    secret: bytes = field(repr=False)
    opened: Sequence[OpenedRecord]
    round: TracedRound
    incoming: Arrays
    update: Arrays

    @property
    def records(self) -> Records:
        """All records, in the order of the commitment."""
        return Records(self.model.dataset.inputs, self.model.dataset.labels)


@dataclass(frozen=True)
class Finding:
    """One check and what was wrong, if anything."""

    check: str
    problem: str | None = None
    decided: bool = True
    """Whether it could be decided here."""


@dataclass(frozen=True)
class Examination:
    """All findings of an audit."""

    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> Outcome | None:
        """Passed or failed; None if the audit must be repeated on the member's own machine."""
        if any(finding.problem and finding.decided for finding in self.findings):
            return "failed"
        return None if any(finding.problem for finding in self.findings) else "passed"

    @property
    def reason(self) -> str:
        """The first problem; empty if there is none."""
        problems = sorted(
            (finding for finding in self.findings if finding.problem),
            key=lambda one: not one.decided,
        )
        return problems[0].problem or "" if problems else ""


def examine(
    stated: Stated,
    shown: Shown,
    terms: AuditTerms,
    *,
    key: bytes = b"",
    others: Iterable[Sequence[str]] = (),
) -> Examination:
    """All checks of the terms' level.

    `others` are the keyed digests of other members' records, which the auditor made with its `key`.
    """
    findings = [_openings(stated, shown), _copies(stated, shown, terms)]
    for theirs in others:
        findings.append(_shared(shown, terms, key, theirs))
    if terms.level == 2:
        findings += [_whole_tree(stated, shown), _trace(stated, shown)]
        if not any(finding.problem for finding in findings[-2:]):
            findings.append(_replayed(shown))
    return Examination(tuple(findings))


def _openings(stated: Stated, shown: Shown) -> Finding:
    wanted = drawn_records(stated)
    problems = wrong_openings(shown.opened, wanted, stated.commitment)
    if len(wanted) < len(stated.draw.samples):
        problems.append("it has fewer records than it said that it trained on")
    check = "the drawn samples' records are in the committed data"
    return Finding(check, problems[0] if problems else None)


def _copies(stated: Stated, shown: Shown, terms: AuditTerms) -> Finding:
    """Equal records among all; close ones among the drawn, or among all if some are allowed."""
    records, check = shown.records, "the records are not copies of one another"
    allowed, everything = terms.copies, range(len(shown.records))
    part = len(copies_of(records, everything)) / len(records)
    if part <= allowed and terms.near > 0:
        drawn = [place for place in drawn_records(stated) if place < len(records)]
        looked_at = everything if allowed > 0 else drawn
        part = len(copies_of(records, looked_at, terms.near)) / max(1, len(looked_at))
    if part <= allowed:
        return Finding(check)
    return Finding(check, f"{part:.1%} of the records are copies, and {allowed:.1%} are allowed")


def _shared(shown: Shown, terms: AuditTerms, key: bytes, theirs: Sequence[str]) -> Finding:
    check = "no other member has the same records"
    own = keyed_digests(shown.records, key)
    part = shared_records(own, theirs) / len(own)
    if part <= terms.copies:
        return Finding(check)
    return Finding(check, f"{part:.1%} of the records are also those of another member")


def _whole_tree(stated: Stated, shown: Shown) -> Finding:
    check = "all records together are the committed data"
    tree = MerkleTree(shown.records, shown.secret)
    same = (tree.root, len(tree)) == (stated.commitment.root, stated.commitment.records)
    return Finding(check, None if same else "the records are not those that were committed to")


def _trace(stated: Stated, shown: Shown) -> Finding:
    """Whether the member's own notes and models are what the ledger has."""
    kept, models = shown.round, (shown.incoming, shown.update)
    pairs = {
        "the code": (kept.software.digest, stated.commitment.code),
        "the model that came in": (digest(models[0]), stated.model),
        "the update": (digest(models[1]), stated.update),
    }
    inputs = RoundInputs(**{key: getattr(kept, key) for key in RoundInputs.model_fields})
    pairs["the number of samples, the round or the head"] = (str(inputs), str(stated.inputs))
    wrong = [what for what, (ours, theirs) in pairs.items() if ours != theirs]
    problem = f"{wrong[0]} in the trace is not what the ledger has" if wrong else None
    return Finding("the member's trace agrees with the ledger", problem)


def _replayed(shown: Shown) -> Finding:
    found = replay(shown.model, shown.local, shown.round, shown.incoming, shown.update)
    check = "the round comes out again"
    if found.passed:
        return Finding(check)
    where = "" if found.step is None else f", from step {found.step} on"
    problem = f"the replayed update is another one (relative distance {found.distance:.1e}{where})"
    if found.passed is None:
        problem += f": replay it on a machine like the member's ({shown.round.software.machine})"
    return Finding(check, problem, decided=found.passed is not None)
