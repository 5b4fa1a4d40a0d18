"""DAGMM, STD-DAGMM and ECOD, on updates as coordinates in a small span.

A model may have millions of parameters, but n updates span at most n dimensions. An orthonormal
basis of that span preserves lengths and angles, so an autoencoder of the coordinates has as much
information as one of all parameters, and is as fast for a large model as for a small one. Of later
updates, only the length of the part outside the span is kept.

DAGMM (Zong et al., ICLR 2018) and STD-DAGMM are an autoencoder and a Gaussian mixture. The mixture
is computed in 64 bits, because covariances of a few updates are nearly singular.

ECOD (Li et al., TKDE 2022) comes from PyOD and has no settings. The features are those of STD-DAGMM
that need no autoencoder: relative distance from the mean update, cosine similarity with it, and the
standard deviation of the update's values. (On the values themselves ECOD would look for large ones,
which a zero update does not have.)
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fedaccord.checks import check_installed
from fedaccord.errors import InvalidInput
from fedaccord.mechanisms.detection.setting import check_updates
from fedaccord.numbers import FloatArray

_LARGEST = 1e6
"""Values are clipped here, in typical lengths, so that their squares fit into 32 bits."""
_NEGLIGIBLE = 1e-10
"""Singular values below this fraction of the largest are rounding errors."""


@dataclass(frozen=True)
class Seen:
    """Updates in units in which a typical coordinate is 1: a typical update has length sqrt(r)."""

    inside: Tensor
    """Coordinates in the span, one row of r for each update."""
    outside: Tensor
    """The squared length of the part outside the span."""
    deviation: Tensor
    """The standard deviation of the update's values (STD-DAGMM); typically 1 if their mean is 0."""

    @cached_property
    def lengths(self) -> Tensor:
        """The lengths of the whole updates."""
        return (self.inside.square().sum(dim=1) + self.outside).sqrt()

    @property
    def typical(self) -> float:
        """The length of a typical update."""
        return float(np.sqrt(self.inside.shape[1]))


@dataclass(frozen=True, eq=False)
class Span:
    """The coordinates in which updates are seen."""

    unit: float
    """The length of a typical update."""
    parameters: int
    """How many values an update has."""
    basis: FloatArray | None
    """Orthonormal rows; None if all parameters are used as they are."""

    def see(self, updates: FloatArray) -> Seen:
        """Their coordinates."""
        if updates.shape[1] != self.parameters:
            raise InvalidInput(
                f"updates must have {self.parameters:,} values, as those that were fitted, "
                f"got {updates.shape[1]:,}"
            )
        rows = _scaled(updates, self.unit)
        inside, outside = rows, np.zeros(len(rows))
        if self.basis is not None:
            inside = rows @ self.basis.T
            # the residual itself, as a difference of lengths would lose its digits
            outside = ((rows - inside @ self.basis) ** 2).sum(axis=1)
        size = inside.shape[1]
        return Seen(
            torch.from_numpy(inside * np.sqrt(size)).float(),
            torch.from_numpy(outside * size).float(),
            torch.from_numpy(rows.std(axis=1) * np.sqrt(rows.shape[1])).float(),
        )


def span_of(updates: FloatArray) -> Span:
    """The span of these updates."""
    unit = typical_length(updates)
    _, sizes, basis = np.linalg.svd(_scaled(updates, unit), full_matrices=False)
    rank = max(1, int((sizes > _NEGLIGIBLE * max(1.0, sizes[0])).sum()))
    return Span(unit, updates.shape[1], _rotation(rank) @ basis[:rank])


def _rotation(size: int) -> FloatArray:
    """A random rotation, always the same.

    The first singular vector is nearly the mean update. As one large coordinate among small ones it
    would be learnt slowly, since Adam moves all weights at the same rate. A rotation spreads it
    over all coordinates, as the parameters do.
    """
    rng = np.random.default_rng(size)
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def all_parameters(updates: FloatArray) -> Span:
    """No span: every parameter is a coordinate."""
    return Span(typical_length(updates), updates.shape[1], None)


def typical_length(updates: FloatArray) -> float:
    """The median length of the nonzero updates, which tolerates up to half of them being odd."""
    largest = np.abs(updates).max(axis=1)
    there = largest > 0
    if not there.any():
        return 1.0
    with np.errstate(under="ignore"):
        parts = updates[there] / largest[there, None]  # so that no square overflows
        return float(np.median(largest[there] * np.sqrt((parts**2).sum(axis=1))))


def _scaled(updates: FloatArray, unit: float) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.clip(updates / unit, -_LARGEST, _LARGEST)


SHORTEST = 0.1
"""Shorter updates, in typical lengths, count as this long, to avoid dividing 0 by 0."""
_TINY = 1e-12


def squared_distance(seen: Seen, expected: Tensor) -> Tensor:
    """|x - y|^2 of an update x and its expected value y."""
    return (seen.inside - expected).square().sum(dim=1) + seen.outside


def relative_distance(seen: Seen, squared: Tensor) -> Tensor:
    """|x - y| / |x|, from the squared distance."""
    return (squared + _TINY).sqrt() / seen.lengths.clamp_min(SHORTEST * seen.typical)


def cosine_similarity(seen: Seen, expected: Tensor) -> Tensor:
    """x y / (|x| |y|); 0 if either is zero."""
    lengths = seen.lengths * (expected.square().sum(dim=1) + _TINY).sqrt()
    return (seen.inside * expected).sum(dim=1) / lengths.clamp_min(_TINY)


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


@dataclass(frozen=True)
class Ecod:
    """It has no settings."""

    def __post_init__(self) -> None:
        """Refuse at once if PyOD is missing."""
        _pyod_ecod()

    def fit(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> "FittedEcod":
        """Fit ECOD to the features of these updates."""
        rows = check_updates(updates, names)
        span = all_parameters(rows)
        mean = span.see(rows).inside.mean(dim=0, keepdim=True)
        model = _pyod_ecod()
        features = _features(span, mean, rows)
        _quietly(model.fit, features)
        return FittedEcod(span, mean, model)


@dataclass(frozen=True, eq=False)
class FittedEcod:
    """The features of the updates that it was fitted on."""

    span: Span
    mean: Tensor
    model: Any

    def scores(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> FloatArray:
        """How far out in the tails each update is, summed over the features.

        One at a time, because PyOD ranks all updates that it is given together with those that it
        was fitted to: many free riders would hide one another.
        """
        features = _features(self.span, self.mean, check_updates(updates, names))
        one_by_one = [_quietly(self.model.decision_function, row[None]) for row in features]
        return np.concatenate(one_by_one)


def _features(span: Span, mean: Tensor, rows: FloatArray) -> FloatArray:
    seen = span.see(rows)
    distance = relative_distance(seen, squared_distance(seen, mean))
    columns = [distance, cosine_similarity(seen, mean), seen.deviation]
    return torch.stack(columns, dim=1).double().numpy()


def _pyod_ecod() -> Any:
    check_installed("the detector ecod", "pyod")
    from pyod.models.ecod import ECOD

    return ECOD()


def _quietly(work: Any, features: FloatArray) -> Any:
    """Without SciPy's warning that the skewness of equal numbers is undefined; PyOD uses 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return work(features)
