"""Time contestants in turn, so that a slow moment of the machine affects both."""

import gc
import os
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
    """How many seconds one run takes."""

    wall: float
    cpu: float | None
    """CPU time; None if unknown."""
    repeats: int
    take: Take
    """Which of the repeats it is. Other load only ever adds time, so the minimum says most about
    the code, and the median about what to expect."""
    measured: float = 1.0
    """The fraction of the work that was run; the time for the rest is extrapolated linearly."""

    def each(self, times: int) -> "Timing":
        """The time of one of `times` runs that were timed together."""
        cpu = None if self.cpu is None else self.cpu / times
        return replace(self, wall=self.wall / times, cpu=cpu)

    def extrapolated(self, measured: float) -> "Timing":
        """The time for the whole work, of which only this fraction was measured."""
        cpu = None if self.cpu is None else self.cpu / measured
        return replace(self, wall=self.wall / measured, cpu=cpu, measured=measured)


@dataclass(frozen=True)
class Contestant:
    """Something to time: `run` is timed; `prepare`, whose result it is passed, is not."""

    run: Callable[..., object]
    prepare: Callable[[], object] = lambda: None
    cpu_clock: Callable[[], float] = process_time
    """CPU time; a different clock if the work is done by child processes."""


def race(
    *contestants: Contestant, repeats: int, take: Take = "minimum", warm_up: bool = True
) -> list[Timing]:
    """Run the contestants in turn, `repeats` times, after one warm-up run each."""
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


def children_time() -> float:
    """Processor time of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def peak_memory() -> int:
    """Peak memory of this process, in bytes. Linux's `ru_maxrss` would include its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1_024
    unit = 1 if sys.platform == "darwin" else 1_024  # macOS counts bytes, others kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
