"""Who should join: measured on clinics of which one has labels that mean the opposite."""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import fedaccord as fa
from fedaccord.cli.join_tables import print_agreement
from fedaccord.data.dataset import load_dataset
from fedaccord.data.own import own_partition
from fedaccord.game.curve import Curve
from fedaccord.membership.agreeing import GroupAgreement, agree, group_curve
from fedaccord.membership.group_scores import all_groups
from fedaccord.membership.joining import Joining, join_groups
from fedaccord.membership.stability import Payoffs, find_stability
from fedaccord.membership.ways import Setting, Way
from fedaccord.plots import plot_joining
from fedaccord.summaries.joining import (
    agreement_sentences,
    gain,
    group_rows,
    held_out_sentences,
    joining_sentences,
    prospect_rows,
    short_recommendation,
)
from fedaccord.summaries.words import listed
from fedaccord.training.rules import GradientStep
from fedaccord.training.task import find_task
from tests.agreement.settings import FIVE
from tests.membership.clinics import NAMES, clinics

WAY = Way(GradientStep(1.0))


@pytest.fixture(scope="module")
def found() -> Joining:
    return join_groups(clinics(), find_task("softmax"), [WAY], rounds=15, seeds=4)


def consortium(valuation: float = 2_000.0) -> fa.Consortium:
    return fa.Consortium(
        names=NAMES,
        valuation=[valuation, 0.8 * valuation, valuation],
        cost_per_sample=0.2,
        samples=[30, 30, 30],
        rounds=15,
        discount_factor=0.9,
        currency="EUR",
        slot="1 month",
    )


def test_the_two_that_are_alike_should_train_together(found: Joining) -> None:
    assert found.recommended is not None
    assert found.members_of(found.recommended) == ("North", "South")


def test_whoever_loses_is_told_first(found: Joining) -> None:
    odd = found.prospects[2]
    assert odd.verdict == "loses"
    assert odd.best_group == ("Odd",)
    first = joining_sentences(found)[0]
    assert first.startswith("Odd loses by joining everyone: ")


def test_what_everyones_model_brings_is_said_once() -> None:
    partition = clinics(tested=30).of(("North", "South"))
    both = join_groups(partition, find_task("softmax"), [WAY], rounds=15, seeds=2)
    assert both.recommended == both.everyone
    assert not both.surely_recommended
    said = " ".join(joining_sentences(both))
    assert said.count(gain(both, both.prospects[0].gain)) == 1
    assert "All of them could train together, since nobody clearly loses. If each trains on" in said
    assert "has 30 records" in said
    short = short_recommendation(both)
    assert short.startswith("All of them could train together: nobody clearly loses, but it is unc")
    assert "±" not in short


def with_payoffs(found: Joining, pair: float, everyone: float) -> Joining:
    """As if North and South had these payoffs as a pair and with everyone; alone has 0."""
    mean = np.where(all_groups(3), 0.0, np.nan)
    mean[3, :2], mean[7] = pair, everyone
    return replace(found, stability=find_stability(Payoffs.of_errors(mean, 0.01)))


def test_why_plain_fedavg_is_not_for_everyone(found: Joining) -> None:
    def plain(joining: Joining) -> str:
        return joining_sentences(replace(found, plain=joining))[-1]

    north, south = (gain(found, found.gain(n, 3)) for n in range(2))
    pair = "With plain FedAvg (rate 1) the largest group that could train together is North and "
    gains = f"South: North {north} and South {south} against training alone. "
    losers = [f"{one.name} ({gain(found, one.gain)})" for one in found.prospects[::2]]
    loses = f"With everyone, {listed(losers)} are likely to lose."
    assert plain(found).replace("should", "could") == f"{pair}{gains}{loses}"
    leave = "With everyone, North and South would rather be by themselves."
    assert plain(with_payoffs(found, 0.5, 0.1)).endswith(f" against training alone. {leave}")
    nothing = "Everyone together would gain nothing in all."
    assert plain(with_payoffs(found, 0.001, 0.0)).endswith(f" against training alone. {nothing}")
    assert "these 3 should not train together: with everyone North " in plain(
        with_payoffs(found, -0.5, -0.5)
    )
    assert "all of them could train together, too: North " in plain(with_payoffs(found, 0.1, 0.2))


def test_whoever_loses_by_fees_alone_is_told_what_it_pays(found: Joining) -> None:
    scores = replace(found.scores, errors=1 - found.scores.errors)
    dear = replace(with_payoffs(found, 10.0, -700.0), scores=scores, consortium=consortium())
    assert dear.prospects[0].gain.mean > 0
    said = joining_sentences(replace(dear, plain=dear))[-1]
    assert "With everyone, North (-700 ± 0 EUR in a slot, fees paid), " in said


def test_whoever_is_as_well_off_alone_is_told_so(found: Joining) -> None:
    rows = prospect_rows(with_payoffs(found, 0.0, 0.0))
    assert [row[-1] for row in rows] == ["everyone, or alone"] * 3
    assert prospect_rows(with_payoffs(found, 0.1, 0.0))[0][-1] == "with South"


def test_numbers_are_those_of_the_groups(found: Joining) -> None:
    """By hand: the means of the errors of a group on a client's own test."""
    scores = found.scores
    rows = {tuple(group): k for k, group in enumerate(scores.members.tolist())}
    for n, prospect in enumerate(found.prospects):
        own = scores.errors[:, :, scores.tests[n + 1]].mean(axis=(1, 2), dtype=np.float64)
        alone = own[rows[tuple(np.eye(3, dtype=bool)[n].tolist())]]
        everyone = own[rows[(True, True, True)]]
        assert prospect.alone.mean == pytest.approx(1 - alone)
        assert prospect.gain.mean == pytest.approx(alone - everyone)
        assert prospect.gain.half_width < prospect.alone.half_width + prospect.together.half_width


def saying_nothing(found: Joining) -> Joining:
    """As if a single example of each test counted, like one event among 200 patients."""
    return replace(found, scores=replace(found.scores, scales=(200.0,) * 4))


def test_an_interval_is_never_wider_than_what_is_possible(found: Joining) -> None:
    for one in saying_nothing(found).prospects:
        for level in (one.alone, one.together):
            assert level.half_width == max(level.mean, 1 - level.mean)
        assert one.gain.half_width == 1 + abs(one.gain.mean)
        assert one.says_nothing
    assert not any(one.says_nothing for one in found.prospects)


def test_all_groups_are_there_and_everyones_is_refuted(found: Joining) -> None:
    record = found.to_dict()
    assert [len(group["members"]) for group in record["groups"]] == [1, 1, 2, 1, 2, 2, 3]
    everyone = record["groups"][-1]
    assert everyone["surely_unstable"]
    assert ["Odd"] in everyone["blocked_by"]
    assert [client["name"] for client in record["clients"]] == list(NAMES)
    assert record["recommended"] == ["North", "South"]
    assert any("no: " in row[-1] for row in group_rows(found))
    assert [row[0] for row in prospect_rows(found)] == list(NAMES)


def test_fees_can_make_a_group_not_worth_it() -> None:
    costly = consortium()._with(server_fee=1e6)
    dear = join_groups(
        clinics(), find_task("softmax"), [WAY], rounds=15, seeds=2, consortium=costly
    )
    assert dear.recommended is None
    assert dear.unit == "EUR"
    assert any("should not train together" in sentence for sentence in joining_sentences(dear))


def test_fine_tuning_helps_the_odd_one() -> None:
    """Its personal model learns what is different at Odd."""
    task, ways = (
        find_task("softmax"),
        (Way(GradientStep(1.0)), Way(GradientStep(1.0), fine_tuning=30)),
    )
    shared, tuned = (
        join_groups(clinics(), task, [way], rounds=15, seeds=2).prospects[2].together.mean
        for way in ways
    )
    assert tuned > shared + 0.2


def test_the_agreement_of_the_group_is_proved(found: Joining) -> None:
    assert found.recommended is not None
    agreed = agree(found, consortium(), found.recommended)
    assert agreed.members == ("North", "South")
    if agreed.certificate is not None:
        assert agreed.certificate.agreement.consortium.names == ("North", "South")
        assert agreed.certificate.holds
    assert agreement_sentences(agreed)
    assert agreed.to_dict()["members"] == ["North", "South"]


def test_members_that_would_do_better_on_their_own_are_named() -> None:
    agreement = fa.solve_agreement(FIVE, punishment=fa.Suspension(None))
    curve = Curve([10, 20, 40, 80], [0], [[0.4], [0.3], [0.2], [0.1]])
    agreed = GroupAgreement(FIVE.names, curve, fa.certify(agreement))
    leaving = agreed.to_dict()["coalition"]
    assert leaving["members"] == ["client-1", "client-2"]
    assert [row["saving"] > 0 for row in leaving["clients"]] == [True, True, False, False, False]
    console = Console(width=200, file=StringIO())
    print_agreement(console, agreed)
    assert isinstance(console.file, StringIO)
    said = "A group would do better on its own, for good: client-1 and client-2, with "
    assert said in console.file.getvalue()
    assert GroupAgreement(FIVE.names, curve, None, "no law fits").coalition is None


def test_the_curve_of_personal_models_is_the_mean_over_own_tests() -> None:
    setting = Setting(clinics(tested=30), find_task("softmax"), 5)
    curve = group_curve(setting, Way(GradientStep(1.0), fine_tuning=2), seeds=3)
    plain = group_curve(setting, WAY, seeds=3)
    assert curve.sizes.tolist() == plain.sizes.tolist()
    assert curve.mean[-1] < plain.mean[-1]
    assert curve.measure == "error"


def test_scaled_samples_count_as_the_consortium_has_them() -> None:
    setting = Setting(clinics(tested=30), find_task("softmax"), 3, scale=0.1)
    curve = group_curve(setting, WAY, seeds=2)
    assert curve.sizes[-1] == 900


def test_the_law_is_of_the_samples_that_the_consortium_says() -> None:
    """Clinics with 30 records, of which 20 or 15 are used: 40 samples of North and South."""
    agreed = []
    for samples, scale in ((20, 1.0), (20, 0.75)):
        ours = replace(consortium(), samples=np.full(3, float(samples)))
        data = clinics(tested=60)
        joining = fa.join(ours, data=data, ways=[WAY], rounds=5, seeds=2, scale=scale)
        assert [one.records for one in joining.prospects] == [scale * samples] * 3
        agreed.append(agree(joining, ours, 0b011))
    assert [one.curve.sizes[-1] for one in agreed] == [40, 40]
    assert agreed[0].curve.values.tolist() != agreed[1].curve.values.tolist()


def test_one_client_or_eleven_are_refused() -> None:
    digits = load_dataset("digits")
    names = [f"client-{n}" for n in range(11)]
    data = {
        name: (digits.inputs[30 * n : 30 * n + 30], digits.labels[30 * n : 30 * n + 30])
        for n, name in enumerate(names)
    } | {"test": (digits.test_inputs, digits.test_labels)}
    for few in (names[:1], names):
        with pytest.raises(fa.InvalidInput, match="there must be 2 to 10, got"):
            join_groups(
                own_partition({each: data[each] for each in [*few, "test"]}, few, "digits"),
                find_task("softmax"),
                [WAY],
                rounds=2,
            )


def test_without_own_tests_the_common_one_is_everyones() -> None:
    whole = clinics(tested=30)
    common = join_groups(replace(whole, tests=()), find_task("softmax"), [WAY], rounds=5, seeds=2)
    assert [one.tested for one in common.prospects] == [90, 90, 90]


def test_whoever_loses_on_the_common_test_is_told_so(found: Joining) -> None:
    scores = replace(found.scores, tests=found.scores.tests[3:])  # Odd's test is everyone's
    common = replace(
        found, scores=scores, stability=find_stability(Payoffs.of_scores(scores)), plain=None
    )
    said = joining_sentences(common)
    assert said[0].startswith("Odd loses by joining everyone: ")
    assert " on the common test, " in said[0]
    assert not any("own test" in sentence for sentence in said)
    assert any("Nobody was judged by its own cases" in sentence for sentence in said)
    left, _ = plot_joining(common).axes
    assert left.get_xlabel() == "Accuracy on the common test (%)"


def test_a_test_that_says_nothing_is_named(found: Joining) -> None:
    everyone = joining_sentences(saying_nothing(found))
    assert any(
        sentence.startswith("The tests of North, South and Odd say nothing")
        for sentence in everyone
    )
    scores = replace(found.scores, scales=(1.0, 1.0, 1.0, 200.0))
    assert any(
        sentence.startswith("Odd's test says nothing")
        for sentence in joining_sentences(replace(found, scores=scores))
    )


@pytest.mark.slow
def test_another_way_is_compared_with_plain_fedavg() -> None:
    ways = [WAY, Way(GradientStep(1.0), fine_tuning=5)]
    joining = join_groups(clinics(), find_task("softmax"), ways, rounds=15, seeds=2)
    assert joining.ways.together == ways[1]
    plain = joining.plain
    assert plain is not None
    assert plain.ways.together == WAY
    assert plain.ways.alone == joining.ways.alone  # alone is as good as it can be in both
    assert plain.prospects[2].alone == joining.prospects[2].alone
    assert plain.prospects[2].gain.mean < joining.prospects[2].gain.mean
    said = joining_sentences(joining)[-1]
    assert said.startswith("With plain FedAvg (rate 1) the largest group that ")
    assert " train together is North and South: North " in said
    record = joining.to_dict()["plain"]
    assert record["recommended"] == ["North", "South"]
    assert record["gain"][2] == plain.prospects[2].gain.to_dict()


@pytest.mark.slow
def test_one_class_explains_a_low_loss_alone() -> None:
    """Odd has only patients that are ill, and is right to say that all are."""
    whole = clinics(tested=30)
    labels = whole.dataset.labels.copy()
    labels[60:] = 1
    single = replace(whole, dataset=replace(whole.dataset, labels=labels))
    ways = [WAY, Way(GradientStep(0.5))]
    joining = join_groups(single, find_task("softmax"), ways, rounds=5, seeds=2)
    alone = joining.ways.best_alone
    assert alone.alone == pytest.approx(np.mean(alone.each_alone))
    assert min(alone.each_alone) == alone.each_alone[2]
    said = list(held_out_sentences(joining))
    assert "Odd (" in said[0]
    assert any(sentence.startswith("Odd has only one class to train on") for sentence in said)


def test_the_picture_has_a_row_for_each(found: Joining) -> None:
    figure = plot_joining(found)
    left, right = figure.axes
    assert [text.get_text() for text in left.get_yticklabels()] == list(NAMES)
    assert "Gain" in right.get_xlabel()


def test_all_groups_are_numbered_by_their_bits(found: Joining) -> None:
    assert found.everyone == len(all_groups(3)) - 1
    assert found.members_of(5) == ("North", "Odd")
