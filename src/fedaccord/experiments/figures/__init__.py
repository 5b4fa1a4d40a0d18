"""The figures: data, picture and claims of each, found by its preset.

A figure's preset names its kind, and each kind is a module here with `run`, `draw` and `claims`:
`removed`, `ratios`, `contributors`, `totals`, `distributions`; `suspension`, `truthful` and
`patience` are not the paper's; `accuracy` and `law` train a model.

>>> from fedaccord.experiments.presets import find_preset
>>> table = run(find_preset("fig3"))
>>> int(table["free_riders"][-1]), int(table["uniform_removed"][-1])
(137, 136)
"""

from importlib import import_module
from typing import Protocol, cast

from matplotlib.figure import Figure

from fedaccord.experiments.claims import Claim
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.figures.accuracy import Parts, RunProgress
from fedaccord.experiments.pictures import Width
from fedaccord.experiments.presets import Preset, TrainingPreset


def run(preset: Preset) -> FigureData:
    """The data of a figure."""
    return _kind(preset).run(preset)


def draw(table: FigureData, preset: Preset, width: Width = "one-column") -> Figure:
    """The picture of a figure."""
    return _kind(preset).draw(table, preset, width)


def claims(preset: Preset) -> list[Claim]:
    """The paper's statements about a figure, checked."""
    return _kind(preset).claims(preset)


class _Kind(Protocol):
    """What the module of a kind has."""

    def run(self, preset: Preset) -> FigureData: ...
    def draw(self, table: FigureData, preset: Preset, width: Width) -> Figure: ...
    def claims(self, preset: Preset) -> list[Claim]: ...


def _kind(preset: Preset) -> _Kind:
    return cast(_Kind, import_module(f"{__name__}.{preset.kind}"))


class TrainingKind(Protocol):
    """What the module of a training experiment has."""

    def steps(self, preset: TrainingPreset) -> int:
        """How many steps there are, for a progress bar."""

    def run(
        self, preset: TrainingPreset, progress: RunProgress = ..., parts: Parts | None = ...
    ) -> FigureData:
        """The data; runs that are among the parts are not trained again."""

    def draw(self, table: FigureData, preset: TrainingPreset, width: Width) -> Figure:
        """The picture."""

    def claims(self, table: FigureData, preset: TrainingPreset) -> list[Claim]:
        """What the paper takes for granted, measured."""


def training_kind(preset: TrainingPreset) -> TrainingKind:
    """The module of a training experiment."""
    return cast(TrainingKind, import_module(f"{__name__}.{preset.kind}"))
