"""A mixture of Gaussians by soft memberships, and its energy (Zong et al., section 3.3).

All of it in 64 bits: covariances of a few updates are close to singular.
"""

from dataclasses import dataclass
from math import log, pi

import torch
from torch import Tensor

JITTER = 1e-6
"""Added to the diagonal of every covariance (features are about 1), so that none is singular."""
_LEAST = 1e-12
"""The membership that an empty component has, so that its logarithm and mean are numbers."""


@dataclass(frozen=True)
class Mixture:
    """K components in d dimensions."""

    shares: Tensor
    """phi: K numbers that add up to 1."""
    means: Tensor
    """mu: K x d."""
    covariances: Tensor
    """Sigma: K x d x d."""

    def energy(self, points: Tensor) -> Tensor:
        """E(z), minus the logarithm of the density, of each point (eq. 6)."""
        factors = torch.linalg.cholesky(self.covariances)
        apart = (points.double()[:, None] - self.means).permute(1, 2, 0)  # K x d x n
        white = torch.linalg.solve_triangular(factors, apart, upper=False)
        determinants = 2.0 * factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        constant = determinants + self.means.shape[1] * log(2.0 * pi)
        densities = self.shares.log() - 0.5 * constant - 0.5 * (white**2).sum(dim=1).T
        return -torch.logsumexp(densities, dim=1)

    def narrowness(self) -> Tensor:
        """P(Sigma), the sum of 1 / variance over all components and dimensions (section 3.4)."""
        return self.covariances.diagonal(dim1=1, dim2=2).reciprocal().sum()


def fit_mixture(points: Tensor, memberships: Tensor) -> Mixture:
    """The mixture of n points by their memberships in the components, n x K (eq. 5)."""
    z, gamma = points.double(), memberships.double()
    totals = gamma.sum(dim=0).clamp_min(_LEAST)
    means = gamma.T @ z / totals[:, None]
    apart = z[:, None] - means
    spread = torch.einsum("nk,nki,nkj->kij", gamma, apart, apart) / totals[:, None, None]
    jitter = JITTER * torch.eye(z.shape[1], dtype=torch.float64)
    return Mixture(totals / len(z), means, spread + jitter)
