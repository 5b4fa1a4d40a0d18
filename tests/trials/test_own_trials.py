"""`fedaccord.train` and `calibrate` with own tests, survival times, `alone` and `pooled`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord import plots
from fedaccord.game.alone import alone_contribution
from fedaccord.report import render_training
from fedaccord.summaries.calibration import calibration_sentences
from fedaccord.summaries.own_tests import (
    own_gains,
    own_gains_note,
    own_levels,
    own_levels_note,
    own_sentences,
)
from fedaccord.summaries.training import (
    gain_sentence,
    scores_note,
    setting_sentence,
    training_title,
)
from fedaccord.training import LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.estimates import Estimate
from fedaccord.trials.profiles import play_profiles, read_profiles
from fedaccord.trials.trial import Trial
from tests.training.patients import patients
from tests.training.test_own_tests import clinics, survivors

CONSORTIUM = fa.Consortium(
    valuation=[60.0, 40.0, 30.0],
    cost_per_sample=0.01,
    samples=[60, 40, 30],
    rounds=4,
    discount_factor=0.9,
    names=["one", "two", "three"],
)
AGREEMENT = fa.solve_agreement(CONSORTIUM)
FOUR = ["alone", "equilibrium", "individual", "pooled"]


@pytest.fixture(scope="module")
def trial() -> Trial:
    local = LocalEpochs(0.5, 16)
    return fa.train(CONSORTIUM, data=clinics, local=local, seeds=3, fine_tuning=5)


@pytest.fixture(scope="module")
def survival() -> Trial:
    return fa.train(AGREEMENT, data=survivors, seeds=3)


def test_own_tests_are_compared_with_alone_and_pooled(trial: Trial) -> None:
    assert [score.profile for score in trial.scores] == FOUR
    alone, _, agreed, pooled = trial.scores
    assert (alone.total, pooled.total) == (round(alone_contribution(CONSORTIUM).sum()), 130)
    assert [each.name for each in agreed.clients] == ["one", "two", "three"]
    assert alone.clients[0].fine_tuned is None
    assert agreed.clients[0].fine_tuned is not None
    for client in alone.clients:  # against itself, of which nothing is uncertain
        assert client.accuracy_gain == Estimate(0.0, 0.0)
    assert trial.alone == []  # nobody is suspended
    assert all(slot.suspended == () for run in trial.runs for slot in run.slots)


def test_other_profiles_are_as_asked_for() -> None:
    named = fa.train(CONSORTIUM, ["individual", "alone"], data=clinics, seeds=1)
    assert [score.profile for score in named.scores] == ["individual", "alone"]
    given = fa.train({"mine": AGREEMENT}, data=clinics, seeds=1)
    assert [score.profile for score in given.scores] == ["mine"]
    digits = fa.train(AGREEMENT, seeds=1)
    assert [score.profile for score in digits.scores] == ["equilibrium", "individual"]


def test_alone_and_pooled_without_a_consortium() -> None:
    """Everyone has what it contributes at most."""
    profiles: dict[str, Any] = {"few": [30, 0, 10], "more": [20, 40, 5]}
    played = play_profiles(*read_profiles(profiles | {"alone": "alone", "all": "pooled"}), slots=2)
    assert [each.contributions.tolist() for each in played[2:]] == [[[30.0, 40.0, 10.0]] * 2] * 2
    assert [each.phases for each in played[2:]] == [("alone",) * 2, ("pooled",) * 2]
    assert [each.baseline for each in played] == [False, False, True, True]


def test_baselines_need_somebody_who_trains() -> None:
    with pytest.raises(fa.InvalidInput, match="one of a consortium or of contributions"):
        fa.train({"alone": "alone"})
    strategies: Any = {"one": object()}
    with pytest.raises(fa.InvalidInput, match="there is nothing to slip from"):
        play_profiles(*read_profiles(CONSORTIUM, ["alone"]), strategies=strategies)


def test_pooled_is_one_client_with_all_data() -> None:
    local = LocalEpochs(0.1, 16)
    trial = fa.train(CONSORTIUM, ["pooled"], data=clinics, local=local, seeds=1)
    course = trial.course
    everything = np.concatenate(course.partition(0).draw(1))
    plan = TrainingPlan(course.model, [everything], 4, local)
    *_, parameters = PlainEngine().rounds(plan, course.model.start(0))
    for name, value in parameters.items():
        assert trial.runs[0].parameters[name].numpy() == pytest.approx(value.numpy(), abs=1e-5)


# --- What is said ----------------------------------------------------------------------------


def test_a_client_that_does_worse_is_named(trial: Trial) -> None:
    """What is a sign of class 1 at the others is a sign of class 0 at the third clinic."""
    worse, *_ = own_sentences(trial)
    assert worse.startswith("three does worse on its own test than alone: under ")
    assert "individual" in worse
    levels, gains = own_levels(trial), own_gains(trial)
    assert levels.headings == (
        *("alone", "equilibrium", "equilibrium, fine-tuned", "individual"),
        *("individual, fine-tuned", "pooled", "pooled, fine-tuned"),
    )
    assert gains.headings == levels.headings[1:]
    name, cells = levels.rows[2]
    assert name == "three (25)"
    [three] = trial.scores[0].clients[2:]
    accuracy = three.accuracy
    assert cells[0] == f"{100 * accuracy.mean:.1f} ± {100 * accuracy.half_width:.1f}"
    assert gains.rows[2][1][2].startswith("-")


def test_headlines_say_on_whose_test(trial: Trial) -> None:
    """Lone models do badly on everyone's cases, which says nothing about their owners' own."""
    sentence = gain_sentence(trial, trial.scores[2])
    assert sentence.startswith("individual against alone, on everyone's test: ")
    assert "(95 % interval over the seeds " in sentence
    assert ", on everyone's test. 95 % intervals over " in scores_note(trial)
    told = training_title(trial)
    assert told.startswith("No sure difference") or "on everyone's test" in told


def test_what_cannot_be_seen_is_said(trial: Trial) -> None:
    *_, seen = own_sentences(trial)
    assert seen.startswith("On tests as small as these, differences of less than ")


def test_nobody_does_worse() -> None:
    same = fa.train({"alone": "alone", "mine": [60, 40, 30]}, data=_alike, seeds=2)
    assert own_sentences(same)[0].startswith("No client does worse on its own test than alone")


def _alike(name: str) -> Any:
    """Everyone is of the same kind, and nobody makes a mistake."""

    def draw(size: int) -> tuple[Any, Any]:
        inputs = np.random.default_rng(size).normal(size=(size, 2))
        inputs[:, 0] = np.where(inputs[:, 0] > 0, 5.0, -5.0)
        return inputs, (inputs[:, 0] > 0).astype(int)

    sizes = {"client-1": 60, "client-2": 40, "client-3": 30}
    return {who: draw(20) for who in sizes} if name == "test" else draw(sizes[name])


def test_a_single_seed_is_said() -> None:
    once = fa.train(CONSORTIUM, data=clinics, local=LocalEpochs(0.5, 16), seeds=1)
    worse, *_ = own_sentences(once)
    assert worse.startswith("three does worse on its own test than alone: under ")
    assert worse.endswith("(with a single seed).")
    assert str(own_levels(once)).count("±") == str(own_gains(once)).count("±") + 3 == 12
    for note in (own_levels_note(once), own_gains_note(once)):
        assert "about the choice of test examples, but not about the seed" in note
    assert "With one seed there are no intervals" in scores_note(once)
    assert "95 %" not in scores_note(once)


def test_one_seed_and_few_examples_prove_nothing() -> None:
    """One of three test examples is lost, which anything may have caused."""

    def few(name: str) -> Any:
        examples = clinics(name)
        if name != "test":
            return examples
        return {who: (inputs[:3], labels[:3]) for who, (inputs, labels) in examples.items()}

    once = fa.train(CONSORTIUM, data=few, local=LocalEpochs(0.5, 16), seeds=1)
    assert any("-" in cell for _, cells in own_gains(once).rows for cell in cells)
    assert own_sentences(once)[0] == (
        "No client does worse on its own test than alone beyond chance (with a single seed)."
    )


def test_the_setting_says_that_models_were_tuned(trial: Trial) -> None:
    assert "; fine-tuned by each client for 5 epochs" in setting_sentence(trial)


def test_without_own_tests_nothing_is_said_of_them() -> None:
    trial = fa.train(CONSORTIUM, ["alone", "individual"], seeds=2)
    assert own_levels(trial).rows == own_gains(trial).rows == ()
    assert own_sentences(trial) == []


def test_the_frame_of_clients(trial: Trial) -> None:
    pytest.importorskip("pandas")
    frame = trial.to_frame("clients")
    assert len(frame) == 4 * 3
    assert list(frame["name"][:3]) == ["one", "two", "three"]
    assert frame["accuracy_half_width"].min() > 0


@pytest.mark.slow
def test_the_page_and_the_picture(trial: Trial) -> None:
    page = render_training(trial)
    assert "On each member&#39;s own test" in page or "On each member's own test" in page
    assert "three (25)" in page
    figure = plots.plot_own_tests(trial)
    [axes] = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "two", "three"]
    assert len(axes.containers) == 7
    marks: Any = axes.lines[0].get_xdata()
    expected = [100 * each.accuracy.mean for each in trial.scores[0].clients]
    assert list(marks) == pytest.approx(expected)


def test_there_is_no_picture_without_own_tests() -> None:
    with pytest.raises(fa.InvalidInput, match="no client has a test of its own"):
        plots.plot_own_tests(fa.train(CONSORTIUM, ["individual"], seeds=1))


# --- Survival times --------------------------------------------------------------------------


@pytest.mark.slow
def test_survival_times_get_their_task_and_measure(survival: Trial) -> None:
    assert survival.course.model.task.name == "cox"
    assert survival.to_dict()["measure"] == "concordance"
    assert "concordance" in training_title(survival)
    assert "accuracy" not in render_training(survival)
    assert 0.5 < survival.scores[-1].accuracy.mean < 1.0
    above, _ = plots.plot_learning(survival).axes
    assert above.get_ylabel() == "Test concordance"
    assert above.get_ylim()[1] < 1.1


@pytest.mark.slow
def test_few_events_widen_an_interval() -> None:
    """The same errors with fewer events are less certain."""
    trial = fa.train({"mine": [60, 40, 30]}, data=_with_events(3), seeds=2)
    few = [each.accuracy.half_width for each in trial.scores[0].clients]
    trial = fa.train({"mine": [60, 40, 30]}, data=_with_events(25), seeds=2)
    many = [each.accuracy.half_width for each in trial.scores[0].clients]
    assert min(few) > 1.5 * max(many)


def _with_events(number: int) -> Any:
    def data(name: str) -> Any:
        def draw(size: int, most: int) -> dict[str, Any]:
            inputs, labels = patients(size, seed=size)
            event = labels > 0
            event[np.argsort(np.abs(labels))[most:]] = False
            return {"inputs": inputs, "time": np.abs(labels), "event": event}

        sizes = {"client-1": 60, "client-2": 40, "client-3": 30}
        return {who: draw(25, number) for who in sizes} if name == "test" else draw(sizes[name], 99)

    return data


def test_a_test_without_pairs_is_refused() -> None:
    def data(name: str) -> Any:
        found = survivors(name)
        if name != "test":
            return found
        return {who: own | {"event": np.zeros(25)} for who, own in found.items()}

    for train in (fa.train, fa.calibrate):
        given: Any = {"consortium": CONSORTIUM} if train is fa.calibrate else {}
        place: Any = [] if train is fa.calibrate else [CONSORTIUM]
        with pytest.raises(
            fa.InvalidInput, match="data: concordance cannot be measured: of no two"
        ):
            train(*place, data=data, **given)


def test_an_own_test_without_pairs_is_left_open() -> None:
    """One client's test has no event: its concordance is not known, the others' is."""

    def data(name: str) -> Any:
        found = survivors(name)
        if name == "test":
            found["two"] |= {"event": np.zeros(25)}
        return found

    trial = fa.train(CONSORTIUM, data=data, seeds=2)
    (_, one), (_, two), _ = own_levels(trial).rows
    assert two == ("–",) * 4
    assert "–" not in one
    record = trial.to_dict()["profiles"][0]["clients"][1]
    assert record["accuracy"] == {"mean": None, "half_width": None}
    plots.plot_own_tests(trial)


@pytest.mark.slow
def test_calibrate_on_survival_times(tmp_path: Path) -> None:
    given: dict[str, Any] = {"data": survivors, "consortium": CONSORTIUM, "smallest": 30}
    given |= {"seeds": 3, "local": LocalEpochs(0.1, 16), "checkpoint": tmp_path / "part"}
    found = fa.calibrate(**given)
    assert (found.lost, found.law.measure) == ("1 - concordance", "1 - concordance")
    assert found.to_dict()["measure"] == "1 - concordance"
    lines = calibration_sentences(found)
    assert lines[0].startswith("Measured with cox on data: 1 - concordance after 4 rounds")
    own = found.alone[0].own
    assert own is not None
    assert own.half_width > 0
    line = next(line for line in lines if line.startswith("one alone"))
    assert f"(on its own test {own.mean:.3g} ± {own.half_width:.2g}, and " in line
    again = fa.calibrate(**given)
    assert [score.own for score in again.alone] == [score.own for score in found.alone]
    losses = fa.calibrate(**given, measure="loss")
    assert losses.lost == "loss"


def test_alone_on_its_own_test_by_hand() -> None:
    found = fa.calibrate(
        data=clinics, consortium=CONSORTIUM, smallest=30, seeds=2, measure="loss", server="fedadam"
    )
    course = found.course
    values = []
    for seed in range(2):
        share = course.partition(seed).draw(1)[1]
        plan = TrainingPlan(course.model, [share[:0], share, share[:0]], 4, course.local, seed)
        *_, parameters = PlainEngine().rounds(plan, course.model.start(seed))
        values.append(course.model.evaluate_each(parameters, course.partition(0).tests[1])[0])
    own = found.alone[1].own
    assert own is not None
    assert own.mean == pytest.approx(np.mean(values), rel=1e-5)


# --- Real data -------------------------------------------------------------------------------


@pytest.mark.originals("heart-disease", "tcga-brca")
@pytest.mark.parametrize(
    ("dataset", "names", "sizes", "tested", "measure"),
    [
        (
            "heart-disease",
            ["Cleveland", "Hungary", "Switzerland", "Long Beach"],
            [199, 172, 30, 85],
            [104, 89, 16, 45],
            "accuracy",
        ),
        pytest.param(
            "tcga-brca",
            ["Northeast", "South", "West", "Midwest", "Europe", "Canada"],
            [248, 156, 164, 129, 129, 40],
            [63, 40, 42, 33, 33, 11],
            "concordance",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_real_centres(
    dataset: str, names: list[str], sizes: list[int], tested: list[int], measure: str
) -> None:
    consortium = fa.Consortium(
        valuation=500.0,
        cost_per_sample=0.01,
        samples=sizes,
        rounds=3,
        discount_factor=0.9,
        names=names,
    )
    trial = fa.train(consortium, dataset=dataset, seeds=2, fine_tuning=1)
    assert trial.measure == measure
    assert [score.profile for score in trial.scores] == FOUR
    own = trial.scores[2].clients
    assert [(each.name, each.test_examples) for each in own] == list(
        zip(names, tested, strict=True)
    )
    small = min(own, key=lambda each: each.test_examples)
    assert small.accuracy.half_width > 0.1
    assert [score.clients[0].fine_tuned is None for score in trial.scores] == [True, *[False] * 3]
