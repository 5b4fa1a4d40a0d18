"""The detectors, each against the one contract."""

import numpy as np
import pytest
import torch

import fedaccord as fa
from fedaccord.mechanisms.detection.detector import Detector
from fedaccord.mechanisms.detection.evaluation import DETECTORS, find_detector
from fedaccord.mechanisms.detection.methods import Dagmm, Ecod, Networks, all_parameters, span_of
from tests.mechanisms.detection.detector_contract import DetectorContract, honest, strangers

FEW, MANY = 30, 300
"""Steps of training."""


class TestDagmm(DetectorContract):
    def make(self, seed: int = 0, thorough: bool = False) -> Detector:
        return Dagmm(steps=MANY if thorough else FEW, seed=seed)


class TestStdDagmm(DetectorContract):
    def make(self, seed: int = 0, thorough: bool = False) -> Detector:
        return Dagmm(deviation=True, steps=MANY if thorough else FEW, seed=seed)


class TestDagmmOnAllParameters(DetectorContract):
    def make(self, seed: int = 0, thorough: bool = False) -> Detector:
        return Dagmm(deviation=True, whole=True, steps=MANY if thorough else FEW, seed=seed)


class TestEcod(DetectorContract):
    def make(self, seed: int = 0, thorough: bool = False) -> Detector:
        return Ecod()


def test_by_name() -> None:
    assert [find_detector(name)(4) for name in DETECTORS] == [
        Dagmm(seed=4),
        Dagmm(deviation=True, seed=4),
        Ecod(),
    ]
    with pytest.raises(fa.InvalidInput, match="no detector called 'dagm': did you mean 'dagmm'"):
        find_detector("dagm")


def test_seeds_differ() -> None:
    one, other = (Dagmm(steps=5, seed=seed).fit(honest(9)).scores(honest(9)) for seed in (1, 2))
    assert not np.allclose(one, other)


@pytest.mark.slow
def test_training_lowers_the_loss() -> None:
    rows = honest(40)
    seen = span_of(rows).see(rows)

    def loss_after(steps: int) -> float:
        networks = Dagmm(steps=steps).fit(rows).networks
        return networks.loss(seen).item()

    assert loss_after(300) < loss_after(1)


def test_the_loss_is_the_papers() -> None:
    """Equation 7, from the pieces, with the dropout off."""
    rows = honest(12)
    seen = all_parameters(rows).see(rows)
    networks = Networks(Dagmm(), 60).eval()
    with torch.no_grad():
        latent = networks.encoder(seen.inside)
        rebuilt = networks.decoder(latent)
        points, memberships, _ = networks(seen)
    x, y, z = seen.inside.numpy(), rebuilt.numpy(), points.numpy()
    distance = np.linalg.norm(x - y, axis=1) / np.linalg.norm(x, axis=1)
    cosine = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(z, np.column_stack([latent, distance, cosine]), rtol=1e-4)
    gamma, z = memberships.double().numpy(), z.astype(float)
    energies, narrowness = np.zeros(12), 0.0
    for share, weight in zip(gamma.mean(axis=0), gamma.T, strict=True):
        mean = np.average(z, axis=0, weights=weight)
        spread = np.cov(z.T, aweights=weight, bias=True) + 1e-6 * np.eye(4)
        apart = z - mean
        exponent = np.einsum("ni,ij,nj->n", apart, np.linalg.inv(spread), apart) / 2
        energies += share * np.exp(-exponent) / np.sqrt(np.linalg.det(2 * np.pi * spread))
        narrowness += (1 / np.diag(spread)).sum()
    expected = ((x - y) ** 2).mean() - 0.1 * np.log(energies).mean() + 0.005 * narrowness
    # 32-bit features; the narrowness sums reciprocals of small variances
    assert networks.loss(seen).item() == pytest.approx(expected, rel=1e-3)


def test_std_dagmm_sees_the_deviation_and_dagmm_does_not() -> None:
    updates = honest(5)
    plain, std = Dagmm(steps=1).fit(updates), Dagmm(deviation=True, steps=1).fit(updates)
    assert plain.mixture.means.shape == (2, 4)
    assert std.mixture.means.shape == (2, 5)
    own = std.span.see(updates).deviation
    with torch.no_grad():
        points, _, _ = std.networks(std.span.see(updates))
    assert torch.equal(points[:, 4], own)
    # in units of a usual update's length over sqrt(P)
    usual = np.median(np.linalg.norm(updates, axis=1)) / np.sqrt(60)
    np.testing.assert_allclose(own.numpy(), updates.std(axis=1) / usual, rtol=1e-5)


@pytest.mark.parametrize("change", [{"components": 0}, {"steps": 0}, {"latent": 0}, {"rate": 0.0}])
def test_invalid_settings_are_rejected(change: dict[str, float]) -> None:
    with pytest.raises(fa.InvalidInput, match="must be"):
        Dagmm(**change)  # type: ignore[arg-type]


def test_many_free_riders_do_not_hide_one_another_from_ecod() -> None:
    """PyOD alone would rank them only against each other."""
    fitted = Ecod().fit(honest(40))
    assert fitted.scores(strangers(200)).min() > np.median(fitted.scores(honest(40, seed=5)))


def test_without_pyod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedaccord.checks.is_installed", lambda _: False)
    with pytest.raises(
        fa.FedaccordError, match=r"needs PyOD: pip install 'fedaccord\[detection\]'"
    ):
        Ecod()
