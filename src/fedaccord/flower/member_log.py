"""A member's own log: what it was asked and what it answered, on standard error of its node.

Flower passes on what a server app prints, but nothing of a client app's, so these lines stay here.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from fedaccord.flower import member_events as said
from fedaccord.flower.events import LEVELS, Event, LogFormat, line_of, suspensions
from fedaccord.protocol.acceptance import Judgement
from fedaccord.protocol.facts import Scored
from fedaccord.protocol.messages import Motion, Suspended
from fedaccord.training.estimates import Estimate

LOG = logging.getLogger("fedaccord")
FORMAT_VARIABLE = "FEDACCORD_LOG_FORMAT"
"""The environment says how the lines of a member's log look: text (default) or json."""


def write_log(log_format: LogFormat | None = None) -> None:
    """From now on, write what is logged to standard error: by default as the environment says."""
    chosen = log_format or os.environ.get(FORMAT_VARIABLE, "text")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("json" if chosen == "json" else "text"))
    LOG.handlers = [handler]
    LOG.setLevel(logging.INFO)
    if chosen not in get_args(LogFormat):
        LOG.error("%s must be text or json, got %r", FORMAT_VARIABLE, chosen)


def tell(event: Event) -> None:
    """Write the line of an event."""
    LOG.log(LEVELS[event.level], "%s", event.in_words, extra={"event": event})


class _Lines(logging.Formatter):
    """A line for each event, and for whatever else is logged."""

    def __init__(self, log_format: LogFormat) -> None:
        super().__init__()
        self._format: LogFormat = log_format

    def format(self, record: logging.LogRecord) -> str:
        """The line; in words, a traceback follows it."""
        event = getattr(record, "event", None)
        if isinstance(event, Event):
            return line_of(event, self._format)
        trace = self.formatException(record.exc_info) if record.exc_info else None
        if record.levelno < logging.ERROR:
            return line_of(said.Remark(message=record.getMessage()), self._format)
        problem = said.Problem(message=record.getMessage(), traceback=trace)
        after = f"\n{trace}" if trace and self._format == "text" else ""
        return line_of(problem, self._format) + after


class Scores(NamedTuple):
    """How good a model is at a member."""

    test: Scored | None = None
    """On the test examples that it has."""
    own: Estimate | None = None
    """The task's measure on its own test, with an interval about the choice of the examples."""
    measure: str | None = None
    """What that measure is called."""

    @property
    def fields(self) -> dict[str, Any]:
        """As events have them."""
        known = {} if self.test is None else self.test._asdict()
        if self.own is None:
            return known
        mean, half_width = self.own.mean, self.own.half_width
        own = {"own_accuracy": mean, "own_accuracy_half_width": half_width}
        return known | own | {"measure": self.measure}


NO_SCORES = Scores()


def event_of(
    client: str,
    asked: Mapping[str, Any],
    answer: Mapping[str, Any],
    *,
    seconds: float,
    scores: Scores = NO_SCORES,
    judgement: Judgement | None = None,
    stored: str | None = None,
) -> Event | None:
    """What happened when a member was asked this, and answered that; both were checked before."""
    stage, slot = asked["stage"], asked["slot"]
    who: dict[str, Any] = {"client": client, "slot": slot}
    scored = scores.fields
    match stage:
        case "report":
            out = suspensions(_out(asked), slot)
            shown = {key: answer.get(key) for key in ("ratio", "samples")}
            return said.Reports(**who, phase=asked["phase"], suspended=out, **shown)
        case "rank":
            place = {key: asked[key] for key in ("rank", "clients")}
            return said.Ranked(**who, **place, contribution=answer["contribution"])
        case "clock":
            return said.ClockAnswered(**who, step=asked["step"], stays=answer["stays"])
        case "offer":
            offer = {key: asked[key] for key in ("contribution", "total", "punishment")}
            return said.OfferJudged(**who, **offer, accepts=answer["accepts"], **_costs(judgement))
        case "train":
            about = {"round": asked["turn"], "basis": asked["basis"], "seconds": round(seconds, 3)}
            return said.RoundTrained(**who, **about, samples=answer["samples"], **scored)
        case "tier":
            return said.ModelTaken(**who, stored=stored, **scored)
        case "settle":
            told = {key: asked[key] for key in _SETTLED}
            model, out = asked["model"] is not None, suspensions(_out(asked), slot + 1)
            return said.Settled(**who, **told, model=model, suspended=out, stored=stored, **scored)
        case "consent":
            motion = Motion(**{key: asked.get(key) for key in Motion.model_fields})
            reason, agrees = asked["reason"], answer["agrees"]
            return said.Consented(**who, proposal=motion.in_words, reason=reason, agrees=agrees)
    return None


_SETTLED = ("verdict", "agreed", "contributed", "deviated", "absent", "phase")


def _out(asked: Mapping[str, Any]) -> dict[str, Suspended]:
    return {name: Suspended(**one) for name, one in asked["suspended"].items()}


def _costs(judgement: Judgement | None) -> dict[str, Any]:
    """Why an offer is accepted or refused."""
    if judgement is None:
        return {}
    row = judgement.row
    costs = {} if row is None else {"cost": row.cost_agreement, "cost_otherwise": row.cost_punished}
    return {"reason": judgement.reason, **costs}
