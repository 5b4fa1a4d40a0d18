"""A clock between server and client: a share of everyone's samples rises until clients stop it.

The share rises from 0 to 1 in as many equal steps as the terms say. Before each step, every client
that has not stopped is asked whether to go on. It is told what all would train on at the share
before the step, and the samples W of those still in: another step adds W / steps to the total and
D_n / steps to its own contribution. Its cost

    a_n A(X) + x_n

is convex along the clock, so it stays in exactly as long as the next step does not cost it more.

*Clock*: the first client to stop stops all, at the share before the step. Who stays away in the
middle is left out; that makes the next step worth more to everyone else, never less.

*Serial clock*: who stops keeps its share, and gets a model trained on what all have given up to
there. The others are asked about the same step again, since it adds fewer samples now.

Amounts are rounded down to whole samples when the clock is over.

>>> from fedaccord.game.law import Law
>>> at = AskedClock(step=3, total=200.0, inside=1_000)
>>> [goes_on(ratio, 100, Law.paper(4), at, steps=10) for ratio in (50.0, 5_000.0)]
[False, True]
"""

from fedaccord.game.law import Law
from fedaccord.protocol import facts
from fedaccord.protocol.messages import AskedClock, Refusal
from fedaccord.protocol.state import Slot
from fedaccord.protocol.terms import CLOCKS, SAME_NUMBER, Terms


def steps_of(terms: Terms) -> int:
    """How many steps the clock in the terms has; 0: there is none."""
    return terms.clock_steps or 0


# --- The server's half ---------------------------------------------------------------------


def clock_runs(slot: Slot, terms: Terms) -> bool:
    """Whether a clock must be asked about before anything can be offered."""
    return terms.agreement in CLOCKS and not slot.clock_over


def still_in(slot: Slot) -> list[str]:
    """Who has not stopped."""
    return [name for name in slot.present if name not in slot.stops]


def total_at(slot: Slot, terms: Terms, step: int) -> float:
    """What all who are present would train on at a share: each up to where it stopped."""
    given = sum(slot.here[name] * min(slot.step_of(name), step) for name in slot.present)
    return given / steps_of(terms)


def next_step(slot: Slot, terms: Terms) -> AskedClock:
    """What everyone who is still in is asked."""
    return AskedClock(
        step=slot.step + 1,
        total=total_at(slot, terms, slot.step),
        inside=sum(slot.here[name] for name in still_in(slot)),
    )


def tick(slot: Slot, terms: Terms) -> list[facts.TypedFact]:
    """Where the clock comes to when everyone who is still in has answered; nothing before that."""
    still = still_in(slot)
    if any(name not in slot.stayed for name in still):
        return []
    first_stops_all = terms.agreement == "clock"
    moves = bool(still) and not (slot.stops if first_stops_all else slot.fewer)
    step = slot.step + 1 if moves else slot.step
    over = not still or step == steps_of(terms) or (first_stops_all and bool(slot.stops))
    return [facts.Clock(slot=slot.number, turn=slot.turns + 1, step=step, over=over)]


# --- The client's half ---------------------------------------------------------------------


def goes_on(ratio: float, samples: int, law: Law, asked: AskedClock, steps: int) -> bool:
    """Whether the next step does not cost a client more than it is worth to it."""
    worth = ratio * float(law.fall(asked.total, asked.inside / steps))
    return worth >= samples / steps


def check_step(asked: AskedClock, before: AskedClock | None, own: int, terms: Terms) -> None:
    """Refuse a step of the clock that cannot follow from the one before, or from the terms."""
    steps, most = steps_of(terms), sum(map(terms.samples_of, terms.clients))
    if asked.step > steps or not own <= asked.inside <= most or asked.total > most:
        raise Refusal("there is no such step of the clock")
    if terms.agreement == "clock":
        total = (asked.step - 1) / steps * asked.inside
        if abs(asked.total - total) > SAME_NUMBER * most:
            raise Refusal("the total is not that of the share before this step")
    if before is None:
        if asked.step > 1:
            raise Refusal("the clock does not begin at its first step")
        return
    again = terms.agreement == "serial clock"
    if asked.step not in (before.step + 1, *([before.step] if again else [])):
        raise Refusal("this step does not follow the one before")
    if asked.inside > before.inside:
        raise Refusal("clients came back that had stopped")


def kept_steps(answered: AskedClock, *, stays: bool, terms: Terms) -> range:
    """The shares at which a client may find itself after its last answer, in steps."""
    steps, step = steps_of(terms), answered.step
    if not stays:
        return range(step - 1, step)
    if step < steps:  # somebody else stopped all, or it would have been asked again
        return range(step - 1, step) if terms.agreement == "clock" else range(0)
    return range(step - 1, step + 1) if terms.agreement == "clock" else range(step, step + 1)
