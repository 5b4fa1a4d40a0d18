"""Agreements and strategies for the tests of `play`, and the random numbers that it draws."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.punishment import Punishment
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.repeated import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    GrimTrigger,
    KeepAndPunish,
    Loyal,
    Myopic,
    Selfish,
)
from tests.consortia import consortia
from tests.repeated.reference import shading

PATIENCE = st.floats(0.0, 0.9) | st.sampled_from([0.0, 0.5, 0.9])
LENGTHS = st.none() | st.integers(1, 6)


REVERSIONS: st.SearchStrategy[Punishment] = st.builds(fa.Reversion, LENGTHS)
SUSPENSIONS: st.SearchStrategy[Punishment] = st.builds(
    fa.Suspension,
    LENGTHS,
    model_keeps=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    fees_saved=st.booleans(),
)


@st.composite
def agreements(
    draw: st.DrawFn, punishments: st.SearchStrategy[Punishment] = REVERSIONS
) -> fa.Agreement:
    """Solved agreements, and any profile: more or less than the equilibrium's, or nothing."""
    consortium = draw(consortia(st.integers(1, 5), PATIENCE, extreme=False))
    punishment = draw(punishments)
    if draw(st.booleans()):
        solved = fa.solve_agreement(consortium, margin=0.1)
        return replace(solved, punishment=punishment)
    part = st.floats(1e-9, 1.0) | st.sampled_from([0.0, 0.0, 1.0])  # smaller ones lose digits
    parts = draw(st.lists(part, min_size=consortium.size, max_size=consortium.size))
    assume(any(parts))
    return fa.agreement_on(consortium, np.array(parts) * consortium.samples, punishment)


@st.composite
def any_strategy(
    draw: st.DrawFn, agreement: fa.Agreement, samples: float, slots: int, deep: bool = True
) -> Any:
    """Any of the built-in ones that go with the punishment, or a function."""
    fixed = [KeepAndPunish(), Selfish(), FreeRide(), Loyal(), Myopic(), shading]
    kinds: st.SearchStrategy[Any] = st.sampled_from(fixed)
    if isinstance(agreement.punishment, fa.Reversion):
        kinds |= st.just(GrimTrigger()) | st.builds(Forgiving, st.integers(1, 6))
    if deep and draw(st.booleans()):
        slot = draw(st.integers(1, slots))
        given = draw(st.none() | st.floats(0.0, 1.0).map(lambda part: part * samples))
        otherwise = draw(any_strategy(agreement, samples, slots, deep=False))
        return DeviateOnce(slot, given, otherwise)
    return draw(kinds)


def draw_random_numbers(
    seed: int, slots: int, size: int, noise: float, dropout: float
) -> tuple[FloatArray, BoolArray]:
    """Errors and absences: the seed's two children, slot by slot and client by client."""
    absence, error = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    absent = absence.random((slots, size)) < dropout
    return noise * error.standard_normal((slots, size)), absent
