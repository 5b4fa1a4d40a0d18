"""Whatever the consortium: its agreement file is verified, by both verifiers."""

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from fedaccord.errors import InvalidInput
from fedaccord.flower.public_terms import public_terms
from fedaccord.flower.shared_terms import shared_terms
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.signed.drafting import draft_agreement
from fedaccord.signed.file import AgreementFile
from fedaccord.signed.signatures import sign_agreement
from fedaccord.signed.verification import verify_agreement
from tests.consortia import consortia
from tests.signed.examples import key_of
from tests.signed.test_second_verifier import second

TRAINING = {"shape": [2], "classes": 2}


def terms_for(consortium: Consortium, kind: str, margin: float) -> Terms:
    """Posted terms, or terms with reports and one of the punishments; no agreement: no example."""
    keys = [key_of(number + 1) for number in range(consortium.size + 1)]
    roster = {
        "server": keys[-1].public,
        "clients": {
            name: key.public for name, key in zip(consortium.names, keys[:-1], strict=True)
        },
    }
    given = shared_terms(consortium) | {"training": TRAINING, "keys": roster, "margin": margin}
    try:
        if kind in ("posted", "without numbers"):
            given |= public_terms(consortium, margin=margin, reveal=True)
        else:
            given |= {"punishment": kind}
    except InvalidInput:
        assume(False)
    return read_terms(given, "test")


@pytest.mark.slow
@given(
    consortia(st.integers(2, 5), whole_data=True, extreme=False),
    st.sampled_from(["posted", "without numbers", "reversion", "suspension"]),
    st.sampled_from([0.0, 0.01]),
    st.sampled_from([0.0, 0.0, 0.2]),
)
def test_what_is_drafted_is_verified(
    consortium: Consortium, kind: str, margin: float, width: float
) -> None:
    described = consortium.within(width) if width else consortium
    terms = terms_for(described, kind, margin)
    file = drafted(terms, None if kind == "without numbers" else described)
    if file is None:
        event("no agreement")
        return
    assert second(file.content) == ("incomplete", ())
    for number in range(consortium.size + 1):
        file = sign_agreement(file, key_of(number + 1))
    assert second(file.content)[0] == "complete"
    assert verify_agreement(file).complete


def drafted(terms: Terms, shown: Consortium | None) -> AgreementFile | None:
    """The file, if there is an agreement to sign."""
    try:
        return draft_agreement(terms, shown, made_on="2026-11-17", made_with="a test")
    except InvalidInput as error:
        if "there is no agreement to sign" not in str(error):
            raise
        return None
