"""From terms and numbers to an agreement file that nobody has signed yet."""

import json
from collections.abc import Sequence
from typing import Any

from fedaccord.agreement.solve import solve_agreement
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.ranges import RANGED
from fedaccord.protocol.law import law_in_terms
from fedaccord.protocol.terms import CLOCKS, FROM_REPORTS, Terms
from fedaccord.record import jsonable, rows_of
from fedaccord.signed.document import FORMAT, Numbers, RangesOfNumbers, Signatures
from fedaccord.signed.file import AgreementFile, read_agreement_file
from fedaccord.signed.layout import Parts, digest_of_main, digest_of_text, join, shell_text
from fedaccord.signed.page import render_main
from fedaccord.signed.proof import (
    certificate_said,
    consortium_in,
    posted_numbers,
    profile_said,
    proved,
)
from fedaccord.signing.canonical import canonical


def draft_agreement(
    terms: Terms, consortium: Consortium | None, *, made_on: str, made_with: str
) -> AgreementFile:
    """The file of an agreement, to be signed.

    Args:
        terms: The rules, with everybody's public key. Amounts that they post are those of the
            agreement. If the terms ask for reports, the amounts are those for the numbers of the
            consortium, in whole samples.
        consortium: The clients' numbers, all of which the file will show. Without them the
            amounts must be posted, and are proved from what the terms post.
        made_on: The date.
        made_with: The program, with its version.
    """
    if terms.keys is None:
        raise InvalidInput("the terms have no public keys, so nobody could sign", field="terms")
    if consortium is None:
        numbers, ranges = posted_numbers(terms), None
        amounts = amounts_under(terms, consortium_in(terms, numbers, None))
    else:
        described = _as_in_terms(terms, consortium)
        numbers, ranges = _numbers(described), _ranges(described)
        amounts = amounts_under(terms, described)
    certificate = proved(terms, numbers, ranges, amounts)
    said = {
        "format": FORMAT,
        "made_on": made_on,
        "made_with": made_with,
        "terms": terms.digest,
        "numbers": numbers.model_dump(mode="json"),
        "ranges": ranges and ranges.model_dump(mode="json"),
        "profile": profile_said(certificate, shared=numbers.shared),
        "certificate": certificate_said(certificate),
    }
    return read_agreement_file(_file_of(terms, said))


def _file_of(terms: Terms, said: dict[str, Any]) -> bytes:
    """The file that says this, signed by nobody."""
    rules = terms.model_dump(mode="json")
    main = render_main(json.loads(canonical(rules)), said)
    shell = shell_text()
    page = {"main": digest_of_main(main), "shell": digest_of_text(shell)}
    agreement = canonical(said | {"page": page})
    unsigned = Signatures(agreement=digest_of_text(agreement), clients={}, server=None)
    signatures = canonical(unsigned.model_dump(mode="json"))
    parts = Parts(main, canonical(rules), agreement, signatures)
    if any("<" in part for part in parts[1:]):
        raise InvalidInput("names and texts in an agreement file must not contain '<'")
    return join(shell, parts)


def amounts_under(terms: Terms, consortium: Consortium) -> Sequence[float]:
    """What each client trains on in a slot: what is posted, or what follows from the numbers."""
    if terms.agreement in CLOCKS:
        raise InvalidInput(
            "a clock finds the amounts when it runs, so there are none to sign yet",
            field="terms",
        )
    if terms.agreement not in FROM_REPORTS:
        return [terms.posted_for(name) for name in terms.clients]
    found = solve_agreement(
        consortium,
        "uniform" if terms.agreement == "uniform" else "individual",
        objective=terms.objective,
        margin=terms.margin,
        whole_samples=True,
        punishment=terms.after_slip,
        nobody_worse=terms.nobody_worse,
    )
    if not found.exists:
        raise InvalidInput(f"there is no agreement to sign: {found.reason}")
    amounts: list[float] = found.profile.tolist()
    return amounts


def _as_in_terms(terms: Terms, consortium: Consortium) -> Consortium:
    """The consortium with what the terms say of all clients; refused if they contradict it."""
    if consortium.names != terms.clients:
        raise InvalidInput("the clients in the terms are others than in the file", field="terms")
    if not consortium.equal_quality or consortium.law.is_personal:
        wrong = "a quality or a law of single clients cannot be in terms that all sign"
        raise InvalidInput(wrong, field="terms")
    own = law_in_terms(consortium.law)
    in_terms = law_in_terms(terms.law_of_loss)
    contradicted = {
        "name": consortium.name != terms.name,
        "rounds": consortium.rounds != terms.rounds,
        "server_fee": consortium.server_fee != terms.server_fee,
        "law": own != in_terms,
    }
    for field, differs in contradicted.items():
        if differs:
            raise InvalidInput(f"the terms and the file differ in their {field}", field="terms")
    return consortium.with_law(terms.law_of_loss)


def _numbers(consortium: Consortium) -> Numbers:
    columns = {field: getattr(consortium, field) for field in (*RANGED, "communication_cost")}
    return Numbers.model_validate(
        {
            "shared": True,
            "currency": consortium.currency,
            "slot": consortium.slot,
            "clients": rows_of({"name": consortium.names} | columns),
        }
    )


def _ranges(consortium: Consortium) -> RangesOfNumbers | None:
    ranges = consortium.ranges
    if ranges is None:
        return None
    pairs = {field: jsonable(getattr(ranges, field)) for field in (*RANGED, "observed")}
    return RangesOfNumbers.model_validate(pairs)
