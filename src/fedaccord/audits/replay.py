"""Level 2: a round of a member's training is run again from what it committed to.

Everything that a round depends on is known: the records (committed), the seeds (from the ledger),
the number of samples and the incoming model (in the ledger). On the same software and the same kind
of processor the update must come out to the last bit. On another processor sums are added up in
another order, and the update may differ by `TOLERANCE`. With other versions of the software a
replay would show nothing, so none is made.
"""

from dataclasses import dataclass

from fedaccord.audits.commitment import RoundInputs, slot_order, training_seed
from fedaccord.audits.software import Software, software_of
from fedaccord.audits.trace import TracedRound
from fedaccord.errors import InvalidInput
from fedaccord.training.arrays import Arrays, digest, distance
from fedaccord.training.engine import AfterStep
from fedaccord.training.local import Turn, train_locally
from fedaccord.training.rules import LocalRule
from fedaccord.training.task import Model, Parameters

TOLERANCE = 1e-4
"""How far an update from another kind of processor may be from the replayed one, as a part of the
distance by which the replayed one moved the model.

Measured by `python -m benchmarks.audit_replays` on the digits, with other instruction sets for
PyTorch, oneDNN and MKL: at most 5e-7 for softmax and mlp in 32 bits and 2e-15 in 64, and 3e-6 for
cnn in either, also with FedProx. The number of threads changes nothing: a round is trained on one.
The exceptions are training that is unstable by itself (five epochs of the cnn with rate 0.5 end up
to 0.2 apart) and Adam, which takes steps of one size even where a gradient is little more than
rounding (up to 2e-4 in 32 bits). So beyond the tolerance a replay on another kind of processor
decides nothing.
"""


@dataclass(frozen=True)
class Replay:
    """How a replay came out."""

    exact: bool
    """Whether the update is the same to the last bit."""
    same_machine: bool
    """Whether it was trained on the same kind of processor, so that it must be exact."""
    distance: float
    """Between the two updates, as a part of how far the replayed one moved the model."""
    step: int | None = None
    """The first step after which the local state differs, if the member kept digests of steps."""

    @property
    def passed(self) -> bool | None:
        """Whether it is the update of an honest member; None if only its own machine can tell."""
        if self.exact or self.same_machine:
            return self.exact
        return True if self.distance <= TOLERANCE else None


def train_round(
    model: Model,
    local: LocalRule,
    one: RoundInputs,
    incoming: Arrays,
    after_step: AfterStep | None = None,
) -> Arrays:
    """A member's part of a round where training is audited; all chance comes from the ledger.

    The model's dataset has the member's records in the order in which it committed to them.
    """
    order = slot_order(one.head, one.slot, one.client, model.dataset.size)
    share = order[one.first : one.first + one.amount]
    if len(share) < one.amount:
        raise InvalidInput(
            f"{one.client} is to train on {one.first + one.amount} samples in slot {one.slot}, and "
            f"has {model.dataset.size} records"
        )
    seed = training_seed(one.head, one.slot, one.turn, one.client)
    turn = Turn(one.slot, one.turn, one.position, seed)
    return train_locally(model, local, share, incoming, turn, after_step=after_step)


class StepDigests:
    """Collects the digest of the local state after each step."""

    def __init__(self) -> None:
        """Before the first step."""
        self.found: list[str] = []

    def __call__(self, parameters: Parameters) -> None:
        """Called after a step."""
        self.found.append(
            digest({name: value.detach().numpy() for name, value in parameters.items()})
        )


def replay(
    model: Model,
    local: LocalRule,
    one: TracedRound,
    incoming: Arrays,
    update: Arrays,
) -> Replay:
    """Run a round again, and compare the update with the one that the member sent.

    `incoming` and `update` must have the digests that the ledger has.
    """
    here = software_of(model.task)
    _check_software(here, one.software)
    steps = StepDigests() if one.steps else None
    again = train_round(model, local, one, incoming, steps)
    moved, apart = distance(again, incoming), distance(again, update)
    return Replay(
        exact=digest(again) == digest(update),
        same_machine=here.machine == one.software.machine,
        distance=apart / moved if moved > 0 else float(apart > 0),
        step=None if steps is None else _first_difference(one.steps, steps.found),
    )


def _check_software(here: Software, there: Software) -> None:
    """Refuse to replay with another program: it would prove nothing."""
    if here.versions != there.versions:
        wanted = ", ".join(f"{name} {number}" for name, number in there.versions.items())
        raise InvalidInput(f"the round was trained with {wanted}: replay it with the same versions")
    if (here.task, here.source) != (there.task, there.source):
        raise InvalidInput("the round was trained with another task, or another version of it")


def _first_difference(noted: tuple[str, ...], found: list[str]) -> int | None:
    for step, (one, other) in enumerate(zip(noted, found, strict=False), 1):
        if one != other:
            return step
    return None if len(noted) == len(found) else min(len(noted), len(found)) + 1
