"""A client's numbers from answers: by hand, with ranges, with doubts, and what is refused."""

import json
import random
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.errors import InvalidInput
from fedaccord.interviews.interview import estimates_so_far
from fedaccord.interviews.questions import BY_KEY, QUESTIONS
from tests.interviews.organisations import HOSPITAL, LEAST


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in HOSPITAL.items() if key not in keys}


def test_a_hospital_by_hand() -> None:
    found = fa.interview(HOSPITAL)
    # 30,000 / 4 cases in a slot, 0.2 x (0.02 x 25,000 + 0.98 x 300) for a wrong one
    assert found.valuation.likely == pytest.approx(7_500 * 0.2 * (500 + 294))
    # 6 minutes at 80 for 8 slots; 50 rounds at 200 a second; 40 hours for 48,000 samples
    assert found.samples.likely == 2_000 * 24
    assert found.cost_per_sample.likely == pytest.approx(
        8 / 8 + 2.5 / 3600 * 50 / 200 + 40 * 80 / 48_000
    )
    assert found.discount_factor.likely == pytest.approx((0.9 / 1.03) ** 0.25)
    assert found.point_worth.likely == pytest.approx(47_640)
    assert found.doubts == []
    assert all(estimate.value.exact for estimate in found.estimates.values())
    assert found.client == fa.Client(
        "University Hospital", 1_191_000, 1.067, 48_000, discount_factor=0.96683
    )


def test_one_month_is_one() -> None:
    monthly = {"slot": "1 month", "cases_per_month": 100}
    given = {key: value for key, value in LEAST.items() if key != "samples"} | monthly
    source = fa.interview(given).estimates["samples"].source
    assert source.startswith("100 cases a month, each used for 1 month (")


def test_all_that_has_a_default_may_be_left_out() -> None:
    found = fa.interview(LEAST)
    assert found.valuation.likely == pytest.approx(100 * 500 / 4)
    assert found.cost_per_sample.likely == pytest.approx(1 / 3600 * 0.01 * 50)
    assert found.discount_factor.likely == pytest.approx((0.9 / 1.05) ** 0.25)
    assert found.discount_factor.low == pytest.approx((0.8 / 1.08) ** 0.25)
    assert found.discount_factor.high == pytest.approx((0.95 / 1.03) ** 0.25)
    assumed = {row["question"] for row in found.to_dict()["answers"] if row["assumed"]}
    defaults = {question.key for question in QUESTIONS if question.default is not None}
    assert assumed == defaults - {"uncaught"}  # which is only about mistakes in cases
    assert "(assumed)" in found.estimates["discount_factor"].source


def test_annotation_counts_once_and_training_in_every_slot() -> None:
    """A case that is used twice as long costs half as much to annotate in each slot."""
    once = fa.interview(LEAST | {"annotation_cost": 12}).cost_per_sample.likely
    short = fa.interview(LEAST | {"annotation_cost": 12, "years_used": 0.1}).cost_per_sample.likely
    long = fa.interview(LEAST | {"annotation_cost": 12, "years_used": 1}).cost_per_sample.likely
    training = fa.interview(LEAST).cost_per_sample.likely
    assert once == short == pytest.approx(12 + training)
    assert long == pytest.approx(12 / 4 + training)


def test_throughput_and_seconds_say_the_same() -> None:
    speed = {**LEAST, "seconds_per_sample": None, "samples_per_second": 100}
    assert fa.interview(speed).cost_per_sample == pytest.approx(fa.interview(LEAST).cost_per_sample)


def test_money_a_year_does_not_depend_on_the_slot() -> None:
    years = [fa.interview(HOSPITAL | {"slot": slot}) for slot in ("1 week", "3 months", "1 year")]
    assert [each.point_worth.likely for each in years] == pytest.approx([47_640] * 3)
    per_year = [each.discount_factor.likely**each.slots_per_year for each in years]
    assert per_year == pytest.approx([0.9 / 1.03] * 3)


def test_ranges_contain_every_combination() -> None:
    """Independent of `spread`: draw each answer within its range, and interview anew."""
    draw = random.Random(2)
    numbers = {
        key: value
        for key, value in HOSPITAL.items()
        if BY_KEY[key].kind in ("amount", "share") and isinstance(value, int | float)
    }
    pairs = {key: [0.7 * value, 1.4 * value] for key, value in numbers.items()}
    wide = fa.interview(HOSPITAL | pairs)
    for _ in range(200):
        exact = {
            key: draw.choice([low, high, draw.uniform(low, high)])
            for key, (low, high) in pairs.items()
        }
        one = fa.interview(HOSPITAL | exact)
        for field, estimate in wide.estimates.items():
            value = one.estimates[field].value.likely
            assert estimate.value.low * (1 - 1e-12) <= value <= estimate.value.high * (1 + 1e-12)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"point_worth": 3}, "less than a coffee"),
        ({"point_worth": 300, "currency": "JPY"}, "less than a coffee"),
        (
            {"point_worth": 50_000, "cases_per_year": 1000, "missed_cost": 900, "false_cost": 10},
            "10 cases a year, which cost at most 9,000 EUR if they are wrong",
        ),
        ({"point_worth": 1e9, "cases_per_year": 1000}, "each of them would cost 100,000,000 EUR"),
        ({"seconds_per_sample": 1000}, "would take 578.7 days, and a slot has 91.25"),
        ({"ending": 0.99}, "less than half of money now"),
        ({"point_worth": [1, 1000]}, "valuation is known only from 25 to 25,000"),
        ({"hourly_wage": 80}, "not used: hourly_wage"),
        ({"measure": "1 - AUC", "prevalence": 0.1}, "not used: prevalence"),
    ],
)
def test_doubts(answers: dict[str, Any], words: str) -> None:
    [doubt] = fa.interview(LEAST | answers).doubts
    assert words in doubt


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"missed_cost": 2e6}, "the average, or the worst"),
        ({"false_cost": 30_000}, "the wrong way round"),
        ({"prevalence": 0.7}, "70 % of the cases would have a finding"),
    ],
)
def test_doubts_about_a_wrong_case(answers: dict[str, Any], words: str) -> None:
    [doubt] = fa.interview(HOSPITAL | answers).doubts
    assert words in doubt


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (LEAST | {"nmae": "x"}, "nmae: there is no such question; did you mean 'name'?"),
        (LEAST | {"name": " "}, "name: must be one line of printable text"),
        (LEAST | {"name": "a\x1b[2J"}, "name: must be one line of printable text"),
        (LEAST | {"currency": "euro"}, "currency: must be three letters like EUR"),
        (LEAST | {"slot": "3 moons"}, "slot: must be a stretch of time"),
        (LEAST | {"rounds": 2.5}, "rounds: must be a whole number, 1 or more"),
        (LEAST | {"measure": "f1"}, "measure: must be one of 'error', 'loss'"),
        (LEAST | {"gpu_price": 0}, "gpu_price: must be more than 0"),
        (LEAST | {"gpu_price": float("nan")}, "gpu_price: must be finite"),
        (LEAST | {"gpu_price": 1e-320}, "gpu_price: must be from 1e-12 to 1e+12"),
        (LEAST | {"gpu_price": "1e300"}, "gpu_price: must be from 1e-12 to 1e+12"),
        (LEAST | {"interest": "3"}, "got '3'; write 3 % if that is meant"),
        (LEAST | {"interest": "120%"}, "must be from 0 to 100 % (0 to 1), got '120%'"),
        (LEAST | {"gpu_price": "2,000"}, "'2,000' is either 2 or 2000; write the one that is"),
        (LEAST | {"gpu_price": "2 £"}, "gpu_price: is in GBP, and all amounts are in EUR"),
        (LEAST | {"gpu_price": "5%"}, "gpu_price: must be a number, not a percentage"),
        (LEAST | {"rounds": "5 MIN"}, "rounds: must be a number, not an amount in MIN"),
        (LEAST | {"interest": 0, "ending": 0}, "interest and the chance of ending must not both"),
        (LEAST | {"interest": [0, 0.1], "ending": 0}, "must not both be 0, not even at their"),
        (LEAST | {"ending": 0.1, "horizon": 5}, "horizon: ending says the same"),
        (LEAST | {"staff_hours": 5}, "hourly_wage: is missing"),
        (without("gpu_price"), "gpu_price: is missing: What does an hour"),
        (without("cases_per_month"), "cases_per_month: is missing: How many new cases"),
        (without("prevalence"), "prevalence: is missing"),
        (without("cases_per_year"), "(or give point_worth)"),
        (HOSPITAL | {"measure": "1 - AUC"}, "point_worth: is missing"),
        (HOSPITAL | {"missed_cost": 0, "false_cost": 0}, "must not both be 0"),
    ],
)
def test_refused(answers: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        fa.interview(answers)
    assert words in str(refused.value)
    assert len(refused.value.problems) == 1


def test_all_mistakes_at_once_and_only_mappings() -> None:
    with pytest.raises(InvalidInput) as refused:
        fa.interview({})
    fields = [problem.field for problem in refused.value.problems]
    assert fields == [
        "name",
        "cases_per_month",
        "gpu_price",
        "samples_per_second",
        "cases_per_year",
    ]
    with pytest.raises(InvalidInput, match="answers: must be of type Mapping"):
        fa.interview("St Mary")  # type: ignore[arg-type]


def test_the_record() -> None:
    record = fa.interview(HOSPITAL).to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert [result["field"] for result in record["results"]] == list(record["client"])[1:-1]
    for result in record["results"]:
        last = result["steps"][-1]
        assert (last["low"], last["likely"], last["high"]) == (
            result["low"],
            result["likely"],
            result["high"],
        )
    assert "University Hospital" in repr(fa.interview(HOSPITAL))
    assert fa.interview(HOSPITAL).to_frame()["field"].tolist()[0] == "valuation"


def test_every_question_is_asked_in_words() -> None:
    for question in QUESTIONS:
        assert question.asks.endswith("?")
        assert question.meaning.endswith(".")
        assert bool(question.default) == bool(question.assumed)
        assert question.spoken or question.default
        if question.default:
            question.read(question.default)


ANSWER = (
    st.sampled_from([0, 1e-12, 1e12, 1, 0.5, "5-8", "5-8 %", "about 600", "1e9", "99 %", [0, 1]])
    | st.floats(0, 1)
    | st.floats(1e-12, 1e12)
)
TIMES = st.sampled_from(["3 months", "0.000001 days", "999999 years", "weekly"])


@pytest.mark.slow
@given(
    st.fixed_dictionaries(
        {"name": st.just("A"), "rounds": st.sampled_from([1, 50, 2**53]), "slot": TIMES},
        optional={
            question.key: ANSWER for question in QUESTIONS if question.kind in ("amount", "share")
        },
    )
)
@settings(max_examples=150)
def test_any_numbers_give_a_client_or_are_refused(answers: dict[str, Any]) -> None:
    try:
        found = fa.interview(LEAST | answers)
    except InvalidInput:
        return
    json.dumps(found.to_dict(), allow_nan=False)
    for estimate in found.estimates.values():
        assert estimate.value.low <= estimate.value.likely <= estimate.value.high
    data = tomllib.loads(found.written_into("no such file.toml"))
    fa.Consortium.of([fa.Client(**client) for client in data["clients"]], rounds=data["rounds"])


def test_numbers_follow_from_the_answers_so_far() -> None:
    whole = fa.interview(HOSPITAL).estimates
    assert estimates_so_far(HOSPITAL) == whole
    assert list(estimates_so_far({})) == ["discount_factor"]
    some = {"cases_per_month": 100, "gpu_price": "wrong", "interest": 0, "ending": 0}
    assert list(estimates_so_far(some)) == ["samples"]


def test_an_interview_goes_into_a_text_that_is_not_complete() -> None:
    result = fa.interview(HOSPITAL)
    text = f'# ours\n[[clients]]\nname = "A"\n\n[[clients]]\nname = "{result.name}"  # new\n'
    changed = result.put_into(text)
    assert changed.index("# ours") < changed.index('name = "A"')
    first, second = tomllib.loads(changed)["clients"]
    assert first == {"name": "A"}
    assert second["valuation"] == result.client.valuation
    assert "# new" in changed


@pytest.mark.parametrize(
    ("answers", "key", "words"),
    [
        ({"years_used": 1500}, "years_used", "A case would be used for 1500 years"),
        (
            {"annotation_minutes": None, "annotation_cost": 400_000},
            "annotation_cost",
            "one case would cost 400000 EUR",
        ),
        ({"prevalence": 0.006}, "prevalence", "always says 'no finding' is right in 99.4 %"),
        ({"prevalence": 0.995}, "prevalence", "always says 'a finding' is right in 99.5 %"),
        ({"uncaught": None}, "uncaught", "100 % of the model's mistakes would have consequences"),
    ],
)
def test_unlikely_answers_until_somebody_is_sure(
    answers: dict[str, Any], key: str, words: str
) -> None:
    found = fa.interview(HOSPITAL | answers).doubts
    assert any(words in doubt for doubt in found)
    rest = fa.interview(HOSPITAL | answers | {"sure": [key, "cost_per_sample"]}).doubts
    assert not any(words in doubt for doubt in rest)


@pytest.mark.parametrize(
    "answers",
    [
        {"years_used": 30},
        {"annotation_minutes": None, "annotation_cost": 9_999},
        {"prevalence": 0.01},
        {"uncaught": "100 %"},
    ],
)
def test_answers_that_are_only_unusual(answers: dict[str, Any]) -> None:
    found = fa.interview(HOSPITAL | answers | {"sure": ["cost_per_sample"]}).doubts
    words = ("used for", "Annotating", "always says", "of the model's mistakes")
    assert not any(word in doubt for doubt in found for word in words)


def test_what_one_is_sure_about_must_be_a_question() -> None:
    for sure, words in (
        (["yeas_used"], "nothing is asked about 'yeas_used'; did you mean 'years_used'?"),
        ("years_used", "must be a list of questions, got 'years_used'"),
    ):
        with pytest.raises(fa.InvalidInput) as refused:
            fa.interview(HOSPITAL | {"sure": sure})
        assert words in str(refused.value)
