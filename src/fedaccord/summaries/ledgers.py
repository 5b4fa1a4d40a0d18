"""What is said about a ledger: the result of verifying it, and about its entries."""

from typing import Any

from fedaccord.checks import escaped
from fedaccord.ledger.chain import Entry
from fedaccord.numbers import count
from fedaccord.protocol.facts import SAID
from fedaccord.protocol.verification import Verification
from fedaccord.summaries.words import Noun, listed


def record_of(result: Verification) -> dict[str, Any]:
    """The result as JSON."""
    chain = result.chain
    return {
        "entries": chain.length,
        "head": chain.head.digest if chain.length else None,
        "slots": chain.slots,
        "holds": not result.problems,
        "problems": result.problems,
        "signatures": result.signatures.counts,
        "unproved": result.signatures.unproved,
        "undecided": result.undecided,
        "proofs": [proof.to_dict() for proof in result.proofs],
    }


def about(result: Verification) -> str:
    """What was verified, and how much of it there is."""
    chain = result.chain
    last = f", the last with the digest {chain.head.digest[:16]}..." if chain.length else ""
    return f"{result.what}: {chain.length} entries, {count(chain.slots, 'slot')}{last}."


def what_holds(result: Verification, *, models: bool, noun: Noun = "client") -> list[str]:
    """What was found to be in order, if nothing is wrong; `models` are stored with the ledger."""
    lines = ["Nothing in it was changed: the chain of digests is intact."]
    if result.what == "the server's ledger":
        lines.append(
            "Every offer, rank, verdict and phase follows; agreements from reports are proved."
        )
        if models:
            lines.append("The model stored with it is the one that it names.")
    return lines + result.signatures.in_words(noun)


def what_is_wrong(result: Verification) -> list[str]:
    """Each problem in a line."""
    return [f"Wrong: {problem}." for problem in result.problems]


def what_is_undecided(result: Verification) -> list[str]:
    """What nobody can decide."""
    return [f"Undecided: {one}." for one in result.undecided]


# --- One entry -----------------------------------------------------------------------------

KINDS: dict[str, str] = {
    "terms": "Terms take effect",
    "model": "The model to begin with",
    "slot": "A slot begins",
    "report": "A member reports",
    "presence": "A member is there",
    "rank": "A member's place in the order",
    "stay": "A member's answer to the clock",
    "clock": "The clock goes on, or stops",
    "absence": "A member did not answer",
    "fault": "A reply was refused",
    "late": "An answer that came late",
    "seal": "The server signs",
    "agreement": "An agreement is worked out",
    "offer": "A member is made an offer",
    "answer": "A member answers its offer",
    "basis": "What is trained in this slot",
    "contribution": "A member trained",
    "round": "A round ends",
    "handed": "Members receive the model of their tier",
    "verdict": "The verdict on a member",
    "settlement": "The slot is settled",
    "told": "Members receive the settlement",
    "proposal": "Something is proposed",
    "consent": "A member answers a proposal",
    "decision": "What came of a proposal",
    "audit": "An auditor's verdict",
    "attestation": "Evidence from elsewhere",
}
"""What each kind of entry is about, in words."""


def who_signed(entry: Entry) -> str:
    """Who vouches for an entry; whether the signature is right is for `verify` to say."""
    body, kind = entry.body, entry.kind
    who = escaped(entry.client or "")
    if kind == "seal":
        return "Signed by the server; this signature covers every entry before it."
    if kind == "audit":
        auditor = body["verdict"].get("auditor") if isinstance(body.get("verdict"), dict) else ""
        return f"Signed by the auditor {escaped(str(auditor))}."
    if "signed" in body or kind == "attestation":
        return f"Signed by {who}."
    if isinstance(body.get("receipts"), dict):
        names = [escaped(name) for name in body["receipts"]]
        return f"Signed by {listed(names)}, who received it." if names else "Nobody received it."
    if kind in ("absence", "fault"):
        return "The server's word alone. It costs a member no more than a slot without a model."
    if kind in SAID:
        return "Not signed: the terms had no keys."
    if kind == "round" and "loss" in body:
        return (
            "The server's; it must follow from the entries before it, but how good the model is "
            "on test examples of its own is the server's word alone."
        )
    return "The server's; it must follow from the entries before it, and the next seal covers it."
