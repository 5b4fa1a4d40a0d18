"""ECOD (Li et al., TKDE 2022) from PyOD, on three features of an update: no network, no settings.

The features are those of STD-DAGMM that need no autoencoder: relative distance from the mean
update, cosine similarity with it, and the standard deviation of the update's values. (On the values
themselves ECOD would look for large ones, and an update of nothing has none.)
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedaccord.checks import check_installed
from fedaccord.mechanisms.detection.setting import check_updates
from fedaccord.mechanisms.detection.span import (
    Span,
    all_parameters,
    cosine_similarity,
    relative_distance,
    squared_distance,
)
from fedaccord.numbers import FloatArray


@dataclass(frozen=True)
class Ecod:
    """It has nothing to set."""

    def __post_init__(self) -> None:
        """Say at once if PyOD is missing."""
        _pyod_ecod()

    def fit(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> "FittedEcod":
        """Keep the features of these updates."""
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

        One at a time, since PyOD ranks all that it is given together with what it was fitted on:
        many free riders would hide one another.
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
    """Without SciPy's warning that the skewness of equal numbers is none: PyOD takes it as 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return work(features)
