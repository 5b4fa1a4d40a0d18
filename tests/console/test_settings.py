"""What is set on the page: read from an address, written to one, and what it does to members."""

from urllib.parse import parse_qsl

import numpy as np
import pytest

from fedaccord.console.workshop.settings import Settings, read_settings
from fedaccord.console.workshop.what_if import half_as_patient, situation
from fedaccord.errors import InvalidInput
from tests.console.drafts import example

OTHERS = [
    {"kind": "uniform"},
    {"objective": "fair-share"},
    {"punishment": "reversion", "punishment_slots": 3},
    {"punishment_slots": "for-ever"},
    {"margin": 0.0},
    {"within": 12.5, "nobody_worse": True},
    {"discount_factor": 0.0, "audit_rate": 0.25, "whole_samples": True},
    {"without": 2, "doubles": 1, "impatient": 3},
    {"joins": 1, "joins_name": "A & B=?#%", "joins_samples": 5.0},
]


@pytest.mark.parametrize("given", OTHERS, ids=str)
def test_an_address_has_all_that_is_set(given: dict[str, object]) -> None:
    from urllib.parse import parse_qsl

    settings = Settings.model_validate(given)
    assert read_settings(dict(parse_qsl(settings.query[1:]))) == (settings, [])


def test_what_is_as_usual_is_not_in_the_address() -> None:
    settings, problems = read_settings(
        {"kind": "individual", "margin": "0.01", "objective": "", "own_patience": "yes"}
        | {"discount_factor": "0.8", "joins_name": "nobody joins", "unknown": "x"}
    )
    assert (settings.query, problems) == ("", [])


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("kind", "both"),
        ("objective", "most data"),
        ("punishment", "none"),
        ("punishment_slots", "0"),
        ("punishment_slots", "2.5"),
        ("margin", "-0.1"),
        ("margin", "nan"),
        ("within", "100"),
        ("discount_factor", "1"),
        ("discount_factor", "0,8"),
        ("audit_rate", "inf"),
        ("whole_samples", "perhaps"),
        ("without", "0"),
        ("joins", "x"),
        ("joins_samples", "0"),
        ("joins_name", "n" * 201),
    ],
)
def test_what_is_wrong_is_a_sentence_and_as_usual(field: str, text: str) -> None:
    settings, [problem] = read_settings({"joins": "1"} | {field: text})
    assert problem.field == field
    assert problem.message.startswith("must be")
    assert settings.changed(joins=None) == Settings()


def test_everything_wrong_is_said_at_once() -> None:
    _, problems = read_settings({"margin": "x", "within": "y", "kind": "z"})
    assert {problem.field for problem in problems} == {"margin", "within", "kind"}


def test_what_if() -> None:
    draft = example()
    stated = draft.consortium
    found = situation(draft, Settings(without=2, doubles=1, impatient=3, joins=4))
    assert found.numbers == (1, 3, 4, 5, 6, 7)
    assert found.position(2) is None
    assert found.consortium.names == (
        *(stated.names[n] for n in (0, 2, 3, 4, 5)),
        "New member",
    )
    np.testing.assert_array_equal(
        found.consortium.samples, [56_000, *stated.samples[[2, 3, 4, 5, 3]]]
    )
    assert found.consortium.discount_factor[1] == half_as_patient(stated.discount_factor[2])
    assert found.consortium.cost_per_sample[5] == stated.cost_per_sample[3]


def test_one_that_joins_may_have_numbers_of_its_own() -> None:
    joins = Settings(
        joins=4, joins_name="New", joins_samples=7, joins_valuation=8, joins_cost_per_sample=9
    )
    *_, new = situation(example(), joins).consortium
    assert (new.name, new.samples, new.valuation, new.cost_per_sample) == ("New", 7, 8, 9)


def test_one_discount_factor_for_all() -> None:
    found = situation(example(), Settings(discount_factor=0.5, impatient=1)).consortium
    assert found.discount_factor.tolist() == [half_as_patient(0.5), *[0.5] * 5]


RANGED = "samples = 28_000          # how many samples it has\ndiscount_factor = 0.90 "


def test_ranges_are_changed_as_ranges() -> None:
    draft = example(RANGED, "samples = [20_000, 30_000]\ndiscount_factor = [0.8, 0.95] ")
    found = situation(draft, Settings(doubles=1, impatient=1)).consortium
    assert found.ranges is not None
    assert found.ranges.samples[:, 0].tolist() == [40_000, 60_000]
    assert found.discount_factor[0] == half_as_patient(0.875)
    exact = situation(draft, Settings(as_stated=True, within=10)).consortium
    assert exact.ranges is not None
    np.testing.assert_allclose(exact.ranges.ratio[0], 0.9 * exact.ratio)
    with pytest.raises(InvalidInput, match="the file has ranges already"):
        situation(draft, Settings(within=10))


def test_a_number_of_a_class_is_changed_too() -> None:
    draft = example(
        "[[clients]]",
        "[classes.any]\nsamples = [10_000, 20_000]\ndiscount_factor = [0.7, 0.9]\n\n[[clients]]\n"
        'name = "Vague"\nclass = "any"\nvaluation = 1e5\ncost_per_sample = 0.004\n\n[[clients]]',
    )
    found = situation(draft, Settings(doubles=1, impatient=1)).consortium
    assert found.ranges is not None
    assert found.ranges.samples[:, 0].tolist() == [20_000, 40_000]
    assert found.discount_factor[0] == half_as_patient(0.8)
    alike = situation(draft, Settings(discount_factor=0.6)).consortium
    assert set(alike.discount_factor.tolist()) == {0.6}


@pytest.mark.parametrize("field", ["without", "doubles", "impatient", "joins"])
def test_a_member_that_is_not_there(field: str) -> None:
    with pytest.raises(InvalidInput, match="there are 6 members, and no number 7"):
        situation(example(), Settings.model_validate({field: 7}))


@pytest.mark.parametrize(
    ("typed", "read"), [("12 000", 12_000), ("12,5", 12.5), ("700 000 €", 700_000), ("1.5e3", 1500)]
)
def test_numbers_are_read_as_people_write_them(typed: str, read: float) -> None:
    found, problems = read_settings({"joins": "1", "joins_valuation": typed})
    assert not problems
    assert found.joins_valuation == read
    again, problems = read_settings(dict(parse_qsl(found.query.removeprefix("?"))))
    assert (again, problems) == (found, [])


def test_a_number_with_two_readings_is_refused_with_both() -> None:
    found, (problem,) = read_settings({"joins": "1", "joins_samples": "42.125"})
    assert found.joins_samples is None
    assert problem.message.startswith("could mean 42.125 or 42125: ")
    chosen = found.changed(joins_samples=42.125)  # by a program
    again, problems = read_settings(dict(parse_qsl(chosen.query.removeprefix("?"))))
    assert (again, problems) == (chosen, [])
