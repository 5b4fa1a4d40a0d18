"""The plot and the page that compare mechanisms."""

from itertools import pairwise

import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import fedaccord as fa
from fedaccord.mechanisms.comparison import compare
from fedaccord.mechanisms.mechanism import Outcome, outcome_of
from fedaccord.mechanisms.simple import MECHANISMS, Selfish, SocialOptimumWithTransfers
from fedaccord.plots import plot_mechanisms
from fedaccord.report import render_comparison
from fedaccord.summaries.mechanisms import comparison_summary, mechanism_rows


def widths(axes: Axes) -> list[float]:
    """The lengths of the bars."""
    return [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]


class Named:
    """A mechanism with nothing but a name."""

    name = "<b>half</b> $x$"

    def outcome(self, consortium: fa.Consortium) -> Outcome:
        return outcome_of(consortium, 0.5 * consortium.samples)


@pytest.mark.slow
def test_the_bars_show_the_numbers() -> None:
    comparison = compare(fa.paper_consortium())
    people, data, money = plot_mechanisms(comparison).axes
    totals = sorted(widths(data))
    assert totals == sorted(entry.outcome.total for entry in comparison.entries)
    assert sum(widths(people)) == len(MECHANISMS) * 100
    saved = sorted(widths(money))
    alone = comparison.equilibrium.cost.sum()
    assert saved == sorted(alone - entry.total_cost for entry in comparison.entries)
    labels = [text.get_text() for text in people.get_yticklabels()]
    assert labels == [entry.name for entry in comparison.entries[::-1]]


@pytest.mark.slow
def test_ticks_of_neighbouring_panels_do_not_touch() -> None:
    figure = plot_mechanisms(compare(fa.paper_consortium()))
    assert figure.axes[2].get_xlabel().endswith("(unit of the valuations)")
    figure.draw_without_rendering()
    ends = []
    for axes in figure.axes:
        low, high = sorted(axes.get_xlim())
        ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        boxes = [text.get_window_extent() for at, text in ticks if low <= at <= high]
        ends.append((min(box.x0 for box in boxes), max(box.x1 for box in boxes)))
    letter = 10.0 * figure.dpi / 72.0  # as wide as high
    assert all(left[1] + letter < right[0] for left, right in pairwise(ends))


@pytest.mark.slow
def test_the_plot_says_when_nobody_trains() -> None:
    comparison = compare(fa.paper_consortium(cost_per_sample=1e-6))
    money = plot_mechanisms(comparison).axes[2]
    assert [text.get_text() for text in money.texts] == ["nobody trains"]
    rows = {row.name: row for row in mechanism_rows(comparison)}
    assert rows["contract"].total_cost == "–"


def test_names_are_shown_verbatim() -> None:
    comparison = compare(fa.paper_consortium(clients=3), [Named()])
    page = render_comparison(comparison)
    assert "<b>half</b>" not in page
    assert "&lt;b&gt;half&lt;/b&gt; $x$" in page
    assert mechanism_rows(comparison)[0].truthful == "not said"


@pytest.mark.slow
def test_summaries() -> None:
    consortium = fa.paper_consortium()
    assert "suspension brings the most data" in comparison_summary(compare(consortium))
    two = compare(consortium, [Selfish(), SocialOptimumWithTransfers()])
    assert comparison_summary(two).endswith("No mechanism here that holds by itself does better.")
    none = comparison_summary(compare(consortium, [SocialOptimumWithTransfers()]))
    assert none.endswith("None of these mechanisms would hold by itself.")
