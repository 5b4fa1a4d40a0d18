"""The pictures of a training show what they are given."""

import numpy as np
from matplotlib.figure import Figure

from fedaccord import plots, report
from fedaccord.training.calibration import Losses
from fedaccord.training.comparison import Comparison
from fedaccord.training.course import Score, SlotRecord, TrainingRun
from tests.training.test_course import course


def comparison(*phases: str, seeds: int = 2, gain: float = 0.1) -> Comparison:
    """Accuracies that rise from slot to slot, a bit more with each seed."""

    def run(profile: str, seed: int, more: float) -> TrainingRun:
        accuracies = [0.5 + 0.01 * k + 0.02 * seed + more for k in range(3)]
        scores = tuple(Score(1.0 - a, a) for a in accuracies)
        slots = [SlotRecord(n + 1, p, 7, scores, scores[-1]) for n, p in enumerate(phases)]
        return TrainingRun(profile, seed, tuple(slots), {})

    runs = [run(name, s, m) for name, m in [("a", 0.0), ("b", gain)] for s in range(seeds)]
    return Comparison("a consortium", course(), "plain", tuple(runs), ("a note",))


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_one_slot_is_drawn_by_rounds() -> None:
    figure = plots.plot_learning(comparison("equilibrium"))
    above, below = figure.axes
    assert labels(figure) == ["a", "b"]
    assert below.get_xlabel() == "Round"
    means = np.asarray(above.get_lines()[0].get_ydata())
    np.testing.assert_allclose(means, [51.0, 52.0, 53.0])  # per cent, both seeds' mean


def test_several_slots_with_punishments_shaded() -> None:
    figure = plots.plot_learning(comparison("cooperating", "punishing", "cooperating"))
    assert labels(figure) == ["a", "b", "punishing"]
    assert figure.axes[1].get_xlabel() == "Slot"


def test_a_slot_in_which_nobody_trained() -> None:
    score = Score(0.5, 0.5)
    idle = SlotRecord(1, "equilibrium", 0, (), score)
    busy = SlotRecord(2, "equilibrium", 5, (score, Score(0.4, 0.6)), Score(0.4, 0.6))
    runs = (TrainingRun("a", 0, (idle, busy), {}),)
    figure = plots.plot_learning(Comparison("c", course(), "plain", runs))
    assert len(np.asarray(figure.axes[0].get_lines()[0].get_xdata())) == 3


def test_the_law_with_marks_and_lines() -> None:
    totals, turns = np.array([10, 100, 1000, 2000]), np.array([1, 5, 25])
    mean = 2 / np.sqrt(totals[:, None] * turns) + 1 / turns
    figure = plots.plot_law(Losses(totals, turns, mean))
    assert labels(figure) == ["G = 1", "G = 5", "G = 25", "law at G = 25 alone"]
    assert "fits" in figure.axes[0].get_title(loc="left")


def test_the_sentences() -> None:
    sure = comparison("equilibrium", seeds=3)
    assert report.training_title(sure) == "10.00 points more accuracy under b than under a"
    page = report.render_training(sure)
    assert "a note" in page
    assert "<svg" in page
    same = comparison("equilibrium", gain=0.0)
    assert report.gain_sentence(same, same.scores[1]) == (
        "b against a: the same accuracy with every seed."
    )
    assert "chance" in report.training_title(same)
    single = comparison("equilibrium", seeds=1)
    assert "from a single seed" in report.gain_sentence(single, single.scores[1])
