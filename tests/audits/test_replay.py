"""A member's part of a round comes out again to the last bit, by whichever rule it trains."""

from collections.abc import Callable

import numpy as np
import pytest

from fedaccord.audits.commitment import RoundInputs
from fedaccord.audits.replay import Replay, StepDigests, replay, train_round
from fedaccord.audits.software import software_of
from fedaccord.audits.trace import TracedRound
from fedaccord.training.arrays import digest
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule, LocalSteps
from fedaccord.training.task import Model, find_task
from tests.audits.cheats import CLIENT, HEAD, model_on, records_of
from tests.training.patients import survival_data

RULES: list[LocalRule] = [
    GradientStep(0.2),
    LocalEpochs(0.2, 16, 2, proximal=0.5),
    LocalSteps(0.2, 16, 9),
    LocalSteps(0.05, 16, 9, proximal=0.5, optimiser="adam"),
]
OTHER: list[LocalRule] = [
    GradientStep(0.1),
    LocalEpochs(0.2, 16, 2),
    LocalSteps(0.2, 16, 8),
    LocalSteps(0.05, 16, 9, proximal=0.5),
]
"""What a member did instead, to save itself work or to be held less closely."""
SAID = RoundInputs(client=CLIENT, position=1, slot=3, turn=2, head=HEAD, amount=50)


def softmax() -> Model:
    return model_on(records_of(1))


def cox() -> Model:
    return Model(find_task("cox"), survival_data(200, 20))


def replayed(model: Model, rule: LocalRule, done: LocalRule) -> Replay:
    """The replay of a round that was to be trained by one rule, and was trained by another."""
    start, steps = model.start(4), StepDigests()
    came = {name: value.numpy() for name, value in start.items()}
    update = train_round(model, done, SAID, came, steps)
    traced = TracedRound(
        **SAID.model_dump(),
        model=digest(came),
        update=digest(update),
        steps=tuple(steps.found),
        software=software_of(model.task),
    )
    again = {name: np.array(value) for name, value in came.items()}
    return replay(model, rule, traced, again, update)


@pytest.mark.parametrize("make", [softmax, cox])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_an_honest_round_comes_out_again(make: Callable[[], Model], rule: LocalRule) -> None:
    found = replayed(make(), rule, rule)
    assert (found.exact, found.passed, found.step) == (True, True, None)


@pytest.mark.parametrize("make", [softmax, cox])
@pytest.mark.parametrize(("rule", "done"), zip(RULES, OTHER, strict=True))
def test_another_rule_than_the_terms_say_shows(
    make: Callable[[], Model], rule: LocalRule, done: LocalRule
) -> None:
    found = replayed(make(), rule, done)
    assert (found.exact, found.passed) == (False, False)
    assert found.step is not None


@pytest.mark.parametrize(
    ("exact", "same_machine", "distance", "passed"),
    [
        (True, True, 0.0, True),
        (False, True, 1e-9, False),  # the same processor adds up in the same order
        (True, False, 0.0, True),
        (False, False, 1e-4, True),
        (False, False, 1.001e-4, None),  # only its own kind of processor can tell
    ],
)
def test_how_far_a_replay_may_be_away(
    exact: bool, same_machine: bool, distance: float, passed: bool | None
) -> None:
    assert Replay(exact, same_machine, distance).passed is passed
