"""Which clients take a step together, and with which examples."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.data.dataset import load_dataset
from fedaccord.training.engine import TrainingPlan
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule, LocalSteps
from fedaccord.training.task import Model, find_task
from fedaccord.training.vectorised.engine import draw_batches, split_clients, split_union

MODEL = Model(find_task("softmax"), load_dataset("digits"))
SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=30).filter(any)


def plan(sizes: list[int], local: LocalRule) -> TrainingPlan:
    rng = np.random.default_rng(len(sizes))
    shares = [rng.choice(MODEL.dataset.size, size, replace=False) for size in sizes]
    return TrainingPlan(MODEL, shares, 1, local)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 50), st.integers(1, 3), st.booleans())
def test_each_client_takes_its_own_batches_in_order(
    sizes: list[int], batch: int, number: int, by_steps: bool
) -> None:
    rule = LocalSteps(0.1, batch, 3 * number) if by_steps else LocalEpochs(0.1, batch, number)
    local: LocalEpochs | LocalSteps = rule
    given_plan = plan(sizes, local)
    groups = split_clients(given_plan, local)
    assert sorted(n for group in groups for n in group) == given_plan.taking_part
    for group in groups:
        taken: dict[int, list[list[int]]] = {n: [] for n in group}
        for chosen, weights in draw_batches(local, [(given_plan, n) for n in group], 1).steps():
            for row, n in enumerate(group[: len(chosen)]):
                real = weights[row] > 0
                taken[n].append(chosen[row][real].tolist())
                assert torch.allclose(weights[row][real], torch.tensor(1.0 / int(real.sum())))
                assert set(chosen[row].tolist()) <= set(given_plan.shares[n].tolist())
        for n in group:
            assert taken[n] == [one.tolist() for one in given_plan.batches(n, turn=1)]


def test_no_padding_if_all_have_the_same_number_of_samples() -> None:
    local = LocalEpochs(0.1, batch=16)
    given_plan = plan([40] * 5, local)
    steps = list(draw_batches(local, [(given_plan, n) for n in range(5)], turn=1).steps())
    assert [chosen.shape for chosen, _ in steps] == [(5, 16), (5, 16), (5, 8)]


def test_few_clients_make_several_groups() -> None:
    local = LocalEpochs(0.1, batch=16)
    assert [len(group) for group in split_clients(plan([9] * 6, local), local)] == [2, 2, 2]
    assert [len(group) for group in split_clients(plan([9] * 100, local), local)] == [10] * 10


@settings(max_examples=40, deadline=None)
@given(SIZES)
def test_the_union_counts_every_sample_as_often_as_it_was_chosen(sizes: list[int]) -> None:
    given_plan = plan(sizes, GradientStep())
    whole = torch.zeros(MODEL.dataset.size, dtype=torch.float64)
    for share in given_plan.shares:
        whole[torch.from_numpy(share)] += 1.0 / given_plan.total
    weights = torch.cat([part.weights for part in split_union(given_plan)])
    labels = torch.cat([part.labels for part in split_union(given_plan)])
    chosen = whole > 0
    # weights are 32-bit numbers, with rounding errors of 6e-8
    torch.testing.assert_close(weights.double(), whole[chosen], rtol=1e-7, atol=0)
    assert torch.equal(labels, given_plan.labels[chosen])


def test_the_whole_dataset_is_not_copied() -> None:
    everything = TrainingPlan(MODEL, [np.arange(MODEL.dataset.size)] * 2, 1, GradientStep())
    assert split_union(everything)[0].inputs.data_ptr() == everything.inputs.data_ptr()
