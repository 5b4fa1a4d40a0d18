"""The benchmarks by name. Each is a module of this package with a function `run`."""

from collections.abc import Callable
from importlib import import_module

from benchmarks.row import Row

NAMES = (
    "equilibrium",
    "individual",
    "uniform",
    "batch",
    "law",
    "ranges",
    "monitoring",
    "suspension",
    "misreport",
    "play",
    "nashopt",
    "figures",
    "detection",
    "flower",
    "deployment",
    "room",
    "workshop",
    "verify",
    "audits",
    "training",
    "training_pfl",
    "training_flower",
    "value",
    "study",
    "simulated_calibrations",
    "predictions",
    "start_up",
)


def find(name: str) -> Callable[[], list[Row]]:
    """The `run` function of a benchmark."""
    run: Callable[[], list[Row]] = import_module(f"benchmarks.{name}").run
    return run
