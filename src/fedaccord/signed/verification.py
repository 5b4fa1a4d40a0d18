"""Whether an agreement file is what its parties signed, and whether what it says is proved."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose
from typing import Any

from fedaccord.errors import InvalidInput
from fedaccord.protocol.terms import FROM_REPORTS, SAME_NUMBER
from fedaccord.signed.file import AgreementFile
from fedaccord.signed.layout import digest_of_main, digest_of_text, shell_text
from fedaccord.signed.page import render_main
from fedaccord.signed.proof import certificate_said, posted_numbers, profile_said, proved
from fedaccord.signed.signatures import has_signed


@dataclass(frozen=True)
class Verification:
    """What was found out about an agreement file."""

    problems: tuple[str, ...]
    """Why it is refused; empty if everything in it is as it was signed, and proved."""
    signed: tuple[str, ...]
    """Who signed it."""
    missing: tuple[str, ...]
    """Who did not yet."""
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is wrong, and everybody signed."""
        return not self.problems and not self.missing


def verify_agreement(file: AgreementFile) -> Verification:
    """Check everything: digests, signatures, the text of the page, and the proof, made again."""
    seals = verify_signatures(file)
    notes: list[str] = []
    problems = [*seals.problems, *_in_page(file), *_in_proof(file, notes)]
    return Verification(tuple(problems), seals.signed, seals.missing, tuple(notes))


def verify_signatures(file: AgreementFile) -> Verification:
    """Check that nothing was changed, and who signed; this is what other verifiers can do."""
    signed = [party.name for party in file.parties if has_signed(file, party)]
    missing = [party.name for party in file.parties if file.signature_of(party) is None]
    return Verification(tuple(_in_seals(file)), tuple(signed), tuple(missing))


def _in_seals(file: AgreementFile) -> Iterator[str]:
    document, parts = file.document, file.parts
    if document.page.shell != digest_of_text(file.shell):
        yield "the page around the text was changed"
    elif file.shell != shell_text():
        yield "the page around the text is not the one of this format"
    if document.page.main != digest_of_main(parts.main):
        yield "the text of the page was changed"
    if not document.terms == digest_of_text(parts.terms) == file.terms.digest:
        yield "the terms were changed"
    if file.signatures.agreement != file.digest:
        yield "the agreement was changed"
    names = [table.clients for table in (document.numbers, document.profile, document.certificate)]
    if any(tuple(row.name for row in rows) != file.terms.clients for rows in names):
        yield "its tables have other members than the terms"
    if document.profile.total != sum(row.contribution for row in document.profile.clients):
        yield "its total is not the sum of what the members train on"
    for name in file.signatures.clients:
        if name not in file.terms.clients:
            yield f"there is a signature of {name!r}, who is not in the terms"
    for party in file.parties:
        if file.signature_of(party) is not None and not has_signed(file, party):
            yield f"the signature of {party.name} is not its own"


def _in_page(file: AgreementFile) -> Iterator[str]:
    """What a reader sees must follow from what is signed."""
    if file.document.page.main != digest_of_main(file.parts.main):
        return  # it was changed afterwards
    try:
        made = render_main(json.loads(file.parts.terms), json.loads(file.parts.agreement))
    except (ValueError, KeyError, OverflowError):  # tables that do not fit together
        made = None
    if made != file.parts.main:
        yield "the text of the page does not say what its numbers say"


def _in_proof(file: AgreementFile, notes: list[str]) -> Iterator[str]:
    """The certificate is made again, from the numbers in the file."""
    terms, document, numbers = file.terms, file.document, file.document.numbers
    amounts = [row.contribution for row in document.profile.clients]
    try:
        if not numbers.shared and numbers != posted_numbers(terms):
            yield "its numbers are not those that the terms post"
        if terms.agreement not in FROM_REPORTS:
            posted = [terms.posted_for(name) for name in terms.clients]
            if posted != amounts:
                yield "its amounts are not those that the terms post"
        certificate = proved(terms, numbers, document.ranges, amounts)
    except InvalidInput as error:
        yield f"it cannot be proved: {error}"
        return
    found, said = certificate_said(certificate), document.certificate.model_dump(mode="json")
    if found.pop("assumptions") != said.pop("assumptions"):
        notes.append("this version of fedaccord would state its assumptions in other words")
    if not same(found, said):
        yield "its certificate is not the one that its numbers give"
    profile = profile_said(certificate, shared=numbers.shared)
    if not same(profile, document.profile.model_dump(mode="json")):
        yield "its savings and totals are not those that its numbers give"


def same(found: Any, said: Any) -> bool:
    """Whether two values are the same, with numbers equal as far as machines compute them alike."""
    if isinstance(found, dict) and isinstance(said, dict):
        return found.keys() == said.keys() and all(same(found[key], said[key]) for key in found)
    if isinstance(found, list) and isinstance(said, list):
        return len(found) == len(said) and all(map(same, found, said))
    if isinstance(found, bool) or isinstance(said, bool):
        return found is said
    if isinstance(found, int | float) and isinstance(said, int | float):
        return isclose(found, said, rel_tol=SAME_NUMBER, abs_tol=SAME_NUMBER)
    return bool(found == said)
