"""Stand-ins for a rehearsal: numbers and examples that are made up, or given."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.data.scale import fitting_scale
from fedaccord.deployment.stand_ins import examples_of, rehearsal_dataset, stand_ins
from fedaccord.errors import InvalidInput
from fedaccord.protocol.terms import Terms
from fedaccord.training.course import Course, train
from fedaccord.training.task import Model, find_task
from tests.flower.consortia import terms_of
from tests.protocol.postings import unreported

NAMES = ("a", "b", "c")


def consortium(**changes: Any) -> fa.Consortium:
    numbers: dict[str, Any] = {
        "valuation": [4.0, 2.0, 1.0],
        "cost_per_sample": 2e-5,
        "samples": [30_000, 42_000, 1_000],
        "rounds": 2,
        "discount_factor": 0.8,
        "names": ["c", "a", "b"],
    }
    return fa.Consortium(**(numbers | changes))


@pytest.mark.slow
def test_made_up_members_have_something_to_agree_on() -> None:
    """Without an agreement some ride free; with it everyone contributes."""
    for seed in range(5):
        terms = terms_of(NAMES, training={"shape": [2], "classes": 2, "seed": seed})
        made = stand_ins(terms)
        assert made == stand_ins(terms)
        assert [one.name for one in made] == list(NAMES)
        found = fa.solve_agreement(
            fa.Consortium(
                valuation=[one.valuation for one in made],
                cost_per_sample=[one.cost_per_sample for one in made],
                samples=[one.samples for one in made],
                rounds=terms.rounds,
                discount_factor=terms.discount_factor,
                law=terms.law_of_loss,
            ),
            punishment="suspension",
        )
        assert found.exists
        assert found.profile.sum() > found.equilibrium.profile.sum()
        assert (found.profile > 0).all()


def test_the_numbers_of_a_file_are_taken_in_the_order_of_the_terms() -> None:
    found = stand_ins(terms_of(NAMES), consortium())
    assert [(one.name, one.samples, one.valuation) for one in found] == [
        ("a", 42_000, 2.0),
        ("b", 1_000, 1.0),
        ("c", 30_000, 4.0),
    ]


def test_a_file_about_others_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"its clients \(c, a, x\) are not those of the app"):
        stand_ins(terms_of(NAMES), consortium(names=["c", "a", "x"]))


@pytest.mark.parametrize("numbers", [None, consortium()])
def test_without_reports_the_samples_are_those_of_the_terms(numbers: Any) -> None:
    terms = unreported("posted", NAMES)
    for one in stand_ins(terms, numbers):
        public = (terms.public or {})[one.name]
        assert public.lowest_ratio is not None
        assert public.lowest_discount_factor is not None
        assert one.samples == public.samples
        assert one.ratio >= public.lowest_ratio * (1 - 1e-12)
        assert one.discount_factor >= public.lowest_discount_factor


def test_examples_are_scaled_to_what_there_is() -> None:
    digits = load_dataset("digits")
    plain = terms_of(NAMES, training={"shape": [8, 8], "classes": 10})
    members = stand_ins(plain, consortium())
    scale = fitting_scale(digits, [one.samples for one in members])
    terms: Terms = terms_of(NAMES, training={"shape": [8, 8], "classes": 10, "scale": scale})
    found = examples_of(terms, members, rehearsal_dataset(terms, digits))
    sizes = [len(found[name].own[1]) for name in NAMES]
    assert sizes == [826, 20, 590]
    assert sum(sizes) <= digits.size
    assert len(found["a"].test[1]) == len(digits.test_labels)


@pytest.mark.parametrize(("shape", "classes"), [([2], 2), ([3, 4, 5], 7), ([1], 2_000)])
def test_made_up_examples_have_the_form_in_the_terms(shape: list[int], classes: int) -> None:
    terms = terms_of(NAMES, training={"shape": shape, "classes": classes})
    made = rehearsal_dataset(terms)
    assert (list(made.shape), made.classes) == (shape, classes)
    assert np.array_equal(made.inputs, rehearsal_dataset(terms).inputs)


def test_a_dataset_of_another_form_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"digits has examples of the shape \(8, 8\) with 10"):
        rehearsal_dataset(terms_of(NAMES), load_dataset("digits"))


def test_made_up_survival_times_can_be_learnt() -> None:
    """Some events are seen and some are not, and a model can tell who has one first."""
    terms = terms_of(NAMES, training={"shape": [5], "classes": 0})
    made = rehearsal_dataset(terms)
    assert (made.shape, made.survival) == ((5,), True)
    assert 0.3 < (made.labels > 0).mean() < 0.7
    course = Course(
        Model(find_task("cox"), made),
        lambda seed: RandomPartition(made, [300, 300], seed),
        rounds=20,
    )
    assert train(course, [[300, 300]]).final.accuracy > 0.65


def test_a_dataset_with_classes_is_none_with_survival_times() -> None:
    terms = terms_of(NAMES, training={"shape": [8, 8], "classes": 0})
    with pytest.raises(InvalidInput, match=r"10 labels, and the terms have .* with survival t"):
        rehearsal_dataset(terms, load_dataset("digits"))
