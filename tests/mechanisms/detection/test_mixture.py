"""The mixture against SciPy, its gradient against finite differences."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from fedaccord.mechanisms.detection.methods import JITTER, fit_mixture


def draw(n: int, k: int, d: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, and soft memberships."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d)) * rng.uniform(0.1, 3.0, d)
    return torch.from_numpy(points), torch.from_numpy(rng.dirichlet(np.ones(k), n))


shapes = st.tuples(st.integers(2, 30), st.integers(1, 4), st.integers(1, 6), st.integers(0, 999))


@given(shapes)
def test_the_energy_is_minus_the_log_density(shape: tuple[int, int, int, int]) -> None:
    points, memberships = draw(*shape)
    mixture = fit_mixture(points, memberships)
    elsewhere = points + 1.0
    expected = -logsumexp(
        [
            np.log(share) + multivariate_normal(mean, covariance).logpdf(elsewhere.numpy())
            for share, mean, covariance in zip(
                mixture.shares.numpy(),
                mixture.means.numpy(),
                mixture.covariances.numpy(),
                strict=True,
            )
        ],
        axis=0,
    )
    # with fewer points than dimensions variances are as small as the jitter: condition 1e7
    energy = mixture.energy(elsewhere).numpy()
    np.testing.assert_allclose(energy, np.reshape(expected, -1), rtol=1e-7, atol=1e-7)


@given(shapes)
def test_the_moments_match_numpy(shape: tuple[int, int, int, int]) -> None:
    points, memberships = draw(*shape)
    mixture = fit_mixture(points, memberships)
    z, gamma = points.numpy(), memberships.numpy()
    np.testing.assert_allclose(mixture.shares, gamma.mean(axis=0), rtol=1e-12)
    diagonals = []
    for k, weights in enumerate(gamma.T):
        mean = np.average(z, axis=0, weights=weights)
        covariance = np.cov(z.T, aweights=weights, bias=True).reshape(z.shape[1], -1)
        covariance = covariance + JITTER * np.eye(len(mean))
        np.testing.assert_allclose(mixture.means[k], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(mixture.covariances[k], covariance, rtol=1e-7, atol=1e-9)
        diagonals.append(np.diag(covariance))
    assert mixture.narrowness().item() == pytest.approx((1 / np.array(diagonals)).sum(), rel=1e-6)


@pytest.mark.slow
def test_the_gradient_against_finite_differences() -> None:
    """Of energy and narrowness, through the fit, with respect to points and memberships."""
    points, memberships = draw(9, 3, 4, seed=5)

    def both(z: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mixture = fit_mixture(z, gamma)
        return mixture.energy(z), mixture.narrowness()

    inputs = (points.requires_grad_(), memberships.requires_grad_())
    assert torch.autograd.gradcheck(both, inputs, eps=1e-6, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "points",
    [
        torch.zeros(1, 3),
        torch.ones(5, 3),
        torch.arange(5.0)[:, None] * torch.ones(3),  # on a line: rank 1
    ],
)
def test_a_singular_covariance(points: torch.Tensor) -> None:
    points = points.double().requires_grad_()
    mixture = fit_mixture(points, torch.full((len(points), 2), 0.5))
    loss = mixture.energy(points).sum() + mixture.narrowness()
    torch.autograd.backward(loss)
    assert loss.isfinite()
    assert points.grad is not None
    assert points.grad.isfinite().all()


def test_an_empty_component_weighs_nothing() -> None:
    points, _ = draw(20, 1, 3, seed=1)
    full = torch.cat([torch.ones(20, 1), torch.zeros(20, 1)], dim=1).requires_grad_()
    mixture = fit_mixture(points, full)
    alone = fit_mixture(points, torch.ones(20, 1))
    torch.testing.assert_close(mixture.energy(points), alone.energy(points), rtol=1e-9, atol=1e-9)
    torch.autograd.backward(mixture.energy(points).sum())
    assert full.grad is not None
    assert full.grad.isfinite().all()
