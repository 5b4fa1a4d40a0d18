"""Makes what `fedaccord reproduce` was asked for, and keeps what is there already."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from fedaccord.cli.console import counting
from fedaccord.cli.figure_files import PartFile, is_current, part_path, read_settings, write_figure
from fedaccord.cli.outputs import write_file
from fedaccord.errors import FedaccordError

if TYPE_CHECKING:
    from fedaccord.experiments.evaluation import Section
    from fedaccord.experiments.presets import Preset, TrainingPreset
    from fedaccord.experiments.table import Table

    AnyPreset = TypeVar("AnyPreset", Preset, TrainingPreset)

Width = Literal["one-column", "two-columns"]
ALL, CLAIMS = "all", "claims"
PAGE, CLAIMS_PAGE = "index.html", "evaluation.md"


@dataclass(frozen=True)
class Made:
    """A figure that was asked for."""

    figure: str
    title: str
    kept: bool
    """It was there already."""


@dataclass
class Reproduction:
    """The figures asked for by name, and the directory that they go to."""

    words: Sequence[str]
    out: Path
    width: Width = "one-column"
    seed: int | None = None
    force: bool = False
    made: list[Made] = field(default_factory=list)
    sections: "list[Section]" = field(default_factory=list)
    """What the paper says about the figures asked for, or all that it says."""
    trained: "list[Section]" = field(default_factory=list)
    """What was measured in training."""
    pages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What had to be left out, and why."""

    def draw_figures(self) -> None:
        """All figures but those that need training."""
        from fedaccord.experiments.presets import figure_titles, find_preset

        chosen = [name for name in figure_titles() if self._is_asked(name)]
        with counting("Figures", len(chosen)) as reach:
            for k, name in enumerate(chosen):
                reach(k, name)
                self._make(find_preset(name, self.seed), _draw)

    def check_claims(self) -> None:
        """What the paper says about them."""
        from fedaccord.experiments.evaluation import section_names, section_of

        every = self._is_asked(CLAIMS)
        chosen = [name for name in section_names() if every or name in self.words]
        with counting("Claims", len(chosen)) as reach:
            for k, name in enumerate(chosen):
                reach(k, f"Claims, {name}")
                self.sections.append(section_of(name, self.seed))

    def train(self) -> None:
        """What takes longest."""
        from fedaccord.experiments.presets import find_training, training_titles

        nothing_else = set(self.words) <= set(training_titles())
        left_out: dict[str, list[str]] = {}
        for name in training_titles():
            if not self._is_asked(name):
                continue
            try:
                self._make(find_training(name, self.seed), self._trained)
            except FedaccordError as error:
                if nothing_else:
                    raise
                left_out.setdefault(str(error), []).append(name)
        self.notes += [f"Left out: {', '.join(names)}. {why}" for why, names in left_out.items()]

    def write_pages(self) -> None:
        """The pages about the whole evaluation, if they were asked for."""
        self.trained = trained_sections(self.out, self.seed)
        if self._is_asked(CLAIMS):
            from fedaccord.experiments.page import render_markdown

            self._write_page(CLAIMS_PAGE, render_markdown(self.sections, self.trained))
        else:
            self.trained = [section for section in self.trained if section.name in self.words]
        if ALL in self.words:
            from fedaccord.experiments.page import render_page

            shown = [section.name for section in (*self.sections, *self.trained)]
            pictures = {name: self.out / f"{name}.svg" for name in shown}
            drawn = {name: path.read_bytes() for name, path in pictures.items() if path.exists()}
            self._write_page(PAGE, render_page(self.sections, self.trained, drawn, self.notes))

    def _is_asked(self, name: str) -> bool:
        return name in self.words or ALL in self.words

    def _make(
        self, preset: "AnyPreset", produce: "Callable[[AnyPreset, Width], dict[str, bytes]]"
    ) -> None:
        """Write a figure's files, unless they are there already."""
        import fedaccord

        settings = {**preset.as_json(), "width": self.width, "fedaccord": fedaccord.__version__}
        kept = not self.force and is_current(self.out, preset.name, settings)
        if not kept:
            write_figure(self.out, preset.name, produce(preset, self.width), settings)
            part_path(self.out, preset.name).unlink(missing_ok=True)
        self.made.append(Made(preset.name, preset.title, kept))

    def _trained(self, preset: "TrainingPreset", width: Width) -> dict[str, bytes]:
        """The files of a training experiment, by their endings."""
        from fedaccord.experiments.figures import find_training_module
        from fedaccord.experiments.pictures import save

        table = None if self.force else _measured(self.out, preset)
        if table is None:
            table = self._measure(preset)
        figure = find_training_module(preset.name).draw(table, preset, width)
        return {"csv": table.as_csv().encode(), **save(figure, preset.name)}

    def _measure(self, preset: "TrainingPreset") -> "Table":
        """Train, with a progress bar; broken off, it goes on with the run that it was at."""
        import fedaccord
        from fedaccord.checks import check_installed
        from fedaccord.experiments.figures import find_training_module

        check_installed("training", "torch", "sklearn")
        if self.force:
            part_path(self.out, preset.name).unlink(missing_ok=True)
        settings = {**preset.as_json(), "fedaccord": fedaccord.__version__}
        parts = PartFile(self.out, preset.name, settings)
        module = find_training_module(preset.name)
        with counting("Training", module.steps(preset)) as reach:
            return module.run(preset, reach, parts)

    def _write_page(self, name: str, text: str) -> None:
        write_file(self.out / name, text)
        if name not in self.pages:
            self.pages.append(name)


def _draw(preset: "Preset", width: Width) -> dict[str, bytes]:
    """A figure's files, by their endings."""
    from fedaccord.experiments.figures import find_figure
    from fedaccord.experiments.pictures import save

    figure = find_figure(preset.name)
    table = figure.run(preset)
    return {"csv": table.as_csv().encode(), **save(figure.draw(table, preset, width), preset.name)}


def _measured(out: Path, preset: "TrainingPreset") -> "Table | None":
    """What was measured before with this preset; another picture of it needs no training."""
    from fedaccord.experiments.table import read_table

    if not preset.as_json().items() <= read_settings(out, preset.name, "csv").items():
        return None
    return read_table((out / f"{preset.name}.csv").read_text(encoding="utf-8"))


def trained_sections(out: Path, seed: int | None = None) -> "list[Section]":
    """What was measured in training, now or before, with the presets as they are.

    With this seed; None: with any.
    """
    from fedaccord.experiments.evaluation import training_section
    from fedaccord.experiments.presets import find_training, training_titles

    sections = []
    for name in training_titles():
        before = read_settings(out, name, "csv").get("seed")
        preset = find_training(name, before if seed is None else seed)
        table = _measured(out, preset)
        if table is not None:
            sections.append(training_section(name, table, preset))
    return sections
