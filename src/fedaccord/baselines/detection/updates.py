"""What a server sees of its clients: one flattened update each, w_n - w, in a round."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from fedaccord.errors import InvalidInput
from fedaccord.game.arrays import FloatArray
from fedaccord.training.engine import TrainingPlan
from fedaccord.training.plain import PlainEngine
from fedaccord.training.task import Parameters


def flatten(parameters: Parameters) -> FloatArray:
    """A model's parameters in one row, in the order of their names in the model."""
    parts = [value.detach().reshape(-1) for value in parameters.values()]
    row: FloatArray = torch.cat(parts).double().numpy()
    return row


def unflatten(row: FloatArray, like: Parameters) -> Parameters:
    """The parameters that `flatten` made a row of."""
    parts = np.split(row, np.cumsum([value.numel() for value in like.values()])[:-1])
    return {
        name: torch.from_numpy(part).reshape(value.shape).to(value.dtype)
        for (name, value), part in zip(like.items(), parts, strict=True)
    }


def client_updates(plan: TrainingPlan, parameters: Parameters, turn: int) -> FloatArray:
    """Each client's update in round `turn`, a row each; who trains on nothing has zeros."""
    start = flatten(parameters)
    rows = np.zeros((len(plan.shares), len(start)))
    for client in plan.taking_part:
        # the average over one client is that client's model
        (trained,) = PlainEngine().rounds(_alone(plan, client, turn), parameters)
        rows[client] = flatten(trained) - start
    return rows


def _alone(plan: TrainingPlan, client: int, turn: int) -> TrainingPlan:
    """One round of one client."""
    nothing = np.array([], dtype=np.int64)
    shares = [share if n == client else nothing for n, share in enumerate(plan.shares)]
    return replace(plan, shares=shares, rounds=turn, first=turn)


def check_updates(updates: npt.ArrayLike, names: Sequence[str] | None = None) -> FloatArray:
    """The updates as 64-bit numbers, a row each; refused if one of them is no number.

    >>> check_updates([[0.1, 0.2], [0.3, float("nan")]], ["St Mary", "St Luke"])
    Traceback (most recent call last):
    fedaccord.errors.InvalidInput: the update of St Luke has 1 value that is no finite number
    """
    rows = np.asarray(updates, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise InvalidInput(f"updates: must be a table, a row for each client, got {rows.shape}")
    if names is not None and len(names) != len(rows):
        raise InvalidInput(f"there are {len(rows)} updates but {len(names)} names")
    wrong = (~np.isfinite(rows)).sum(axis=1)
    problems = [
        f"the update of {names[n] if names is not None else f'clients[{n}]'} has "
        f"{wrong[n]:,} value{'s that are' if wrong[n] > 1 else ' that is'} no finite number"
        for n in np.flatnonzero(wrong).tolist()
    ]
    if problems:
        raise InvalidInput(problems)
    return rows
