"""Timing contestants side by side: a slow moment of the machine hits both."""

import gc
import resource
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Literal

Take = Literal["minimum", "median"]
_TAKE: dict[Take, Callable[[list[float]], float]] = {
    "minimum": min,
    "median": statistics.median,
}


@dataclass(frozen=True)
class Timing:
    """Seconds that one run takes."""

    wall: float
    cpu: float | None
    """Of the processor; None where it can't be told."""
    repeats: int
    take: Take
    """Which of the repeats it is: what else goes on only ever adds time, so the minimum says most
    about the code, the median about what to expect."""
    measured: float = 1.0
    """The part of the work that was run; the rest was extrapolated linearly."""

    def each(self, times: int) -> "Timing":
        """One of `times` that were run one after another."""
        cpu = None if self.cpu is None else self.cpu / times
        return replace(self, wall=self.wall / times, cpu=cpu)

    def extrapolated(self, measured: float) -> "Timing":
        """The whole, of which this timing measured only a part."""
        cpu = None if self.cpu is None else self.cpu / measured
        return replace(self, wall=self.wall / measured, cpu=cpu, measured=measured)


@dataclass(frozen=True)
class Contestant:
    """Something to time: `run` is timed, and given what `prepare` made, which is not."""

    run: Callable[..., object]
    prepare: Callable[[], object] = lambda: None
    cpu_clock: Callable[[], float] = process_time
    """Processor time; another clock when the work is done by child processes."""


def race(
    *contestants: Contestant, repeats: int, take: Take = "minimum", warm_up: bool = True
) -> list[Timing]:
    """Run the contestants in turn, `repeats` times, after one turn that doesn't count."""
    walls: list[list[float]] = [[] for _ in contestants]
    cpus: list[list[float]] = [[] for _ in contestants]
    for turn in range(-1 if warm_up else 0, repeats):
        for n, contestant in enumerate(contestants):
            wall, cpu = _once(contestant)
            if turn >= 0:
                walls[n].append(wall)
                cpus[n].append(cpu)
    choose = _TAKE[take]
    return [Timing(choose(w), choose(c), repeats, take) for w, c in zip(walls, cpus, strict=True)]


def _once(contestant: Contestant) -> tuple[float, float]:
    prepared = contestant.prepare()
    gc.collect()
    gc.disable()
    try:
        cpu, wall = contestant.cpu_clock(), perf_counter()
        contestant.run(prepared)
        return perf_counter() - wall, contestant.cpu_clock() - cpu
    finally:
        gc.enable()


def peak_memory() -> int:
    """Bytes of this process at most. Linux's `ru_maxrss` would start with those of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1_024
    unit = 1 if sys.platform == "darwin" else 1_024  # macOS counts bytes, others kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
