"""A client's own file, `client.toml`: what only it knows, and where its things are."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedaccord.atomic import write_whole
from fedaccord.errors import InvalidInput
from fedaccord.files.reading import load_toml
from fedaccord.protocol.notes import CopyFile
from fedaccord.protocol.parameters import Arrays, to_bytes
from fedaccord.protocol.participant import Participant, Private
from fedaccord.protocol.terms import (
    MOST_SAMPLES,
    RATIOS,
    ClientName,
    Terms,
    load_terms,
    mistakes_in,
)

if TYPE_CHECKING:
    from fedaccord.data.own import OwnPartition
    from fedaccord.flower.local import LocalTraining

_PATIENCE = 30.0
"""Seconds to wait for a copy that another message is being written to."""


class ClientFile(BaseModel):
    """What is in the file. Paths are relative to it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    name: ClientName
    valuation: float = Field(gt=0)
    cost_per_sample: float = Field(gt=0)
    samples: int = Field(ge=1, le=MOST_SAMPLES)
    discount_factor: float = Field(ge=0, lt=1)
    communication_cost: float = Field(default=0.0, ge=0)
    tell_discount_factor: bool = False
    terms: str = "terms.toml"
    """The terms that this client signed, which the app must have, too."""
    data: str = "data"
    ledger: str = "ledger.db"
    model: str | None = None
    consents_to_slot: int | None = Field(default=None, ge=0)
    """The slot whose model this client agrees to go back to, if that is proposed."""
    slips: dict[str, int] = Field(default_factory=dict)

    @property
    def private(self) -> Private:
        """The client's numbers."""
        return Private(
            name=self.name,
            valuation=self.valuation,
            cost_per_sample=self.cost_per_sample,
            samples=self.samples,
            discount_factor=self.discount_factor,
            communication_cost=self.communication_cost,
            tells_discount_factor=self.tell_discount_factor,
            consents_to_slot=self.consents_to_slot,
            slips={int(slot): amount for slot, amount in self.slips.items()},
        )


def load_client_file(path: str | Path) -> ClientFile:
    """A client's file, or every mistake in it."""
    try:
        found = ClientFile.model_validate(load_toml(path))
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error), str(path)) from None
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
        raise InvalidInput(wrong, str(path))
    return found


def client_of_file(path: str | Path, terms: Terms) -> Participant:
    """The client of a file, ready to answer."""
    file, folder = load_client_file(path), Path(path).parent
    _check_signed(folder / file.terms, terms)
    if file.name not in terms.clients:
        raise InvalidInput(f"name: there is no {file.name!r} in the terms", str(path))
    copy, training = CopyFile(folder / file.ledger, _PATIENCE), _Training(file, folder, terms)
    return Participant(file.private, terms, copy, training, look=training.examples)


def _check_signed(path: Path, terms: Terms) -> None:
    """The app comes from the server, and so do its terms: are they those of the client's file?"""
    signed, given = _lines(load_terms(path)), _lines(terms)
    if others := [
        f"{key}: {value} was signed, but the server's app has {given[key]}"
        for key, value in signed.items()
        if value != given[key]
    ]:
        raise InvalidInput(others, str(path))


def _lines(terms: Terms) -> dict[str, Any]:
    """Every rule by its name."""
    rules = terms.model_dump()
    training = rules.pop("training")
    return rules | {f"training.{key}": value for key, value in training.items()}


def keep_model(path: str | Path, arrays: Arrays) -> None:
    """Put the model of a slot where the client wants it, if it does; whole or not at all."""
    file = load_client_file(path)
    if file.model is not None:
        write_whole(Path(path).parent / file.model, to_bytes(arrays), private=True)


class _Training:
    """Loads the data, and PyTorch, when there is something to train, and not before."""

    def __init__(self, file: ClientFile, folder: Path, terms: Terms) -> None:
        self.file, self.folder, self.terms = file, folder, terms

    def __call__(self, slot: int, turn: int, amount: int, parameters: Arrays) -> Arrays:
        return self._local()(slot, turn, amount, parameters)

    def examples(self) -> "OwnPartition":
        """The client's own data, if it is of the form that the terms say, and as much as told."""
        from fedaccord.data.own import load_folder

        file, training = self.file, self.terms.training
        seed = training.seed + self.position
        own = load_folder(self.folder / file.data, [file.name], seed)
        shape = own.dataset.shape
        if shape != training.shape or own.dataset.classes > training.classes:
            raise InvalidInput(f"its examples have the shape {shape}, the terms {training.shape}")
        if own.sizes[0] < file.samples:
            raise InvalidInput(f"samples: {file.samples}, but its data has {own.sizes[0]}")
        return own

    @property
    def position(self) -> int:
        """The client's among all."""
        return self.terms.clients.index(self.file.name)

    def _local(self) -> "LocalTraining":
        from fedaccord.flower.local import LocalTraining, local_steps
        from fedaccord.training.task import Model, find_task

        own, training, steps = self.examples(), self.terms.training, local_steps(self.terms)
        model = Model(find_task(training.task), replace(own.dataset, classes=training.classes))
        return LocalTraining(model, steps, own, position=self.position, seed=training.seed)
