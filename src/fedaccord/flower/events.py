"""What happens while slots run, as records: each is one line of a log, in words or as JSON.

A record is the only place where both come from, so the two cannot say different things. The
server's records are in `server_events`, a member's in `member_events`.

>>> line_of(Note(message="the clock of this machine is wrong", time="2026-01-31T09:30:00.000Z"))
'2026-01-31T09:30:00Z  the clock of this machine is wrong'
"""

import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from fedaccord.checks import escaped
from fedaccord.protocol.messages import Out

LogFormat: TypeAlias = Literal["text", "json"]
Level: TypeAlias = Literal["info", "warning", "error"]
LEVELS: dict[Level, int] = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def time_now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Event(BaseModel):
    """Something that happened. `event` says what, `level` how serious it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    usual_level: ClassVar[Level] = "info"
    event: str
    time: str = Field(default_factory=time_now)
    """When, in UTC, by the clock of the machine that wrote the line."""

    @property
    def level(self) -> Level:
        """How serious it is."""
        return self.usual_level

    def sentence(self) -> str:
        """What happened, in words."""
        raise NotImplementedError

    @property
    def in_words(self) -> str:
        """The sentence, safe to print: it may quote names and reasons from outside."""
        return escaped(self.sentence())

    @property
    def as_json(self) -> str:
        """One line of JSON; a field without a value is left out."""
        fields = self.model_dump(mode="json", exclude_none=True)
        head = {"event": fields.pop("event"), "time": fields.pop("time"), "level": self.level}
        return json.dumps(head | fields)


Say: TypeAlias = Callable[[Event], None]
"""Takes note of an event: writes a line, or anything else."""


def line_of(event: Event, log_format: LogFormat = "text") -> str:
    """The line of an event in a log."""
    if log_format == "json":
        return event.as_json
    return f"{event.time[:19]}Z  {event.in_words}"


class Suspension(BaseModel):
    """Who is suspended, why and until when."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    client: str
    slipped_in: int
    """The slot in which it slipped."""
    until: int | None = None
    """The last slot in which it takes no part, if every slot until then is played. For ever if it
    is left out."""


def suspensions(out: Out, first: int) -> list[Suspension]:
    """Who is suspended in slot `first`, and for how long."""
    return [
        Suspension(
            client=name,
            slipped_in=one.slipped_in,
            until=None if one.slots_left is None else first + one.slots_left - 1,
        )
        for name, one in out.items()
    ]


class Note(Event):
    """Something else that one should know."""

    usual_level: ClassVar[Level] = "warning"
    event: Literal["note"] = "note"
    message: str

    def sentence(self) -> str:
        """The message."""
        return self.message


# --- Words ---------------------------------------------------------------------------------


def listed(names: Iterable[str]) -> str:
    """Names in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed([])
    ('a', 'a, b and c', 'nobody')
    """
    *first, last = [*names] or ["nobody"]
    return f"{', '.join(first)} and {last}" if first else last


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(1200, "sample")
    ('1 round', '1,200 samples')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def lasted(seconds: float) -> str:
    """A time that something took.

    >>> lasted(0.04), lasted(7.26), lasted(754)
    ('0.04 s', '7.3 s', '12 min 34 s')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def suspended_in_words(suspended: Iterable[Suspension]) -> str:
    """Who is suspended until when.

    >>> suspended_in_words([Suspension(client="b", slipped_in=1, until=3)])
    'b until slot 3 (it slipped in slot 1)'
    """
    return listed(
        f"{one.client} {'for ever' if one.until is None else f'until slot {one.until}'} "
        f"(it slipped in slot {one.slipped_in})"
        for one in suspended
    )


def measured(value: float, measure: str | None = None, half_width: float | None = None) -> str:
    """A measure by its name, accuracy unless another is named.

    >>> measured(0.9), measured(0.735, "concordance", 0.08)
    ('accuracy 90.0 %', 'concordance 0.735 ± 0.080')
    """
    return f"{measure or 'accuracy'} {value_of(value, measure, half_width)}"


def value_of(value: float, measure: str | None = None, half_width: float | None = None) -> str:
    """The value of a measure, with its interval if there is one: accuracy in per cent.

    >>> value_of(0.9, half_width=0.05)
    '90.0 ± 5.0 %'
    """
    percent = measure in (None, "accuracy")
    known = [value] if half_width is None else [value, half_width]
    told = " ± ".join(f"{100 * each:.1f}" if percent else f"{each:.3f}" for each in known)
    return f"{told} %" if percent else told


def score_in_words(loss: float | None, accuracy: float | None, measure: str | None = None) -> str:
    """How good a model is on test examples, if that is known.

    >>> score_in_words(0.41237, 0.9), score_in_words(None, None)
    ('loss 0.412, accuracy 90.0 %', '')
    """
    known = [] if loss is None else [f"loss {loss:.3g}"]
    if accuracy is not None:
        known.append(measured(accuracy, measure))
    return ", ".join(known)
