"""Best-response dynamics: clients adjust their contributions in turn (Algorithm 3).

Each best response maximises P(x) = sum h_n x_n - X^2/2 in the client's own contribution, so
the dynamics are coordinate ascent on a concave function: from any start they converge to the
equilibrium, ties included. If two clients have nearly the same satiation point, one takes over
from the other in small steps, which can take many sweeps; `solve_equilibrium` needs none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_whole
from fedaccord.errors import NotConverged
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray, as_profile
from fedaccord.record import Columns, Record, Tables


@dataclass(frozen=True, eq=False, repr=False)
class Dynamics(Record):
    """Where the dynamics ended, and the path that led there."""

    consortium: Consortium
    profile: FloatArray
    path: FloatArray
    """One profile per row: the start, then the profile after each sweep over the clients."""

    @property
    def total(self) -> float:
        """X at the end."""
        return self.consortium.total_of(self.profile)

    @property
    def sweeps(self) -> int:
        """How many times every client adjusted its contribution."""
        return len(self.path) - 1

    def _facts(self) -> dict[str, Any]:
        return {"total": self.total, "sweeps": self.sweeps}

    def _tables(self) -> Tables:
        return {"clients": self._clients, "path": self._path}

    def _clients(self) -> Columns:
        return {"name": self.consortium.names, "contribution": self.profile}

    def _path(self) -> Columns:
        return {
            "sweep": np.arange(len(self.path)),
            "total": (self.path * self.consortium.quality).sum(axis=1),
        }


def run_dynamics(
    consortium: Consortium,
    start: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
    most_sweeps: int = 10_000,
    tolerance: float = 1e-12,
) -> Dynamics:
    """Let every client in turn choose its best response until a whole sweep changes nothing.

    Args:
        consortium: The clients.
        start: The profile to start from; random if not given.
        seed: Seed of the random start.
        most_sweeps: How many sweeps to try before raising `NotConverged`.
        tolerance: A change of up to this fraction of all samples counts as none.
    """
    check_whole("most_sweeps", most_sweeps)
    if start is None:
        start = np.random.default_rng(seed).random(consortium.size) * consortium.samples
    path = [as_profile(start, consortium.samples, "start")]
    still = tolerance * float(consortium.samples.sum())
    for _ in range(most_sweeps):
        path.append(_sweep(consortium, path[-1]))
        if np.abs(path[-1] - path[-2]).max() <= still:
            return Dynamics(consortium, path[-1], np.array(path))
    moved = np.abs(path[-1] - path[-2]).max()
    raise NotConverged(
        f"the best-response dynamics did not settle in {most_sweeps} sweeps: "
        f"the last sweep still changed a contribution by {moved:.3g}"
    )


def _sweep(consortium: Consortium, profile: FloatArray) -> FloatArray:
    """One round of Algorithm 3: each client, in order, chooses its best response."""
    quality = consortium.quality
    after = (profile * quality).tolist()
    total = sum(after)
    worth = (consortium.samples * quality).tolist()
    for n, (satiation, most) in enumerate(zip(consortium.satiation.tolist(), worth, strict=True)):
        others = total - after[n]
        after[n] = min(most, max(satiation - others, 0.0))
        total = others + after[n]
    return np.asarray(np.array(after) / quality)
