"""`fedaccord.train`: the numbers of the command, from Python."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data import load_dataset
from fedaccord.repeated import DeviateOnce
from fedaccord.summaries.training import training_notes
from fedaccord.training import (
    FedAdam,
    LocalEpochs,
    LocalSteps,
    PlainEngine,
    Task,
    find_task,
)
from fedaccord.trials.setting import RoundScore
from fedaccord.trials.trial import Trial, train
from tests.training.patients import patients

CONSORTIUM = fa.paper_consortium(clients=5, samples=100, rounds=4, cost_per_sample=0.004)


def losses(trial: Trial) -> list[float]:
    return [run.final.loss for run in trial.runs]


def test_runs_scores_and_intervals() -> None:
    trial = fa.train(fa.solve_agreement(CONSORTIUM), seeds=3)
    assert [(run.profile, run.seed) for run in trial.runs] == [
        (profile, seed) for profile in ("equilibrium", "individual") for seed in range(3)
    ]
    alone, agreed = trial.scores
    assert alone.total < agreed.total
    assert agreed.accuracy.half_width > 0
    assert trial.engine == "vectorised"
    assert trial.course.model.dataset.name == "digits"
    assert [each.name for each in trial.played] == ["equilibrium", "individual"]


def test_frames_of_profiles_and_of_rounds() -> None:
    pytest.importorskip("pandas")
    trial = train(CONSORTIUM, ["individual"], seeds=2, slots=2)
    assert trial.to_frame()["accuracy"].tolist() == [trial.scores[0].accuracy.mean]
    frame = trial.to_frame("rounds")
    assert len(frame) == 2 * 2 * 4  # seeds, slots, rounds
    columns = ["profile", "seed", "slot", "phase", "total", "round", "loss", "accuracy"]
    assert list(frame.columns) == columns
    assert frame["loss"].iloc[-1] == trial.runs[-1].final.loss


def test_a_slip_and_its_punishment() -> None:
    slip = {"client-3": DeviateOnce(1, 0.0)}
    trial = train(
        CONSORTIUM, ["individual"], seeds=1, slots=3, strategies=slip, punishment=fa.Reversion(1)
    )
    [run] = trial.runs
    assert [slot.phase for slot in run.slots] == ["cooperating", "punishing", "cooperating"]
    assert run.slots[0].total < run.slots[2].total
    [note] = training_notes(trial)
    assert note.startswith("individual: slot 1: client-3 trained on 0")


def test_the_scale_is_computed() -> None:
    """1,000,000 samples, 1,438 digits."""
    trial = train(fa.paper_consortium(rounds=2), ["individual"], seeds=1)
    assert 0 < trial.course.scale < 1438 / 1_000_000
    assert train(CONSORTIUM, ["individual"], seeds=1).course.scale == 1


def test_numbers_alone() -> None:
    """Each client has as many samples as its largest contribution, and there are 50 rounds."""
    trial = train({"few": [30, 0, 0], "more": [100, 90, 80]}, seeds=2)
    assert [score.total for score in trial.scores] == [30, 270]
    assert len(trial.runs[0].slots[0].rounds) == 50
    assert trial.scores[1].accuracy_gain.mean > 0
    assert train([30, 5], seeds=1, rounds=2).runs[0].slots[0].total == 35


@pytest.mark.slow
def test_every_option_reaches_the_training() -> None:
    def final(**options: Any) -> float:
        given = {"seeds": 1} | options
        return train(CONSORTIUM, ["individual"], **given).runs[0].final.loss

    usual = final()
    assert final(dataset=load_dataset("digits"), task=find_task("softmax")) == usual
    assert final(engine=PlainEngine()) == pytest.approx(usual, rel=1e-5)
    others = [
        final(task="mlp"),
        final(dataset="breast-cancer"),
        final(local=LocalEpochs(batch=8)),
        final(local=LocalSteps(batch=8, steps=9)),
        final(server="fedadam"),
        final(server=FedAdam(rate=0.03)),
        final(skew=0.3),
        final(scale=0.5),
        final(rounds=3),
        final(seed=7),
    ]
    assert len({usual, *others}) == 11


def test_a_custom_task() -> None:
    import torch

    task = Task(
        "own",
        lambda data: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, data.classes)),
    )
    trial = train(CONSORTIUM, ["individual"], task=task, seeds=1)
    assert trial.course.model.task.name == "own"


def test_a_folder_of_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in [*CONSORTIUM.names, "test"]:
        inputs = rng.normal(size=(100, 3))
        np.savez(tmp_path / f"{name}.npz", inputs=inputs, labels=inputs[:, 0] > 0)
    trial = train(CONSORTIUM, ["individual"], data=tmp_path, seeds=1)
    assert trial.scores[0].accuracy.mean > 0.8
    with pytest.raises(
        fa.InvalidInput, match="client-1: has 100 examples, but at scale 2 it needs 200"
    ):
        train(CONSORTIUM, ["individual"], data=tmp_path, scale=2.0)


def test_data_of_other_forms() -> None:
    """Arrays for all clients to draw from, or arrays for each client."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(400, 3))
    shared = train(CONSORTIUM, ["individual"], data=(inputs, inputs[:, 0] > 0), skew=5.0, seeds=1)
    assert shared.scores[0].accuracy.mean > 0.8
    own = {
        name: {"X": inputs[n::6], "y": inputs[n::6, 0] > 0}
        for n, name in enumerate([*CONSORTIUM.names, "test"])
    }
    apart = train(CONSORTIUM, ["individual"], data=own, scale=0.5, seeds=1)
    assert apart.scores[0].accuracy.mean > 0.8
    with pytest.raises(fa.InvalidInput, match="skew: cannot be combined with data, where each"):
        train(CONSORTIUM, ["individual"], data=own, scale=0.5, skew=5.0)


def test_features_on_very_different_scales_are_noted() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(600, 3)) * [1.0, 1.0, 1e5]
    trial = train([30, 20], data=(inputs, inputs[:, 0] > 0), local=LocalEpochs(1e-9), seeds=1)
    [note] = training_notes(trial)
    assert "on very different scales" in note


def test_checkpoints(tmp_path: Path) -> None:
    whole = train(CONSORTIUM, seeds=1)
    assert losses(train(CONSORTIUM, seeds=1, checkpoint=tmp_path)) == losses(whole)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["equilibrium-0.pt", "individual-0.pt"]
    again = train(CONSORTIUM, seeds=1, checkpoint=str(tmp_path), resume=True)
    assert losses(again) == losses(whole)
    with pytest.raises(fa.InvalidInput, match="has checkpoints already: resume from them"):
        train(CONSORTIUM, seeds=1, checkpoint=tmp_path)
    with pytest.raises(fa.InvalidInput, match="their names must differ in letters or digits"):
        train({"a b": [1, 2], "a-b": [2, 3]}, seeds=1, checkpoint=tmp_path / "other")


def test_progress_ends_with_the_last_round() -> None:
    told: list[tuple[int, int, str]] = []
    train(CONSORTIUM, seeds=2, progress=lambda *now: told.append(now))
    assert told[0] == (0, 0, "Solving")
    counted = [now for now in told if now[1]]
    assert [done for done, _, _ in counted] == list(range(1, 2 * 2 * 4 + 1))
    assert counted[-1] == (16, 16, "Training, individual, seed 1, slot 1")


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    train(CONSORTIUM, seeds=1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 0}, "seeds: must be a whole number, 1 or more, got 0"),
        ({"seeds": 2.5}, "seeds: must be a whole number, 1 or more, got 2.5"),
        ({"seed": -1}, "seed: must be a whole number, 0 or more, got -1"),
        ({"rounds": 0}, "rounds: must be a whole number, 1 or more, got 0"),
        ({"engine": "flower"}, "engine: must be one of 'vectorised', 'plain', got 'flower'"),
        ({"dataset": "digits", "data": "."}, "dataset: cannot be combined with data"),
        ({"resume": True}, "resume: there must be a checkpoint folder"),
        ({"ledger": "x.db"}, "ledger: is kept on Flower only"),
        ({"dataset": ([[1.0]], [1])}, "dataset: must be a name or a Dataset, which fedaccord"),
        ({"local": "epochs"}, "local: must be of type GradientStep or LocalEpochs or LocalSteps"),
        ({"server": "adam"}, "there is no server optimiser called 'adam': did you mean 'fedadam'"),
        (
            {"server": 3},
            r"server: must be a name or a server optimiser, such as FedAdam\(\), got 3",
        ),
        ({"scale": "big"}, "scale: must be more than 0, got 'big'"),
        ({"skew": 0}, "skew: must be more than 0, got 0"),
        ({"task": "svm"}, "there is no task called 'svm': choose one of softmax, mlp, cnn"),
    ],
)
def test_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message) as refused:
        train(CONSORTIUM, **options)
    assert "--" not in str(refused.value)


def test_a_failure_names_the_run(tmp_path: Path) -> None:
    with pytest.raises(fa.FedaccordError, match=r"equilibrium, seed 0: the .* NaN or infinite"):
        train(CONSORTIUM, task="mlp", local=LocalEpochs(rate=1e38), checkpoint=tmp_path)


# --- On Flower -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (CONSORTIUM, {"profiles": ["equilibrium"]}, "profiles: on Flower there must be one"),
        (CONSORTIUM, {"profiles": ["uniform", "individual"]}, "on Flower there must be one"),
        ([1, 2], {}, "on Flower there must be one"),
        (CONSORTIUM, {"seeds": 2}, "seeds: must be 1 on Flower"),
        (CONSORTIUM, {"checkpoint": "x"}, "checkpoint: cannot be used on Flower"),
        (CONSORTIUM, {"ledger": "."}, "ledger: . is a directory, not a file"),
        (
            fa.paper_consortium(discount_factor=0.3),
            {"profiles": ["uniform"]},
            "no uniform agreement exists",
        ),
    ],
)
def test_rejected_on_flower(given: Any, options: dict[str, Any], message: str) -> None:
    pytest.importorskip("flwr")
    with pytest.raises(fa.InvalidInput, match=message):
        train(given, flower=True, **options)


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same messages, guards and averaging in this process."""
    pytest.importorskip("flwr")
    from fedaccord.flower import simulation

    simulate = simulation.simulate
    monkeypatch.setattr(
        simulation, "simulate", lambda *args, **rest: simulate(*args, **rest, in_process=True)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("without_ray")
def test_what_is_trained_on_flower_is_what_is_shown(tmp_path: Path) -> None:
    """A server knows no prices, so it offers other amounts of least total cost than we solve."""
    five = fa.Consortium(
        valuation=[20, 30, 40, 60, 80],
        cost_per_sample=[0.004, 0.005, 0.012, 0.006, 0.008],
        samples=250,
        rounds=3,
        discount_factor=0.9,
    )
    agreement = fa.solve_agreement(five, punishment="suspension")
    slip = {"client-4": DeviateOnce(1, 0.0)}
    ledger = tmp_path / "ledger.db"
    trial = train(agreement, slots=3, strategies=slip, flower=True, ledger=ledger, seeds=1)
    [played], [run] = trial.played, trial.runs
    assert played.agreement is not None
    assert abs(played.agreement.total - agreement.total) > 10
    assert fa.certify(played.agreement).holds
    assert [slot.suspended for slot in run.slots] == [(), ("client-4",), ()]
    totals = played.contributions.sum(axis=1)
    assert [run.slots[slot].total for slot in (0, 2)] == [totals[0], totals[2]]
    # in slot 2 those who are left agree anew on Flower, and it trains alone meanwhile
    [record] = run.slots[1].alone
    assert (record.name, record.total) == ("client-4", round(float(played.alone[1, 3])))
    assert record.old is None  # it slipped in the first round, and was sent no model after that
    with pytest.raises(fa.InvalidInput, match="a server, which knows no prices, would offer"):
        train(fa.play(agreement, slots=3), flower=True)


@pytest.mark.slow
@pytest.mark.usefixtures("without_ray")
def test_the_protocol_runs_on_flower(tmp_path: Path) -> None:
    told: list[int] = []
    trial = train(
        fa.solve_agreement(CONSORTIUM, margin=0.05, punishment=fa.Reversion(1)),
        slots=3,
        strategies={"client-3": DeviateOnce(1, 0.0)},
        flower=True,
        ledger=tmp_path / "ledger.db",
        progress=lambda done, _of, _doing: told.append(done),
    )
    assert (trial.engine, trial.seeds) == ("flower", 1)
    [run] = trial.runs
    assert [slot.phase for slot in run.slots] == ["cooperating", "punishing", "cooperating"]
    assert told[-1] == 12
    assert math.isnan(trial.scores[0].accuracy.half_width)
    assert (tmp_path / "ledger.db").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("without_ray")
def test_own_tests_survival_times_and_optimisers_on_flower_as_in_one_process() -> None:
    """One agreement that all keep to: the same contributions, and so the same scores."""
    from fedaccord.flower.simulation import as_offered

    agreement = as_offered(fa.solve_agreement(CONSORTIUM, margin=0.05), CONSORTIUM.rounds)
    held: dict[str, Any] = {
        name: with_times(*patients(100, seed=n)) for n, name in enumerate(CONSORTIUM.names)
    }
    tests = {name: with_times(*patients(40, seed=9 + n)) for n, name in enumerate(CONSORTIUM.names)}
    options: dict[str, Any] = {
        "data": held | {"test": tests},
        "local": LocalSteps(0.05, 16, 6),
        "server": "fedadam",
        "fine_tuning": 2,
        "slots": 2,
    }
    [here] = train({"individual": agreement}, engine="plain", seeds=1, **options).runs
    trial = train(agreement, flower=True, **options)
    [there] = trial.runs
    assert [slot.total for slot in there.slots] == [slot.total for slot in here.slots]
    for mine, others in zip(there.slots, here.slots, strict=True):
        assert len(mine.own) == len(mine.tuned) == CONSORTIUM.size
        for one, other in zip((*mine.own, *mine.tuned), (*others.own, *others.tuned), strict=True):
            assert one.loss == pytest.approx(other.loss, rel=1e-3)
            assert one.accuracy == pytest.approx(other.accuracy, abs=0.01)
    assert there.final.accuracy > 0.6  # concordance


def with_times(inputs: Any, labels: Any) -> dict[str, Any]:
    return {"X": inputs, "time": np.abs(labels), "event": labels > 0}


@pytest.mark.slow
def test_every_round_is_told_with_its_score() -> None:
    told: list[RoundScore] = []
    profiles = ["alone", "equilibrium", "pooled"]
    trial = train(CONSORTIUM, profiles, seeds=2, slots=2, after_round=told.append)
    assert len(told) == 3 * 2 * 2 * CONSORTIUM.rounds
    for run in trial.runs:
        own = [each for each in told if (each.profile, each.seed) == (run.profile, run.seed)]
        assert [each.score for each in own] == [s for slot in run.slots for s in slot.rounds]
    assert {each.measure for each in told} == {"accuracy"}
