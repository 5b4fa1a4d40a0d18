"""What a simulation measures while its slots run, as `train` does in one process."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from fedaccord.data.scale import examples_for
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.rounds import earned_model
from fedaccord.protocol.state import Slot, State
from fedaccord.training.course import (
    AfterRound,
    Course,
    Score,
    SlotRecord,
    TrainingRun,
    with_alone,
)
from fedaccord.training.fine_tuning import check_fine_tuning, fine_tune
from fedaccord.training.own_tests import on_own_tests
from fedaccord.training.task import Parameters
from fedaccord.training.vectorised.engine import VectorisedEngine


class Diary:
    """Measures the model after each round, and at the end of a slot on everyone's own test.

    That is the slot's last model, also where the clock let some clients stop at an earlier tier.
    """

    def __init__(self, course: Course, seed: int, progress: AfterRound | None, done: int) -> None:
        """`done` rounds of the first slot are over already, and were measured before."""
        self._course, self._seed, self._progress = course, seed, progress
        self._partition = course.partition(seed)
        check_fine_tuning(course.fine_tuning, self._partition)
        self._slots: list[SlotRecord] = []
        self._received: list[list[int]] = []
        """The positions of the clients that were sent the model of each slot."""
        self._rounds: list[Score] = []
        self._done, self._missed = done, done > 0
        self._shared: Parameters = {}
        """The model of the last slot."""
        self._personal: dict[int, Parameters] = {}
        """The same after fine-tuning, by the position of the client."""

    def watch(self, state: State, arrays: Arrays) -> None:
        """Measure what has just happened."""
        slot = state.current
        if slot.rounds > self._done:
            self._done = slot.rounds
            self._rounds.append(self._score(_tensors(arrays)))
            if self._progress is not None:
                self._progress(slot.number, slot.rounds, self._rounds[-1])
        if slot.told:
            self._close(state, _tensors(arrays))

    def _close(self, state: State, model: Parameters) -> None:
        """Write down a slot that is over."""
        slot, names = state.current, state.rules.clients
        amounts = examples_for(
            [slot.contributed.get(name, 0) for name in names], self._course.scale
        )
        self._shared, self._personal = model, self._fine_tuned(slot, amounts.tolist(), model)
        record = SlotRecord(
            slot.number,
            slot.phase,
            int(amounts.sum()),
            () if self._missed else tuple(self._rounds),  # else they would count from 1
            self._rounds[-1] if self._rounds else self._score(model),
            tuple(slot.out),
        )
        self._slots.append(self._judged(record))
        sent = [n for n, name in enumerate(names) if earned_model(slot, state.rules, name)]
        self._received.append(sent)
        self._rounds, self._done, self._missed = [], 0, False

    def _score(self, model: Parameters) -> Score:
        data = self._course.model.dataset
        return Score(*self._course.model.evaluate(model, data.test_inputs, data.test_labels))

    def _fine_tuned(
        self, slot: Slot, amounts: Sequence[int], model: Parameters
    ) -> dict[int, Parameters]:
        """Everyone's model after its own epochs on its contribution."""
        if not self._course.fine_tuning or not any(amounts):
            return {}
        drawn = self._partition.draw(slot.number)
        shares = [own[:amount] for own, amount in zip(drawn, amounts, strict=True)]
        plan = self._course.plan(shares, self._seed, slot.number)
        return fine_tune(VectorisedEngine(), plan, model, self._course.fine_tuning)

    def _judged(self, record: SlotRecord) -> SlotRecord:
        """With how well each client's model does on its own test."""
        own, _ = self._on_own_tests({})
        tuned, _ = self._on_own_tests(self._personal) if self._course.fine_tuning else ((), ())
        return replace(record, own=own, tuned=tuned)

    def _on_own_tests(
        self, models: dict[int, Parameters]
    ) -> tuple[tuple[Score, ...], tuple[npt.NDArray[np.float64], ...]]:
        """Of some clients' own models, and of the shared one for all others."""
        tests = self._partition.tests
        has = [models.get(n, self._shared) for n in range(len(tests))]
        return on_own_tests(self._course.model, has, tests)

    @property
    def suspended(self) -> list[tuple[str, ...]]:
        """Who was suspended in each slot."""
        return [record.suspended for record in self._slots]

    def run(self, profile: str, apart: npt.ArrayLike) -> TrainingRun:
        """All slots as one run.

        `apart` says how many samples each client trains on alone, slot by slot.
        """
        received = self._received
        slots, alone = with_alone(self._course, self._slots, apart, self._seed, received=received)
        _, errors = self._on_own_tests(alone)
        tuned: tuple[npt.NDArray[np.float64], ...] = ()
        if self._course.fine_tuning:
            slots = tuple(map(_untuned_alone, slots))
            _, tuned = self._on_own_tests(self._personal | alone)
        return TrainingRun(profile, self._seed, slots, self._shared, errors, tuned)


def _untuned_alone(record: SlotRecord) -> SlotRecord:
    """Whoever trained alone has its own model, of which there is nothing to fine-tune."""
    alone = {one.client for one in record.alone}
    scores = zip(record.own, record.tuned, strict=True)
    return replace(
        record, tuned=tuple(own if n in alone else tuned for n, (own, tuned) in enumerate(scores))
    )


def _tensors(arrays: Arrays) -> Parameters:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
