"""What every detector must do: one suite for all of them."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import fedaccord as fa
from fedaccord.mechanisms.detection.detector import Detector
from fedaccord.numbers import FloatArray

PARAMETERS = 60


def honest(count: int, seed: int = 0) -> FloatArray:
    """Updates that share a direction and differ as honest clients do."""
    rng = np.random.default_rng(seed)
    common = np.random.default_rng(99).standard_normal(PARAMETERS)
    return 0.01 * (common + 0.4 * rng.standard_normal((count, PARAMETERS)))


def strangers(count: int, seed: int = 1) -> FloatArray:
    """Longer updates in random directions."""
    return 0.04 * np.random.default_rng(seed).standard_normal((count, PARAMETERS))


class DetectorContract:
    """Inherit from this class and define `make`."""

    def make(self, seed: int = 0, thorough: bool = False) -> Detector:
        """A detector; one that trains may train briefly unless `thorough`."""
        raise NotImplementedError

    def test_a_separable_mixture_is_found(self) -> None:
        """After fitting on honest updates, clearly different ones score higher."""
        seen = np.vstack([honest(20, seed=5), strangers(20)])
        scores = self.make(thorough=True).fit(honest(60)).scores(seen)
        assert roc_auc_score([0] * 20 + [1] * 20, scores) > 0.95

    def test_a_few_strangers_in_the_round_itself(self) -> None:
        updates = np.vstack([honest(60), np.zeros((1, PARAMETERS))])
        scores = self.make(thorough=True).fit(updates).scores(updates)
        assert roc_auc_score([0] * 60 + [1], scores) > 0.9

    def test_same_seed_same_scores(self) -> None:
        updates = honest(20)
        one, other = (self.make(3).fit(updates).scores(updates) for _ in range(2))
        assert np.array_equal(one, other)

    def test_a_score_depends_on_that_update_alone(self) -> None:
        fitted = self.make().fit(honest(30))
        seen = np.vstack([honest(5, seed=7), strangers(5)])
        together = fitted.scores(seen)
        alone = np.concatenate([fitted.scores(row[None]) for row in seen])
        # with another number of rows 32-bit sums are in another order
        np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-3)

    @pytest.mark.parametrize("unit", [2.0**-100, 2.0**100])
    def test_the_unit_does_not_matter(self, unit: float) -> None:
        """Powers of two cause no rounding, so the scores are identical to the last bit."""
        seen = np.vstack([honest(5, seed=5), strangers(5)])
        scores = self.make().fit(unit * honest(20)).scores(unit * seen)
        assert np.array_equal(scores, self.make().fit(honest(20)).scores(seen))

    def test_the_global_rng_is_not_used(self) -> None:
        import torch

        torch.manual_seed(7)
        before = torch.rand(1)
        torch.manual_seed(7)
        self.make(3).fit(honest(5))
        assert torch.equal(torch.rand(1), before)

    @pytest.mark.parametrize(
        "updates",
        [
            honest(1),
            honest(2),
            np.zeros((1, PARAMETERS)),
            np.zeros((10, PARAMETERS)),
            np.tile(honest(1), (10, 1)),
            np.vstack([np.tile(honest(1), (5, 1)), np.zeros((5, PARAMETERS))]),
            np.ones((3, 1)),
            1e300 * honest(5),
            1e-300 * honest(5),
            np.vstack([honest(9), 1e300 * honest(1)]),
        ],
        ids=[
            "one client",
            "two clients",
            "one that does nothing",
            "all do nothing",
            "all the same",
            "two kinds",
            "one parameter",
            "huge",
            "tiny",
            "one is huge",
        ],
    )
    def test_scores_are_finite_for_any_updates(self, updates: FloatArray) -> None:
        fitted = self.make().fit(updates)
        scores = fitted.scores(updates)
        assert scores.shape == (len(updates),)
        assert np.isfinite(scores).all()
        others = np.vstack([np.zeros_like(updates[:1]), 1e6 * updates[:1] + 1.0, -updates[:1]])
        assert np.isfinite(fitted.scores(others)).all()

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    def test_an_update_with_nan_or_infinity_is_rejected_by_name(self, wrong: float) -> None:
        updates = honest(6)
        updates[4, 2] = wrong
        with pytest.raises(fa.InvalidInput, match=r"clients\[4\] has 1 value that is NaN or inf"):
            self.make().fit(updates)
        with pytest.raises(fa.InvalidInput, match=r"clients\[4\]"):
            self.make().fit(honest(6)).scores(updates)
        names = ["A", "B", "C", "D", "St Mary", "F"]
        with pytest.raises(fa.InvalidInput, match="update of St Mary has 1 value"):
            self.make().fit(updates, names)
        with pytest.raises(fa.InvalidInput, match="update of St Mary has 1 value"):
            self.make().fit(honest(6), names).scores(updates, names)

    @pytest.mark.parametrize("updates", [[], [[]], [1.0, 2.0]])
    def test_anything_but_a_matrix_is_rejected(self, updates: Any) -> None:
        with pytest.raises(fa.InvalidInput, match="must be a matrix"):
            self.make().fit(updates)

    def test_updates_of_another_model_are_rejected(self) -> None:
        fitted = self.make().fit(honest(5))
        with pytest.raises(fa.InvalidInput, match=r"must have 60 values.*got 61"):
            fitted.scores(np.zeros((1, PARAMETERS + 1)))
