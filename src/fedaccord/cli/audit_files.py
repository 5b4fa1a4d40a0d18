"""What the commands of `fedaccord audit` share: reading ledgers, signing and reading verdicts."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord.checks import check_installed, unknown
from fedaccord.cli.outputs import write_file
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.audits.attestation import SignedAttestation
    from fedaccord.audits.draw import Draw
    from fedaccord.audits.verdict import Outcome, SignedVerdict
    from fedaccord.ledger.lines import Reading
    from fedaccord.protocol.audited_slot import AuditedSlot


@contextmanager
def reading(place: str) -> "Iterator[Reading]":
    """A ledger to read."""
    check_installed("a ledger", "sqlalchemy", "alembic")
    from fedaccord.ledger.lines import read

    with read(place) as found:
        yield found


def audits_of(place: str, found: "Reading") -> "list[AuditedSlot]":
    """The audits of a ledger that is in order."""
    from fedaccord.protocol.auditing import audits_in
    from fedaccord.protocol.verification import verify

    result = verify(found, {})
    if result.problems:
        raise InvalidInput(f"{result.problems[0]}; nothing can be drawn from it", place)
    slots = audits_in(found.entries())
    if not slots:
        raise InvalidInput("has no settled slot under terms with audits", place)
    return slots


def settled_slot(slots: "list[AuditedSlot]", slot: int | None) -> "AuditedSlot":
    """One slot, or the latest."""
    for one in reversed(slots):
        if slot in (None, one.number):
            return one
    raise InvalidInput(f"slot {slot} is not settled, or has no audits")


def drawn_audit(
    slots: "list[AuditedSlot]", client: str, slot: int | None
) -> "tuple[AuditedSlot, Draw]":
    """The audit of a client in a slot, or in the latest slot in which it was drawn."""
    for one in reversed(slots):
        for drawn in one.draws:
            if drawn.client == client and slot in (None, one.number):
                return one, drawn
    where = "any slot" if slot is None else f"slot {slot}"
    raise InvalidInput(f"{client} was not drawn for an audit in {where}")


def sharing_key(key: Path, audited: "AuditedSlot") -> bytes:
    """A secret that follows from the auditor's key and the terms: a signature nobody else sees."""
    from fedaccord.signing.keys import load_key

    text = f"fedaccord shared records 1\n{audited.terms.digest}"
    return bytes.fromhex(load_key(key).sign(text.encode()))


def signed_verdict(
    audited: "AuditedSlot",
    drawn: "Draw",
    auditor: str,
    key: Path,
    *,
    outcome: "Outcome",
    reason: str,
) -> "SignedVerdict":
    """An auditor's verdict, signed with its key, which must be the one in the terms."""
    from pydantic import ValidationError

    from fedaccord.audits.verdict import Verdict, sign_verdict
    from fedaccord.signing.keys import load_key

    terms, rules = audited.terms, audited.terms.audits
    known = {} if rules is None else rules.auditors
    if auditor not in known:
        raise InvalidInput(
            f"--auditor: no auditor is called {auditor!r}: {unknown(auditor, known)}"
        )
    loaded = load_key(key)
    if loaded.public != known[auditor]:
        raise InvalidInput(f"is {loaded.public}, but the terms have {known[auditor]}", str(key))
    try:
        verdict = Verdict(
            terms=terms.digest,
            draw=audited.draw,
            client=drawn.client,
            slot=drawn.slot,
            turn=drawn.turn,
            level=2 if rules is None else rules.level,
            outcome=outcome,
            reason=reason,
            auditor=auditor,
        )
    except ValidationError:
        raise InvalidInput("--reason: must be one line of at most 300 characters") from None
    return sign_verdict(verdict, terms.name, loaded)


def write_verdict(path: Path, signed: "SignedVerdict") -> None:
    """Write a signed verdict."""
    write_file(path, [(signed.model_dump_json(indent=2) + "\n").encode()])


def read_submission(path: Path) -> "SignedVerdict | SignedAttestation":
    """What is handed in to a server: a verdict, or an attestation."""
    from pydantic import ValidationError

    from fedaccord.audits.attestation import SignedAttestation
    from fedaccord.audits.verdict import SignedVerdict

    content = content_of(path)
    for form in (SignedVerdict, SignedAttestation):
        try:
            return form.model_validate_json(content)
        except ValidationError:
            continue
    raise InvalidInput("is neither a signed verdict nor an attestation", str(path))


def content_of(path: Path) -> bytes:
    """The bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", str(path)) from None


def read_digests(path: Path) -> list[str]:
    """The digests of another member's records."""
    content = content_of(path)
    try:
        found = json.loads(content)["digests"]
    except (ValueError, LookupError, TypeError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidInput("is not a file of `audit digests`", str(path))
    return found
