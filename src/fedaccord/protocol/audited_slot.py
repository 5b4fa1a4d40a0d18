"""A slot after its settlement, while its audits are open: what was drawn, and what was found."""

from dataclasses import dataclass, field

from fedaccord.audits.draw import Draw
from fedaccord.audits.verdict import SignedVerdict, Standing, standing_of, wrong_verdict
from fedaccord.protocol.terms import Terms


@dataclass
class AuditedSlot:
    """The audits of a slot, under the terms in which it was played."""

    number: int
    terms: Terms
    draw: str
    """The digest of the entry that settled the slot, by which they were drawn."""
    draws: list[Draw]
    verdicts: list[SignedVerdict] = field(default_factory=list)
    punished: set[str] = field(default_factory=set)
    """The clients whose punishment follows from a verdict, and not from the settlement."""

    def standing(self, client: str) -> Standing:
        """What stands of the verdicts on a client."""
        return standing_of([one.verdict for one in self.verdicts if one.verdict.client == client])

    def wrong(self, signed: SignedVerdict) -> str | None:
        """What is wrong with one more verdict, if anything."""
        verdict, rules = signed.verdict, self.terms.audits
        if rules is None or (verdict.draw, verdict.terms) != (self.draw, self.terms.digest):
            return "is about another ledger, or other terms"
        if (wrong := wrong_verdict(verdict, self.draws, rules)) is not None:
            return f"cannot count: {wrong}"
        given = ((one.verdict.client, one.verdict.auditor) for one in self.verdicts)
        if (verdict.client, verdict.auditor) in given:
            return "is a second verdict of this auditor"
        if not signed.is_signed(self.terms.name, rules):
            return f"is not signed by {verdict.auditor}"
        return None
