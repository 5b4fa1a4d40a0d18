"""What a member keeps of each round, so that it can be trained again.

A folder has two files per slot that are only appended to: a line of JSON for each round, and the
models that it names, one after another as plain bytes. The line has the digests; the model that
came in and the update are kept whole, since nobody else keeps them. Older slots are removed when a
new one begins: once the verdict on a slot is due, nobody asks for it any more.
"""

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedaccord.audits.commitment import Digest, RoundInputs
from fedaccord.audits.software import Software
from fedaccord.errors import InvalidInput
from fedaccord.training.arrays import Arrays, digest

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class TracedRound(RoundInputs):
    """One round, by digests."""

    model: Digest
    """The model that came in."""
    update: Digest
    steps: tuple[Digest, ...] = Field(default=(), strict=False)
    """The local state after each step, where the terms ask for it."""
    software: Software


class _Line(BaseModel):
    """A line of the file: the round, and where its two models begin in the other file."""

    model_config = _STRICT
    round: TracedRound
    form: list[tuple[str, str, tuple[int, ...]]] = Field(strict=False)
    """Name, type and shape of each parameter."""
    at: int = Field(ge=0)


class Trace:
    """The folder of a member's rounds."""

    def __init__(self, folder: Path, slots: int = 2) -> None:
        """`slots` is for how many slots the rounds are kept, the newest included."""
        self.folder, self.slots = folder, slots

    def keep(self, one: TracedRound, incoming: Arrays, update: Arrays) -> None:
        """Append a round."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lines, models = self._files(one.slot)
        if not lines.exists():
            self._remove_before(one.slot - self.slots + 1)
        form = [(name, array.dtype.str, array.shape) for name, array in incoming.items()]
        with models.open("ab") as file:
            line = _Line(round=one, form=form, at=file.tell())
            for arrays in (incoming, update):
                file.writelines(np.ascontiguousarray(arrays[name]).data for name, *_ in form)
        with lines.open("ab") as text:  # the newline ends what a stopped process left unfinished
            text.write(b"\n" + line.model_dump_json().encode() + b"\n")

    def rounds(self, slot: int) -> list[TracedRound]:
        """The rounds of a slot; of one that was trained twice, the last."""
        return [line.round for line in self._newest(slot).values()]

    def find(self, slot: int, turn: int) -> tuple[TracedRound, Arrays, Arrays]:
        """A round with the model that came in and the update; they must have the digests noted."""
        line = self._newest(slot).get(turn)
        if line is None:
            raise InvalidInput(f"has no round {turn} of slot {slot}", str(self.folder))
        incoming, update = self._models(line)
        for arrays, noted in ((incoming, line.round.model), (update, line.round.update)):
            if digest(arrays) != noted:
                raise InvalidInput(
                    f"a model of round {turn} of slot {slot} has another digest than was noted",
                    str(self.folder),
                )
        return line.round, incoming, update

    def _files(self, slot: int) -> tuple[Path, Path]:
        return self.folder / f"slot-{slot}.jsonl", self.folder / f"slot-{slot}.models"

    def _newest(self, slot: int) -> dict[int, _Line]:
        return {line.round.turn: line for line in self._lines(slot)}

    def _lines(self, slot: int) -> Iterator[_Line]:
        """All lines that can be read: a process that was stopped may have left half of one."""
        path, _ = self._files(slot)
        for text in path.read_bytes().splitlines() if path.exists() else ():
            try:
                yield _Line.model_validate_json(text)
            except ValidationError:
                continue

    def _models(self, line: _Line) -> tuple[Arrays, Arrays]:
        try:
            sizes = [np.dtype(kind).itemsize * prod(shape) for _, kind, shape in line.form]
            with self._files(line.round.slot)[1].open("rb") as file:
                file.seek(line.at)
                content = [[file.read(size) for size in sizes] for _ in range(2)]
            incoming, update = (_arrays(line.form, parts) for parts in content)
        except (OSError, OverflowError, TypeError, ValueError):  # too few bytes, or no such form
            raise InvalidInput("its models are not complete", str(self.folder)) from None
        return incoming, update

    def _remove_before(self, slot: int) -> None:
        for path in self.folder.glob("slot-*.*"):
            number = path.stem.removeprefix("slot-")
            if number.isdigit() and int(number) < slot:
                path.unlink(missing_ok=True)


def _arrays(form: list[Any], parts: list[bytes]) -> Arrays:
    return {
        name: np.frombuffer(part, dtype).reshape(shape).copy()
        for (name, dtype, shape), part in zip(form, parts, strict=True)
    }
