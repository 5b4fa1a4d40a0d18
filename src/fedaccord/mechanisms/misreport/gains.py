"""What a lie is worth to the liar: its true cost under what the mechanism makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.mechanisms.misreport.reports import Lies, Reports
from fedaccord.mechanisms.misreport.rules import Rule
from fedaccord.numbers import FloatArray

Progress = Callable[[int], None]
"""Told how many reports have been tried since the last call."""

_BLOCK = 262_144
"""How many numbers per field are processed at once: enough to make the overhead of a call
negligible, few enough not to fill the memory."""

LEAST_GAIN = 1e-9
"""Relative to what the client trains on: a smaller gain is none. Amounts have a rounding error of
some 1e-14, and the reports that undercut another client lose up to 1e-9 by it."""


class Outcomes(NamedTuple):
    """What comes of reports for one client of each row, in samples of quality 1."""

    own: FloatArray
    """What it trains on."""
    access: FloatArray
    """What its model is trained on."""
    total: FloatArray
    """What all clients train on."""


def outcomes_if_others_are_honest(
    rule: Rule,
    truth: Reports,
    client: npt.NDArray[np.int64],
    lies: Lies,
    progress: Progress | None = None,
) -> Outcomes:
    """What comes of each lie for its liar, in blocks of rows."""
    height = max(1, _BLOCK // truth.size)
    blocks = []
    for start in range(0, client.size, height):
        part = slice(start, start + height)
        rows = truth.if_one_says(client[part], lies.at(part))
        blocks.append(outcomes(rule, truth, rows, client[part]))
        if progress is not None:
            progress(client[part].size)
    return Outcomes(*map(np.concatenate, zip(*blocks, strict=True)))


def outcomes(rule: Rule, truth: Reports, rows: Reports, client: npt.NDArray[np.int64]) -> Outcomes:
    """What comes of reports for one client of each row."""
    assignment = rule.assign(rows)
    own, total = assignment.own(client), assignment.total
    if not rule.responds:
        return Outcomes(own, assignment.access(client), total)
    others = total - own
    wanted = truth.law.stop(truth.ratio)[0, client] - others
    response = np.clip(wanted, 0.0, truth.samples[0, client])
    return Outcomes(response, others + response, others + response)


def gain(
    truth: Reports, client: npt.NDArray[np.int64], before: Outcomes, after: Outcomes
) -> FloatArray:
    """What a change saves each client, in its own samples: F_n before less F_n after, over E_n.

    Accuracy losses are subtracted without cancellation.
    """
    lost = truth.law_of(client).fall(after.access, before.access - after.access, before.access)
    with np.errstate(invalid="ignore"):
        saved = before.own - after.own - truth.ratio[0, client] * lost
    same = (before.own == after.own) & (before.access == after.access)
    return np.where(same, 0.0, saved)


def least_gain(truth: Reports, client: npt.NDArray[np.int64], own: FloatArray) -> FloatArray:
    """What a client must gain, in its own samples, for a lie to count as one that pays."""
    return LEAST_GAIN * np.where(own > 0.0, own, truth.samples[0, client])
