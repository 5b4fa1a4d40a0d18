"""FedAvg under a profile: each client trains on as many samples as it contributes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedaccord.training.calibration import Losses as Losses
    from fedaccord.training.calibration import Speed as Speed
    from fedaccord.training.calibration import measure_losses as measure_losses
    from fedaccord.training.calibration import measure_speed as measure_speed
    from fedaccord.training.checkpoint import Checkpoint as Checkpoint
    from fedaccord.training.checkpoint import load_parameters as load_parameters
    from fedaccord.training.comparison import Comparison as Comparison
    from fedaccord.training.comparison import Estimate as Estimate
    from fedaccord.training.comparison import ProfileScore as ProfileScore
    from fedaccord.training.comparison import compare_runs as compare_runs
    from fedaccord.training.course import Course as Course
    from fedaccord.training.course import Score as Score
    from fedaccord.training.course import SlotRecord as SlotRecord
    from fedaccord.training.course import TrainingRun as TrainingRun
    from fedaccord.training.course import train as train
    from fedaccord.training.engine import Engine as Engine
    from fedaccord.training.engine import GradientStep as GradientStep
    from fedaccord.training.engine import LocalEpochs as LocalEpochs
    from fedaccord.training.engine import TrainingFailed as TrainingFailed
    from fedaccord.training.engine import TrainingPlan as TrainingPlan
    from fedaccord.training.law import Law as Law
    from fedaccord.training.law import fit_law as fit_law
    from fedaccord.training.plain import PlainEngine as PlainEngine
    from fedaccord.training.task import Model as Model
    from fedaccord.training.task import Parameters as Parameters
    from fedaccord.training.task import Task as Task
    from fedaccord.training.task import cross_entropy as cross_entropy
    from fedaccord.training.task import find_task as find_task
    from fedaccord.training.vectorised import VectorisedEngine as VectorisedEngine

_HOMES = {
    "Losses": "calibration",
    "Speed": "calibration",
    "measure_losses": "calibration",
    "measure_speed": "calibration",
    "Checkpoint": "checkpoint",
    "load_parameters": "checkpoint",
    "Comparison": "comparison",
    "Estimate": "comparison",
    "ProfileScore": "comparison",
    "compare_runs": "comparison",
    "Course": "course",
    "Score": "course",
    "SlotRecord": "course",
    "TrainingRun": "course",
    "train": "course",
    "Engine": "engine",
    "GradientStep": "engine",
    "LocalEpochs": "engine",
    "TrainingFailed": "engine",
    "TrainingPlan": "engine",
    "Law": "law",
    "fit_law": "law",
    "PlainEngine": "plain",
    "Model": "task",
    "Parameters": "task",
    "Task": "task",
    "cross_entropy": "task",
    "find_task": "task",
    "VectorisedEngine": "vectorised",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the law and its pictures need no PyTorch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fedaccord.training' has no attribute {name!r}")
    value = getattr(import_module(f"fedaccord.training.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(_HOMES)
