"""A member whose training is audited: it commits, trains by the ledger's seeds, keeps a trace."""

import hmac
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from fedaccord.atomic import ABSENT, Changed, write_whole
from fedaccord.audits.commitment import (
    Commitment,
    RoundInputs,
    commit,
    slot_order,
    training_seed,
)
from fedaccord.audits.merkle import SECRET_SIZE
from fedaccord.audits.records import Records
from fedaccord.audits.replay import StepDigests, train_round
from fedaccord.audits.software import software_of
from fedaccord.audits.trace import Trace, TracedRound
from fedaccord.errors import InvalidInput
from fedaccord.flower.local import local_steps
from fedaccord.protocol.parameters import Arrays, digest
from fedaccord.protocol.terms import Terms
from fedaccord.training.local import Turn, fine_tune_locally
from fedaccord.training.task import Model

SECRET = "secret"
"""The file from which the salts are derived."""
COMMITTED = "commitment.json"
"""The latest commitment: building the tree takes longer than finding that nothing changed."""
TRACE = "trace"


class _Committed(BaseModel):
    """The latest commitment, and the keyed digest of all records that it is to."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    content: str
    commitment: Commitment


def _read_committed(path: Path) -> _Committed | None:
    try:
        return _Committed.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


class AuditedMember:
    """Commits and trains for one client; its folder has the secret and the trace."""

    def __init__(self, model: Model, terms: Terms, folder: Path) -> None:
        """`model` is on the client's own data, in the order of its file."""
        self.model, self.terms, self.folder = model, terms, folder

    @property
    def records(self) -> Records:
        """What it commits to: everything that it could train on."""
        return Records(self.model.dataset.inputs, self.model.dataset.labels)

    @property
    def secret(self) -> bytes:
        """Made when it first commits. Whoever has it can guess records from opened paths."""
        path = self.folder / SECRET
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(Changed):  # by another process of this member, whose secret counts
                write_whole(path, secrets.token_bytes(SECRET_SIZE), private=True, seen=ABSENT)
        found = path.read_bytes()
        if len(found) != SECRET_SIZE:
            raise InvalidInput(f"must have {SECRET_SIZE} bytes, has {len(found)}", str(path))
        return found

    @property
    def trace(self) -> Trace:
        """Its rounds, for as long as an audit of them may come."""
        due = 1 if self.terms.audits is None else self.terms.audits.due
        return Trace(self.folder / TRACE, slots=due + 1)

    def commit(self) -> Commitment:
        """To all records and to the code; the tree is built again only if a record changed."""
        code, path = software_of(self.model.task).digest, self.folder / COMMITTED
        records, secret = self.records, self.secret
        content = hmac.digest(secret, records.rows.data, "sha256").hex()
        known = _read_committed(path)
        if known is not None and known.content == content:
            return known.commitment.model_copy(update={"code": code})
        made = commit(records, secret, code)
        # nothing waits until it is on disk: if it is not there, or not whole, it is made again
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_text(_Committed(content=content, commitment=made).model_dump_json(), "utf-8")
        fresh.replace(path)
        return made

    def train(self, inputs: RoundInputs, parameters: Arrays) -> Arrays:
        """A round, of which the trace keeps the inputs and the result."""
        wanted = self.terms.audits is not None and self.terms.audits.steps
        steps = StepDigests() if wanted else None
        update = train_round(self.model, local_steps(self.terms), inputs, parameters, steps)
        self.keep(inputs, parameters, update, [] if steps is None else steps.found)
        return update

    def fine_tune(self, last: RoundInputs, parameters: Arrays, *, epochs: int) -> Arrays:
        """Its own model after more epochs, once a slot's last round is over.

        It is on all that it trained on in the slot, which `last` has as its amount.
        """
        order = slot_order(last.head, last.slot, last.client, self.model.dataset.size)
        seed = training_seed(last.head, last.slot, last.turn, last.client)
        turn = Turn(last.slot, last.turn, last.position, seed)
        share, local = order[: last.amount], local_steps(self.terms)
        return fine_tune_locally(self.model, local, share, parameters, turn, epochs=epochs)

    def keep(
        self, inputs: RoundInputs, parameters: Arrays, update: Arrays, steps: Sequence[str]
    ) -> None:
        """Add a round to the trace."""
        traced = TracedRound(
            **inputs.model_dump(),
            model=digest(parameters),
            update=digest(update),
            steps=tuple(steps),
            software=software_of(self.model.task),
        )
        self.trace.keep(traced, parameters, update)
