"""Evidence from elsewhere: the notary, what is refused, and verifiers of other packages."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedaccord.audits.attestation import Attestation, Attested, notarise, wrong_attestation
from fedaccord.errors import FedaccordError
from fedaccord.signing.keys import new_key

WHAT = Attested("Six", "St Mary", 3, "ab" * 32)
PACKAGE = """\
def enclave(what, evidence, settings):
    wanted = f"{settings['measurement']} {what.digest}".encode()
    return None if evidence == wanted else "the quote is not of this enclave"

def broken(what, evidence, settings):
    raise KeyError("measurement")

wrong = "not a verifier"
"""
ENTRY_POINTS = """\
[fedaccord.attestations]
enclave = enclave_quotes:enclave
broken = enclave_quotes:broken
wrong = enclave_quotes:wrong
notary = enclave_quotes:broken
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What pip leaves behind: a module, and a `.dist-info` directory with entry points."""
    site = tmp_path / "site"
    info = site / "enclave_quotes-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "enclave_quotes.py").write_text(PACKAGE, encoding="utf-8")
    (info / "METADATA").write_text("Name: enclave-quotes\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    yield
    sys.modules.pop("enclave_quotes", None)


def test_a_notary_attests_one_contribution_only() -> None:
    notary = new_key()
    accepted = {"notary": {"key": notary.public}}
    attestation = Attestation.of("notary", WHAT, notarise(notary, WHAT))
    assert wrong_attestation(attestation, WHAT, accepted) is None
    for other in (
        WHAT._replace(client="North"),
        WHAT._replace(slot=4),
        WHAT._replace(contribution="cd" * 32),
        WHAT._replace(consortium="Seven"),
    ):
        moved = Attestation.of("notary", other, notarise(notary, WHAT))
        assert wrong_attestation(attestation, other, accepted) is not None
        assert wrong_attestation(moved, other, accepted) == (
            "the notary did not sign this contribution"
        )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"evidence": "AAAA"}, "the evidence has another digest than is noted"),
        ({"evidence": "?"}, "the evidence is not base64"),
        ({"kind": "enclave"}, "the terms accept no attestation of the kind 'enclave'"),
        ({"about": "0" * 64}, "the attestation is about another contribution"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, str], problem: str) -> None:
    notary = new_key()
    attestation = Attestation.of("notary", WHAT, notarise(notary, WHAT))
    changed = attestation.model_copy(update=change)
    assert wrong_attestation(changed, WHAT, {"notary": {"key": notary.public}}) == problem


@pytest.mark.parametrize("evidence", [b"", b"\xff", b"00" * 64])
def test_what_is_no_signature_of_the_notary_is_refused(evidence: bytes) -> None:
    accepted = {"notary": {"key": new_key().public}}
    assert wrong_attestation(Attestation.of("notary", WHAT, evidence), WHAT, accepted)
    assert wrong_attestation(Attestation.of("notary", WHAT, evidence), WHAT, {"notary": {}})


def test_another_package_brings_a_verifier() -> None:
    accepted = {"enclave": {"measurement": "m"}}
    right = Attestation.of("enclave", WHAT, f"m {WHAT.digest}".encode())
    assert wrong_attestation(right, WHAT, accepted) is None
    wrong = Attestation.of("enclave", WHAT, b"something")
    assert wrong_attestation(wrong, WHAT, accepted) == "the quote is not of this enclave"


def test_a_verifier_that_fails_proves_nothing() -> None:
    found = wrong_attestation(Attestation.of("broken", WHAT, b""), WHAT, {"broken": {}})
    assert found == "the verifier broken failed (KeyError: 'measurement')"
    with pytest.raises(FedaccordError, match="must be a function, got str"):
        wrong_attestation(Attestation.of("wrong", WHAT, b""), WHAT, {"wrong": {}})
    with pytest.raises(FedaccordError, match="there is no attestation called 'nothing'"):
        wrong_attestation(Attestation.of("nothing", WHAT, b""), WHAT, {"nothing": {}})
