"""The best report of each client under one rule, found by trying many at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.mechanisms.misreport.gains import (
    LEAST_GAIN,
    Outcomes,
    Progress,
    gain,
    least_gain,
    outcomes_if_others_are_honest,
)
from fedaccord.mechanisms.misreport.keeping import keeps_to_it
from fedaccord.mechanisms.misreport.reports import Field, Lies, Reports, possible_lies
from fedaccord.mechanisms.misreport.rules import Rule
from fedaccord.numbers import BoolArray, FloatArray


class BestLies(NamedTuple):
    """One lie of each client, in samples of quality 1; its truth if no lie pays."""

    fields: tuple[Field | None, ...]
    lies: Lies
    gain: FloatArray
    """In the client's own samples; 0 if no lie pays."""
    before: Outcomes
    """If it tells the truth."""
    after: Outcomes
    keeps: BoolArray
    """Whether it keeps to what it is asked for after its lie."""
    tried: int
    """How many reports of each client were tried."""


def best_lies(
    rule: Rule,
    truth: Reports,
    client: npt.NDArray[np.int64],
    number: int,
    progress: Progress | None = None,
) -> BestLies:
    """The most profitable report of each of these clients while all others tell the truth."""
    lies, fields = possible_lies(truth, truth, client, rule.asks, number, undercut=rule.undercut)
    true = truth_of(truth, client)
    before, tried, gains = all_gains(rule, truth, client, lies, progress)
    best = _first_best(gains, before.own)
    here = np.arange(client.size)
    lying = gains[here, best] > least_gain(truth, client, before.own)
    chosen = Lies(
        *(np.where(lying, told[here, best], kept) for told, kept in zip(lies, true, strict=True))
    )
    pairs = zip(tried, before, strict=True)
    after = Outcomes(*(np.where(lying, told[here, best], honest) for told, honest in pairs))
    keeps = np.ones(client.size, dtype=bool)
    if rule.punishment is not None:
        rows = truth.if_one_says(client, chosen)
        keeps = ~lying | keeps_to_it(rule.punishment, truth, rows, client, after)
    return BestLies(
        fields=tuple(fields[m] if lie else None for m, lie in zip(best, lying, strict=True)),
        lies=chosen,
        gain=np.where(lying, gains[here, best], 0.0),
        before=before,
        after=after,
        keeps=keeps,
        tried=len(fields),
    )


def all_gains(
    rule: Rule,
    truth: Reports,
    client: npt.NDArray[np.int64],
    lies: Lies,
    progress: Progress | None = None,
) -> tuple[Outcomes, Outcomes, FloatArray]:
    """What comes of the truth, of every lie, and what each lie gains; one row per client."""
    shape = lies.ratio.shape
    true = truth_of(truth, client)
    before = outcomes_if_others_are_honest(rule, truth, client, true)
    liar = np.repeat(client, shape[1])
    flat = Lies(*(values.ravel() for values in lies))
    after = outcomes_if_others_are_honest(rule, truth, liar, flat, progress)
    honest = Outcomes(*(np.repeat(values, shape[1]) for values in before))
    gains = np.nan_to_num(gain(truth, liar, honest, after), nan=-np.inf)
    return before, Outcomes(*(values.reshape(shape) for values in after)), gains.reshape(shape)


def truth_of(truth: Reports, client: npt.NDArray[np.int64]) -> Lies:
    """What these clients say if they tell the truth."""
    return Lies(*(getattr(truth, field)[0, client] for field in Lies._fields))


def _first_best(gains: FloatArray, own: FloatArray) -> npt.NDArray[np.int64]:
    """The first report that gains as much as any, up to rounding."""
    enough = gains.max(axis=-1) - LEAST_GAIN * own
    return np.asarray(np.argmax(gains >= enough[:, np.newaxis], axis=-1))
