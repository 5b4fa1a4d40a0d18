"""Agreements beside truthful mechanisms: how much of all data is trained on, by N.

This figure is ours. With the paper's equal data sizes the serial clock and fair exchange are the
same. In a second panel, those who value accuracy least have most data: D_n = 2 D (N+1-n)/(N+1).
"""

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.game.consortium import Consortium
from fedaccord.mechanisms.simple import MECHANISMS

_PANELS = {
    "equal": "Data trained on (%),\nequal sizes",
    "unequal": "Data trained on (%),\nlow valuations have more",
}


def run(preset: Preset) -> FigureData:
    """How many percent of all samples are trained on in a slot, under each mechanism."""
    columns: dict[str, Column] = {preset.parameter: np.array(preset.values)}
    for panel, consortia in zip(_PANELS, consortia_of(preset), strict=True):
        for name in pictures.TRUTHFUL:
            mechanism = MECHANISMS[name.replace("_", " ")]
            shares = [mechanism.outcome(c).total / c.samples.sum() for c in consortia]
            columns[f"{name}_{panel}"] = 100.0 * np.array(shares)
    return FigureData(columns)


def consortia_of(preset: Preset) -> Iterator[list[Consortium]]:
    """For each panel, a consortium for each number of clients."""
    settings = [Setting(**(asdict(preset.setting) | {"clients": int(n)})) for n in preset.values]
    for equal in (True, False):
        yield [_consortium(setting, equal=equal) for setting in settings]


def _consortium(setting: Setting, *, equal: bool) -> Consortium:
    """The paper's clients, with its data sizes or with sizes that fall with the valuations."""
    rank = np.arange(1.0, setting.clients + 1.0)
    unequal = 2.0 * setting.samples * rank[::-1] / (setting.clients + 1.0)
    return Consortium(
        valuation=100.0 * rank / setting.clients,
        cost_per_sample=setting.cost_per_sample,
        samples=setting.samples if equal else unequal,
        rounds=int(setting.rounds),
        discount_factor=setting.discount_factor,
    )


def draw(table: FigureData, _: Preset, width: pictures.Width) -> Figure:
    """One line for each mechanism, in two panels."""
    return pictures.plot_lines(table, _PANELS, pictures.TRUTHFUL, width)


def claims(_: Preset) -> list[Claim]:
    """The paper says nothing about truthful mechanisms."""
    return []
