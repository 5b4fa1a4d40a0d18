"""Recompute the paper's figures and check its statements, in a directory; keep what is current."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import fedaccord
from fedaccord.checks import check_installed, check_type, check_whole, unknown
from fedaccord.errors import FedaccordError, InvalidInput, Problem
from fedaccord.experiments import figures as kinds
from fedaccord.experiments import presets
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.evaluation import (
    Section,
    render_markdown,
    render_page,
    section_names,
    section_of,
    training_section,
)
from fedaccord.experiments.figure_data import (
    FigureData,
    PartFile,
    is_current,
    make_directory,
    part_path,
    read_figure_data,
    read_settings,
    write_figure,
    write_file,
)
from fedaccord.experiments.pictures import Width, save
from fedaccord.experiments.presets import Preset, TrainingPreset

ALL, CLAIMS = "all", "claims"
PAGE, CLAIMS_PAGE = "index.html", "evaluation.md"
ReproductionProgress: TypeAlias = Callable[[int, int, str], None]
"""Called before each step: how many steps of this stage are done, of how many, and what is next.

The stages (figures, claims, each training) start at 0 one after another."""
AnyPreset = TypeVar("AnyPreset", Preset, TrainingPreset)


@dataclass(frozen=True)
class ReproducedFigure:
    """A figure that was asked for."""

    figure: str
    title: str
    kept: bool
    """Whether it was there already."""


@dataclass(frozen=True)
class Reproduction:
    """What was made, what was kept, and what holds of the paper."""

    directory: Path
    figures: tuple[ReproducedFigure, ...]
    sections: tuple[Section, ...] = field(repr=False)
    """The paper's statements about the figures asked for, or all of them, with their verdicts."""
    trained: tuple[Section, ...] = field(repr=False)
    """What was measured in training."""
    pages: tuple[str, ...]
    """The names of the pages that were written."""
    notes: tuple[str, ...]
    """What had to be left out, and why."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The paper's statements, with their verdicts."""
        return tuple(claim for section in self.sections for claim in section.claims)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON, as `fedaccord reproduce --format json` prints it."""
        return {
            "directory": str(self.directory),
            "figures": [asdict(figure) for figure in self.figures],
            "pages": list(self.pages),
            "notes": list(self.notes),
            "claims": _claim_records(self.sections),
            "measured": _claim_records(self.trained),
        }


def _claim_records(sections: Sequence[Section]) -> list[dict[str, Any]]:
    return [{"figure": s.name, **asdict(claim)} for s in sections for claim in s.claims]


def reproducible() -> dict[str, str]:
    """Everything that can be asked for, by name, with a title."""
    return {
        **presets.figure_titles(),
        **presets.own_titles(),
        **presets.training_titles(),
        CLAIMS: "Every statement of the paper about its figures, with our verdict",
        ALL: "All of these, and one HTML page",
    }


def reproduce(
    figures: str | Sequence[str],
    out: str | Path = "reproduction",
    *,
    width: Width = "one-column",
    seed: int | None = None,
    force: bool = False,
    progress: ReproductionProgress = lambda *_: None,
) -> Reproduction:
    """Recompute figures of the paper, and check what the paper says about them.

    `figures` names one or several of "fig3" to "fig23", figures of our own such as
    "suspension-clients", "accuracy" and "law" (real training), "claims" (a page of all statements)
    or "all". Each figure becomes a .csv, an .svg, a .png and a
    .json file in the directory `out`. Figures that were made with the same settings are kept unless
    `force` is set; interrupted training resumes after the last finished run. `seed` replaces the
    seeds of the presets.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     done = reproduce("fig16", directory)
    ...     again = reproduce("fig16", directory)
    >>> [claim.verdict for claim in done.claims]
    ['holds', 'holds', 'holds', 'does not hold']
    >>> done.figures[0].kept, again.figures[0].kept
    (False, True)
    """
    check_type("figures", figures, str, Sequence)
    names = [figures] if isinstance(figures, str) else list(figures)
    _check(names, seed)
    directory = Path(out)
    make_directory(directory)
    work = _Work(names, directory, width, seed, force, progress)
    work.draw_figures()
    work.check_claims()
    work.write_pages()  # before training, which may be interrupted
    work.train()
    work.write_pages()
    return work.record()


def _check(names: Sequence[str], seed: int | None) -> None:
    """Refuse names that do not exist, all at once, and a seed that nothing uses."""
    known = reproducible()
    for name in names:
        check_type("figures", name, str)
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        problems = [f"there is no {name!r}: {unknown(name, known)}" for name in wrong]
        raise InvalidInput(problems or [Problem("figures", "must name at least one")])
    if seed is None:
        return
    check_whole("seed", seed, least=0)
    if {*presets.with_a_seed(), CLAIMS, ALL}.isdisjoint(names):
        message = f"no random numbers are drawn for {', '.join(names)}"
        raise InvalidInput(message, field="seed")


@dataclass
class _Work:
    """What was asked for, and what has been done so far."""

    names: Sequence[str]
    out: Path
    width: Width
    seed: int | None
    force: bool
    progress: ReproductionProgress
    figures: list[ReproducedFigure] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    trained: list[Section] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def record(self) -> Reproduction:
        return Reproduction(
            self.out,
            tuple(self.figures),
            tuple(self.sections),
            tuple(self.trained),
            tuple(self.pages),
            tuple(self.notes),
        )

    def draw_figures(self) -> None:
        """All figures but those that need training."""
        titles = presets.figure_titles() | presets.own_titles()
        chosen = [name for name in titles if self._is_asked(name)]
        for done, name in enumerate(chosen):
            self.progress(done, len(chosen), f"Figures, {name}")
            self._make(presets.find_preset(name, self.seed), _files)

    def check_claims(self) -> None:
        """What the paper says about them."""
        every = self._is_asked(CLAIMS)
        chosen = [name for name in section_names() if every or name in self.names]
        for done, name in enumerate(chosen):
            self.progress(done, len(chosen), f"Claims, {name}")
            self.sections.append(section_of(name, self.seed))

    def train(self) -> None:
        """What takes longest. If it is not possible, the rest is still of use."""
        nothing_else = set(self.names) <= set(presets.training_titles())
        left_out: dict[str, list[str]] = {}
        for name in presets.training_titles():
            if not self._is_asked(name):
                continue
            try:
                self._make(presets.find_training(name, self.seed), self._training_files)
            except FedaccordError as error:
                if nothing_else:
                    raise
                left_out.setdefault(str(error), []).append(name)
        self.notes += [f"Left out: {', '.join(names)}. {why}" for why, names in left_out.items()]

    def write_pages(self) -> None:
        """The pages about the whole evaluation, if they were asked for."""
        self.trained = trained_sections(self.out, self.seed)
        if self._is_asked(CLAIMS):
            self._write_page(CLAIMS_PAGE, render_markdown(self.sections, self.trained))
        else:
            self.trained = [section for section in self.trained if section.name in self.names]
        if ALL in self.names:
            shown = [section.name for section in (*self.sections, *self.trained)]
            shown += presets.own_titles()
            pictures = {name: self.out / f"{name}.svg" for name in shown}
            drawn = {name: path.read_bytes() for name, path in pictures.items() if path.exists()}
            self._write_page(PAGE, render_page(self.sections, self.trained, drawn, self.notes))

    def _is_asked(self, name: str) -> bool:
        return name in self.names or ALL in self.names

    def _make(
        self, preset: AnyPreset, produce: Callable[[AnyPreset, Width], dict[str, bytes]]
    ) -> None:
        """Write a figure's files, unless they are there already."""
        settings = {**preset.as_json(), "width": self.width, "fedaccord": fedaccord.__version__}
        kept = not self.force and is_current(self.out, preset.name, settings)
        if not kept:
            write_figure(self.out, preset.name, produce(preset, self.width), settings)
            part_path(self.out, preset.name).unlink(missing_ok=True)
        self.figures.append(ReproducedFigure(preset.name, preset.title, kept))

    def _training_files(self, preset: TrainingPreset, width: Width) -> dict[str, bytes]:
        """The files of a training experiment, by their endings."""
        table = None if self.force else _measured_before(self.out, preset)
        if table is None:
            table = self._measure(preset)
        picture = kinds.training_kind(preset).draw(table, preset, width)
        return {"csv": table.as_csv().encode(), **save(picture, preset.name)}

    def _measure(self, preset: TrainingPreset) -> FigureData:
        """Train; after an interruption, resume after the last finished run."""
        check_installed("training", "torch", "sklearn")
        if self.force:
            part_path(self.out, preset.name).unlink(missing_ok=True)
        settings = {**preset.as_json(), "fedaccord": fedaccord.__version__}
        parts = PartFile(self.out, preset.name, settings)
        kind = kinds.training_kind(preset)
        steps = kind.steps(preset)
        return kind.run(preset, lambda done, doing: self.progress(done, steps, doing), parts)

    def _write_page(self, name: str, text: str) -> None:
        write_file(self.out / name, text)
        if name not in self.pages:
            self.pages.append(name)


def _files(preset: Preset, width: Width) -> dict[str, bytes]:
    """A figure's files, by their endings."""
    table = kinds.run(preset)
    return {"csv": table.as_csv().encode(), **save(kinds.draw(table, preset, width), preset.name)}


def _measured_before(out: Path, preset: TrainingPreset) -> FigureData | None:
    """What was measured before with this preset; a new picture of it needs no training."""
    if not preset.as_json().items() <= read_settings(out, preset.name, "csv").items():
        return None
    return read_figure_data((out / f"{preset.name}.csv").read_text(encoding="utf-8"))


def trained_sections(out: Path, seed: int | None = None) -> list[Section]:
    """What was measured in training, now or before, with the current presets.

    With a seed, only what was measured with it.
    """
    sections = []
    for name in presets.training_titles():
        before = read_settings(out, name, "csv").get("seed")
        preset = presets.find_training(name, before if seed is None else seed)
        table = _measured_before(out, preset)
        if table is not None:
            sections.append(training_section(table, preset))
    return sections
