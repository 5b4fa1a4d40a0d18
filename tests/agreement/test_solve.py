from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.game.curve import Curve
from fedaccord.game.measured import fit_law
from tests.agreement.settings import HOSPITALS
from tests.consortia import with_satiation

WRONG = [
    ({"kind": "unanimous"}, "kind: must be one of 'individual', 'uniform', got 'unanimous'"),
    ({"objective": "most fun"}, "objective: must be one of .*, got 'most fun'"),
    ({"first_converted": "me"}, "first_converted: must be one of 'paper', 'feasible', got 'me'"),
    ({"margin": -0.1}, "margin: must be from 0 to less than 1, got -0.1"),
    ({"margin": 1.0}, "margin: must be from 0 to less than 1, got 1"),
    ({"punishment": "exile"}, "punishment: must be one of 'reversion', 'suspension', got 'exile'"),
    ({"punishment": 3}, "punishment: must be a Reversion or a Suspension, got 3"),
]


@pytest.mark.parametrize(("options", "problem"), WRONG)
def test_invalid_options_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(fa.InvalidInput, match=problem):
        fa.solve_agreement(fa.paper_consortium(5), **options)


@pytest.mark.parametrize("options", [{"kind": "x"}, {"first_converted": "x", "kind": "uniform"}])
def test_options_of_the_smallest_discount_factor(options: dict[str, Any]) -> None:
    with pytest.raises(fa.InvalidInput, match="must be one of"):
        fa.smallest_discount_factor(fa.paper_consortium(5), **options)


def test_an_equilibrium_is_accepted_in_place_of_a_consortium() -> None:
    consortium = fa.paper_consortium(60)
    equilibrium = fa.solve_equilibrium(consortium)
    for kind in ("individual", "uniform"):
        here = fa.solve_agreement(equilibrium, kind)
        assert here.equilibrium is equilibrium
        assert here.total == fa.solve_agreement(consortium, kind).total
        assert fa.smallest_discount_factor(equilibrium, kind) == fa.smallest_discount_factor(
            consortium,
            kind,
        )


def test_the_record_names_its_options() -> None:
    agreement = fa.solve_agreement(
        fa.paper_consortium(),
        objective="fair share",
        margin=0.05,
        whole_samples=True,
        punishment=fa.Reversion(9),
    )
    assert (agreement.kind, agreement.objective) == ("individual", "fair share")
    assert (agreement.margin, agreement.whole_samples) == (0.05, True)
    assert agreement.punishment.slots == 9
    assert (agreement.level, agreement.largest_level, agreement.first_converted) == (None,) * 3


def test_a_margin_leaves_every_client_that_much_slack() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(), margin=0.1)
    slack = fa.certify(agreement).slack
    assert slack.min() == pytest.approx(0.1, abs=1e-6)
    assert agreement.total < fa.solve_agreement(fa.paper_consortium()).total


def test_a_shorter_punishment_enforces_a_smaller_total() -> None:
    totals = [
        fa.solve_agreement(fa.paper_consortium(), punishment=fa.Reversion(slots)).total
        for slots in (1, 2, 5, 1_000, None)
    ]
    assert totals == sorted(totals)
    assert totals[0] < totals[-1] * 0.999
    assert totals[-2] == pytest.approx(totals[-1], rel=1e-9)


REASONS = [
    (fa.paper_consortium(1), {}, "everyone already contributes all it has at the equilibrium"),
    (fa.paper_consortium(1), {"kind": "uniform"}, "it takes at least two clients"),
    (with_satiation([2.0, 30.0], 20.0), {}, "however patient the clients are, nobody could gain"),
    (
        with_satiation([2.0, 30.0], 20.0),
        {"kind": "uniform"},
        "however patient the free riders are, none could gain",
    ),
    (
        fa.paper_consortium(discount_factor=0.5),
        {"kind": "uniform"},
        "converting client-2 and above takes discount factors above 0.5106",
    ),
    (
        fa.paper_consortium(discount_factor=0.5),
        {"kind": "uniform"},
        "converting only client-3 and above works (first converted: feasible)",
    ),
    (fa.paper_consortium(181, discount_factor=0.0), {}, "not patient enough"),
    (
        fa.paper_consortium(discount_factor=0.5),
        {"margin": 0.5},
        "above 0, and theirs count as 0 after the margin of 0.5",
    ),
    (
        HOSPITALS,
        {"kind": "uniform", "margin": 0.8},
        "takes more patience than they have after the margin of 0.8",
    ),
    *(
        (
            fa.paper_consortium(discount_factor=0.8),
            {"kind": kind, "punishment": punishment, "monitoring": fa.Monitoring(audit=0.0)},
            "no slip would ever be seen, so nobody would train on more than at the equilibrium",
        )
        for kind in ("individual", "uniform")
        for punishment in ("reversion", "suspension")
    ),
]


@pytest.mark.parametrize(("consortium", "options", "reason"), REASONS)
def test_the_reason_why_there_is_no_agreement(
    consortium: fa.Consortium, options: Any, reason: str
) -> None:
    agreement = fa.solve_agreement(consortium, **options)
    assert not agreement.exists
    assert agreement.reason is not None
    assert reason in agreement.reason
    assert agreement.profile.tolist() == agreement.equilibrium.profile.tolist()
    assert agreement.free_riders_removed == 0
    assert fa.certify(agreement).holds


def known_from(noise: float, largest: float) -> fa.Consortium:
    """Six clients with 7,365 samples in all and a law that was measured up to a size."""
    sizes, rng = np.geomspace(20.0, largest, 7), np.random.default_rng(0)
    true = 2.0 / np.sqrt(sizes)[:, np.newaxis]
    curve = Curve(sizes, range(5), 0.02 + true * (1.0 + noise * rng.standard_normal((7, 5))))
    law = fit_law(curve, resamples=200)
    wanted = 0.6 * 7_365.0 * np.linspace(0.5, 1.0, 6)
    return fa.Consortium(
        valuation=1.0 / law.slope(wanted),
        cost_per_sample=1.0,
        samples=7_365.0 / 6,
        rounds=50,
        discount_factor=0.8,
        law=law,
    )


def test_extrapolation_is_named_where_it_binds() -> None:
    """Measured to 1,420 samples and used at several times as many; more seeds would not help."""
    agreement = fa.solve_agreement(known_from(0.05, 1_420.0))
    assert not agreement.exists
    reason = str(agreement.reason)
    assert "beyond what was measured" in reason
    assert "measure with more samples; the law was measured from 20 to 1,420 samples" in reason
    assert "seeds" not in reason
    assert fa.solve_agreement(known_from(0.05, 1_420.0), robust=False).exists
    assert fa.solve_agreement(known_from(0.05, 7_365.0)).exists


def test_vague_laws_are_named_where_they_bind() -> None:
    """Measured over all samples that there are, so that only the noise is left to blame."""
    consortium = known_from(0.05, 7_365.0)
    flat = fa.Law.power(1.0, 0.5, floor=1.0)
    flat = replace(flat, value=flat.value * 1e-6, kind="mixture")
    agreement = fa.solve_agreement(consortium, laws=[flat])
    assert not agreement.exists
    assert "measure with more seeds or test examples" in str(agreement.reason)
    assert "beyond" not in str(agreement.reason)


def test_the_condition_that_binds_is_named() -> None:
    stated = "though one would if the numbers were exactly as stated"
    ranges = f"none holds for every combination of numbers within the ranges, {stated}"
    advice = ": narrower ranges are needed, or a harsher punishment"
    seen, rarely = "every slip were seen before the next slot", fa.Monitoring(audit=0.1)
    wide, narrow = HOSPITALS.within(0.3), HOSPITALS.within(0.1)

    def reason(consortium: fa.Consortium, *kind: Any, **options: Any) -> str:
        agreement = fa.solve_agreement(consortium, *kind, **options)
        assert not agreement.exists
        return str(agreement.reason)

    assert reason(wide) == ranges + advice
    worse = reason(wide, punishment="suspension", nobody_worse=True)
    assert worse == (
        f"{ranges}{advice}; one would also if a client might be worse off than at the equilibrium"
    )
    assert reason(HOSPITALS, "uniform", monitoring=rarely) == (
        "slips are seen too seldom, or too late, for anyone to train on more, though one would if "
        f"{seen}"
    )
    assert reason(narrow, monitoring=rarely) == (
        f"{ranges}{advice}; one would also if {seen}, or if later slots mattered to the clients as "
        "much as the present one"
    )
    assert reason(wide, "uniform", monitoring=rarely) == f"{ranges} and {seen}{advice}"


@pytest.mark.parametrize("options", [{"margin": 0.2}, {"punishment": fa.Reversion(1)}])
def test_the_reason_accounts_for_margin_and_length(options: dict[str, Any]) -> None:
    """These clients have 0.6, so the reason must not ask for more than 0.5106."""
    consortium = fa.paper_consortium(discount_factor=0.6)
    assert fa.solve_agreement(consortium, "uniform").exists
    agreement = fa.solve_agreement(consortium, "uniform", **options)
    assert not agreement.exists
    assert agreement.reason is not None
    assert not agreement.reason.endswith("discount factors above 0.5106")


def test_whole_samples_of_tiny_consortia_may_leave_nothing() -> None:
    consortium = with_satiation([0.9, 0.95, 1.2], [1.0, 1.0, 1.0], 0.6)
    assert fa.solve_agreement(consortium).exists
    whole = fa.solve_agreement(consortium, whole_samples=True)
    assert not whole.exists
    assert whole.reason == "in whole samples nothing is left of the agreement"


def test_whole_samples_require_whole_data() -> None:
    consortium = with_satiation([18.0, 19.0, 30.0], [20.0, 20.5, 20.0])
    with pytest.raises(fa.InvalidInput, match=r"clients\[1\].samples: must be a whole number"):
        fa.solve_agreement(consortium, whole_samples=True)


def test_smallest_discount_factor_of_the_papers_settings() -> None:
    # case I: at any discount factor, the critical client takes nearly all of it
    assert fa.smallest_discount_factor(fa.paper_consortium()) == 0.0
    second = fa.smallest_discount_factor(fa.paper_consortium(181))
    assert second is not None
    assert 0.0 < second < 0.1
    assert fa.smallest_discount_factor(fa.paper_consortium(1)) is None
    assert fa.smallest_discount_factor(fa.paper_consortium(1), "uniform") is None


def test_a_discount_factor_of_0_leads_to_the_equilibrium() -> None:
    for kind in ("individual", "uniform"):
        agreement = fa.solve_agreement(fa.paper_consortium(discount_factor=0.0), kind)
        assert not agreement.exists
        assert np.array_equal(agreement.profile, agreement.equilibrium.profile)


@pytest.mark.parametrize("slots", [None, 1, 2, 5, 400])
@pytest.mark.parametrize("margin", [0.0, 0.1, 0.6])
def test_the_smallest_discount_factor_with_margin_and_length(
    slots: int | None, margin: float
) -> None:
    """Above it there is a uniform agreement, below it none; None: at no discount factor."""
    options: dict[str, Any] = {"margin": margin, "punishment": fa.Reversion(slots)}
    least = fa.smallest_discount_factor(fa.paper_consortium(), "uniform", **options)

    def exists(delta: float) -> bool:
        consortium = fa.paper_consortium(discount_factor=delta)
        return fa.solve_agreement(consortium, "uniform", **options).exists

    if least is None:
        assert not exists(1 - 1e-9)
    else:
        assert not exists(least - 1e-4)
        assert exists(least + 1e-4)
    assert (least is None) == (slots == 1 or margin == 0.6)


def test_the_smallest_discount_factor_if_nobody_may_be_worse_off() -> None:
    """Free riders that want only an eighth of a sample each do not make one together."""
    few = with_satiation([20.0, 5.0, 5.0], [20.0, 50.0, 50.0])
    many = with_satiation([20.0, *[5.0] * 9], [20.0, *[50.0] * 9])
    for consortium, least in ((few, None), (many, 0.0)):
        options: dict[str, Any] = {"punishment": "suspension"}
        assert fa.smallest_discount_factor(consortium, **options) == 0.0
        assert fa.smallest_discount_factor(consortium, nobody_worse=True, **options) == least
        agreement = fa.solve_agreement(
            consortium, objective="most data", nobody_worse=True, **options
        )
        assert agreement.exists == (least is not None)
