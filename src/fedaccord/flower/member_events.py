"""What a member's own log says while slots run. It stays with the member: the server sees none.

>>> told = Reports(client="a", slot=2, phase="cooperating", ratio=900.0, samples=120)
>>> print(told.in_words)
slot 2 (cooperating): reported the ratio 900 and 120 samples
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from fedaccord.agreement.punishment import PunishmentName
from fedaccord.flower.events import (
    Event,
    Level,
    Suspension,
    counted,
    lasted,
    listed,
    measured,
    score_in_words,
    suspended_in_words,
    value_of,
)
from fedaccord.protocol.messages import BasisName, Phase, VerdictName


class MemberEvent(Event):
    """Something that happened at a member, in a slot."""

    client: str
    slot: int


class ModelMeasured(MemberEvent):
    """Something that happened with a model, which the member measured at home."""

    loss: float | None = None
    """Of the model, on the test examples that this member has; so is the accuracy."""
    accuracy: float | None = None
    """Or what else the task is measured by."""
    own_accuracy: float | None = None
    """The same on this member's own test, if it has one."""
    own_accuracy_half_width: float | None = None
    """Half of its 95 % interval, which is about the choice of the test examples."""
    measure: str | None = None
    """The name of both: accuracy, or concordance for survival times."""

    @property
    def score(self) -> str:
        """How good the model is, as far as that is known."""
        parts = []
        if here := score_in_words(self.loss, self.accuracy, self.measure):
            parts.append(f"{here} on the test examples here")
        if self.own_accuracy is not None:
            own = measured(self.own_accuracy, self.measure, self.own_accuracy_half_width)
            parts.append(f"{own} on its own test")
        return ", ".join(parts)


class Reports(MemberEvent):
    """The member was asked when a slot began, and what it said."""

    event: Literal["member_reports"] = "member_reports"
    phase: Phase
    ratio: float | None = None
    """What it reported; nothing if nobody reports by the terms."""
    samples: int | None = None
    suspended: list[Suspension] = Field(default_factory=list)
    """Who takes no part."""

    def sentence(self) -> str:
        """What it said."""
        said = "said that it is there"
        if self.ratio is not None:
            said = f"reported the ratio {self.ratio:g} and {counted(self.samples or 0, 'sample')}"
        out = f"; suspended: {suspended_in_words(self.suspended)}" if self.suspended else ""
        return f"slot {self.slot} ({self.phase}): {said}{out}"


class Ranked(MemberEvent):
    """The member was told its place among all."""

    event: Literal["member_rank"] = "member_rank"
    rank: int
    clients: int
    contribution: float
    """Its equilibrium contribution."""

    def sentence(self) -> str:
        """Its place, and what follows from it."""
        place = f"place {self.rank} of {self.clients}"
        return (
            f"slot {self.slot}: {place}, so its equilibrium contribution is {self.contribution:g}"
        )


class ClockAnswered(MemberEvent):
    """The member was asked whether it goes on to the next share."""

    event: Literal["member_clock"] = "member_clock"
    step: int
    stays: bool

    def sentence(self) -> str:
        """What it said."""
        what = "goes on to" if self.stays else "stops before"
        return f"slot {self.slot}: {what} step {self.step} of the clock"


class OfferJudged(MemberEvent):
    """The member was made an offer, and what it said."""

    event: Literal["member_offer"] = "member_offer"
    contribution: int
    total: int
    accepts: bool
    reason: str | None = None
    """Why it refuses."""
    cost: float | None = None
    """What the agreement costs it in a slot, in the unit of its valuation."""
    cost_otherwise: float | None = None
    """What a slot of the punishment would cost it."""
    punishment: PunishmentName

    @property
    def level(self) -> Level:
        """A refusal is worth a look."""
        return "info" if self.accepts else "warning"

    def sentence(self) -> str:
        """The offer, the answer, and why."""
        offer = f"offered {self.contribution:,} of {counted(self.total, 'sample')} in all"
        answer = "accepts" if self.accepts else f"refuses ({self.reason or 'as before'})"
        costs = ""
        if self.cost is not None and self.cost_otherwise is not None:
            other = "suspended" if self.punishment == "suspension" else "at the equilibrium"
            costs = f"; a slot costs it {self.cost:,.4g}, and {self.cost_otherwise:,.4g} {other}"
        return f"slot {self.slot}: {offer}; {answer}{costs}"


class RoundTrained(ModelMeasured):
    """The member trained in a round; the model that is measured is the one that came in."""

    event: Literal["member_round"] = "member_round"
    round: int
    basis: BasisName
    samples: int
    seconds: float

    def sentence(self) -> str:
        """On what, how long, and how good the model was that came in."""
        what = f"trained on {counted(self.samples, 'sample')} in {lasted(self.seconds)}"
        if not self.samples:
            what = f"trains on nothing by the {self.basis}"
        before = f"; the model that came in has {self.score}" if self.score else ""
        return f"slot {self.slot}, round {self.round}: {what}{before}"


class ModelTaken(ModelMeasured):
    """The member was handed the model of its tier, while others go on."""

    event: Literal["member_tier"] = "member_tier"
    stored: str | None = None
    """Where the model is stored."""

    def sentence(self) -> str:
        """What it has now."""
        return f"slot {self.slot}: received the model of its tier{_model(self)}"


class Settled(ModelMeasured):
    """A slot is settled: the member's verdict, its model, and what comes next."""

    event: Literal["member_settled"] = "member_settled"
    verdict: VerdictName
    agreed: int | None = None
    contributed: int | None = None
    deviated: list[str] = Field(default_factory=list)
    absent: list[str] = Field(default_factory=list)
    model: bool
    """Whether it was sent the model."""
    stored: str | None = None
    """Where the model is stored."""
    phase: Phase
    """Of the next slot."""
    suspended: list[Suspension] = Field(default_factory=list)
    """Who takes no part in the next slot."""

    @property
    def level(self) -> Level:
        """A slot without a model is worth a look."""
        return "info" if self.model and self.verdict == "kept" else "warning"

    def sentence(self) -> str:
        """The verdict, the model, who slipped or was absent, and what comes next."""
        amount = ""
        if self.agreed is not None:
            amount = f" ({self.contributed or 0:,} of {counted(self.agreed, 'sample')})"
        parts = [f"slot {self.slot} is settled: verdict {self.verdict}{amount}"]
        parts.append(f"received the model{_model(self)}" if self.model else "received no model")
        for who, what in ((self.deviated, "deviated"), (self.absent, "absent")):
            parts += [f"{what}: {listed(who)}"] if who else []
        out = f"; suspended in it: {suspended_in_words(self.suspended)}" if self.suspended else ""
        return f"{'; '.join(parts)}. Next is slot {self.slot + 1}, {self.phase}{out}."


def _model(event: ModelTaken | Settled) -> str:
    """Where the model is, and how good it is."""
    parts = [f"stored as {event.stored}"] if event.stored else []
    parts += [event.score] if event.score else []
    return f" ({'; '.join(parts)})" if parts else ""


class FineTuned(ModelMeasured):
    """The member went on with a slot's model by itself; the result, which is measured, is its own.

    Nobody else has it, and the next slot begins with the shared model.
    """

    event: Literal["member_fine_tuned"] = "member_fine_tuned"
    epochs: int
    samples: int
    """What it contributed to the slot, and went through so many times."""
    seconds: float
    stored: str
    """Where its own model is stored."""
    shared_accuracy: float | None = None
    """Of the slot's model, on the same test examples."""
    shared_own_accuracy: float | None = None
    """The same on this member's own test."""
    shared_own_accuracy_half_width: float | None = None
    """Half of its 95 % interval."""

    def sentence(self) -> str:
        """What it trained on, and how good its own model is beside the shared one."""
        how = f"on {counted(self.samples, 'sample')} for {counted(self.epochs, 'epoch')}"
        parts = [f"slot {self.slot}: fine-tuned the model {how} in {lasted(self.seconds)}"]
        if self.accuracy is not None and self.shared_accuracy is not None:
            here = measured(self.accuracy, self.measure)
            before = value_of(self.shared_accuracy, self.measure)
            parts.append(f"{here} on the test examples here ({before} before)")
        if self.own_accuracy is not None and self.shared_own_accuracy is not None:
            own = measured(self.own_accuracy, self.measure, self.own_accuracy_half_width)
            half_width = self.shared_own_accuracy_half_width
            before = value_of(self.shared_own_accuracy, self.measure, half_width)
            parts.append(f"{own} on its own test ({before} before)")
        return f"{'; '.join(parts)}; stored as {self.stored}"


class Consented(MemberEvent):
    """The member was asked about a proposal."""

    event: Literal["member_consent"] = "member_consent"
    proposal: str
    reason: str
    """Given by whoever proposed it."""
    agrees: bool

    def sentence(self) -> str:
        """What was proposed, and what it said."""
        answer = "agrees" if self.agrees else "does not agree"
        return f"proposed: {self.proposal} ({self.reason}); this client {answer}"


class Problem(Event):
    """Something is wrong at a member."""

    usual_level: ClassVar[Level] = "error"
    event: Literal["member_problem"] = "member_problem"
    message: str
    traceback: str | None = None
    """Of a mistake in the program or in the data that nobody foresaw."""

    def sentence(self) -> str:
        """The message, on one line."""
        first, *rest = self.message.splitlines() or [""]
        return " ".join([first, "; ".join(line.strip() for line in rest)]).strip()


class Remark(Event):
    """Something else that a member's node says."""

    event: Literal["member_remark"] = "member_remark"
    message: str

    def sentence(self) -> str:
        """The message."""
        return self.message


AnyMemberEvent: TypeAlias = Annotated[
    Reports
    | Ranked
    | ClockAnswered
    | OfferJudged
    | RoundTrained
    | ModelTaken
    | Settled
    | FineTuned
    | Consented
    | Problem
    | Remark,
    Field(discriminator="event"),
]
