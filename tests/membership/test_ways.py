"""Ways to train, and the one that cross-validation chooses without looking at the tests."""

from dataclasses import replace

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.membership.holding_out import held_out
from fedaccord.membership.ways import FOLDS, Setting, Way, try_ways, usual_ways
from fedaccord.training.optimisers import FedAdam
from fedaccord.training.rules import GradientStep, LocalSteps
from fedaccord.training.task import find_task
from tests.membership.clinics import clinics

LOCAL = GradientStep(1.0)


def test_every_training_record_is_held_out_once_and_no_test_record_ever() -> None:
    whole = clinics()
    everyone = {tuple(row) for row in whole.dataset.inputs.tolist()}
    found: list[tuple[float, ...]] = []
    for fold in range(FOLDS):
        part = held_out(whole, fold, FOLDS)
        trained = {tuple(row) for row in part.dataset.inputs.tolist()}
        tested = [tuple(row) for row in part.dataset.test_inputs.tolist()]
        assert trained | set(tested) == everyone
        assert not trained & set(tested)
        found += tested
    assert sorted(found) == sorted(everyone)


def test_a_fold_keeps_every_client_its_own_and_its_mixture() -> None:
    whole = clinics(records=50)
    part = held_out(whole, 2, FOLDS)
    assert part.sizes == [40, 40, 40]
    first = {tuple(row) for row in whole.dataset.inputs[:50].tolist()}
    own = part.dataset.test_inputs[part.tests[0]].tolist()
    assert {tuple(row) for row in own} <= first
    shares = [whole.dataset.labels[:50].mean(), part.dataset.test_labels[part.tests[0]].mean()]
    assert shares[1] == pytest.approx(shares[0], abs=0.1)


def test_the_better_way_is_chosen() -> None:
    setting = Setting(clinics(), find_task("softmax"), rounds=15)
    useless = Way(GradientStep(1e-6))
    found = try_ways(setting, [useless, Way(LOCAL)], range(2))
    assert found.together == found.alone == Way(LOCAL)
    assert found.tried[0].alone == pytest.approx(np.log(2), abs=0.3)


@pytest.mark.slow
def test_the_tests_have_no_part_in_the_choice() -> None:
    """With other test records every number of the choice is the same."""
    partition, task = clinics(), find_task("softmax")
    data = partition.dataset
    other = replace(partition, dataset=replace(data, test_inputs=-data.test_inputs))
    ways = [Way(LOCAL), Way(LOCAL, fine_tuning=2)]
    one, two = (try_ways(Setting(each, task, 5), ways, range(2)) for each in (partition, other))
    assert one == two


def test_a_single_way_is_not_tried() -> None:
    tried = try_ways(Setting(clinics(), find_task("softmax"), 5), [Way(LOCAL)], range(2)).tried
    assert np.isnan(tried[0].together)


def test_names() -> None:
    steps = LocalSteps(0.1, 8, steps=10, proximal=1.0)
    assert Way(steps, fine_tuning=1).name == "FedProx and 1 epoch of fine-tuning"
    assert str(Way(LOCAL, FedAdam(0.01))) == "FedAdam, rate 1, server rate 0.01"


def test_usual_ways_without_own_tests_have_no_fine_tuning() -> None:
    assert {way.fine_tuning for way in usual_ways(LOCAL, own_tests=False)} == {0}
    assert len(set(usual_ways(LOCAL, own_tests=True))) == 10


def test_too_few_records_to_choose_by() -> None:
    ways = [Way(LOCAL), Way(LOCAL, fine_tuning=1)]
    with pytest.raises(fa.InvalidInput, match="North: has 4 records to train with, and 5 are"):
        try_ways(Setting(clinics(4), find_task("softmax"), 5), ways, range(2))
