"""What an audit ends with, and what stands after an appeal.

Any auditor of the terms may give a verdict on a drawn audit, each one only. The majority of them
stands. If there are as many for as against, nothing is decided, and it costs nobody anything; one
more auditor can decide it. So a client appeals against a failed audit by having another auditor
look, and a consortium that wants every appeal to end names three auditors. A client that shows an
auditor nothing in time has refused; the auditor signs that like any other verdict.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from fedaccord.audits.commitment import Digest
from fedaccord.audits.draw import Draw
from fedaccord.audits.settings import AuditTerms, Level
from fedaccord.checks import in_brief
from fedaccord.signing.keys import SIGNATURE, Key
from fedaccord.signing.statement import Statement

Outcome = Literal["passed", "failed", "refused"]
Standing = Literal["passed", "failed", "undecided", "pending"]
_LONGEST = 300


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line that can be printed")
    return text


class Verdict(BaseModel):
    """One auditor's finding about one drawn audit. It contains digests, but no records."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    terms: Digest
    """Of the terms under which it was drawn."""
    draw: Digest
    """Of the entry that settled the slot, from which it was drawn."""
    client: str = Field(min_length=1)
    slot: int = Field(ge=1)
    turn: int = Field(ge=1)
    level: Level
    outcome: Outcome
    reason: Annotated[str, AfterValidator(_one_line)] = Field(default="", max_length=_LONGEST)
    """In one line; empty if it was passed."""
    auditor: str = Field(min_length=1)


class SignedVerdict(BaseModel):
    """A verdict and its auditor's signature."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    verdict: Verdict
    signature: Annotated[str, Field(pattern=SIGNATURE)]

    def is_signed(self, consortium: str, terms: AuditTerms) -> bool:
        """Whether an auditor of these terms signed it."""
        public = terms.auditors.get(self.verdict.auditor)
        statement = statement_of(self.verdict, consortium)
        return public is not None and statement.is_signed(public, self.signature)


def sign_verdict(verdict: Verdict, consortium: str, key: Key) -> SignedVerdict:
    """The verdict with its auditor's signature."""
    signature = statement_of(verdict, consortium).sign(key)
    return SignedVerdict(verdict=verdict, signature=signature)


def wrong_verdict(verdict: Verdict, drawn: Sequence[Draw], terms: AuditTerms) -> str | None:
    """What is wrong with a verdict on a slot in which these audits were drawn."""
    if verdict.auditor not in terms.auditors:
        return f"{in_brief(verdict.auditor)} is no auditor of the terms"
    place = (verdict.client, verdict.slot, verdict.turn)
    if all((one.client, one.slot, one.turn) != place for one in drawn):
        return f"round {verdict.turn} of {in_brief(verdict.client)} was not drawn"
    if verdict.level != terms.level:
        return f"the terms say level {terms.level}, and this is level {verdict.level}"
    if (verdict.outcome == "passed") != (not verdict.reason):
        return "a verdict has a reason unless it is passed"
    return None


def standing_of(verdicts: Sequence[Verdict]) -> Standing:
    """What stands of all verdicts on one audit.

    >>> one = Verdict(terms="ab" * 32, draw="cd" * 32, client="A", slot=1, turn=1, level=2,
    ...     outcome="failed", reason="the update is another one", auditor="Notary")
    >>> other = one.model_copy(update={"outcome": "passed", "reason": "", "auditor": "Institute"})
    >>> standing_of([]), standing_of([one]), standing_of([one, other])
    ('pending', 'failed', 'undecided')
    """
    passed = sum(verdict.outcome == "passed" for verdict in verdicts)
    against = len(verdicts) - passed
    if passed == against:
        return "undecided" if verdicts else "pending"
    return "passed" if passed > against else "failed"


def statement_of(verdict: Verdict, consortium: str) -> Statement:
    """What the auditor signs."""
    return Statement(
        role="auditor",
        consortium=consortium,
        terms=verdict.terms,
        slot=verdict.slot,
        stage="verdict",
        turn=verdict.turn,
        client=verdict.client,
        head=(0, verdict.draw),
        body=verdict.model_dump(mode="json"),
    )
