"""A result: one number, the target that it should meet, and how it was measured."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from benchmarks.measure import Timing

Sense = Literal["at most", "at least"]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    benchmark: str
    what: str
    """What was timed, in words."""
    against: str
    """What it was measured against."""
    value: float | None = None
    """The ratio (or other number) to compare with the target; None: skipped, `note` says why."""
    sense: Sense = "at most"
    target: float | None = None
    unit: str = "x"
    ours: Timing | None = None
    theirs: Timing | None = None
    cpu_ratio: float | None = None
    note: str = ""
    failed: bool = False
    """Whether the benchmark ended with an error; `note` says which."""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a number or a target."""
        if self.value is None or self.target is None:
            return None
        return self.value <= self.target if self.sense == "at most" else self.value >= self.target

    def as_json(self) -> dict[str, Any]:
        """The row as it is written to the JSON file."""
        return asdict(self) | {"met": self.met}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> "Row":
        """The row that was written by `as_json`."""
        fields = {name: value for name, value in given.items() if name != "met"}
        timings = {name: fields[name] and Timing(**fields[name]) for name in ("ours", "theirs")}
        return cls(**(fields | timings))


def failed(benchmark: str, note: str) -> Row:
    """The row of a benchmark that ended with an error."""
    return Row(benchmark, benchmark, "–", note=note, failed=True)


def slower(
    benchmark: str, what: str, against: str, ours: Timing, theirs: Timing, **rest: Any
) -> Row:
    """The ratio of our time to theirs: lower is better."""
    return Row(
        benchmark,
        what,
        against,
        value=ours.wall / theirs.wall,
        sense="at most",
        ours=ours,
        theirs=theirs,
        cpu_ratio=_ratio(ours.cpu, theirs.cpu),
        **rest,
    )


def faster(
    benchmark: str, what: str, against: str, ours: Timing, theirs: Timing, **rest: Any
) -> Row:
    """The ratio of their time to ours: higher is better."""
    return Row(
        benchmark,
        what,
        against,
        value=theirs.wall / ours.wall,
        sense="at least",
        ours=ours,
        theirs=theirs,
        cpu_ratio=_ratio(theirs.cpu, ours.cpu),
        **rest,
    )


def _ratio(cpu: float | None, other: float | None) -> float | None:
    """None if CPU time is unknown, or too short for its clock."""
    return cpu / other if cpu is not None and other else None
