"""The bound on updates: it takes half of the others to move it, and honest clients are within."""

from collections.abc import Iterator
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition, SkewedPartition
from fedaccord.protocol.guards import FACTOR, Length, largest_norms
from fedaccord.protocol.terms import Terms
from fedaccord.training.engine import GradientStep, LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.task import Model, Parameters, find_task
from tests.flower.consortia import terms_of

EPOCHS = {"shape": [2], "classes": 2, "local": "epochs", "batch": 10, "epochs": 2}


def largest(lengths: dict[str, Length], **changes: Any) -> dict[str, float]:
    return largest_norms(terms_of(tuple(lengths), **changes), lengths)


def test_the_robust_bound_is_a_multiple_of_the_others_median() -> None:
    norms = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 1e9}
    found = largest({name: Length(10, norm) for name, norm in norms.items()})
    assert found == {"a": 3 * FACTOR, "b": 3 * FACTOR, "c": 2 * FACTOR, "d": 2 * FACTOR}


def test_more_local_steps_may_go_further() -> None:
    lengths = {"a": Length(10, 1.0), "b": Length(10, 1.0), "c": Length(1_000, 90.0)}
    found = largest(lengths, training=EPOCHS)
    assert found["c"] == pytest.approx(100 * FACTOR)
    assert largest(lengths)["c"] == FACTOR  # one gradient step is one step


@pytest.mark.parametrize("names", ["a", "ab"])
def test_with_fewer_than_two_others_there_is_no_bound(names: str) -> None:
    assert set(largest({name: Length(1, 9e9) for name in names}).values()) == {inf}


def test_without_movement_of_the_others_there_is_no_bound() -> None:
    lengths = {"a": Length(1, 0.0), "b": Length(1, 0.0), "c": Length(1, 5.0)}
    assert largest(lengths)["c"] == inf
    assert largest(lengths)["a"] == 5.0 * FACTOR


def test_a_custom_bound_and_no_bound() -> None:
    lengths = {name: Length(1, 1.0) for name in "abc"}
    assert set(largest(lengths, update_bound=7.5).values()) == {7.5}
    assert set(largest(lengths, update_bound="off").values()) == {inf}


NORMS = st.floats(1e-3, 1e3)


@given(st.lists(NORMS, min_size=3, max_size=9), st.lists(st.floats(0, 1e300), max_size=3))
def test_fewer_than_half_cannot_move_the_bound(honest: list[float], lies: list[float]) -> None:
    """Whatever the liars send, every bound is within what the honest ones would set."""
    lies = lies[: (len(honest) - 2) // 2]
    lengths = {f"h{n}": Length(5, norm) for n, norm in enumerate(honest)}
    lengths |= {f"l{n}": Length(5, norm) for n, norm in enumerate(lies)}
    for bound in largest(lengths).values():
        assert FACTOR * min(honest) <= bound <= FACTOR * max(honest)


# --- Honest clients ------------------------------------------------------------------------

LOCAL: list[GradientStep | LocalEpochs] = [
    GradientStep(0.5),
    LocalEpochs(0.1, 32, 1),
    LocalEpochs(0.5, 8, 5),
]


def rounds(
    model: Model, shares: list[Any], local: GradientStep | LocalEpochs
) -> Iterator[dict[str, Length]]:
    """The lengths of everyone's update in each of twelve rounds of FedAvg."""
    parameters = model.start(0)
    for turn in range(1, 13):
        updates: list[tuple[int, Parameters]] = []
        for n, share in enumerate(shares):
            plan = TrainingPlan(
                model, [*[np.array([], np.int64)] * n, share], turn, local, 0, 1, first=turn
            )
            (after,) = PlainEngine().rounds(plan, parameters)
            updates.append((len(share), after))
        yield {str(n): Length(size, moved(a, parameters)) for n, (size, a) in enumerate(updates)}
        total = sum(size for size, _ in updates)
        parameters = {
            name: torch.stack([after[name] * (size / total) for size, after in updates]).sum(0)
            for name in parameters
        }


def moved(after: Parameters, before: Parameters) -> float:
    return sqrt(sum(float(((after[k] - before[k]).double() ** 2).sum()) for k in before))


def local_terms(local: GradientStep | LocalEpochs, names: tuple[str, ...]) -> Terms:
    training: dict[str, Any] = {"shape": [2], "classes": 2}
    if isinstance(local, LocalEpochs):
        training |= {"local": "epochs", "batch": local.batch, "epochs": local.epochs}
    return terms_of(names, training=training)


@pytest.mark.slow
def test_honest_clients_with_unlike_data_are_well_within() -> None:
    """Sizes from 2 to a third of all data, a Dirichlet skew of 0.1, two tasks, three ways."""
    worst = 0.0
    for dataset in map(load_dataset, ("digits", "breast-cancer")):
        sizes = [2, 3, 5, 10, 20, 50, 100, len(dataset.labels) // 3]
        for partition in (RandomPartition(dataset, sizes), SkewedPartition(dataset, sizes, 0.1)):
            for task, local in ((t, way) for t in ("softmax", "mlp") for way in LOCAL):
                model = Model(find_task(task), dataset)
                for lengths in rounds(model, partition.draw(1), local):
                    bounds = largest_norms(local_terms(local, tuple(lengths)), lengths)
                    worst = max(worst, *(x.norm / bounds[n] for n, x in lengths.items()))
    print(f"the longest honest update was {worst * FACTOR:.1f} times the usual")
    assert worst < 0.5
