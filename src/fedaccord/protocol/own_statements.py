"""What a client signs, and the proof that it keeps of what the server signed.

Each answer names the client's statement before it which the server says that it has. A client that
finds an answer of its own missing there sends it along when the next slot begins, and the server
has to publish it: it cannot say any more that there was none.
"""

from typing import Any, NamedTuple

from fedaccord.protocol import notes
from fedaccord.protocol.envelopes import Place, asked_statement
from fedaccord.protocol.messages import MOST_LATE, Content, LateAnswer, Refusal
from fedaccord.protocol.receiving import late_statement
from fedaccord.protocol.roster import Signer, said_to
from fedaccord.signing.statement import NOTHING


class OwnStatements:
    """Signs for one client."""

    def __init__(self, name: str, signer: Signer, copy: notes.Copy) -> None:
        """`copy` is where everything that is signed is kept."""
        self._name, self._signer, self._notes = name, signer, copy

    def check(self, place: Place, content: Content) -> None:
        """Refuse a question that the server did not sign, or that names somebody else's words."""
        statement = asked_statement(self._signer.roster, self._name, place, content)
        signature = place.signature
        server = self._signer.roster.keys.server
        if signature is None or not statement.is_signed(server, signature):
            raise Refusal("the question is not signed by the server whose key is in the terms")
        self._check_own(place.received, place.slot)

    def sign(self, place: Place, content: Content, answer: dict[str, Any]) -> dict[str, Any]:
        """What goes along with an answer: its signature, and earlier answers if need be."""
        untaken = self._untaken(place) if place.stage == "report" else []
        late = [self._late(note) for note in untaken[:MOST_LATE]][::-1]
        said = said_to(content, answer, [one.statement for one in late])
        statement = self._signer.roster.answer(self._name, place.at, said, place.received)
        signature = statement.sign(self._signer.key)
        self._keep(place, content, said, signature, statement.digest(signature))
        return {"signature": signature} | ({"late": [one.body for one in late]} if late else {})

    def _keep(
        self, place: Place, content: Content, said: dict[str, Any], signature: str, digest: str
    ) -> None:
        before = self._notes.all(notes.Signed, place.slot)
        if any((one.statement, one.token) == (digest, place.token) for one in before):
            return
        roster, key = self._signer
        note = notes.Signed(
            slot=place.slot,
            client=self._name,
            turn=place.turn,
            ledger=place.ledger,
            stage=place.stage,
            consortium=roster.consortium,
            terms=roster.terms,
            keys=(roster.keys.server, key.public),
            token=place.token,
            received=place.received,
            asks=content.body,
            question_signature=str(place.signature),
            said=said,
            statement=digest,
            signature=signature,
        )
        self._notes.write(note)

    def _check_own(self, received: str, slot: int) -> None:
        """Refuse to vouch for a statement that this client never made."""
        own = (note for note in self._notes.signed_back(slot) if self._is_current(note))
        if received != NOTHING and all(note.statement != received for note in own):
            raise Refusal(
                "the server names a statement of this client that is not in its copy; without that "
                "copy it needs a new key, in new terms"
            )

    def _is_current(self, note: notes.Signed) -> bool:
        return note.keys[1] == self._signer.key.public

    def _untaken(self, place: Place) -> list[notes.Signed]:
        """Its statements that the server did not take, by its own account; the latest first.

        Each statement that the server has names the one before it. Those from before the last
        report that it has were sent along with that report.
        """
        taken, places, found = place.received, {place.at[:3]}, list[notes.Signed]()
        for note in self._notes.signed_back(place.slot):
            at = (note.slot, note.stage, note.turn)
            if not self._is_current(note):
                break
            if note.statement == taken:
                if note.stage == "report":
                    break
                taken = note.received
                places.add(at)
            elif at not in places:
                places.add(at)
                found.append(note)
        return found

    def _late(self, note: notes.Signed) -> "_Late":
        answer = LateAnswer(
            terms=note.terms,
            slot=note.slot,
            stage=note.stage,
            turn=note.turn,
            ledger=note.ledger,
            previous=note.received,
            said=note.said,
        )
        statement = late_statement(self._signer.roster, self._name, answer)
        body = answer.body | {"signature": note.signature}
        return _Late(body, statement.digest(note.signature))


class _Late(NamedTuple):
    body: dict[str, Any]
    statement: str
