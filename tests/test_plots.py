"""Plots work for one client and for thousands, and show the right numbers."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import fedaccord as fa
from fedaccord import plots
from fedaccord.files.consortium import example_consortium
from fedaccord.mechanisms.comparison import compare
from fedaccord.repeated.match import Match, play
from fedaccord.repeated.strategies import DeviateOnce, FreeRide
from fedaccord.repeated.tolerance import find_tolerance
from fedaccord.summaries.match import account_of
from tests.laws import nobody_trains


def some_consortium(size: int) -> fa.Consortium:
    numbers = np.random.default_rng(size)
    return fa.Consortium(
        valuation=numbers.uniform(1, 100, size),
        cost_per_sample=numbers.uniform(0.5, 2, size) * 1e-8,
        samples=numbers.integers(2_000, 20_000, size),
        rounds=50,
        discount_factor=numbers.uniform(0.4, 0.95, size),
        names=[f"${n}$ & _{n}_" for n in range(size)],
    )


PICTURES: list[Callable[[fa.Certificate], Figure]] = [
    lambda certificate: plots.plot_contributions(certificate.agreement),
    lambda certificate: plots.plot_costs(certificate.agreement),
    plots.plot_thresholds,
]


@pytest.mark.parametrize("size", [1, 6, plots.NAMED + 1, plots.BARS + 1, 5_000])
@pytest.mark.parametrize("picture", PICTURES, ids=["contributions", "costs", "thresholds"])
def test_any_number_of_clients(picture: Callable[[fa.Certificate], Figure], size: int) -> None:
    certificate = fa.certify(fa.solve_agreement(some_consortium(size)))
    figure = picture(certificate)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert len(file.getvalue()) > 1_000
    [axes] = figure.axes
    assert axes.get_xlabel()
    assert [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("picture", PICTURES, ids=["contributions", "costs", "thresholds"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_profiles_that_do_not_hold(
    picture: Callable[[fa.Certificate], Figure], share: float
) -> None:
    consortium = example_consortium()
    certificate = fa.certify(fa.agreement_on(consortium, share * consortium.samples))
    assert not certificate.holds
    picture(certificate).savefig(io.BytesIO(), format="png", dpi=40)


def test_few_clients_are_labelled_and_sorted_by_ratio() -> None:
    consortium = some_consortium(6)
    figure = plots.plot_contributions(fa.solve_agreement(consortium))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [consortium.names[n] for n in np.argsort(consortium.ratio)]


LONG = "University Hospital of the North, Department of Diagnostic and Interventional Radiology"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("picture", PICTURES, ids=["contributions", "costs", "thresholds"])
def test_long_names_are_shortened_and_stay_distinct(
    picture: Callable[[fa.Certificate], Figure],
) -> None:
    short = "University Hospital of…al Radiology"  # LONG shortened, and a name
    names = (LONG, f"{LONG[:50]} and {LONG[50:]}", short, f"{LONG} II", "x" * 400, "St Mary")
    consortium = fa.Consortium(
        valuation=np.arange(1.0, 7.0),
        cost_per_sample=1e-6,
        samples=500,
        rounds=50,
        discount_factor=0.8,
        names=names,
    )
    figure = picture(fa.certify(fa.solve_agreement(consortium)))
    figure.savefig(io.BytesIO(), format="svg")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[:4] == [
        "University Hospital…al Radiology (2)",
        "University Hospital…al Radiology (3)",
        short,
        "University Hospital of…Radiology II",
    ]
    assert labels[5] == "St Mary"
    assert len(set(labels)) == 6
    assert max(map(len, labels)) == 36


def test_without_an_agreement_contributions_are_those_of_the_equilibrium() -> None:
    none = fa.solve_agreement(fa.paper_consortium(discount_factor=0.5), "uniform")
    figure = plots.plot_contributions(none)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [
        "equilibrium: contributor",
        "equilibrium: partial contributor",
        "equilibrium: free rider",
    ]


def test_bars_have_the_height_of_the_contributions() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(clients=100), "uniform")
    axes = plots.plot_contributions(agreement).axes[0]
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    drawn = {round(bar.get_x() + 0.5): bar.get_height() for bar in bars}
    assert drawn[2] == pytest.approx(7966.3, abs=0.1)
    assert drawn[100] == 10_000
    assert 1 not in drawn


def test_the_legend_lists_only_roles_that_occur() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(), "uniform")
    legend = plots.plot_contributions(agreement).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [
        "agreement: contributor",
        "agreement: partial contributor",
        "agreement: converted contributor",
        "agreement: free rider",
        "without an agreement (equilibrium)",
    ]


# --- A match -------------------------------------------------------------------------------


def some_match(slots: int, **chance: float) -> Match:
    agreement = fa.solve_agreement(example_consortium(), punishment=fa.Reversion(5), margin=0.02)
    slip = DeviateOnce(min(5, slots))
    return play(agreement, {"Lakeside Clinic": slip}, slots, **chance)  # type: ignore[arg-type]


def labels_of(figure: Figure) -> list[str]:
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 50, 3_000])
@pytest.mark.parametrize("chance", [{}, {"noise": 0.05, "dropout": 0.1, "tolerance": 0.1}])
def test_matches_of_any_length(slots: int, chance: dict[str, float]) -> None:
    match = some_match(slots, **chance)
    for figure in (plots.plot_totals(match), plots.plot_events(match)):
        assert labels_of(figure)
        assert figure.axes[-1].get_xlabel() == "Slot"
    for deviator in account_of(match).deviators:
        labels_of(plots.plot_slip(deviator))


def test_punishments_are_shaded() -> None:
    match = some_match(50)
    figure = plots.plot_totals(match)
    assert labels_of(figure) == ["punishing", "agreement", "equilibrium", "trained on"]
    [shade] = figure.axes[0].collections
    [path] = shade.get_paths()
    assert path.get_extents().intervalx.tolist() == [5.5, 10.5]
    strip = plots.plot_events(match)
    assert [label.get_text() for label in strip.axes[0].get_yticklabels()] == ["phase", "deviation"]


def test_the_totals_are_drawn_unchanged() -> None:
    match = some_match(50)
    stairs = plots.plot_totals(match).axes[0].patches[-1]
    np.testing.assert_array_equal(stairs.get_data().values, match.totals)  # type: ignore[attr-defined]


def test_costs_with_and_without_a_slip() -> None:
    [deviator] = account_of(some_match(50)).deviators
    figure = plots.plot_slip(deviator)
    assert labels_of(figure) == [
        *("with its slips", "without", "difference", "difference, for ever"),
    ]
    paid, kept = (line.get_ydata() for line in figure.axes[0].lines)
    np.testing.assert_array_equal(paid, deviator.paid)
    np.testing.assert_array_equal(kept, deviator.paid_if_kept)
    extra = np.asarray(figure.axes[1].lines[0].get_ydata())
    assert extra[0] < 0 < deviator.extra_for_ever


def test_infinite_costs_are_left_out() -> None:
    agreement = fa.solve_agreement(example_consortium())
    everyone = dict.fromkeys(agreement.consortium.names, FreeRide())
    match = play(agreement, everyone, 10)
    [deviator, *_] = account_of(match).deviators
    assert deviator.extra_for_ever == np.inf
    assert labels_of(plots.plot_totals(match))
    assert labels_of(plots.plot_slip(deviator)) == [
        *("with its slips", "without", "difference"),
    ]


@pytest.mark.slow
def test_the_best_tolerance_is_marked() -> None:
    best = find_tolerance(some_match(1).agreement, 0.05)
    assert labels_of(plots.plot_tolerance(best, best.tolerance)) == ["cost", "least"]
    assert labels_of(plots.plot_tolerance(best, 0.1)) == ["cost", "least", "in use"]


def test_without_an_agreement_there_is_one_level() -> None:
    none = fa.solve_agreement(fa.paper_consortium(discount_factor=0.3), "uniform")
    assert labels_of(plots.plot_totals(play(none, {}, 5))) == ["equilibrium", "trained on"]


# --- In a notebook, and in the caller's own axes --------------------------------------------


def test_a_notebook_shows_the_figure() -> None:
    figure = plots.plot_totals(some_match(5))
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


MATCH = some_match(30)
[DEVIATOR] = account_of(MATCH).deviators
BEST = find_tolerance(MATCH.agreement, 0.05)
CERTIFICATE = fa.certify(MATCH.agreement)
ONE_PANEL: dict[str, Callable[[Axes], Figure]] = {
    "contributions": lambda ax: plots.plot_contributions(MATCH.agreement, ax=ax),
    "costs": lambda ax: plots.plot_costs(MATCH.agreement, ax=ax),
    "thresholds": lambda ax: plots.plot_thresholds(CERTIFICATE, ax=ax),
    "totals": lambda ax: plots.plot_totals(MATCH, ax=ax),
    "events": lambda ax: plots.plot_events(MATCH, ax=ax),
    "tolerance": lambda ax: plots.plot_tolerance(BEST, 0.1, ax=ax),
}


@pytest.mark.parametrize("draw", ONE_PANEL.values(), ids=ONE_PANEL.keys())
def test_plots_draw_into_given_axes(draw: Callable[[Axes], Figure]) -> None:
    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert draw(right) is figure
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    assert right.get_legend() is not None
    assert not figure.legends
    assert not left.has_data()


@pytest.mark.slow
def test_several_panels_take_several_axes() -> None:
    figure = Figure(layout="constrained")
    above, below = figure.subplots(2, 1)
    assert plots.plot_slip(DEVIATOR, ax=[above, below]) is figure
    assert above.has_data()
    assert below.has_data()
    comparison = compare(example_consortium())
    whole = Figure(layout="constrained")
    part = whole.add_subfigure(whole.add_gridspec(2, 1)[0, 0])
    assert plots.plot_mechanisms(comparison, ax=part.subplots(1, 3)) is whole
    with pytest.raises(fa.InvalidInput, match="ax: must be 2 axes, got 1"):
        plots.plot_slip(DEVIATOR, ax=[above])


@pytest.mark.slow
def test_where_nobody_trains_there_is_still_a_picture() -> None:
    for discount_factor in (0.8, 0.01):  # with an agreement, and without
        agreement = fa.solve_agreement(nobody_trains(discount_factor))
        assert agreement.equilibrium.total == 0.0
        for figure in (
            plots.plot_contributions(agreement),
            plots.plot_costs(agreement),
            plots.plot_totals(play(agreement, slots=3)),
        ):
            figure.savefig(io.BytesIO(), format="png", dpi=40)
