"""The figures by name. Each is a module of this package with `run`, `draw` and `claims`.

Figures of one kind, by different parameters, share `run` and `draw`: see `removed`, `ratios`,
`contributors` and `totals`.
"""

from importlib import import_module
from typing import Protocol, cast

from matplotlib.figure import Figure

from fedaccord.experiments.accuracy import Parts, Progress
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.pictures import Width
from fedaccord.experiments.presets import Preset, TrainingPreset, find_preset, find_training
from fedaccord.experiments.table import Table


class FigureModule(Protocol):
    """What a figure's module has."""

    def run(self, preset: Preset) -> Table:
        """The data."""

    def draw(self, table: Table, preset: Preset, width: Width) -> Figure:
        """The picture."""

    def claims(self, preset: Preset) -> list[Claim]:
        """What the paper says about it, checked."""


def find_figure(name: str) -> FigureModule:
    """The module of a figure: "fig3" to "fig23"."""
    find_preset(name)  # says what there is, if there is no such figure
    return cast(FigureModule, import_module(f"fedaccord.experiments.{name}"))


class TrainingModule(Protocol):
    """What the module of a training experiment has."""

    def steps(self, preset: TrainingPreset) -> int:
        """How much there is to do, for a progress bar."""

    def run(
        self, preset: TrainingPreset, progress: Progress = ..., parts: Parts | None = ...
    ) -> Table:
        """The data; runs that are among the parts are not trained again."""

    def draw(self, table: Table, preset: TrainingPreset, width: Width) -> Figure:
        """The picture."""

    def claims(self, table: Table, preset: TrainingPreset) -> list[Claim]:
        """What the paper takes for granted, measured."""


def find_training_module(name: str) -> TrainingModule:
    """The module of a training experiment: "accuracy" or "law"."""
    find_training(name)
    return cast(TrainingModule, import_module(f"fedaccord.experiments.{name}"))


def claims_of(name: str, seed: int | None = None) -> list[Claim]:
    """The paper's statements about a figure, checked."""
    return find_figure(name).claims(find_preset(name, seed))
