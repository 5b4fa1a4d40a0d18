"""The presets: there is one for each figure, and the ranges follow from the paper's numbers."""

import json

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.errors import InvalidInput
from fedaccord.experiments.presets import (
    figure_titles,
    find_preset,
    find_training,
    own_titles,
    sweeps,
    training_titles,
    unrounded_cost,
)

VALUATION = np.arange(1.0, 101.0)


def percent_removed(**swept: object) -> tuple[np.ndarray, np.ndarray]:
    """Free riders, and the percentage that the uniform agreement removes, as printed."""
    fields = {
        "valuation": VALUATION,
        "cost_per_sample": 0.985e-8,
        "samples": 10_000.0,
        "rounds": 50,
        "discount_factor": 0.8,
    }
    batch = fa.solve_batch(**(fields | swept), kind="uniform")  # type: ignore[arg-type]
    riders = batch.equilibrium_free_riders
    return riders, np.round(100.0 * (riders - batch.free_riders) / np.maximum(riders, 1), 1)


def test_there_is_a_preset_for_every_figure_of_section_5_and_appendix_h() -> None:
    assert list(figure_titles()) == [f"fig{n}" for n in range(3, 24)]
    assert list(training_titles()) == ["accuracy", "law"]
    assert not any(name.startswith("fig") for name in own_titles())


def test_the_resolution_is_at_least_that_of_the_paper() -> None:
    assert find_preset("fig3").values == tuple(float(n) for n in range(2, 201))
    for name in ("fig5", "fig11", "fig13", "fig15"):
        assert len(find_preset(name).values) >= 200


@pytest.mark.parametrize("name", list(figure_titles()))
def test_values_are_as_written_and_ascend(name: str) -> None:
    values = find_preset(name).values
    assert (np.diff(values) > 0).all()
    assert all(float(f"{value:.9g}") == value for value in values)
    sweep = sweeps()[find_preset(name).parameter]
    assert (values[0], values[-1]) == (sweep["first"], sweep["last"])


def test_98_5_percent_bounds_the_largest_number_of_samples() -> None:
    samples = np.arange(16_000.0, 22_000.0, 10.0)
    riders, removed = percent_removed(samples=samples[:, np.newaxis])
    fits = removed == 98.5
    assert (riders[fits].min(), riders[fits].max()) == (65, 68)
    assert (samples[fits].min(), samples[fits].max()) == (17_190, 20_190)
    assert samples[fits].min() <= sweeps()["samples"]["last"] <= samples[fits].max()


def test_98_4_percent_bounds_the_largest_number_of_rounds() -> None:
    rounds = np.arange(100.0, 301.0)
    riders, removed = percent_removed(rounds=rounds[:, np.newaxis])
    fits = removed == 98.4
    assert (riders[fits].min(), riders[fits].max()) == (61, 64)
    assert (rounds[fits].min(), rounds[fits].max()) == (162, 253)
    assert rounds[fits].min() <= sweeps()["rounds"]["last"] <= rounds[fits].max()


def test_unknown_figures_are_rejected() -> None:
    with pytest.raises(InvalidInput, match="there is no figure called 'fig2'"):
        find_preset("fig2")
    with pytest.raises(
        InvalidInput, match=r"there is no training experiment called 'acuracy'.*'accuracy'"
    ):
        find_training("acuracy")


def test_a_seed_is_accepted_only_for_random_draws() -> None:
    assert find_preset("fig17").seed is not None
    assert find_preset("fig17", seed=5).seed == 5
    assert find_preset("fig4", seed=5).seed is None
    assert find_training("law", seed=5).seed == 5


def test_the_unrounded_cost_is_printed_as_in_the_paper() -> None:
    preset = find_preset("fig4")
    assert f"{unrounded_cost():.3g}" == f"{preset.setting.cost_per_sample:.3g}"
    assert preset.unrounded().setting.cost_per_sample == unrounded_cost()
    assert preset.unrounded().values == preset.values


@pytest.mark.parametrize("name", [*figure_titles(), *training_titles()])
def test_settings_are_plain_json(name: str) -> None:
    preset = find_preset(name) if name in figure_titles() else find_training(name)
    record = preset.as_json()
    assert json.loads(json.dumps(record)) == record
    assert record["figure"] == name
