"""What each figure is computed from: the paper's setting, a range, a seed (presets.toml).

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


@dataclass(frozen=True)
class Setting:
    """The paper's consortium: N clients alike but for their valuations, rho_n = 100 n/N."""

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
    setting: Setting
    parameter: str
    values: tuple[float, ...]
    why: str
    """How the range was found."""
    seed: int | None = None
    """Of what is drawn by chance; None: nothing is."""
    options: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What only this figure has."""

    @property
    def zoom(self) -> tuple[float, float] | None:
        """The part of the range that a second panel shows from near."""
        low_and_high = self.options.get("zoom")
        return None if low_and_high is None else (low_and_high[0], low_and_high[1])

    def unrounded(self) -> "Preset":
        """The same with the cost per sample that the paper rounded when it printed it."""
        return replace(self, setting=replace(self.setting, cost_per_sample=unrounded_cost()))

    def as_json(self) -> dict[str, Any]:
        """Everything that the figure depends on, to write beside it."""
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


@dataclass(frozen=True)
class TrainingPreset:
    """What a model is trained on, and how often."""

    name: str
    title: str
    setting: Setting
    dataset: str
    task: str
    rate: float
    seed: int
    """Of the first run."""
    seeds: int
    """How many runs there are."""
    options: MappingProxyType[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Everything that the numbers depend on, to write beside them."""
        plain = {key: getattr(self, key) for key in ("dataset", "task", "rate", "seed", "seeds")}
        record = {"figure": self.name, "title": self.title, "setting": asdict(self.setting)}
        return record | plain | dict(self.options)


def training_titles() -> dict[str, str]:
    """What is trained, by name."""
    return {name: part["title"] for name, part in _read()["training"].items()}


def drawn_by_chance() -> list[str]:
    """The names of all that has a seed."""
    parts = {**_read()["figures"], **_read()["training"]}
    return [name for name, part in parts.items() if "seed" in part]


def find_training(name: str, seed: int | None = None) -> TrainingPreset:
    """The preset of a training experiment; `seed` in place of its own."""
    parts = _read()["training"]
    if name not in parts:
        raise InvalidInput(f"there is no training called {name!r}: {unknown(name, parts)}")
    options = dict(parts[name])
    own = {key: options.pop(key) for key in ("title", "dataset", "task", "rate", "seed", "seeds")}
    if seed is not None:
        own["seed"] = seed
    setting = Setting(**_read()["paper"])
    return TrainingPreset(name=name, setting=setting, options=MappingProxyType(options), **own)


def sweeps() -> dict[str, dict[str, Any]]:
    """The swept parameters: first and last value, step, and how the range was found."""
    return dict(_read()["sweeps"])


def unrounded_cost() -> float:
    """The cost per sample that the paper must have computed with."""
    return float(_read()["unrounded"]["cost_per_sample"])


def find_preset(name: str, seed: int | None = None) -> Preset:
    """A figure's preset; `seed` in place of its own, if it has one."""
    figures = _read()["figures"]
    if name not in figures:
        raise InvalidInput(f"there is no figure called {name!r}: {unknown(name, figures)}")
    options = dict(figures[name])
    sweep = _read()["sweeps"][options["sweep"]]
    own_seed = options.pop("seed", None)
    return Preset(
        name=name,
        title=options.pop("title"),
        setting=Setting(**_read()["paper"]),
        parameter=options.pop("sweep"),
        values=_grid(sweep["first"], sweep["last"], sweep["step"]),
        why=sweep["why"],
        seed=seed if own_seed is not None and seed is not None else own_seed,
        options=MappingProxyType(options),
    )


def _grid(first: float, last: float, step: float) -> tuple[float, ...]:
    """Evenly spaced numbers, each the one that a person would write."""
    count = round((last - first) / step) + 1
    return tuple(float(f"{first + n * step:.9g}") for n in range(count))


@cache
def _read() -> dict[str, Any]:
    text = files("fedaccord.experiments").joinpath("presets.toml").read_text(encoding="utf-8")
    return parse_toml(text, "presets.toml")
