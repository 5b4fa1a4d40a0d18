"""DAGMM (Zong et al., ICLR 2018) and STD-DAGMM: an autoencoder and a Gaussian mixture.

The mixture is computed in 64 bits, because covariances of a few updates are nearly singular.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi

import numpy.typing as npt
import torch
from torch import Tensor, nn

from fedaccord.errors import InvalidInput
from fedaccord.mechanisms.detection.setting import check_updates
from fedaccord.mechanisms.detection.span import (
    Seen,
    Span,
    all_parameters,
    cosine_similarity,
    relative_distance,
    span_of,
    squared_distance,
)
from fedaccord.numbers import FloatArray

JITTER = 1e-6
"""Added to the diagonal of every covariance (features are about 1), so that none is singular."""
_LEAST = 1e-12
"""The membership of an empty component, so that its logarithm and mean are finite."""


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
        """E(z), the negative log density of each point (eq. 6)."""
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
    """The mixture of n points, given their memberships in the components, n x K (eq. 5)."""
    z, gamma = points.double(), memberships.double()
    totals = gamma.sum(dim=0).clamp_min(_LEAST)
    means = gamma.T @ z / totals[:, None]
    apart = z[:, None] - means
    spread = torch.einsum("nk,nki,nkj->kij", gamma, apart, apart) / totals[:, None, None]
    jitter = JITTER * torch.eye(z.shape[1], dtype=torch.float64)
    return Mixture(totals / len(z), means, spread + jitter)


@dataclass(frozen=True)
class Dagmm:
    """The settings; the networks are those for the paper's smallest dataset (452 examples)."""

    deviation: bool = False
    """Whether z includes the standard deviation: STD-DAGMM."""
    hidden: int = 10
    latent: int = 2
    components: int = 2
    """K."""
    energy_weight: float = 0.1
    """lambda1."""
    narrowness_weight: float = 0.005
    """lambda2."""
    steps: int = 1_500
    rate: float = 1e-3
    """Learning rate of Adam; a step uses all updates at once."""
    whole: bool = False
    """Train on all parameters instead of coordinates in the span of the updates: slower."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse impossible settings."""
        if min(self.hidden, self.latent, self.components, self.steps) < 1:
            raise InvalidInput("hidden, latent, components and steps: must be 1 or more")
        if not 0 < self.rate < float("inf"):
            raise InvalidInput(f"must be more than 0, got {self.rate}", field="rate")

    def fit(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> "FittedDagmm":
        """Train both networks on these updates."""
        rows = check_updates(updates, names)
        span = all_parameters(rows) if self.whole else span_of(rows)
        seen = span.see(rows)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = Networks(self, seen.inside.shape[1])
            optimiser = torch.optim.Adam(network.parameters(), lr=self.rate, fused=True)
            network.train()
            for _ in range(self.steps):
                optimiser.zero_grad()
                torch.autograd.backward(network.loss(seen))
                optimiser.step()
        network.eval()
        with torch.no_grad():
            points, memberships, _ = network(seen)
            mixture = fit_mixture(points, memberships)
        return FittedDagmm(span, network, mixture)


class Networks(nn.Module):
    """The compression network and the estimation network."""

    def __init__(self, settings: Dagmm, size: int) -> None:
        """Initialise the weights at random."""
        super().__init__()
        self.settings = settings
        hidden, latent = settings.hidden, settings.latent
        self.encoder = nn.Sequential(nn.Linear(size, hidden), nn.Tanh(), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, size))
        self.estimator = nn.Sequential(
            nn.Linear(latent + 2 + settings.deviation, hidden),
            nn.Tanh(),
            nn.Dropout(0.5),
            nn.Linear(hidden, settings.components),
            nn.Softmax(dim=1),
        )

    def forward(self, seen: Seen) -> tuple[Tensor, Tensor, Tensor]:
        """The points z, their memberships in the components, and |x - x'|^2."""
        latent = self.encoder(seen.inside)
        rebuilt = self.decoder(latent)
        squared = squared_distance(seen, rebuilt)
        extra = [relative_distance(seen, squared), cosine_similarity(seen, rebuilt)]
        if self.settings.deviation:
            extra.append(seen.deviation)
        points = torch.cat([latent, torch.stack(extra, dim=1)], dim=1)
        return points, self.estimator(points), squared

    def loss(self, seen: Seen) -> Tensor:
        """Reconstruction error + lambda1 x mean energy + lambda2 x narrowness (eq. 7)."""
        points, memberships, squared = self(seen)
        mixture = fit_mixture(points, memberships)
        loss: Tensor = (
            squared.mean() / seen.inside.shape[1]
            + self.settings.energy_weight * mixture.energy(points).mean()
            + self.settings.narrowness_weight * mixture.narrowness()
        )
        return loss


@dataclass(frozen=True, eq=False)
class FittedDagmm:
    """Trained networks, and the mixture of the updates that they were trained on."""

    span: Span
    networks: Networks
    mixture: Mixture

    def scores(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> FloatArray:
        """The energy of each update."""
        seen = self.span.see(check_updates(updates, names))
        with torch.no_grad():
            points, _, _ = self.networks(seen)
            energies: FloatArray = self.mixture.energy(points).numpy()
        return energies
