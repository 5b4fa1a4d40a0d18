"""Roles: what a client is called, given what it contributes now and at the equilibrium."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from fedaccord.numbers import FloatArray


class Role(StrEnum):
    """The paper's four kinds of client (after Theorems 1 and 3)."""

    FREE_RIDER = "free rider"
    PARTIAL_CONTRIBUTOR = "partial contributor"
    CONVERTED_CONTRIBUTOR = "converted contributor"
    CONTRIBUTOR = "contributor"


def roles(
    profile: FloatArray, samples: FloatArray, alone: FloatArray | None = None
) -> tuple[Role, ...]:
    """The role of each client; `alone` is the equilibrium, for clients under an agreement.

    >>> [str(role) for role in roles(np.array([0.0, 3.0, 5.0]), np.array([5.0, 5.0, 5.0]))]
    ['free rider', 'partial contributor', 'contributor']
    """
    converted = np.zeros(profile.shape, dtype=bool) if alone is None else alone == 0
    code = np.where(profile == 0, 0, np.where(converted, 2, np.where(profile < samples, 1, 3)))
    by_code = tuple(Role)
    return tuple(by_code[n] for n in code.tolist())
