"""Cox's partial likelihood, against a double loop."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

import fedaccord as fa
from fedaccord.training.cox import cox_loss


def readable(scores: Tensor, labels: Tensor) -> Tensor:
    """The definition: everyone who is still seen at the time of an event is at risk."""
    losses = []
    for i in range(len(labels)):
        if labels[i] <= 0:
            losses.append(0.0 * scores[i])
            continue
        at_risk = [j for j in range(len(labels)) if abs(labels[j]) >= labels[i]]
        losses.append(torch.logsumexp(scores[at_risk], dim=0) - scores[i])
    return torch.stack(losses)


def gradient(losses: Tensor, scores: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(losses.sum(), scores)
    return found


def patients(seed: int, size: int = 40, latest: int = 12) -> tuple[Tensor, Tensor]:
    """Many at the same time, some seen for no time at all."""
    rng = np.random.default_rng(seed)
    scores = torch.from_numpy(rng.normal(scale=2.0, size=size))
    return scores, torch.from_numpy(rng.integers(-latest, latest + 1, size))


@pytest.mark.parametrize("seed", range(8))
def test_losses_and_gradients_are_those_of_the_double_loop(seed: int) -> None:
    scores, labels = patients(seed)
    weights = torch.rand(len(labels), dtype=torch.float64)
    here, there = (scores.clone().requires_grad_() for _ in range(2))
    ours, theirs = cox_loss(here[:, None], labels), readable(there, labels)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        gradient(weights * ours, here), gradient(weights * theirs, there), rtol=1e-11, atol=1e-12
    )


def test_an_event_alone_in_its_sum_has_a_gradient_of_exactly_0() -> None:
    """In 32 bits it was a rounding error now and then, and Adam made a step of it."""
    rng = np.random.default_rng(0)
    labels = torch.tensor([900, -100, -200, -300, -400, -500, -600, -700])
    for _ in range(200):
        scores = torch.from_numpy(rng.normal(scale=3.0, size=(8, 1))).float().requires_grad_()
        losses = cox_loss(scores, labels)
        assert not losses.any()
        assert not gradient(losses / len(labels), scores).any()


def test_many_clients_at_once() -> None:
    """What the vectorised engine does: a batch of each, filled up with labels of 0."""
    each = [patients(seed, size) for seed, size in enumerate([40, 13, 1])]
    scores, labels = (
        torch.full((3, 40), 7.0, dtype=torch.float64),
        torch.zeros(3, 40, dtype=torch.int64),
    )
    for row, (own, truth) in enumerate(each):
        scores[row, : len(own)], labels[row, : len(own)] = own, truth
    gradients = vmap(grad(lambda s, y: cox_loss(s, y).sum()))(scores, labels)
    for row, (own, truth) in enumerate(each):
        live = own.clone().requires_grad_()
        alone = gradient(readable(live, truth), live)
        torch.testing.assert_close(gradients[row, : len(own)], alone, rtol=0, atol=1e-12)
        assert not gradients[row, len(own) :].any()


def test_scores_far_apart_in_32_bits() -> None:
    """Without logarithms, exp(300) overflows and exp(-300) is 0."""
    scores = torch.tensor([-300.0, 0.0, 300.0, -299.0], requires_grad=True)
    labels = torch.tensor([9, 8, 7, -9])
    losses = cox_loss(scores[:, None], labels)
    expected = readable(scores.detach().double(), labels)
    torch.testing.assert_close(losses.double(), expected, rtol=1e-6, atol=1e-6)
    assert bool(gradient(losses, scores).isfinite().all())


def test_a_batch_without_an_event_has_no_gradient() -> None:
    scores = torch.randn(5, 1, requires_grad=True)
    losses = cox_loss(scores, torch.tensor([-1, -2, 0, -2, -9]))
    assert not gradient(losses, scores).any()


def test_one_score_per_example() -> None:
    with pytest.raises(fa.InvalidInput, match="must give one score for each example, not 2"):
        cox_loss(torch.zeros(3, 2), torch.tensor([1, 2, 3]))
