"""A slot after its settlement, while its audits are open: what was drawn, and what was found."""

from dataclasses import dataclass, field

from fedaccord.audits.attestation import Attested, SignedAttestation, wrong_attestation
from fedaccord.audits.draw import Draw
from fedaccord.audits.verdict import SignedVerdict, Standing, standing_of, wrong_verdict
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.protocol.terms import Terms


@dataclass
class AuditedSlot:
    """The audits of a slot, under the terms in which it was played."""

    number: int
    terms: Terms
    draw: str
    """The digest of the entry that settled the slot, by which they were drawn."""
    draws: list[Draw]
    contributions: dict[str, str] = field(default_factory=dict)
    """The digest of each client's commitment and updates, to which evidence is attached."""
    attested: set[tuple[str, str]] = field(default_factory=set)
    """The clients that attached evidence, each with its digest."""
    verdicts: list[SignedVerdict] = field(default_factory=list)
    punished: set[str] = field(default_factory=set)
    """The clients whose punishment follows from a verdict, and not from the settlement."""

    def standing(self, client: str) -> Standing:
        """What stands of the verdicts on a client."""
        return standing_of([one.verdict for one in self.verdicts if one.verdict.client == client])

    def contribution(self, client: str) -> Attested:
        """What evidence about a client in this slot must be about."""
        if client not in self.contributions:
            raise InvalidInput(f"{client} did not train in slot {self.number}")
        return Attested(self.terms.name, client, self.number, self.contributions[client])

    def wrong_attestation(self, signed: SignedAttestation) -> str | None:
        """What is wrong with evidence as an entry; whether it holds, its own verifier says."""
        keys, rules, client = self.terms.keys, self.terms.audits, signed.client
        if keys is None or rules is None or client not in self.contributions:
            return "is about a client that did not train in this slot, or has no key"
        attestation = signed.attestation
        if attestation.about != self.contribution(client).digest:
            return "is about another contribution"
        if attestation.kind not in rules.attestations:
            return "is of a kind that the terms do not accept"
        if (client, attestation.digest) in self.attested:
            return "is there already"
        statement = signed.statement(self.terms.name, self.terms.digest)
        if not statement.is_signed(keys.clients[client], signed.signature):
            return f"is not signed by {client}"
        return None

    def flaw_in_evidence(self, signed: SignedAttestation) -> str | None:
        """Why the evidence does not hold, by the verifier of its kind; None if it does."""
        rules = self.terms.audits
        accepted = {} if rules is None else rules.attestations
        try:
            about = self.contribution(signed.client)
            return wrong_attestation(signed.attestation, about, accepted)
        except FedaccordError as error:  # there is no such verifier here
            return str(error)

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
