"""Presets cut down to a few values, and small training presets that need no download."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fedaccord.experiments.presets import (
    Preset,
    Setting,
    TrainingPreset,
    find_preset,
    find_training,
)


def few(name: str, values: int = 12) -> Preset:
    """A figure's preset with some of its values, the last always among them."""
    preset = find_preset(name)
    step = max(1, len(preset.values) // values)
    options = dict(preset.options)
    if "draws" in options:
        options["draws"] = 5
    return replace(preset, values=preset.values[::-step][::-1], options=MappingProxyType(options))


def small_training(name: str, **options: Any) -> TrainingPreset:
    """A training preset on the digits of scikit-learn: a consortium of ten, three rounds."""
    preset = find_training(name)
    setting = Setting(clients=10, samples=100, rounds=3, cost_per_sample=5e-3, discount_factor=0.8)
    return replace(
        preset,
        setting=setting,
        dataset="digits",
        seeds=2,
        options=MappingProxyType({**preset.options, **options}),
    )
