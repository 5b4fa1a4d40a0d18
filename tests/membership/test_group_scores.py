"""Groups that are trained: what is trained on what, and the noise of differences."""

from dataclasses import replace

import numpy as np
import pytest

from fedaccord.data.dataset import Dataset
from fedaccord.data.own import OwnPartition
from fedaccord.errors import InvalidInput
from fedaccord.membership.estimates import Estimates, noise_of_mean
from fedaccord.membership.group_scores import COMMON, GroupScores, all_groups
from fedaccord.membership.measuring import Run, judge_runs, measure_groups
from fedaccord.training.course import Course, train
from fedaccord.training.engine import GradientStep, LocalEpochs, TrainingFailed
from fedaccord.training.task import Model, find_task

SIZES = [40, 30, 50]


def partition() -> OwnPartition:
    """Three clients, each with its own test."""
    rng = np.random.default_rng(0)
    inputs, tests = (rng.normal(size=(n, 4)).astype(np.float32) for n in (120, 60))
    labels, test_labels = (values[:, :3].argmax(axis=1) for values in (inputs, tests))
    dataset = Dataset("points", inputs, labels, tests, test_labels, classes=3)
    own = [np.arange(0, 20), np.arange(20, 50), np.arange(50, 60)]
    return OwnPartition(dataset, SIZES, ("a", "b", "c"), tests=own)


def course(local: GradientStep | LocalEpochs | None = None, task: str = "softmax") -> Course:
    own = partition()
    model = Model(find_task(task), own.dataset)
    return Course(model, own.reordered, 8, local or GradientStep(), names=own.names)


@pytest.mark.slow
@pytest.mark.parametrize("local", [GradientStep(), LocalEpochs(rate=0.2, batch=16)])
@pytest.mark.parametrize("task", ["softmax", "mlp"])
def test_a_group_is_trained_as_if_the_others_contributed_nothing(
    local: GradientStep | LocalEpochs, task: str
) -> None:
    given = course(local, task)
    scores = measure_groups(given, all_groups(3), seeds=[3, 4])
    assert scores.errors.shape == (8, 2, 120)
    for row, group in enumerate(all_groups(3)):
        for column, seed in enumerate([3, 4]):
            run = train(given, np.where(group, SIZES, 0), seed=seed)
            error = 1 - run.final.accuracy
            assert scores.by_seed()[row, column] == pytest.approx(error, abs=1e-6)
            _, each = given.model.evaluate_each(run.parameters)
            assert scores.errors[row, column, :60].tolist() == each.tolist()
            assert scores.losses[row, column].mean() == pytest.approx(run.final.loss, rel=1e-4)


def test_own_tests_are_judged_by_themselves() -> None:
    scores = measure_groups(course(), [[True, True, False]], seeds=[0])
    assert [len(test) for test in scores.tests] == [60, 20, 30, 10]
    for n, own in enumerate(partition().tests):
        mine = scores.errors[0, 0, scores.tests[n + 1]]
        assert mine.tolist() == scores.errors[0, 0, own].tolist()
    assert scores.by_example(COMMON).shape == (1, 60)


def test_parts_of_what_clients_have() -> None:
    given = course()
    held = given.partition(5).draw(1)
    everything, half, nothing = judge_runs(
        given,
        [
            Run(held, 5),
            Run([own[: len(own) // 2] for own in held], 5),
            Run([o[:0] for o in held], 5),
        ],
    )
    scores = measure_groups(given, [[True] * 3, [False] * 3], seeds=[5])
    assert everything.losses == pytest.approx(scores.losses[0, 0], rel=1e-5)
    assert nothing.losses == pytest.approx(scores.losses[1, 0], rel=1e-5)
    assert not np.allclose(half.losses, everything.losses)


def test_progress_and_a_rate_that_is_too_high() -> None:
    told: list[int] = []
    measure_groups(course(), all_groups(3), seeds=range(2), progress=told.append)
    assert told[-1] == 16
    with pytest.raises(TrainingFailed, match="became NaN or infinite"):
        measure_groups(course(GradientStep(1e38), "mlp"), [[True, False, True]], seeds=[0])


def test_groups_that_were_not_measured() -> None:
    scores = measure_groups(course(), [[True, False, False]], seeds=[0])
    assert scores.row([True, False, False]) == 0
    with pytest.raises(InvalidInput, match="this group was not measured"):
        scores.row([True, True, False])


# --- Noise ---------------------------------------------------------------------------------


def test_the_noise_of_a_difference_is_that_of_the_differences() -> None:
    """What two groups have in common, by seed and by example, does not count."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(1, 6, 1)) + rng.normal(size=(1, 1, 50))
    own = 0.01 * rng.normal(size=(2, 6, 50))
    scores = GroupScores(all_groups(1), tuple(range(6)), common + own, own, (np.arange(50),))
    difference = (common + own)[1] - (common + own)[0]
    found = scores.combine(np.array([-1.0, 1.0]))
    assert found.mean == pytest.approx(difference.mean())
    by_seed, by_example = difference.mean(axis=1), difference.mean(axis=0)
    examples = np.append(by_example, [-0.5, 0.5])
    variance = by_seed.var(ddof=1) / 6 + examples.var(ddof=1) / 52
    assert found.error == pytest.approx(np.sqrt(variance))
    alone = scores.combine(np.array([0.0, 1.0]))
    assert float(found.error) < 0.02 < 0.1 * float(alone.error)


def test_a_small_test_on_which_nothing_changes_is_no_proof() -> None:
    """Two examples are added: one gained and one lost, by a half; for an error, right and wrong."""
    same = np.zeros((2, 3, 16))
    scores = GroupScores(all_groups(1), (0, 1, 2), same, same, (np.arange(16),))
    assert float(scores.combine(np.array([-1.0, 1.0])).error) == pytest.approx(
        np.sqrt(0.5 / (18 * 17))
    )
    right = np.append(np.zeros(17), 1.0)
    assert float(scores.combine(np.array([0.0, 1.0])).error) == pytest.approx(
        np.sqrt(right.var(ddof=1) / 18)
    )


def test_the_standard_error_is_not_too_small() -> None:
    """Against means of many measurements, each with other seeds and other examples."""
    rng = np.random.default_rng(2)
    means, errors = [], []
    for _ in range(1_500):
        values = 0.5 + 0.04 * rng.normal(size=(1, 5, 1)) + 0.3 * rng.normal(size=(1, 1, 80))
        values = values + 0.2 * rng.normal(size=(1, 5, 80))
        scores = GroupScores(all_groups(1)[1:], tuple(range(5)), values, values, (np.arange(80),))
        found = scores.combine(np.ones(1))
        means.append(float(found.mean))
        errors.append(float(found.error))
    assert 0.95 <= np.mean(np.square(errors)) / np.var(means) <= 1.2


def test_welch_and_satterthwaite() -> None:
    """One source: Student's t with its degrees of freedom. Two: in between, by their size."""
    one = Estimates.of(np.zeros(1), (np.ones(1), 4))
    assert one.half_width()[0] == pytest.approx(2.776, abs=1e-3)
    both = Estimates.of(np.zeros(1), (np.ones(1), 4), (1.0, 4))
    assert both.freedom[0] == pytest.approx(8)
    tiny = one.with_noise(1e-9, 1)
    assert tiny.freedom[0] == pytest.approx(4, rel=1e-6)
    nothing = Estimates.of(np.zeros(1), (np.zeros(1), 4))
    assert nothing.half_width()[0] == 0
    assert not nothing.sure()[0]


def test_a_single_seed_has_no_known_noise() -> None:
    variance, freedom = noise_of_mean(np.ones((3, 1)))
    assert np.isnan(variance).all()
    assert freedom == 0
    unknown = Estimates.of(np.ones(3), (variance, freedom), (0.1, 20))
    assert np.isnan(unknown.half_width()).all()
    assert not unknown.sure().any()


def test_among_many_numbers_fewer_are_sure() -> None:
    numbers = Estimates.of(np.array([2.2, 3.6]), (1.0, 1e6))
    assert numbers.sure().tolist() == [True, True]
    assert numbers.sure(looks=30).tolist() == [False, True]


def test_fine_tuned_models_are_judged_by_own_tests_of_members() -> None:
    plain, tuned = course(), replace(course(), fine_tuning=3)
    groups = [[True, True, False], [False, False, False]]
    before, after = (measure_groups(given, groups, seeds=[2]) for given in (plain, tuned))
    run = train(tuned, np.array([40, 30, 0]), seed=2)
    for n in range(2):
        error = 1 - run.slots[-1].tuned[n].accuracy
        assert after.by_seed(n + 1)[0, 0] == pytest.approx(error, abs=1e-6)
    assert not np.array_equal(before.by_example(1)[0], after.by_example(1)[0])
    assert np.array_equal(before.by_example(3), after.by_example(3))
    assert np.array_equal(before.by_example(COMMON), after.by_example(COMMON))


def test_few_events_make_an_own_test_less_sure() -> None:
    """Survival times: with 2 events among 20 patients, each stands for ten."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(120, 3)).astype(np.float32)
    times = rng.integers(1, 500, 120) * np.where(np.arange(120) % 10, -1, 1)
    dataset = Dataset("patients", inputs[:80], times[:80], inputs[80:], times[80:], classes=0)
    tests = [np.arange(20), np.arange(20, 40)]
    own = OwnPartition(dataset, [40, 40], ("a", "b"), tests=tests)
    model = Model(find_task("cox"), dataset)
    given = Course(model, own.reordered, 5, GradientStep(0.1), names=own.names)
    scores = measure_groups(given, all_groups(2), seeds=[0, 1])
    assert scores.scales == (10, 10, 10)
    _, alone = model.evaluate_each(model.start(0), tests[0])
    assert scores.errors[0, 0, scores.tests[1]].tolist() == pytest.approx(alone, abs=1e-6)
    everyone = scores.combine(np.array([0.0, 0, 0, 1]), test=1)
    examples = np.append(scores.by_example(1)[3], [-4.5, 5.5])
    assert everyone.variances[1] == pytest.approx(examples.var(ddof=1) / 22)
