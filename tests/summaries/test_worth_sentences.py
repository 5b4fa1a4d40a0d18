"""Every sentence about worth, the law, close calls and doubtful numbers, each said once."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.worth import Banded
from fedaccord.files.consortium import example_consortium
from fedaccord.game.curve import Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.summaries.agreement import (
    consortium_sentence,
    nobody_trains,
    solution_sentences,
    summary,
    title,
    verdict,
    why_none,
)
from fedaccord.summaries.alternatives import alternative_sentences, alternatives_to
from fedaccord.summaries.worth import (
    knife_edge,
    law_sentences,
    measure_sentence,
    questions,
    verdict_sentence,
    worth_sentences,
    written_measure,
)
from tests.agreement.test_worth import LAW, agreed, measured, two


def ten(law: Law | None = None, **changes: Any) -> fa.Consortium:
    """Ten clinics; by the default law nobody's first sample pays, as it is worth half its cost."""
    plain = Law.power(scale=100.0, exponent=1.0, shift=100.0, measure="error")
    given: dict[str, Any] = {"valuation": 5000.0, "discount_factor": 0.8} | changes
    return fa.Consortium(
        cost_per_sample=100.0, samples=[100.0] * 10, rounds=1, law=law or plain, **given
    )


def sentences(certificate: Certificate) -> str:
    return " ".join(worth_sentences(fa.worth(certificate)))


def hospitals(**changes: Any) -> fa.Consortium:
    given = example_consortium()
    columns = ("valuation", "cost_per_sample", "samples", "discount_factor", "communication_cost")
    kept: dict[str, Any] = {name: getattr(given, name) for name in (*columns, "names")}
    kept |= {"rounds": 50, "currency": given.currency, "slot": given.slot}
    return fa.Consortium(**(kept | changes))


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        ("error", "91.50 %"),
        ("1 - AUC", "0.9150"),
        ("1 - concordance", "0.9150"),
        ("loss", "0.0850"),
    ],
)
def test_measures_as_people_say_them(measure: str, text: str) -> None:
    assert written_measure(measure, [0.085])[0].startswith(text)


def test_the_measure_of_an_assumed_and_of_a_measured_law() -> None:
    assert measure_sentence(fa.worth(agreed(two(), [100.0, 50.0]))) == (
        "Accuracy, by the law: 24.18 % alone on average, 40.00 % without an agreement, 50.00 % as "
        "agreed: 10.00 points higher."
    )
    said = measure_sentence(fa.worth(agreed(measured(), [100.0, 50.0])))
    assert " points higher (" in said
    assert said.count(" to ") == 4  # a band for each number
    loss = replace(LAW, measure="loss")
    assert measure_sentence(fa.worth(agreed(two(law=loss), [100.0, 50.0]))).startswith(
        "Loss, by the law: 0.758"
    )


def test_the_example_is_worth_signing_but_not_to_everybody() -> None:
    certificate = fa.certify(fa.solve_agreement(hospitals(), punishment="suspension"))
    said = sentences(certificate)
    assert "Worth signing: all clients together save 480.04 EUR in a slot, 5,760 EUR a year" in said
    assert "19.6 % of what is at stake for them." in said
    assert "Hardly worth signing for Lakeside Clinic: it saves 0.5" in said
    assert (
        "less than 1 % of what is at stake for it and less in a year than a day of paperwork costs "
        "(about 400 EUR). Hardly worth signing for Riverside: it saves 19.26 EUR in a slot, less "
        "in a year than a day of paperwork costs (about 400 EUR)."
    ) in said
    assert fa.worth(certificate).verdicts == (
        *(("worth signing",) * 3),
        *(("hardly worth signing",) * 2),
        "worth signing",
    )


def test_each_reason_to_hesitate() -> None:
    little = verdict_sentence(fa.worth(agreed(two(currency=""), [100.0, 50.0])))
    assert little.startswith("Hardly worth signing: all clients together save ")
    assert "That is less than 5 %, which a wrong guess of the inputs could explain." in little
    assert "paperwork" not in little
    cheap = two(valuation=[15.0, 15.0], cost_per_sample=0.04)
    assert verdict_sentence(fa.worth(agreed(cheap, [90.0, 90.0]))).endswith(
        "less in a year than a day of paperwork for each client costs, about 800 EUR in all."
    )
    dear = fa.worth(agreed(two(cost_per_sample=[2.0, 3.0]), [100.0, 100.0]))
    assert verdict_sentence(dear, "member") == (
        "Not worth it: to all members together it costs 83.33 EUR more in a slot."
    )


def test_whoever_saves_enough_but_not_surely_is_not_said_to_save_little() -> None:
    """By hand: of the first two one breaks even by the worst law and one pays more."""
    certain = fa.worth(agreed(two(currency=""), [100.0, 50.0]))
    saving = Banded(np.array([100.0, 50.0]), np.array([0.0, -20.0]), np.array([200.0, 120.0]))
    found = replace(certain, saving=saving)
    assert (found.saving_shares > 0.01).all()
    said = " ".join(worth_sentences(found))
    assert "Hardly worth signing for" not in said
    assert "By some of the laws that fit the measurements they would lose." in said
    assert (
        "client-2 may lose: by some of the laws that fit the measurements it would pay more than "
        "without an agreement. client-1 may gain nothing: by some of the laws that fit the "
        "measurements it would pay as much as without an agreement."
    ) in said
    even = replace(certain, saving=replace(saving, low=np.zeros(2)))
    assert "they would gain nothing." in verdict_sentence(even)
    assert not even.may_lose.any()


def test_whoever_saves_nothing_and_whoever_had_better_stay_out() -> None:
    same = fa.worth(agreed(two(), [100.0, 0.0]))
    assert "Not worth it: to all clients together it saves nothing." in worth_sentences(same)
    dear = agreed(two(server_fee=400.0, communication_cost=0.0), [100.0, 100.0])
    said = " ".join(worth_sentences(fa.worth(dear)))
    assert "client-1 and client-2 would pay less outside, without fees: " in said
    assert said.endswith("Why would they take part?")


@pytest.mark.slow
def test_members_that_are_not_sure_to_gain() -> None:
    noisy = ten(measured(noise=0.02).law)
    every = [fa.worth(agreed(noisy, [amount] * 10)) for amount in np.linspace(1, 100, 200)]
    open_ = [found for found in every if ((found.saving.value > 0) & ~found.sure).any()]
    assert open_
    for found in open_:
        said = " ".join(worth_sentences(found))
        assert "client-1, client-2, client-3, client-4, client-5 and 5 others may lose: by" in said


def test_a_knife_edge_is_seen_and_a_margin_removes_it() -> None:
    exact = fa.certify(fa.solve_agreement(hospitals()))
    assert knife_edge(exact) == (
        "Knife-edge: Riverside and Lakeside Clinic are exactly indifferent between keeping to it "
        "and slipping. A margin of 0.01 would leave room for a little less patience than stated."
    )
    assert knife_edge(fa.certify(fa.solve_agreement(hospitals(), margin=0.01))) == ""
    suspended = fa.solve_agreement(hospitals(), punishment="suspension")
    assert knife_edge(fa.certify(suspended)) == ""


def test_a_cheaper_agreement_is_recommended() -> None:
    dear = fa.solve_agreement(ten())
    said = alternative_sentences(dear, alternatives_to(dear))
    assert said == [
        "Recommended instead: the agreement of least total cost, on 123.6 samples instead of "
        "302.7; it saves 15,279 in a slot in all, this one 7,315."
    ]
    cheap = fa.solve_agreement(ten(), punishment="suspension")
    assert cheap.total < dear.total
    assert not any(
        "Recommended" in one for one in alternative_sentences(cheap, alternatives_to(cheap))
    )


def test_everyone_gives_all_is_good_news() -> None:
    certificate = fa.certify(fa.solve_agreement(two(samples=[5.0, 5.0])))
    assert title(certificate) == "Everyone trains on all it has, without an agreement"
    assert why_none(certificate.agreement).startswith("Good news: everyone already trains on all")
    assert "Good news" in summary(certificate, "member")
    assert verdict(certificate, "member") == (
        "No member gains by training on less, and none could train on more."
    )
    assert alternatives_to(certificate.agreement).assuming == {}


def test_without_the_margin_there_would_be_one() -> None:
    """The least patience is 1/9; a margin leaves too little."""
    solved = fa.solve_agreement(ten(discount_factor=0.115), margin=0.01)
    assert not solved.exists
    said = alternative_sentences(solved, alternatives_to(solved))
    assert said[0].startswith("Without a margin, on a knife-edge, the best agreement would be on ")


def test_nobody_trains_without_an_agreement() -> None:
    agreement = fa.solve_agreement(ten())
    assert "nobody would train at all" in nobody_trains(agreement)
    assert "where nothing was measured" in nobody_trains(agreement)
    assert agreement.to_dict()["ratio"] is None
    assert "inf" not in summary(fa.certify(agreement)) + title(fa.certify(agreement))
    assert nobody_trains(fa.solve_agreement(hospitals())) == ""


def test_doubtful_valuations_get_a_question() -> None:
    assert questions(two()) == [
        "A percentage point of accuracy is said to be worth 3 EUR in a slot to client-2, less than "
        "a coffee: is a better model worth so little?"
    ]
    assert questions(two(valuation=[1e9, 2e9])) == [
        "A percentage point of accuracy is said to be worth 10,000,000 EUR in a slot to client-1 "
        "(and 1 other likewise), a fortune: could the organisation mean that much?"
    ]
    assert questions(hospitals()) == questions(two(currency="")) == []


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (None, "is the paper's, 1/sqrt(X G) + 1/G: it is assumed, and was not measured"),
        (LAW, "is a power law: it is assumed"),
        ([LAW, LAW], "Each has a law of the loss of its own"),
        (Law.mixture([1.0, 0.5], [50.0, 500.0]), "is given by its terms: it is assumed"),
    ],
)
def test_laws_that_were_not_measured(law: Any, words: str) -> None:
    certificate = fa.certify(agreed(two(law=law), [100.0, 50.0]))
    (said,) = law_sentences(certificate, fa.worth(certificate))
    assert words in said


@pytest.mark.slow
def test_a_measured_law_says_what_is_known_of_it() -> None:
    consortium = ten(measured().law, valuation=np.linspace(5e3, 15e3, 10))
    solved = fa.solve_agreement(consortium, margin=0.01)
    certificate = fa.certify(solved)
    alternatives = alternatives_to(solved)
    said = law_sentences(certificate, fa.worth(certificate), alternatives.for_the_fit)
    assert said[0].startswith("The law of the loss was measured: error at 6 sizes, 8 seeds; chi^2")
    assert any(one.startswith("It was measured from 10 to 320 samples and is used") for one in said)
    held = next(one for one in said if one.startswith("It holds for"))
    assert "It holds for 200 of 200 resampled laws, least slack 0.01" in held
    assert " of 200 fresh ones." in held
    assert any(one.startswith("To hold for all of them costs") for one in said)
    assert said[-1].endswith("%.")  # what to measure next
    assert not any(" sure" in one for one in said)


def test_a_law_that_is_used_beyond_its_range_or_does_not_fit() -> None:
    consortium = measured(samples=[1000.0, 1000.0], valuation=[1e5, 1e4])
    certificate = fa.certify(agreed(consortium, [1000.0, 500.0]))
    said = " ".join(law_sentences(certificate, fa.worth(certificate)))
    assert "beyond what was measured: there it is a guess." in said
    sizes = np.array([10.0, 20, 40, 80])
    one_seed = Curve(sizes, [0], LAW.loss(sizes)[:, np.newaxis])
    guessed = two(law=fit_law(one_seed, resamples=50))
    certificate = fa.certify(agreed(guessed, [100.0, 50.0]))
    said = " ".join(law_sentences(certificate, fa.worth(certificate)))
    assert "how well it fits is not known" in said
    assert "Do not rely on it yet: there is one seed only" in said


def test_samples_that_count_by_quality_are_said_to() -> None:
    plain = example_consortium()
    weighed = fa.Consortium.of(
        [replace(client, quality=0.5 + 0.1 * n) for n, client in enumerate(plain)],
        rounds=int(plain.rounds),
    )
    assert consortium_sentence(weighed).endswith("; totals count samples by their quality")
    assert "quality" not in consortium_sentence(plain)
    agreement = fa.solve_agreement(weighed, "uniform", punishment="suspension")
    assert agreement.level is not None
    optimum = fa.solve_social_optimum(weighed)
    said = " ".join(solution_sentences(fa.certify(agreement), optimum, None))
    assert "samples of quality 1 each" in said


def test_the_range_that_is_used_includes_being_alone_where_that_is_the_punishment() -> None:
    hospitals = example_consortium()
    alone = float(np.minimum(hospitals.satiation, hospitals.samples).min())
    suspended = fa.worth(fa.solve_agreement(hospitals, punishment="suspension"))
    reverted = fa.worth(fa.solve_agreement(hospitals))
    assert suspended.range_used[0] == alone < reverted.range_used[0]
