"""A client on Flower by its own file, `client.toml`: what only it knows, and where its data is.

The files (`client.toml`, the terms, the data) are read when a slot begins, and not again in that
slot while the process lasts. Flower's SuperNode (1.41) starts a process for every message, so there
each message reads what it needs once: `client.toml` and the terms, and the data to report or train.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedaccord.atomic import write_whole
from fedaccord.audits.commitment import Commitment, RoundInputs
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.files.reading import load_toml
from fedaccord.flower.member_events import FineTuned
from fedaccord.flower.member_log import LOG, NO_SCORES, Scores, event_of, tell
from fedaccord.protocol.keys import ClientName
from fedaccord.protocol.limits import MOST, MOST_SAMPLES, RATIOS
from fedaccord.protocol.messages import LAST_SLOT
from fedaccord.protocol.mistakes import mistakes_in
from fedaccord.protocol.notes import Contribution, CopyFile
from fedaccord.protocol.parameters import Arrays, to_bytes
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.signing.keys import load_key

if TYPE_CHECKING:
    from fedaccord.data.own import OwnPartition
    from fedaccord.flower.audited import AuditedMember
    from fedaccord.flower.local import LocalTraining
    from fedaccord.training.task import Model

_MID_SLOT = ("rank", "clock", "offer", "train", "tier", "settle")
"""Questions that are answered from what was read when the slot began."""

_PATIENCE = 30.0
"""Seconds to wait for a copy that is being written to for another message."""


DIGEST = r"^[0-9a-f]{64}$"

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class EarlyReturn(BaseModel):
    """A suspension: whose it is, and the slot in which that client slipped."""

    model_config = _STRICT
    client: ClientName
    slipped_in: int = Field(ge=1, le=LAST_SLOT)


class ClientFile(BaseModel):
    """The contents of the file. Paths are relative to it."""

    model_config = _STRICT
    name: ClientName
    valuation: float = Field(gt=0)
    cost_per_sample: float = Field(gt=0)
    samples: int = Field(ge=1, le=MOST_SAMPLES)
    discount_factor: float = Field(ge=0, lt=1)
    communication_cost: float = Field(default=0.0, ge=0)
    tell_discount_factor: bool = False
    terms: str = "terms.toml"
    """The terms that this client signed; the app must have the same."""
    key: str = "signing.key"
    """The private key with which this client signs, if the terms have keys."""
    data: str = "data"
    ledger: str = "ledger.db"
    audits: str = "audits"
    """Where it keeps what it needs if its training is audited: a secret, and a trace."""
    model: str | None = None
    fine_tune: Annotated[int, Field(ge=1, le=MOST)] | None = None
    """For how many epochs this client goes on with each slot's model by itself, at home."""
    personal_model: str = "personal.npz"
    """Where it keeps the result."""
    server: str | None = None
    """The address at which this client reaches the server: HOST:PORT."""
    authority: str = "ca.pem"
    """The certificate by which it recognises the server."""
    node_key: str = "node.key"
    """The private key with which its node logs in."""
    certificate: str | None = None
    """Its own certificate, which it shows to the server's proxy, and the private key to it."""
    certificate_key: str = "tls.key"
    app: str | None = Field(default=None, pattern=DIGEST)
    """The SHA-256 digest of the app that it signed: its node starts no other."""
    consents_to_slot: int | None = Field(default=None, ge=0)
    """The slot whose model this client agrees to go back to, if that is proposed."""
    consents_to_return: EarlyReturn | None = None
    """The suspension that this client agrees to end early, if that is proposed."""
    slips: dict[str, int] = Field(default_factory=dict)

    @property
    def private(self) -> Private:
        """The client's numbers."""
        early = self.consents_to_return
        return Private(
            name=self.name,
            valuation=self.valuation,
            cost_per_sample=self.cost_per_sample,
            samples=self.samples,
            discount_factor=self.discount_factor,
            communication_cost=self.communication_cost,
            tells_discount_factor=self.tell_discount_factor,
            consents_to_slot=self.consents_to_slot,
            consents_to_return=None if early is None else (early.client, early.slipped_in),
            slips={int(slot): amount for slot, amount in self.slips.items()},
        )


def load_client_file(path: str | Path) -> ClientFile:
    """The contents of a client's file, or every mistake in it."""
    return read_client_file(load_toml(path), str(path))


def read_client_file(data: dict[str, Any], source: str | None = None) -> ClientFile:
    """A client's file in parsed TOML, or every mistake in it."""
    try:
        found = ClientFile.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error), source) from None
    ratio = found.valuation / found.cost_per_sample
    wrong = []
    if not RATIOS[0] <= ratio <= RATIOS[1]:
        wrong.append(
            f"valuation / cost_per_sample must be from {RATIOS[0]:g} to {RATIOS[1]:g}, is {ratio:g}"
        )
    wrong += [
        f"slips.{slot}: must be a slot from 1 on, with a number of samples"
        for slot, amount in found.slips.items()
        if not (slot.isascii() and slot.isdigit() and int(slot) > 0 and amount >= 0)
    ]
    if wrong:
        raise InvalidInput(wrong, source)
    return found


class FileClient:
    """The client of a file, which answers like any other."""

    def __init__(self, path: str | Path, terms_file: Path) -> None:
        """`terms_file` has the terms of the server's app, which must be those that were signed."""
        self.path, self.terms_file = Path(path), terms_file
        self._slot: object = None
        self._read: _Read | None = None

    @property
    def private(self) -> Private:
        """The client's numbers, as they are in the file now."""
        return self._reread(slot=None).file.private

    def answer(
        self, asked: Mapping[str, Any], parameters: Arrays | None
    ) -> tuple[dict[str, Any], Arrays | None]:
        """The reply to a question of the server's."""
        slot = asked.get("slot")
        fresh = self._read is None or slot != self._slot or asked.get("stage") not in _MID_SLOT
        read = self._reread(slot) if fresh else self._known
        read.participant.judgement, since = None, time.monotonic()
        answer, trained = read.participant.answer(asked, parameters)
        self._tell(read, asked, answer, parameters, time.monotonic() - since)
        return answer, trained

    def _tell(
        self,
        read: "_Read",
        asked: Mapping[str, Any],
        answer: Mapping[str, Any],
        parameters: Arrays | None,
        seconds: float,
    ) -> None:
        """Write a line to the client's own log; the answer holds, whatever goes wrong here."""
        given = parameters is not None
        try:
            event = event_of(
                read.file.name,
                asked,
                answer,
                seconds=seconds,
                scores=NO_SCORES if parameters is None else read.training.scores(parameters),
                judgement=read.participant.judgement,
                stored=read.file.model if given else None,
            )
            if event is not None:
                tell(event)
        except Exception:
            LOG.exception("what happened (%s) cannot be logged", asked.get("stage"))

    def keep_model(self, arrays: Arrays) -> None:
        """Put a slot's model where the client wants it, if it does; whole or not at all.

        Then the client adapts it to its own examples, if it wants that.
        """
        read = self._known
        if read.file.model is not None:
            write_whole(self.path.parent / read.file.model, to_bytes(arrays), private=True)
        if read.file.fine_tune is None or not isinstance(self._slot, int):
            return
        try:
            self._fine_tune(read, self._slot, arrays, read.file.fine_tune)
        except FedaccordError as error:
            LOG.error("the model of slot %s could not be fine-tuned: %s", self._slot, error)

    def _fine_tune(self, read: "_Read", slot: int, shared: Arrays, epochs: int) -> None:
        """Train on by itself, keep the result, and say what it is worth; nothing of it is sent."""
        rounds = read.participant.trained_in(slot)
        if not rounds:
            LOG.info("slot %s: contributed no sample, so there is nothing to fine-tune on", slot)
            return
        since, file = time.monotonic(), read.file
        own = read.training.fine_tune(rounds, shared, epochs)
        seconds = round(time.monotonic() - since, 3)
        write_whole(self.path.parent / file.personal_model, to_bytes(own), private=True)
        before = read.training.scores(shared)
        tell(
            FineTuned(
                client=file.name,
                slot=slot,
                epochs=epochs,
                samples=contributed(rounds, read.training.terms),
                seconds=seconds,
                stored=file.personal_model,
                shared_accuracy=before.test and before.test.accuracy,
                shared_own_accuracy=before.own and before.own.mean,
                shared_own_accuracy_half_width=before.own and before.own.half_width,
                **read.training.scores(own).fields,
            )
        )

    @property
    def _known(self) -> "_Read":
        return self._read or self._reread(slot=None)

    def _reread(self, slot: object) -> "_Read":
        self._read = None  # whatever is wrong now, nothing old is used
        self._slot, self._read = slot, self._from_files()
        return self._read

    def _from_files(self) -> "_Read":
        file, folder, terms = (
            load_client_file(self.path),
            self.path.parent,
            load_terms(self.terms_file),
        )
        _check_signed(folder / file.terms, terms)
        if file.name not in terms.clients:
            raise InvalidInput(f"name: there is no {file.name!r} in the terms", str(self.path))
        copy = CopyFile(folder / file.ledger, _PATIENCE)
        training = FileTraining(file, folder, terms)
        key = None if terms.keys is None else load_key(folder / file.key)
        try:
            participant = Participant(
                file.private,
                terms,
                copy,
                training,
                look=training.look,
                key=key,
                audited=None if terms.audits is None else training,
            )
        except InvalidInput as error:
            raise InvalidInput([one.inside(str(self.path)) for one in error.problems]) from None
        return _Read(file, participant, training)


class _Read(NamedTuple):
    """What was read from a client's files."""

    file: ClientFile
    participant: Participant
    training: "FileTraining"


def _check_signed(path: Path, terms: Terms) -> None:
    """Compare the signed terms with those of the app, which comes from the server."""
    known = load_terms(path)
    signed, given = rules_by_name(known), rules_by_name(terms)
    if others := [
        f"{key}: {value} was signed, but the server's app has {given[key]}"
        for key, value in signed.items()
        if value != given.get(key, value)
    ]:
        raise InvalidInput(others, str(path))
    if known.digest != terms.digest:
        raise InvalidInput("other terms were signed than the server's app has", str(path))


def rules_by_name(terms: Terms) -> dict[str, Any]:
    """Every rule by its name.

    Laws of different kinds, or with different numbers of terms, have some names for themselves,
    but the kind and the number of terms are among them.
    """
    rules = terms.model_dump()
    del rules["training"]
    training, law = dict(terms.training), rules.pop("law", {"kind": "paper"})
    public = {
        f"public.{name}.{key}": value
        for name, numbers in rules.pop("public", {}).items()
        for key, value in numbers.items()
    }
    keys = rules.pop("keys", {})
    public |= {"keys": "given" if keys else "none"}
    public |= {f"keys.{table}": value for table, value in keys.items()}
    parts = law.pop("terms", ())
    law |= {"terms": len(parts)}
    numbers = {
        f"law.terms.{n}.{key}": value for n, part in enumerate(parts) for key, value in part.items()
    }
    tables = {"training": training, "law": law}
    inside = {f"{name}.{key}": one for name, table in tables.items() for key, one in table.items()}
    return rules | inside | numbers | public


def contributed(rounds: Sequence[Contribution], terms: Terms) -> int:
    """How many samples were trained on in these rounds of a slot: each tier has its own."""
    by_tier = {(one.turn - 1) // terms.rounds: one.samples for one in rounds}
    return sum(by_tier.values())


class FileTraining:
    """Loads the data, and PyTorch, when they are first needed."""

    def __init__(self, file: ClientFile, folder: Path, terms: Terms) -> None:
        """`folder` is where the client's file is."""
        self.file, self.folder, self.terms = file, folder, terms

    def __call__(
        self, slot: int, turn: int, amount: int, parameters: Arrays, *, first: int = 0
    ) -> Arrays:
        """A round of training that is not audited."""
        return self._local(slot, turn, amount, parameters, first=first)

    def commit(self) -> Commitment:
        """Commit to all its records, with salts from a secret in a file of its own."""
        return self.member.commit()

    def train(self, inputs: RoundInputs, parameters: Arrays) -> Arrays:
        """Train a round that may be audited, and keep a trace of it."""
        return self.member.train(inputs, parameters)

    def fine_tune(self, rounds: Sequence[Contribution], parameters: Arrays, epochs: int) -> Arrays:
        """Its own model after more epochs on all that it trained on in these rounds of a slot."""
        first, last, amount = rounds[0], rounds[-1], contributed(rounds, self.terms)
        if self.terms.audits is None:
            return self._local.fine_tune(last.slot, last.turn, amount, parameters, epochs=epochs)
        inputs = RoundInputs(
            client=self.file.name,
            position=self.position,
            slot=last.slot,
            turn=last.turn,
            head=first.head.digest,
            amount=amount,
        )
        return self.member.fine_tune(inputs, parameters, epochs=epochs)

    def try_fine_tuning(self, amount: int, parameters: Arrays) -> None:
        """One epoch on so many samples, to see whether it works and how long it takes."""
        self._local.fine_tune(1, self.terms.rounds, amount, parameters, epochs=1)

    @cached_property
    def member(self) -> "AuditedMember":
        """Commits, trains and keeps a trace where training is audited."""
        from fedaccord.flower.audited import AuditedMember

        return AuditedMember(self.model, self.terms, self.folder / self.file.audits)

    def look(self) -> None:
        """Check that it could train: its data, and the code of a task of one's own.

        The code is not run for that.
        """
        training = self.terms.training
        if training.code is not None:
            from fedaccord.training.code import check_code

            check_code(training.task, training.code, [self.folder])
        _ = self.examples

    @cached_property
    def examples(self) -> "OwnPartition":
        """The client's own data, if it has the form in the terms, and as many examples as said."""
        from fedaccord.data.own import load_folder
        from fedaccord.data.scale import scaled_sizes

        file, training = self.file, self.terms.training
        seed = training.seed + self.position
        own = load_folder(self.folder / file.data, [file.name], seed)
        shape = own.dataset.shape
        if own.dataset.label_names:
            raise InvalidInput(
                "labels: must be 0, 1, 2, ... on Flower, where no client sees the others' labels"
            )
        if shape != training.shape:
            raise InvalidInput(f"its examples have the shape {shape}, the terms {training.shape}")
        if (other := training.other_labels(survival=own.dataset.survival)) is not None:
            raise InvalidInput(f"labels: {other}")
        if (classes := own.dataset.classes) > training.classes:
            raise InvalidInput(
                f"labels: must be from 0 to {training.classes - 1} by the terms, and one is "
                f"{classes - 1}"
            )
        (needed,) = scaled_sizes([file.samples], training.scale)
        if own.sizes[0] < needed:
            short = (
                "" if training.scale == 1 else f" at scale {training.scale:g}: {needed} examples"
            )
            raise InvalidInput(f"samples: {file.samples}{short}, but its data has {own.sizes[0]}")
        return own

    def scores(self, parameters: Arrays) -> Scores:
        """How good a model is on the test examples here, and on the client's own test."""
        from fedaccord.flower.local import score, score_on

        data, tests = self.examples.dataset, self.examples.tests
        own = tests[0] if tests else np.array([], dtype=np.int64)
        others = np.setdiff1d(np.arange(len(data.test_labels)), own)
        here = score(self.model, parameters, data.test_inputs[others], data.test_labels[others])
        return Scores(here, score_on(self.model, parameters, own), self.model.task.measure.name)

    @property
    def position(self) -> int:
        """The client's position among all."""
        return self.terms.clients.index(self.file.name)

    @cached_property
    def model(self) -> "Model":
        """The terms' model on the client's own data."""
        from fedaccord.training.task import Model, find_task

        training = self.terms.training
        dataset = replace(self.examples.dataset, classes=training.classes)
        return Model(find_task(training.task, training.code, [self.folder]), dataset)

    @cached_property
    def _local(self) -> "LocalTraining":
        from fedaccord.flower.local import LocalTraining, local_steps

        training = self.terms.training
        return LocalTraining(
            self.model,
            local_steps(self.terms),
            self.examples,
            position=self.position,
            seed=training.seed,
            scale=training.scale,
        )
