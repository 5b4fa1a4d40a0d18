"""The pictures draw for one client and for thousands, and show what they are given."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import fedaccord as fa
from fedaccord import plots
from fedaccord.game.files import example_consortium


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


def test_few_clients_stand_under_their_names_by_ratio() -> None:
    consortium = some_consortium(6)
    figure = plots.plot_contributions(fa.solve_agreement(consortium))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [consortium.names[n] for n in np.argsort(consortium.ratio)]


def test_bars_are_as_long_as_contributions() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(clients=100), "uniform")
    axes = plots.plot_contributions(agreement).axes[0]
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    drawn = {round(bar.get_x() + 0.5): bar.get_height() for bar in bars}
    assert drawn[2] == pytest.approx(7966.3, abs=0.1)
    assert drawn[100] == 10_000
    assert 1 not in drawn


def test_the_legend_names_the_roles_there_are() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(), "uniform")
    legend = plots.plot_contributions(agreement).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [
        "agreement: contributor",
        "agreement: partial contributor",
        "agreement: converted contributor",
        "agreement: free rider",
        "equilibrium: what it gives alone",
    ]
