"""Who gains by lying: the numbers of the theory, an oracle, and mechanisms in which nobody does."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.mechanisms.misreport.best import NAMES
from fedaccord.mechanisms.misreport.gains import gain, outcomes
from fedaccord.mechanisms.misreport.reports import NOTHING, Lies, Reports, possible_lies
from fedaccord.mechanisms.misreport.rules import RULES
from fedaccord.mechanisms.posted import Posted
from fedaccord.numbers import FloatArray
from tests.consortia import FEW, consortia, with_satiation

TRUTHFUL = ("clock", "serial clock", "fair exchange")


def setting(clients: int, delta: float = 0.8) -> fa.Consortium:
    """The hospitals for 6, otherwise the paper's clients."""
    if clients == 6:
        return example_consortium()
    return fa.paper_consortium(clients=clients, discount_factor=delta)


def percent(found: fa.Misreport) -> FloatArray:
    return 100.0 * found.gain_of_computation


# --- The numbers of the theory -------------------------------------------------------------


@pytest.mark.parametrize(
    ("clients", "first", "gains", "total", "free"),
    [
        (100, 51, (49.4, 49.4), 505_063, 98.0),
        (181, 121, (93.7, 95.8), 609_585, 142.7),
        (200, 138, (49.6, 69.4), 623_007, 100.2),
    ],
)
def test_the_equilibrium_from_reports(
    clients: int, first: int, gains: tuple[float, float], total: int, free: float
) -> None:
    """Table A1: only contributors gain, each by understating."""
    consortium = setting(clients)
    found = fa.best_misreport(consortium, "equilibrium", reports=100)
    liars = [n for n, field in enumerate(found.fields, start=1) if field is not None]
    assert liars == list(range(first, clients + 1))
    gaining = percent(found)[first - 1 :]
    assert (gaining.min(), gaining.max()) == pytest.approx(gains, abs=0.05)
    assert found.total[first - 1 :] == pytest.approx(np.full(len(liars), total), abs=0.5)
    assert (found.factor[first - 1 :] < 1.0).all()
    best = fa.best_misreport(consortium, "free equilibrium", reports=20)
    assert 100 * best.largest_gain == pytest.approx(free, abs=0.05)
    assert (best.gain >= found.gain * (1 - 1e-8)).all()


def test_who_undercuts_the_critical_client_swaps_places_with_it() -> None:
    """Case I: the gain is D - x*_k, and the total is unchanged."""
    consortium = setting(100)
    found = fa.best_misreport(consortium, "equilibrium", reports=100)
    critical = fa.solve_equilibrium(consortium).profile[49]
    assert found.gain[50:] == pytest.approx(np.full(50, 0.985e-8 * (10_000 - critical)), rel=1e-6)
    assert 10_000 - critical == pytest.approx(10_000 - 5_063.3, abs=0.05)


def test_the_equilibrium_among_the_hospitals() -> None:
    found = fa.best_misreport(example_consortium(), ["equilibrium", "free equilibrium"])
    assigned, free = found.entries
    assert [name for name, field in zip(assigned.names, assigned.fields, strict=True) if field] == [
        "University Hospital",
        "Northern General",
    ]
    assert percent(assigned)[:2] == pytest.approx([56.8, 78.0], abs=0.05)
    assert assigned.total[:2] == pytest.approx([42_478, 50_397], abs=0.5)
    assert percent(free)[:2] == pytest.approx([77.9, 78.2], abs=0.05)


@pytest.mark.parametrize(
    ("clients", "delta", "training", "saving", "change"),
    [
        (100, 0.8, (27.5, 63.3, 99.3), (0.5, 2.2, 400), (-1.0, -0.5)),
        (181, 0.8, (70.1, 84.9, 99.8), (0.9, 2.3, 400), (-0.6, -0.2)),
        (200, 0.8, (74.4, 87.0, 99.9), (0.9, 2.2, 400), (-0.5, -0.2)),
        (100, 0.5, (26.9, 62.9, 99.3), (0.5, 2.2, 100), (-1.0, -0.3)),
        (6, 0.8, (49.5, 60.7, 80.0), (31, 65, 375), (-25.0, -12.8)),
    ],
)
def test_the_individual_agreement_from_reports(
    clients: int,
    delta: float,
    training: tuple[float, ...],
    saving: tuple[float, ...],
    change: tuple[float, float],
) -> None:
    """Table A2: everyone gains, everyone by reporting 0, and everyone keeps to it then."""
    found = fa.best_misreport(setting(clients, delta), reports=12)
    assert found.gaining == clients
    assert found.keeps.all()
    assert set(found.fields) == {"ratio"}
    assert not found.report.any()
    shares = percent(found)
    assert (shares.min(), np.median(shares), shares.max()) == pytest.approx(training, abs=0.06)
    shares = 100 * found.gain_of_saving
    digits = 0.06 if saving[0] < 1 else 0.5
    assert (shares.min(), np.median(shares), shares.max()) == pytest.approx(saving, abs=digits)
    moved = 100 * (found.total / found.truthful_total - 1)
    assert (moved.min(), moved.max()) == pytest.approx(change, abs=0.06)


@pytest.mark.slow
def test_the_uniform_agreement_from_reports() -> None:
    found = fa.best_misreport(setting(100), "uniform", reports=100)
    fields = np.array([field is not None for field in found.fields])
    assert fields.tolist() == [False] + [True] * 99
    nothing = found.factor == 0
    assert nothing[1:24].all()
    assert nothing[49:].all()
    # clients 25 to 49 report a little more than client 50, and become the critical client
    over = slice(24, 49)
    assert found.report[over] == pytest.approx(np.full(25, 50 / 0.985e-8), rel=1e-6)
    assert percent(found)[over] == pytest.approx(np.full(25, 36.4), abs=0.1)
    assert found.total[over] == pytest.approx(np.full(25, found.truthful_total), rel=1e-6)
    assert (found.total[1], percent(found)[1]) == pytest.approx((975_063, 117.6), abs=0.5)
    assert (found.total[99], percent(found)[99]) == pytest.approx((895_564, 169), abs=0.5)
    assert found.keeps.all()


def test_a_lie_may_raise_the_total_of_the_uniform_agreement() -> None:
    found = fa.best_misreport(setting(181), "uniform", reports=4, clients=["client-2"])
    assert (found.truthful_total, found.total[0]) == pytest.approx((1_112_571, 1_790_000), abs=0.5)


@pytest.mark.slow
def test_if_all_hospitals_lie_about_the_individual_agreement() -> None:
    """The gain of the agreement is gone, whatever the order; the notes found 51,511 to 55,159."""
    found = fa.best_misreport(example_consortium(), reports=1, everyone=True)
    ends = {run.order: run.total for run in found.everyone}
    assert all(run.settled for run in found.everyone)
    assert ends == {
        "as given": pytest.approx(54_867, rel=2e-3),
        "reverse": pytest.approx(52_136, rel=2e-3),
        "ascending ratio": pytest.approx(52_136, rel=2e-3),
        "descending ratio": pytest.approx(55_196, rel=2e-3),
        "random": pytest.approx(56_183, rel=2e-3),
    }
    assert len(found.totals_if_all_lie) == 4
    assert found.truthful_total == pytest.approx(110_814, abs=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "honest"), [(6, 870_528), (10, 931_611)])
def test_if_everyone_lies_little_is_left_of_the_agreement(clients: int, honest: int) -> None:
    consortium = fa.paper_consortium(clients=clients, samples=1_000_000 / clients)
    found = fa.best_misreport(consortium, reports=1, everyone=True)
    assert found.truthful_total == pytest.approx(honest, abs=0.5)
    totals = np.array([run.total for run in found.everyone])
    gained = (totals - found.equilibrium_total) / (honest - found.equilibrium_total)
    assert (gained < 0.4).all()
    assert gained.min() < 0.01


@pytest.mark.slow
def test_reports_far_below_the_truth_are_an_equilibrium_of_reports() -> None:
    """A reports T = its own data, everyone else 0: nobody gains by another report."""
    rng = np.random.default_rng(1)
    rule, tried = RULES["equilibrium"], 0
    for _ in range(300):
        size = int(rng.integers(3, 8))
        consortium = with_satiation(rng.uniform(20, 90, size), rng.uniform(2, 20, size))
        inside = rng.random(size) < 0.5
        total = consortium.samples[inside].sum()
        if not inside.any() or (consortium.satiation[inside] < total).any():
            continue
        if (consortium.samples[~inside] > total).any():
            continue
        tried += 1
        truth = Reports.true(consortium)
        ratio = np.where(inside, 1.0 / consortium.law.slope(total), NOTHING * consortium.ratio)
        said = dataclasses.replace(truth, ratio=ratio[np.newaxis])
        for n in range(size):
            client = np.array([n])
            lies, _ = possible_lies(truth, said, client, ("ratio",), 40, undercut=True)
            told = Lies(
                *(np.append(getattr(said, f)[0, n], getattr(lies, f)[0]) for f in lies._fields)
            )
            liar = np.repeat(client, told.ratio.size)
            found = outcomes(rule, truth, said.if_one_says(liar, told), liar)
            now = type(found)(*(np.broadcast_to(v[0], v.shape) for v in found))
            assert (gain(truth, liar, now, found) <= 1e-7 * consortium.samples[n]).all()
    assert tried > 50


# --- Against brute force -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["individual", "suspension", "uniform", *TRUTHFUL])
def test_the_rules_are_what_the_mechanisms_do(name: str) -> None:
    """Each report solved as a consortium of its own, and the cost by the cost function."""
    rng = np.random.default_rng(5)
    rule = RULES[name]
    for _ in range(2):
        size = 6
        consortium = with_satiation(
            rng.uniform(30, 90, size), rng.uniform(5, 40, size), rng.uniform(0.5, 0.9, size)
        )
        truth = Reports.true(consortium)
        client = np.repeat(np.arange(size), 3)
        factor = np.tile([0.3, 0.8, 1.7], size)
        said = truth.ratio[0, client] * factor
        lies = Lies(said, truth.samples[0, client], truth.discount_factor[0, client])
        found = outcomes(rule, truth, truth.if_one_says(client, lies), client)
        honest = _one(consortium, name)
        before = type(found)(*(np.asarray(values)[client] for values in honest[1]))
        gains = gain(truth, client, before, found)
        for row, n in enumerate(client):
            valuation = consortium.valuation.copy()
            valuation[n] *= factor[row]
            reported = fa.Consortium(
                valuation=valuation,
                cost_per_sample=consortium.cost_per_sample,
                samples=consortium.samples,
                rounds=1,
                discount_factor=consortium.discount_factor,
            )
            contributions, (own, access, _) = _one(reported, name)
            assert found.own[row] == pytest.approx(own[n], rel=1e-9, abs=1e-9)
            assert found.total[row] == pytest.approx(contributions.sum(), rel=1e-9)
            paid = fa.cost(consortium, contributions, access)[n]
            saved = fa.cost(consortium, honest[0], honest[1][1])[n] - paid
            assert gains[row] == pytest.approx(saved / consortium.cost_per_sample[n], abs=1e-6)


def _one(
    consortium: fa.Consortium, name: str
) -> tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
    """The contributions, and what each client trains on and gets, and the total."""
    if name in TRUTHFUL:
        outcome = fa.compare(consortium, name)[name].outcome
        profile, access = outcome.contributions, outcome.access
    else:
        kind = "uniform" if name == "uniform" else "individual"
        punishment = "suspension" if name == "suspension" else "reversion"
        agreement = fa.solve_agreement(
            consortium,
            kind,  # type: ignore[arg-type]
            objective="most data",
            punishment=punishment,  # type: ignore[arg-type]
        )
        profile, access = agreement.profile, np.full(consortium.size, agreement.total)
    return profile, (profile, access, np.full(consortium.size, profile.sum()))


@pytest.mark.slow
def test_in_random_consortia_nearly_everyone_gains_and_only_by_understating() -> None:
    rng = np.random.default_rng(2)
    gaining = clients = 0
    for _ in range(40):
        size = int(rng.integers(4, 25))
        consortium = with_satiation(
            10.0 * np.exp(rng.normal(0.0, 0.5, size)),
            20.0 / size * np.exp(rng.normal(0.0, 0.5, size)),
            float(rng.choice([0.5, 0.8, 0.9])),
        )
        found = fa.best_misreport(consortium, reports=16)
        clients, gaining = clients + size, gaining + found.gaining
        assert not (found.factor > 1.0).any()
        assert found.keeps.all()
    assert gaining / clients > 0.95


@pytest.mark.slow
def test_in_a_tiny_consortium_overstating_may_pay() -> None:
    """The other client then has more to lose, and gives more."""
    valuation = np.array([1.81546094, 1.29903811])

    def agreed(second: float) -> fa.Agreement:
        reported = fa.Consortium(
            valuation=valuation * [1.0, second],
            cost_per_sample=1.0,
            samples=1.0,
            rounds=1,
            discount_factor=0.05,
        )
        return fa.solve_agreement(reported)

    true = agreed(1.0).consortium
    honest, lie = (fa.cost(true, agreed(factor).profile)[1] for factor in (1.0, 1.1))
    assert lie < honest - 1e-3
    found = fa.best_misreport(true)
    assert found.gain[1] >= honest - lie


# --- Mechanisms in which nobody gains ------------------------------------------------------


def random_rows(rng: np.random.Generator, size: int, number: int) -> Reports:
    """Many consortia of one size, one per row."""
    samples = np.exp(rng.normal(0.0, 0.7, (number, size)))
    scale = np.exp(rng.uniform(0.0, 3.0, (number, 1)))
    points = scale * np.exp(rng.normal(0.0, 0.7, (number, size)))
    return Reports(
        fa.Law.paper(1), 2.0 * points**1.5, samples, rng.uniform(0.1, 0.95, (number, size))
    )


def largest_gain(name: str, rng: np.random.Generator, size: int, number: int, lies: int) -> float:
    """The largest gain, relative to what the liar trains on, over so many lies in each row."""
    rule, true = RULES[name], random_rows(rng, size, number)
    rows = np.arange(number)
    before, worst = rule.assign(true), 0.0
    for _ in range(lies):
        liar = rng.integers(0, size, number)
        ratio, samples = true.ratio.copy(), true.samples.copy()
        if rng.random() < 0.3 and "samples" in rule.asks:
            samples[rows, liar] *= rng.random(number)
        else:
            ratio[rows, liar] *= np.exp(rng.normal(0.0, 1.5, number))
        after = rule.assign(dataclasses.replace(true, ratio=ratio, samples=samples))
        lost = true.law.fall(
            after.access(liar),
            before.access(liar) - after.access(liar),
            before.access(liar),
        )
        saved = before.own(liar) - after.own(liar) - true.ratio[rows, liar] * lost
        worst = max(worst, float((saved / before.own(liar)).max()))
    return worst


def largest_gain_by_refusing(rng: np.random.Generator, size: int, number: int, types: int) -> float:
    """Posted amounts for ratios within 30 % either way: types in the box, which refuse.

    A client that accepts may train on more than it is asked for.
    """
    stated = random_rows(rng, size, number)
    posted = fa.solve_batch(
        valuation=0.7 * stated.ratio,
        cost_per_sample=1.0,
        samples=stated.samples,
        discount_factor=stated.discount_factor,
        law=stated.law,
        punishment="suspension",
    )
    worst = 0.0
    for _ in range(types):
        ratio = stated.ratio * rng.uniform(0.7, 1.3, stated.ratio.shape)
        points = stated.law.stop(ratio)
        alone = np.minimum(points, stated.samples)
        others = posted.profile.sum(axis=-1, keepdims=True) - posted.profile
        own = np.maximum(np.minimum(points - others, stated.samples), posted.profile)
        lost = stated.law.fall(alone, others + own - alone, others + own)
        saved = own - alone - ratio * lost
        worst = max(worst, float((saved[posted.exists] / stated.samples[posted.exists]).max()))
    return worst


@pytest.mark.parametrize("name", TRUTHFUL)
def test_nobody_gains_by_lying_where_clients_say_when_to_stop(name: str) -> None:
    rng = np.random.default_rng(11)
    assert max(largest_gain(name, rng, size, 50, 20) for size in range(2, 12)) <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHFUL)
def test_nobody_gains_over_a_million_lies(name: str) -> None:
    """10 sizes x 1,000 consortia x 100 lies."""
    rng = np.random.default_rng(12)
    assert max(largest_gain(name, rng, size, 1000, 100) for size in range(2, 12)) <= 1e-9


@pytest.mark.parametrize("types", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_nobody_gains_by_refusing_what_is_posted(types: int) -> None:
    rng = np.random.default_rng(13)
    number = 10 * types
    assert max(largest_gain_by_refusing(rng, size, number, types) for size in range(2, 12)) <= 1e-9


@pytest.mark.slow
@given(consortia(FEW, extreme=False))
@settings(max_examples=6)
def test_posted_amounts_do_not_depend_on_what_is_true_within_the_ranges(
    consortium: fa.Consortium,
) -> None:
    """And no client gains by a lie, nor by refusing."""
    found = fa.best_misreport(consortium, "posted")
    assert found.largest_gain <= 1e-9
    assert found.asks == ()
    public = consortium.within(0.3)
    assert Posted().outcome(public).total == pytest.approx(Posted().outcome(consortium).total)


# --- The record ----------------------------------------------------------------------------


def test_several_mechanisms_and_some_clients() -> None:
    hospitals = example_consortium()
    found = fa.best_misreport(hospitals, ["individual", "serial-clock"], clients=["St Mary"])
    assert [entry.name for entry in found.entries] == ["individual", "serial clock"]
    assert found["individual"].names == ("St Mary",)
    assert found["individual"].gain_of_computation[0] == pytest.approx(0.5244, abs=5e-5)
    assert found["serial clock"].best_liar is None
    with pytest.raises(KeyError):
        found["posted"]
    frame = found["individual"].to_frame()
    assert list(frame["field"]) == ["ratio"]
    assert list(found.to_frame()["name"]) == ["individual", "serial clock"]


def test_data_size_and_patience_are_lied_about_as_well() -> None:
    """Saying 0 of either does what a ratio of 0 does; the first is named."""
    truth = Reports.true(example_consortium())
    lies, fields = possible_lies(
        truth, truth, np.arange(6), RULES["individual"].asks, 50, undercut=False
    )
    assert {field: fields.count(field) for field in fields} == {
        "ratio": 30,
        "samples": 10,
        "discount_factor": 10,
    }
    assert (lies.samples <= truth.samples.T).all()
    assert (lies.discount_factor < 1.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "barter"}, "there is no 'barter'"),
        ({"mechanism": []}, "there must be at least one"),
        ({"reports": 0}, "reports: must be"),
        ({"clients": ["Nobody"]}, "Nobody"),
        ({"clients": []}, "must be a list of names"),
    ],
)
def test_wrong_arguments(options: dict[str, object], message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        fa.best_misreport(example_consortium(), **options)  # type: ignore[call-overload]


def test_too_many_clients_are_refused() -> None:
    with pytest.raises(fa.InvalidInput, match="too many to try"):
        fa.best_misreport(fa.paper_consortium(clients=20_000))


@pytest.mark.slow
def test_compare_and_misreport_agree() -> None:
    hospitals = example_consortium()
    comparison = fa.compare(hospitals)
    for name in NAMES:
        if name in ("equilibrium", "free equilibrium"):  # nothing is asked in a comparison
            continue
        gained = fa.best_misreport(hospitals, name).largest_gain
        assert comparison[name].largest_gain_by_lying == pytest.approx(gained, rel=1e-3)
    assert comparison["equilibrium"].largest_gain_by_lying == 0.0
    assert comparison["contract"].largest_gain_by_lying is None
