"""What a client's copy can prove: questions that the server signed, and answers of its own.

Whoever signed two statements that cannot both be true is convicted by these two alone, whatever
ledger or copy they were found in.
"""

from typing import Any, NamedTuple

from fedaccord.protocol import notes
from fedaccord.protocol.messages import FORMAT
from fedaccord.signing.statement import Statement


class SignedStatement(NamedTuple):
    """A statement with its signature, and the key that it is said to be of."""

    statement: Statement
    signature: str
    key: str

    @property
    def is_right(self) -> bool:
        """Whether the owner of the key signed it."""
        return self.statement.is_signed(self.key, self.signature)

    def to_dict(self) -> dict[str, Any]:
        """Everything that is needed to check it."""
        said = self.statement._asdict() | {"head": list(self.statement.head)}
        return {"statement": said, "signature": self.signature, "key": self.key}


class Proof(NamedTuple):
    """Two statements by which their author is convicted."""

    about: str
    """What they disagree about, in words."""
    one: SignedStatement
    other: SignedStatement

    @property
    def holds(self) -> bool:
        """Whether one author signed both, and they cannot both be true."""
        one, other = self.one.statement, self.other.statement
        author = (one.role, one.consortium, self.one.key)
        same_author = author == (other.role, other.consortium, self.other.key)
        signed = self.one.is_right and self.other.is_right
        return same_author and signed and contradict(one, other)

    def to_dict(self) -> dict[str, Any]:
        """Everything that is needed to check it."""
        both = [self.one.to_dict(), self.other.to_dict()]
        return {"about": self.about, "holds": self.holds, "statements": both}


def contradict(one: Statement, other: Statement) -> bool:
    """Whether one author cannot honestly have made both statements.

    A ledger has one entry with each number. A question that is put again to the same client, or
    answered again, has the same content.
    """
    if one.head[0] == other.head[0] and one.head[1] != other.head[1]:
        return one.role == "server"  # a client repeats what it was shown
    place = (one.slot, one.stage, one.turn, one.client)
    if place != (other.slot, other.stage, other.turn, other.client):
        return False
    key = "asks" if one.role == "server" else "answer"
    return one.body.get(key) != other.body.get(key)


def question_in(note: notes.Signed) -> SignedStatement:
    """What the server signed when it asked."""
    body = {"format": FORMAT, "token": note.token, "received": note.received, "asks": note.asks}
    said = _statement("server", note, body)
    return SignedStatement(said, note.question_signature, note.keys[0])


def answer_in(note: notes.Signed) -> SignedStatement:
    """What the client signed when it answered."""
    said = _statement("client", note, note.said)._replace(previous=note.received)
    return SignedStatement(said, note.signature, note.keys[1])


def _statement(role: Any, note: notes.Signed, body: dict[str, Any]) -> Statement:
    head = (note.ledger[0], note.ledger[1])
    place = (note.slot, note.stage, note.turn, note.client)
    return Statement(role, note.consortium, note.terms, *place, head, body)


def flaw_in(note: notes.Signed, told: notes.Note | None) -> str | None:
    """What is wrong with what a client keeps as evidence; `told` is its note beside it."""
    answer = answer_in(note)
    if not question_in(note).is_right:
        return "has a question that the server did not sign"
    if not answer.is_right or answer.statement.digest(note.signature) != note.statement:
        return "has an answer that the client did not sign"
    written = told.body if told is not None else {}
    if any(written[key] != value for key, value in note.asks.items() if key in written):
        return "has another question than the entry before it"
    return None
