"""Adding signatures to an agreement file, and merging those of several copies."""

from collections.abc import Iterable

from fedaccord.errors import InvalidInput
from fedaccord.signed.document import Signatures
from fedaccord.signed.file import AgreementFile, Party
from fedaccord.signing.keys import Key


def party_of(file: AgreementFile, public: str) -> Party:
    """Who signs with this public key."""
    for party in file.parties:
        if party.key == public:
            return party
    raise InvalidInput(f"the terms do not have the public key {public}, so it cannot sign them")


def sign_agreement(file: AgreementFile, key: Key) -> AgreementFile:
    """The same file, signed by the party that this key belongs to."""
    party = party_of(file, key.public)
    return _with(file, party, file.statement_of(party).sign(key))


def has_signed(file: AgreementFile, party: Party) -> bool:
    """Whether a party's signature is there, and is its own."""
    signature = file.signature_of(party)
    return signature is not None and file.statement_of(party).is_signed(party.key, signature)


def merge_signatures(file: AgreementFile, copies: Iterable[AgreementFile]) -> AgreementFile:
    """The same file with the valid signatures of all copies of it.

    A valid signature stays: another one of the same party, which is possible, proves no more.
    """
    for copy in copies:
        if copy.digest != file.digest or copy.parts.terms != file.parts.terms:
            raise InvalidInput(f"is another agreement, with the digest {copy.digest}")
        for party in file.parties:
            signature = copy.signature_of(party)
            if signature is None:
                continue
            if not has_signed(copy, party):
                raise InvalidInput(f"the signature of {party.name} is not its own")
            if not has_signed(file, party):
                file = _with(file, party, signature)
    return file


def _with(file: AgreementFile, party: Party, signature: str) -> AgreementFile:
    signatures = file.signatures
    if party.client is None:
        changed = signatures.model_copy(update={"server": signature})
    else:
        clients = signatures.clients | {party.client: signature}
        changed = signatures.model_copy(update={"clients": clients})
    return file.with_signatures(Signatures.model_validate(changed.model_dump()))
