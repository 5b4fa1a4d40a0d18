"""What a client's copy proves against the server's ledger, or does not.

What was told must follow from the ledger, and what was said must be in it. Where the terms have
keys, a copy proves what the server signed, and the ledger what the client did.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from fedaccord.ledger.chain import Entry, Head
from fedaccord.protocol import facts, notes
from fedaccord.protocol.auditing import draw_slot
from fedaccord.protocol.evidence import Proof, SignedStatement, answer_in
from fedaccord.protocol.forms import WrongForm
from fedaccord.protocol.questions import open_question
from fedaccord.protocol.state import State
from fedaccord.protocol.verifier import ANSWERS, NONSENSE, in_brief, same

EMPTY = "it has no entries"

Place: TypeAlias = tuple[str, int, str | None, int]
"""What an entry is about (kind, slot, client, turn): no client says two things in one place."""

_TOLD = (
    *("report", "presence", "rank", "stay", "offer", "posted"),
    *("contribution", "tier", "settlement", "consent"),
)
"""Notes that contain everything that the client was told. Only the copy has all of it."""


def contradictions(server: Iterable[Entry], copy: Iterable[Entry]) -> list[str]:
    """Where a client's copy and the server's ledger disagree, in words.

    Every head that the client was shown must be in the server's chain, what the client was told
    must follow from the ledger up to there, and whatever both wrote down must be the same. An
    answer that never arrived is only in the copy; but whatever the server claims to have been
    told by the client, or to have told it, must be in the copy, too.
    """
    (found,) = contradictions_of_many(server, [copy])
    return found


def contradictions_of_many(
    server: Iterable[Entry], copies: Iterable[Iterable[Entry]]
) -> list[list[str]]:
    """The same for several copies, in one pass over the server's ledger."""
    return [one.problems for one in compare_with_server(server, copies)]


class Compared(NamedTuple):
    """What comparing one copy with the server's ledger gave."""

    problems: list[str]
    undecided: list[str]
    """What nobody can decide, in words."""
    proofs: list[Proof]


def compare_with_server(
    server: Iterable[Entry], copies: Iterable[Iterable[Entry]]
) -> list[Compared]:
    """Compare each copy with the server's ledger, in one pass over that."""
    witnesses = [_Witness(copy) for copy in copies]
    if not witnesses:
        return []
    state, nonsense = State(), None
    for last in server:
        try:
            fact = facts.read_fact(last.fact)
            draw_slot(state, Head(last.number - 1, last.previous))
            state.apply(fact)
        except NONSENSE as error:
            nonsense = f"cannot be compared: {in_brief(error)}"
            break
        for witness in witnesses:
            witness.look_at(last, fact, state)
    if nonsense is not None:
        return [Compared([nonsense], [], [])] * len(witnesses)
    return [Compared(one.end(), one.undecided, one.proofs) for one in witnesses]


class Noted(NamedTuple):
    """A note, and the number of its entry."""

    number: int
    note: notes.Note

    def __str__(self) -> str:
        note = self.note
        return f"{note.client}'s entry {self.number} ({note.kind} of slot {note.slot})"


def place_of(note: notes.Note) -> Place:
    """The question in which something was noted."""
    stage = note.stage if isinstance(note, notes.Signed) else notes.STAGE_OF[note.kind]
    return stage, note.slot, note.client, note.turn


class _Witness:
    """A client's copy, compared with the server's ledger entry by entry."""

    def __init__(self, copy: Iterable[Entry]) -> None:
        self._misled: list[str] = []
        self._misquoted: list[str] = []
        self._invented: list[str] = []
        self._nonsense: str | None = EMPTY
        self._shown: dict[int, list[Noted]] = defaultdict(list)
        """By the number of the server's entry that the client was shown."""
        self._said: dict[Place, list[Noted]] = defaultdict(list)
        self._signed: dict[Place, notes.Signed] = {}
        """The evidence, by the stage in the place of the kind."""
        self._taken: dict[str, notes.Signed] = {}
        """The same, by the client's statement that the server says in it that it has."""
        self._signs = False
        """Whether the server signed the ledger so far."""
        self.proofs: list[Proof] = []
        self.undecided: list[str] = []
        self._clients: set[str] = set()
        try:
            for entry in copy:
                if entry.client is None:
                    self._nonsense = "is not a client's copy"
                    break
                self._nonsense = None
                self._take(entry)
        except WrongForm as problem:
            about = f"{entry.client}'s entry {entry.number} ({entry.kind} of slot {entry.slot})"
            self._nonsense = f"{about} {problem}"
        except NONSENSE as error:
            self._nonsense = f"cannot be compared: {in_brief(error)}"

    def _take(self, entry: Entry) -> None:
        noted = Noted(entry.number, note := notes.read_note(entry.fact))
        if isinstance(note, notes.Signed):
            self._signed[place_of(note)] = note
            self._taken.setdefault(note.received, note)
            return
        self._shown[note.head.number].append(noted)
        self._said[note.kind, note.slot, note.client, note.turn].append(noted)
        self._clients.add(note.client)

    def look_at(self, last: Entry, fact: facts.TypedFact, state: State) -> None:
        """Compare with one more entry of the server's; `state` is what it knows after it."""
        if self._nonsense is not None:
            return
        self._signs = state.roster is not None
        try:
            if last.number in self._shown:
                self._look_at_shown(last, state)
            self._look_at_said(last.number, fact)
        except NONSENSE as error:
            self._nonsense = f"cannot be compared: {in_brief(error)}"

    def end(self) -> list[str]:
        """Everything that was found."""
        if self._nonsense is not None:
            return [self._nonsense]
        unseen = [
            self._blame(noted, f"entry {number} of the server's ledger was another one then")
            for number, shown in self._shown.items()
            for noted in shown
        ]
        return [*self._misled, *unseen, *self._misquoted, *self._invented]

    def _look_at_shown(self, last: Entry, state: State) -> None:
        """What the client was asked or told that does not follow from what it was shown."""
        others = []
        for noted in self._shown.pop(last.number):
            if noted.note.head.digest != last.digest:
                others.append(noted)
            elif not _follows(noted.note, state):
                self._misled.append(
                    self._blame(noted, "the server told something else than its ledger says")
                )
        if others:
            self._shown[last.number] = others

    def _blame(self, noted: Noted, problem: str) -> str:
        """What the server did, if its own signature proves it; else that nothing proves it."""
        if not self._signs:
            return f"{noted}: {problem}"
        if place_of(noted.note) in self._signed:
            return f"{noted}: {problem}, and the server's signature proves it"
        return f"{noted}: has no signature of the server, so it does not prove that {problem}"

    def _look_at_said(self, number: int, fact: facts.TypedFact) -> None:
        """What the server claims to have been told by the client, or to have told it."""
        about = f"entry {number} ({fact.kind} of slot {fact.slot})"
        if isinstance(fact, facts.Absence) and fact.client in self._clients:
            self._look_at_absence(about, fact)
        for place in places_of(fact, self._clients):
            if place not in self._said:
                lacks = "lacks" if self._signs else "knows nothing of the server's"
                who = f"{place[2]}'s copy" if self._signs else place[2]
                signed = f", which {place[2]} signed" if self._signs else ""
                self._invented.append(f"{who} {lacks} {about}{signed}")
            for noted in self._said.get(place, ()):
                if is_misquoted(fact, noted.note):
                    self._misquoted.append(self._contradicted(noted, about, fact))

    def _contradicted(self, noted: Noted, about: str, fact: facts.TypedFact) -> str:
        """Who is wrong if an answer is another one in the ledger than in the copy.

        A ledger that is signed has the client's signature on the answer.
        """
        if not self._signs:
            return f"{noted}: the server wrote down something else"
        problem = f"{noted}: {noted.note.client} signed something else, which is {about}"
        if (other := self._other_answer(fact)) is not None:
            self.proofs.append(Proof(problem, *other))
        return problem

    def _other_answer(
        self, fact: facts.TypedFact
    ) -> tuple[SignedStatement, SignedStatement] | None:
        """Two answers of the client to one question: in its copy, and in the ledger."""
        stage = notes.STAGE_OF[fact.kind]
        note = self._signed.get((stage, fact.slot, fact.whom, getattr(fact, "turn", 0)))
        if note is None or not isinstance(fact, facts.Said) or fact.signed is None:
            return None
        own = answer_in(note)
        answer = {key: value for key, value in fact.said.items() if value is not None}
        said = own.statement._replace(body={**note.said, "answer": answer})
        other = SignedStatement(said, fact.signed.signature, own.key)
        return (own, other) if other.is_right else None

    def _look_at_absence(self, about: str, fact: facts.Absence) -> None:
        """Whether the client signed an answer where the ledger says that it was absent."""
        signed = self._signed.get((fact.stage, fact.slot, fact.client, fact.turn))
        if signed is None:
            return
        receipt = self._taken.get(signed.statement)
        if receipt is not None:
            self._invented.append(
                f"{about} says that {fact.client} was absent, but the server signed a receipt for "
                f"its answer ({receipt.stage} of slot {receipt.slot})"
            )
        else:
            self.undecided.append(
                f"{about} says that {fact.client} was absent, and {fact.client} signed an answer: "
                "whether it came in time cannot be decided"
            )


def places_of(fact: facts.TypedFact, clients: set[str]) -> list[Place]:
    """Where clients should have noted what a server wrote down."""
    if isinstance(fact, facts.Told):
        return [("settlement", fact.slot, name, 0) for name in fact.clients if name in clients]
    if isinstance(fact, facts.Handed):
        return [("tier", fact.slot, name, fact.turn) for name in fact.clients if name in clients]
    if fact.kind in ANSWERS and fact.whom in clients:  # a client notes it first
        return [(fact.kind, fact.slot, fact.whom, getattr(fact, "turn", 0))]
    return []


def is_misquoted(fact: facts.TypedFact, note: notes.Note) -> bool:
    """Whether the server wrote down something else than the client said."""
    said = facts.SAID.get(fact.kind, ())
    return any(getattr(fact, key) != getattr(note, key) for key in said if hasattr(note, key))


def _follows(note: notes.Note, state: State) -> bool:
    """Whether a server that knows this would have asked and told the client what it wrote down."""
    try:
        question = open_question(state)
    except NONSENSE:  # the client was shown a moment at which nothing was to be asked
        return False
    place = (notes.STAGE_OF[note.kind], note.slot, note.turn)
    if place != question[:3] or note.client not in question.contents:
        return False
    if isinstance(note, notes.Presence) and note.terms != state.rules.digest:
        return False
    if note.kind not in _TOLD:
        return True
    told = question.contents[note.client]
    keys = type(told).model_fields
    return all(same(getattr(note, key), getattr(told, key)) for key in keys)
