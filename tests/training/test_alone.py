"""Clients on their own: what they train, what is recorded of it, and that a run resumes."""

from pathlib import Path

import numpy as np
import pytest
import torch

import fedaccord as fa
from fedaccord import plots, report
from fedaccord.repeated import DeviateOnce
from fedaccord.summaries.training import alone_sentences
from fedaccord.training.checkpoint import Checkpoint, identity_of
from fedaccord.training.course import train
from fedaccord.training.engine import PlainEngine, TrainingPlan
from fedaccord.training.vectorised.engine import VectorisedEngine
from fedaccord.trials.trial import Trial
from tests.training.test_course import Memory, assert_same, course

TOGETHER = np.array([[120, 80, 60], [120, 0, 60], [0, 0, 60], [120, 80, 0.0]])
ALONE = np.array([[0, 0, 0], [0, 50, 0], [120, 80, 0], [0, 0, 1.0]])


def test_a_client_on_its_own_by_hand() -> None:
    """It starts from the initial model, and goes on with its own in the next slot."""
    given = course()
    run = train(given, TOGETHER, alone=ALONE, seed=5)
    parameters = given.model.start(5)
    for slot, amount in ((2, 50), (3, 80)):
        own = given.partition(5).draw(slot)[1][:amount]
        shares = [own[:0], own, own[:0]]
        plan = TrainingPlan(given.model, shares, 3, given.local, seed=5, slot=slot)
        *_, parameters = VectorisedEngine().rounds(plan, parameters)
        [record] = [each for each in run.slots[slot - 1].alone if each.name == "two"]
        data = given.model.dataset
        expected = given.model.evaluate(parameters, data.test_inputs, data.test_labels)
        # all who are on their own are trained at once, so that sums have another order
        assert (record.final.loss, record.final.accuracy) == pytest.approx(expected, rel=1e-6)
        assert record.total == amount
        assert record.old == run.slots[0].final
    assert [len(slot.alone) for slot in run.slots] == [0, 1, 2, 1]


def test_the_consortium_s_model_is_the_same_with_and_without_them() -> None:
    run, without = (train(course(), TOGETHER, alone=alone, seed=5) for alone in (ALONE, None))
    for name in run.parameters:
        assert torch.equal(run.parameters[name], without.parameters[name])
    assert [slot.rounds for slot in run.slots] == [slot.rounds for slot in without.slots]


def test_who_returns_and_is_out_again_starts_again() -> None:
    alone = np.array([[0, 50, 0], [0, 0, 0], [0, 50, 0.0]])
    run = train(course(), [[120, 0, 60], [120, 80, 60], [120, 0, 60]], alone=alone)
    first, _, third = (slot.alone for slot in run.slots)
    assert first[0].old is None
    assert third[0].old == run.slots[1].final
    assert third[0].rounds[0].loss > first[0].rounds[-1].loss


def test_the_engines_agree() -> None:
    runs = [
        train(course(), TOGETHER, alone=ALONE, engine=engine)
        for engine in (PlainEngine(), VectorisedEngine())
    ]
    for plain, fast in zip(*(run.slots for run in runs), strict=True):
        for one, other in zip(plain.alone, fast.alone, strict=True):
            assert one.final.loss == pytest.approx(other.final.loss, rel=1e-4)


@pytest.mark.parametrize("ends_at", range(1, 17))
def test_an_interrupted_run_resumes_to_the_same_numbers(ends_at: int, tmp_path: Path) -> None:
    expected = train(course(), TOGETHER, alone=ALONE)
    memory = Memory(ends_at)
    try:
        train(course(), TOGETHER, alone=ALONE, store=memory)
    except KeyboardInterrupt:
        identity = identity_of(course(), TOGETHER, None, 0, VectorisedEngine(), alone=ALONE)
        path = tmp_path / "run.pt"
        if memory.state is not None:
            Checkpoint(path, identity).save(memory.state, at_once=True)
        assert_same(
            train(course(), TOGETHER, alone=ALONE, store=Checkpoint(path, identity)), expected
        )


def test_a_checkpoint_of_other_clients_on_their_own_is_rejected(tmp_path: Path) -> None:
    def store(alone: object) -> Checkpoint:
        engine = VectorisedEngine()
        identity = identity_of(course(), TOGETHER, None, 0, engine, alone=alone)  # type: ignore[arg-type]
        return Checkpoint(tmp_path / "run.pt", identity)

    train(course(), TOGETHER, alone=ALONE, store=store(ALONE))
    for other in (None, 0 * ALONE, 0.5 * ALONE):
        with pytest.raises(fa.InvalidInput, match="its clients on their own is"):
            store(other).load()


def test_alone_must_be_of_the_same_clients_and_slots() -> None:
    with pytest.raises(fa.InvalidInput, match=r"alone: must be \(4, 3\), got \(2, 3\)"):
        train(course(), TOGETHER, alone=ALONE[:2])
    with pytest.raises(fa.InvalidInput, match="alone: must be 0 or more and finite, got -50 from"):
        train(course(), TOGETHER, alone=-ALONE)


# --- Under an agreement -----------------------------------------------------------------------

CONSORTIUM = fa.paper_consortium(clients=5, samples=100, rounds=4, cost_per_sample=0.004)
AGREEMENT = fa.agreement_on(CONSORTIUM, [60, 70, 80, 90, 100], fa.Suspension(2))


@pytest.fixture(scope="module")
def trial() -> Trial:
    slips = {"client-3": DeviateOnce(1, 0.0), "client-5": DeviateOnce(2, 0.0)}
    return fa.train(AGREEMENT, slots=4, seeds=2, strategies=slips)


def test_a_suspended_client_trains_alone(trial: Trial) -> None:
    run = trial.of("given")[0]
    alone = [[(each.name, each.total) for each in slot.alone] for slot in run.slots]
    three, five = ("client-3", 100), ("client-5", 100)
    assert alone == [[], [three], [three, five], [five]]
    assert [slot.total for slot in run.slots] == [320, 220, 220, 300]
    assert not any(slot.alone for slot in trial.of("equilibrium")[0].slots)


def test_its_accuracy_beside_the_others(trial: Trial) -> None:
    score = trial.alone[0]
    slots = [run.slots for run in trial.of("given")]
    assert (score.profile, score.slot, score.client) == ("given", 2, "client-3")
    own = [slot[1].alone[0].final.accuracy for slot in slots]
    assert score.accuracy.mean == pytest.approx(np.mean(own))
    assert score.others.mean == pytest.approx(np.mean([slot[1].final.accuracy for slot in slots]))
    assert score.old is not None
    assert score.old.mean == pytest.approx(np.mean([slot[0].final.accuracy for slot in slots]))
    line = alone_sentences(trial)[0]
    assert line.startswith("given: slot 2: client-3 trained alone on 100 examples: ")
    assert "the others have" in line
    assert "the last model that it received has" in line


def test_the_json_and_the_frame(trial: Trial) -> None:
    record = trial.to_dict()
    assert [(each["slot"], each["client"]) for each in record["alone"]] == [
        *((2, "client-3"), (3, "client-3"), (3, "client-5"), (4, "client-5"))
    ]
    [alone] = record["runs"][-1]["slots"][1]["alone"]
    assert list(alone) == [
        *("client", "total", "rounds", "test_loss", "test_accuracy", "old_accuracy"),
        "own_accuracy",
    ]
    assert [turn["round"] for turn in alone["rounds"]] == [1, 2, 3, 4]
    assert alone["old_accuracy"] == record["runs"][-1]["slots"][0]["test_accuracy"]
    pytest.importorskip("pandas")
    frame = trial.of("given")[0].to_frame("alone")
    assert frame["client"].tolist() == ["client-3", "client-3", "client-5", "client-5"]


def test_the_picture_and_the_page(trial: Trial) -> None:
    figure = plots.plot_learning(trial)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [
        *("equilibrium", "given", "client-3, alone", "client-5, alone", "someone is out")
    ]
    page = report.render_training(trial)
    assert "Members on their own" in page
    assert page.count("<td>client-3</td>") == 2


def test_the_profile_called_suspension() -> None:
    trial = fa.train(CONSORTIUM, ["individual", "suspension"], seeds=1, rounds=2)
    kinds = [each.agreement.punishment for each in trial.played if each.agreement is not None]
    assert kinds == [fa.Reversion(), fa.Suspension()]
    trial = fa.train(CONSORTIUM, ["suspension"], seeds=1, rounds=2, punishment=fa.Suspension(3))
    assert [each.agreement.punishment for each in trial.played if each.agreement] == [
        fa.Suspension(3)
    ]
