"""Every cheat against every level, by the computed probability; honest members pass."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import binom

from fedaccord.audits.commitment import RoundInputs
from fedaccord.audits.draw import draw_audits
from fedaccord.audits.replay import TOLERANCE, replay, train_round
from fedaccord.audits.software import software_of
from fedaccord.audits.trace import TracedRound
from fedaccord.training.arrays import digest, distance
from fedaccord.training.engine import GradientStep, LocalEpochs
from fedaccord.training.task import find_task
from tests.audits.cheats import (
    CHEATED,
    CHEATS,
    CLIENT,
    LOCAL,
    Member,
    Premises,
    incoming,
    model_on,
    records_of,
    settlement_head,
    terms,
)
from tests.audits.odds import found_when_opened, found_when_replayed

DRAWS, AUDITED = 1_000, 0.1
SOME = 8
TIMES = 10
"""How often each of many different rounds is replayed."""
ONE_IN_A_MILLION = 1e-6
"""How improbable a number of findings must be before a test calls it wrong."""


@lru_cache
def premises(cheat: str | None) -> Premises:
    return Premises(Member() if cheat is None else CHEATS[cheat])


def count_found(cheat: str | None, level: int, draws: int, probability: float) -> int:
    """How often a cheat is found if the audit is drawn by many different heads."""
    where, rules = premises(cheat), terms(level, probability=probability)
    drawn = [
        draw
        for number in range(draws)
        for draw in draw_audits(settlement_head(number), 3, {CLIENT: where.trained}, rules)
    ]
    return sum(where.audit(draw, rules).outcome == "failed" for draw in drawn)


def check_binomial(found: int, draws: int, probability: float) -> None:
    low, high = binom.interval(1 - ONE_IN_A_MILLION, draws, probability)
    assert low <= found <= high


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_is_found_by_whichever_level_can(cheat: str) -> None:
    check_binomial(count_found(cheat, 1, SOME, 1.0), SOME, found_when_opened(cheat))
    check_binomial(count_found(cheat, 2, SOME, 1.0), SOME, found_when_replayed(cheat))


@pytest.mark.parametrize("level", [1, 2])
def test_an_honest_member_passes(level: int) -> None:
    assert count_found(None, level, SOME, 1.0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
def test_drawn_audits_find_a_cheat_as_often_as_computed(cheat: str) -> None:
    found = count_found(cheat, 2, DRAWS, AUDITED)
    check_binomial(found, DRAWS, AUDITED * found_when_replayed(cheat))


@pytest.mark.slow
def test_honest_members_are_never_accused_in_100_000_replays() -> None:
    model = model_on(records_of(1, 16))
    software, start = software_of(find_task("softmax")), model.start(0)
    rng, accused = np.random.default_rng(0), 0
    for number in range(100_000 // TIMES):
        local = GradientStep(0.5) if number % 4 else LocalEpochs(0.5, 8, 1)
        came = {
            name: rng.normal(size=value.shape).astype(np.float32) for name, value in start.items()
        }
        head, amount = settlement_head(number), 1 + number % 16
        inputs = RoundInputs(client=CLIENT, position=0, slot=1, turn=1, head=head, amount=amount)
        update = train_round(model, local, inputs, came)
        traced = TracedRound(
            **inputs.model_dump(), model=digest(came), update=digest(update), software=software
        )
        for _ in range(TIMES):
            accused += replay(model, local, traced, came, update).passed is not True
    assert accused == 0


def test_the_smallest_cheat_is_larger_than_the_tolerance() -> None:
    where = premises("1 % fewer samples than said")
    for turn in range(1, CHEATED + 1):
        inputs = where.member.inputs(turn)
        software = software_of(find_task("softmax")).model_copy(update={"machine": "another one"})
        traced = TracedRound(
            **inputs.model_dump(),
            model=digest(incoming(turn)),
            update=digest(where.updates[turn]),
            software=software,
        )
        found = replay(where.model, LOCAL, traced, incoming(turn), where.updates[turn])
        assert not found.same_machine
        assert found.distance > 10 * TOLERANCE
        assert found.passed is None  # only a machine like the member's can tell


def test_one_missing_sample_of_10_000_is_beyond_the_tolerance() -> None:
    model, said = model_on(records_of(4, 10_000)), premises(None).member.inputs(1)
    said = said.model_copy(update={"amount": 10_000})
    less = said.model_copy(update={"amount": 9_999})
    came, local = incoming(1), GradientStep(0.5)
    whole, short = (train_round(model, local, one, came) for one in (said, less))
    assert distance(whole, short) > TOLERANCE * distance(whole, came)
