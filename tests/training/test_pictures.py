"""Plots of training show the right numbers."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import fedaccord as fa
from fedaccord import plots, report
from fedaccord.data.partition import SkewedPartition
from fedaccord.game.curve import Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.summaries import training as summaries
from fedaccord.training.course import Score, SlotRecord, TrainingRun
from fedaccord.trials.profiles import PlayedProfile
from fedaccord.trials.trial import Trial
from tests.training.test_course import course


def comparison(
    *phases: str, seeds: int = 2, gain: float = 0.1, spread: float = 0.0, rounds: int = 3
) -> Trial:
    """Accuracies that rise from round to round, a bit more with each seed; optionally gains."""

    def run(profile: str, seed: int, more: float) -> TrainingRun:
        more += spread * seed if more else 0.0
        accuracies = [0.5 + 0.01 * k + 0.02 * seed + more for k in range(rounds)]
        scores = tuple(Score(1.0 - a, a) for a in accuracies)
        slots = [SlotRecord(n + 1, p, 7, scores, scores[-1]) for n, p in enumerate(phases)]
        return TrainingRun(profile, seed, tuple(slots), {})

    runs = [run(name, s, m) for name, m in [("a", 0.0), ("b", gain)] for s in range(seeds)]
    return Trial("a consortium", course(rounds=rounds), "plain", tuple(runs))


def together(*others: Trial) -> Trial:
    """Several comparisons with the same first profile as one."""
    first = others[0]
    runs = [run for run in first.runs if run.profile == "a"]
    for k, other in enumerate(others, start=1):
        runs += [replace(run, profile=f"b{k}") for run in other.runs if run.profile == "b"]
    return replace(first, runs=tuple(runs))


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_one_slot_is_drawn_by_rounds() -> None:
    figure = plots.plot_learning(comparison("equilibrium"))
    above, below = figure.axes
    assert labels(figure) == ["a", "b"]
    assert below.get_xlabel() == "Round"
    means = np.asarray(above.get_lines()[0].get_ydata())
    np.testing.assert_allclose(means, [51.0, 52.0, 53.0])  # percent, the mean of both seeds


def test_several_slots_with_punishments_shaded() -> None:
    figure = plots.plot_learning(comparison("cooperating", "punishing", "cooperating"))
    assert labels(figure) == ["a", "b", "punishing"]
    assert figure.axes[1].get_xlabel() == "Slot"


def test_a_slot_in_which_nobody_trained() -> None:
    score = Score(0.5, 0.5)
    idle = SlotRecord(1, "equilibrium", 0, (), score)
    busy = SlotRecord(2, "equilibrium", 5, (score, Score(0.4, 0.6)), Score(0.4, 0.6))
    runs = (TrainingRun("a", 0, (idle, busy), {}),)
    figure = plots.plot_learning(Trial("c", course(), "plain", runs))
    assert len(np.asarray(figure.axes[0].get_lines()[0].get_xdata())) == 3


def test_punishments_of_any_profile_are_shaded() -> None:
    """Here only the first profile has a slip; under the last one clients act alone."""
    slipped = comparison("cooperating", "punishing", "cooperating").of("a")
    alone = comparison("equilibrium", "equilibrium", "equilibrium").of("b")
    figure = plots.plot_learning(Trial("c", course(), "plain", (*slipped, *alone)))
    assert labels(figure) == ["a", "b", "punishing"]
    [shade] = [each for each in figure.axes[0].collections if each.get_label() == "punishing"]
    [shape] = shade.get_paths()
    extent = shape.get_extents()
    assert (extent.x0, extent.x1) == (1.5, 2.5)


def test_a_single_round_is_a_mark() -> None:
    figure = plots.plot_learning(comparison("equilibrium", rounds=1))
    for axes in figure.axes:
        assert [line.get_marker() for line in axes.get_lines()] == ["o", "o"]
        low, high = axes.get_xlim()
        assert low < 1.0 < high
        # an error bar from the lowest to the highest seed
        bars = [each for each in axes.collections if isinstance(each, LineCollection)]
        assert len(bars) == 2
    lines = plots.plot_learning(comparison("equilibrium")).axes[0].get_lines()
    assert [line.get_marker() for line in lines] == ["None", "None"]


def test_bands_are_not_cut_off() -> None:
    """Although the axis ignores the first tenth of the rounds, which is empty here."""
    given = comparison("equilibrium", seeds=9)
    above, below = plots.plot_learning(given).axes
    accuracies = [100 * s.accuracy for run in given.runs for s in run.slots[0].rounds]
    losses = [s.loss for run in given.runs for s in run.slots[0].rounds]
    for axes, values in ((above, accuracies), (below, losses)):
        low, high = axes.get_ylim()
        assert low < min(values)
        assert max(values) < high


@pytest.mark.slow
def test_the_law_with_marks_and_lines() -> None:
    sizes = np.geomspace(10, 1000, 8)
    noise = np.random.default_rng(0).normal(0, 0.01, (8, 3))
    law = fit_law(Curve(sizes, range(3), (2 / np.sqrt(sizes))[:, None] + noise), resamples=50)
    figure = plots.plot_law(law)
    assert labels(figure) == [
        "measured law",
        "90 % of 50 resampled laws",
        "beyond what was measured",
        "a single power, fitted",
        "the paper's law, fitted",
        "a run (3 seeds)",
        "mean",
    ]
    with pytest.raises(fa.InvalidInput, match="law: must be a measured law"):
        plots.plot_law(Law.paper(50))


@pytest.mark.slow
def test_the_sentences() -> None:
    sure = comparison("equilibrium", seeds=3)
    assert summaries.training_title(sure) == "10.00 points more accuracy under b than under a"
    missing = fa.solve_agreement(fa.paper_consortium(discount_factor=0.3), "uniform")
    played = PlayedProfile("b", missing.profile[None], ("equilibrium",), missing)
    page = report.render_training(replace(sure, played=(played,)))
    assert "b: no such agreement exists" in page
    assert "<svg" in page
    same = comparison("equilibrium", gain=0.0)
    assert summaries.gain_sentence(same, same.scores[1]) == (
        "b against a: the same accuracy with every seed."
    )
    assert summaries.training_title(same) == "No sure difference in accuracy"
    assert summaries.gain_sentence(sure, sure.scores[1]) == (
        "b against a: +10.00 points of accuracy with every seed."
    )
    single = comparison("equilibrium", seeds=1)
    assert "from a single seed" in summaries.gain_sentence(single, single.scores[1])


@pytest.mark.slow
def test_the_title_reports_the_largest_significant_difference() -> None:
    def title(*gains: float, seeds: int = 3, spread: float = 0.0) -> str:
        given = [comparison("", seeds=seeds, gain=gain, spread=spread) for gain in gains]
        return summaries.training_title(together(*given))

    assert title(0.1, 0.3, 0.2) == "30.00 points more accuracy under b2 than under a"
    assert title(0.01, -0.4, 0.2) == "40.00 points less accuracy under b2 than under a"
    assert title(0.0, -0.3) == "30.00 points less accuracy under b2 than under a"
    assert title(0.02, spread=0.1) == "No sure difference in accuracy"
    unsure = comparison("", seeds=3, gain=0.2, spread=0.2)  # 40 points ± 50
    sure = comparison("", seeds=3, gain=-0.1)
    both = together(unsure, sure)
    assert summaries.training_title(both) == "10.00 points less accuracy under b2 than under a"
    one = "40.00 points less accuracy under b1 than under a, with a single seed"
    assert title(-0.4, 0.1, seeds=1) == one
    assert title(0.0, seeds=1) == "The same accuracy, with a single seed"


@pytest.mark.slow
def test_skew_is_reported() -> None:
    given = comparison("equilibrium")
    assert "skew" not in summaries.setting_sentence(given)
    assert "Skew" not in report.render_training(given)
    data = given.course.model.dataset
    skewed = replace(given.course, partition=lambda s: SkewedPartition(data, [9], 0.25, s))
    told = replace(given, course=skewed)
    assert "2 seeds; labels skewed, alpha 0.25" in summaries.setting_sentence(told)
    assert "Dirichlet, alpha 0.25" in report.render_training(told)
