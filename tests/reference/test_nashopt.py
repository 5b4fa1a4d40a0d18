"""An external oracle: NashOpt, which solves games from their cost functions alone.

It needs tests/oracle-requirements.txt, and is skipped without it. JAX is set to 64 bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.numbers import FloatArray
from tests.consortia import with_satiation

pytestmark = pytest.mark.slow

AGREEMENT = 1e-9
"""Relative to a client's data. NashOpt solves the equilibrium conditions by least squares, with
residuals of 1e-13 or less here; the answers differed by 1e-14 when this was written."""


def by_nashopt(consortium: fa.Consortium) -> FloatArray:
    """The equilibrium in x / D, from F_n / (E_n D_n) of eq. 5 alone."""
    why = "NashOpt is not installed: pip install -r tests/oracle-requirements.txt"
    nashopt: Any = pytest.importorskip("nashopt", reason=why)
    jax: Any = pytest.importorskip("jax", reason=why)
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    data, G = jnp.array(consortium.samples), consortium.rounds

    def cost(n: int) -> Callable[[Any], Any]:
        rho, E, D = (
            float(values[n])
            for values in (consortium.valuation, consortium.cost_per_sample, consortium.samples)
        )
        return lambda x: (rho / jnp.sqrt(jnp.dot(data, x) * G) + E * D * x[n]) / (E * D)

    size = consortium.size
    game = nashopt.GNEP(
        [1] * size, f=[cost(n) for n in range(size)], lb=np.zeros(size), ub=np.ones(size)
    )
    return np.asarray(game.solve(np.full(size, 0.5)).x, dtype=np.float64)


def five() -> fa.Consortium:
    """Case I with unequal data: three contributors, one critical client, one free rider."""
    return with_satiation(
        [90.0, 230.0, 400.0, 420.0, 500.0],
        [60.0, 80.0, 50.0, 90.0, 70.0],
        cost_per_sample=[1.0, 2.0, 0.5, 1.0, 3.0],
        rounds=20,
    )


def twenty() -> fa.Consortium:
    """The paper's setting with as much data as a hundred clients would have."""
    return fa.paper_consortium(20, samples=50_000)


@pytest.mark.parametrize("build", [five, twenty])
@pytest.mark.filterwarnings("default")
def test_nashopt_finds_the_same_equilibrium(build: Callable[[], fa.Consortium]) -> None:
    consortium = build()
    equilibrium = fa.solve_equilibrium(consortium)
    assert 0 < equilibrium.free_riders < consortium.size
    found = by_nashopt(consortium)
    expected = equilibrium.profile / consortium.samples
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREEMENT)
