"""What other packages bring, found by entry points: mechanisms, datasets, detectors and others.

A package that declares

    [project.entry-points."fedaccord.mechanisms"]
    lottery = "my_package:Lottery"

finds its mechanism in `fedaccord compare` as soon as it is installed, beside the built-in ones.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Literal, TypeVar

from fedaccord.errors import FedaccordError

Group = Literal["attestations", "datasets", "detectors", "listeners", "mechanisms", "tasks"]
T = TypeVar("T")


def names_in(group: Group, built_in: Mapping[str, T]) -> list[str]:
    """The names that can be asked for: the built-in ones first, then those of other packages."""
    others = {entry.name for entry in entry_points(group=f"fedaccord.{group}")}
    return [*built_in, *sorted(others - set(built_in))]


def find(group: Group, name: str, built_in: Mapping[str, T]) -> T | None:
    """What has this name; None if nothing has. A built-in one cannot be replaced."""
    if name in built_in:
        return built_in[name]
    for entry in entry_points(group=f"fedaccord.{group}", name=name):
        try:
            found: Any = entry.load()
        except Exception as error:
            raise FedaccordError(
                f"{name}: cannot be loaded from {entry.value!r} ({type(error).__name__}: {error})"
            ) from error
        return found  # type: ignore[no-any-return]
    return None
