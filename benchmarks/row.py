"""What a benchmark found: one number, the bar that it should clear, and how it was measured."""

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
    """The ratio (or other number) that the bar is about; None: left out, `note` says why."""
    sense: Sense = "at most"
    bar: float | None = None
    unit: str = "x"
    ours: Timing | None = None
    theirs: Timing | None = None
    cpu_ratio: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bar is cleared; None without a number or a bar."""
        if self.value is None or self.bar is None:
            return None
        return self.value <= self.bar if self.sense == "at most" else self.value >= self.bar

    def as_json(self) -> dict[str, Any]:
        """For the file."""
        return asdict(self) | {"met": self.met}


def slower(
    benchmark: str, what: str, against: str, ours: Timing, theirs: Timing, **rest: Any
) -> Row:
    """How many times as long as theirs ours takes: less is better."""
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


def quicker(
    benchmark: str, what: str, against: str, ours: Timing, theirs: Timing, **rest: Any
) -> Row:
    """How many times as long as ours theirs takes: more is better."""
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
    """None where processor time isn't known, or too short for its clock."""
    return cpu / other if cpu is not None and other else None
