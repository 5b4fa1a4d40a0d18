"""What the paper leaves out: how good the model gets under each mechanism, on real data.

FedAvg with one gradient step per client and round, on MNIST; the data is redrawn in every slot.
Runs with the same seed share their data and their initial model. Free-rider detection drops updates
that contain nothing, so its model is the equilibrium's.
"""

from collections.abc import Callable, MutableMapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from fedaccord.agreement.solve import solve_agreement
from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, found
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.presets import TrainingPreset
from fedaccord.experiments.standard import fact, half_width, measured
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.paper import paper_consortium
from fedaccord.mechanisms.contract.contract import Contract

if TYPE_CHECKING:
    from fedaccord.training.course import Course

MECHANISMS = ("equilibrium", "uniform", "individual", "contract")
RunProgress = Callable[[int, str], None]
"""Called before each run: how many runs are finished, and what comes next."""
Parts = MutableMapping[str, Any]
"""The measurements of each finished run; runs that it already has are not repeated."""


def steps(preset: TrainingPreset) -> int:
    """How many runs there are."""
    return len(preset.options["scales"]) * preset.seeds * len(MECHANISMS)


def run(
    preset: TrainingPreset, progress: RunProgress = lambda *_: None, parts: Parts | None = None
) -> FigureData:
    """One row per round: mean and half of the 95 % interval of accuracy and loss."""
    parts = {} if parts is None else parts
    contributions = _contributions(preset)
    seeds = range(preset.seed, preset.seed + preset.seeds)
    scales = preset.options["scales"]
    columns: dict[str, Column] = {}
    done = 0
    rounds, slots = int(preset.setting.rounds), int(preset.options["slots"])
    for scale in scales:
        sizes = [_size(preset, scale)] * preset.setting.clients
        course = simple_course(preset, sizes, rounds, scale)
        scores: dict[str, list[Column]] = {name: [] for name in MECHANISMS}
        for seed in seeds:
            for name, profile in contributions.items():
                progress(done, f"Training, {name}, seed {seed}")
                run_name = f"scale {scale}, seed {seed}, {name}"
                if run_name not in parts:
                    parts[run_name] = _train(course, profile, slots, seed).tolist()
                scores[name].append(np.array(parts[run_name]))
                done += 1
        columns |= _columns(_size(preset, scale), {k: np.array(v) for k, v in scores.items()})
    numbers = np.arange(1, rounds * slots + 1)
    return FigureData({"round": numbers, "slot": (numbers - 1) // rounds + 1} | columns)


def draw(table: FigureData, preset: TrainingPreset, width: pictures.Width) -> Figure:
    """Accuracy and loss by round, for both sizes of the data."""
    sizes = {
        _size(preset, scale): f"{_size(preset, scale):,} images each"
        for scale in preset.options["scales"]
    }
    return pictures.plot_rounds(table, sizes, int(preset.setting.rounds), width)


def claims(table: FigureData, preset: TrainingPreset) -> list[Claim]:
    """What the paper takes for granted: more data leads to a better model."""
    sizes = [_size(preset, scale) for scale in preset.options["scales"]]
    return [
        claim
        for size in sizes
        for claim in (
            *(_difference(table, size, name) for name in MECHANISMS[1:]),
            _detection(table, size),
        )
    ]


def _difference(table: FigureData, size: int, name: str) -> Claim:
    """At the end of the last slot, compared with the equilibrium."""
    gain, half, accuracy, alone = (
        100.0 * float(table[column][-1])
        for column in (
            f"{name}_{size}_gain",
            f"{name}_{size}_gain_half",
            f"{name}_{size}_accuracy",
            f"equilibrium_{size}_accuracy",
        )
    )
    less = name == "contract"
    which = "worse under contract design" if less else f"better under the {name} agreement"
    return found(
        f"With {size:,} images per client the model is {which} than at the equilibrium.",
        measured(
            -gain if less else gain,
            half,
            f"accuracy {accuracy:.2f} % against {alone:.2f} %: {gain:+.2f} ± {half:.2f} points",
            "it is the other way round",
        ),
    )


def _detection(table: FigureData, size: int) -> Claim:
    gain = table[f"detection_{size}_gain"]
    accuracy = 100.0 * float(table[f"detection_{size}_accuracy"][-1])
    return found(
        f"With {size:,} images per client the model is no better under detection than at the "
        "equilibrium.",
        fact(
            not (gain > 0).any(),
            f"accuracy {accuracy:.2f} % under both, by construction: the dropped updates "
            "contain nothing",
        ),
    )


def _contributions(preset: TrainingPreset) -> dict[str, Column]:
    fields: dict[str, Any] = asdict(preset.setting)
    consortium = paper_consortium(**fields)
    alone = solve_equilibrium(consortium)
    return {
        "equilibrium": alone.profile,
        "uniform": solve_agreement(alone, "uniform").profile,
        "individual": solve_agreement(alone, "individual").profile,
        "contract": Contract().outcome(consortium).contributions,
    }


def _size(preset: TrainingPreset, scale: float) -> int:
    """Number of images of each client."""
    from fedaccord.data.scale import examples_for

    return int(examples_for(preset.setting.samples, scale))


def simple_course(
    preset: TrainingPreset, sizes: list[int], rounds: int, scale: float = 1.0
) -> "Course":
    """One gradient step per round for every client, on data drawn from the same distribution."""
    from fedaccord.data.dataset import load_dataset
    from fedaccord.data.partition import RandomPartition
    from fedaccord.training.course import Course
    from fedaccord.training.engine import GradientStep
    from fedaccord.training.task import Model, find_task

    data = load_dataset(preset.dataset)
    return Course(
        model=Model(find_task(preset.task), data),
        partition=lambda seed: RandomPartition(data, sizes, seed),
        rounds=rounds,
        local=GradientStep(preset.rate),
        scale=scale,
    )


def _train(course: "Course", profile: Column, slots: int, seed: int) -> Column:
    """Test accuracy and loss after each round: two rows."""
    from fedaccord.training.course import train

    trained = train(course, np.tile(profile, (slots, 1)), seed=seed)
    scores = [score for slot in trained.slots for score in slot.rounds]
    return np.array([[s.accuracy for s in scores], [s.loss for s in scores]])


def _columns(size: int, scores: dict[str, Column]) -> dict[str, Column]:
    """Means and intervals; a gain over the equilibrium is computed seed by seed.

    Detection has its own columns but no runs: they would be the same as the equilibrium's.
    """
    columns: dict[str, Column] = {}
    alone = scores["equilibrium"]
    for name, values in (scores | {"detection": alone}).items():
        for key, of_seeds in (
            ("accuracy", values[:, 0]),
            ("loss", values[:, 1]),
            ("gain", values[:, 0] - alone[:, 0]),
        ):
            columns[f"{name}_{size}_{key}"] = of_seeds.mean(axis=0)
            columns[f"{name}_{size}_{key}_half"] = half_width(of_seeds)
    return columns
