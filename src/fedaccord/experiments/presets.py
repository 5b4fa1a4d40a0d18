"""What each figure is computed from: its kind, setting, range and seed (presets.toml).

>>> preset = find_preset("fig4")
>>> preset.setting.clients, preset.parameter, preset.values[0], preset.values[-1]
(100, 'clients', 2.0, 200.0)
"""

from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from fedaccord.checks import unknown
from fedaccord.errors import InvalidInput
from fedaccord.files.reading import parse_toml

SYMBOLS = {
    "clients": "N",
    "samples": "D",
    "rounds": "G",
    "cost_per_sample": "E",
    "discount_factor": "δ",
}
"""The paper's symbol for each parameter that is swept."""


@dataclass(frozen=True)
class Setting:
    """The paper's consortium: N clients that differ only in their valuations, rho_n = 100 n/N."""

    clients: int
    samples: float
    rounds: float
    cost_per_sample: float
    discount_factor: float


@dataclass(frozen=True)
class Preset:
    """One figure's setting, and the values of the parameter that it sweeps."""

    name: str
    title: str
    kind: str
    """The module of `fedaccord.experiments.figures` that computes, draws and checks it."""
    setting: Setting
    parameter: str
    values: tuple[float, ...]
    why: str
    """How the range was chosen."""
    seed: int | None = None
    """Seed of the random numbers; None if there are none."""
    options: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Settings that only this figure has."""

    @property
    def zoom(self) -> tuple[float, float] | None:
        """The part of the range that a second panel enlarges."""
        low_and_high = self.options.get("zoom")
        return None if low_and_high is None else (low_and_high[0], low_and_high[1])

    def unrounded(self) -> "Preset":
        """The same preset with the cost per sample before the paper rounded it for print."""
        return replace(self, setting=replace(self.setting, cost_per_sample=unrounded_cost()))

    def as_json(self) -> dict[str, Any]:
        """Everything that the figure depends on, to be written beside it."""
        held = {key: value for key, value in asdict(self.setting).items() if key != self.parameter}
        swept = {
            "parameter": self.parameter,
            "first": self.values[0],
            "last": self.values[-1],
            "values": len(self.values),
            "why": self.why,
        }
        record = {"figure": self.name, "title": self.title, "setting": held, "swept": swept}
        return record | {"seed": self.seed} | dict(self.options)


def figure_titles() -> dict[str, str]:
    """Every figure's name and title, in the paper's order."""
    return {name: figure["title"] for name, figure in _read()["figures"].items()}


def own_titles() -> dict[str, str]:
    """The name and title of each figure that is ours, not the paper's."""
    return {name: figure["title"] for name, figure in _read()["ours"].items()}


@dataclass(frozen=True)
class TrainingPreset:
    """What a model is trained on, and how many runs there are."""

    name: str
    title: str
    kind: str
    """The module of `fedaccord.experiments.figures` that trains, draws and checks."""
    setting: Setting
    dataset: str
    task: str
    rate: float
    seed: int
    """Seed of the first run."""
    seeds: int
    """Number of runs."""
    options: MappingProxyType[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Everything that the numbers depend on, to be written beside them."""
        plain = {key: getattr(self, key) for key in ("dataset", "task", "rate", "seed", "seeds")}
        record = {"figure": self.name, "title": self.title, "setting": asdict(self.setting)}
        return record | plain | dict(self.options)


def training_titles() -> dict[str, str]:
    """The name and title of each training experiment."""
    return {name: part["title"] for name, part in _read()["training"].items()}


def with_a_seed() -> list[str]:
    """The names of the figures and experiments that draw random numbers."""
    parts = {**_read()["figures"], **_read()["training"]}
    return [name for name, part in parts.items() if "seed" in part]


_TRAINING = ("title", "kind", "dataset", "task", "rate", "seed", "seeds")


def find_training(name: str, seed: int | None = None) -> TrainingPreset:
    """The preset of a training experiment; `seed` replaces its own seed."""
    parts = _read()["training"]
    if name not in parts:
        raise InvalidInput(
            f"there is no training experiment called {name!r}: {unknown(name, parts)}"
        )
    options = dict(parts[name])
    own = {key: options.pop(key) for key in _TRAINING}
    if seed is not None:
        own["seed"] = seed
    return TrainingPreset(
        name=name, setting=paper_setting(), options=MappingProxyType(options), **own
    )


def paper_setting() -> Setting:
    """The setting of section 5."""
    return Setting(**_read()["paper"])


def sweeps() -> dict[str, dict[str, Any]]:
    """The swept parameters: first and last value, step, and how the range was chosen."""
    return dict(_read()["sweeps"])


def unrounded_cost() -> float:
    """The cost per sample that the paper seems to have computed with."""
    return float(_read()["unrounded"]["cost_per_sample"])


def find_preset(name: str, seed: int | None = None) -> Preset:
    """A figure's preset, the paper's or ours; `seed` replaces its own seed, if it has one."""
    figures = {**_read()["figures"], **_read()["ours"]}
    if name not in figures:
        raise InvalidInput(f"there is no figure called {name!r}: {unknown(name, figures)}")
    options = dict(figures[name])
    sweep = _read()["sweeps"][options["sweep"]]
    values = _grid(sweep["first"], sweep["last"], sweep["step"])
    own_seed = options.pop("seed", None)
    return Preset(
        name=name,
        title=options.pop("title"),
        kind=options.pop("kind"),
        setting=paper_setting(),
        parameter=options.pop("sweep"),
        values=values[:: -options.pop("every", 1)][::-1],
        why=sweep["why"],
        seed=seed if own_seed is not None and seed is not None else own_seed,
        options=MappingProxyType(options),
    )


def _grid(first: float, last: float, step: float) -> tuple[float, ...]:
    """Evenly spaced numbers without rounding errors: 0.3, not 0.30000000000000004."""
    count = round((last - first) / step) + 1
    return tuple(float(f"{first + n * step:.9g}") for n in range(count))


@cache
def _read() -> dict[str, Any]:
    text = files("fedaccord.experiments").joinpath("presets.toml").read_text(encoding="utf-8")
    return parse_toml(text, "presets.toml")
