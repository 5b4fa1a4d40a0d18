"""What is said first about the value of data: who helps, who hurts, what is noise."""

from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fedaccord.cli.value_tables import print_values
from fedaccord.data.dataset import Dataset
from fedaccord.data.own import OwnPartition
from fedaccord.membership.group_scores import GroupScores, all_groups
from fedaccord.membership.quality import QualityWeight
from fedaccord.membership.shapley import Worth, shapley_weights
from fedaccord.membership.values import DataValues
from fedaccord.numbers import FloatArray
from fedaccord.plots import plot_value
from fedaccord.summaries.value import (
    quality_sentence,
    setting_sentence,
    tables_note,
    value_sentences,
)
from fedaccord.training.course import Course
from fedaccord.training.task import Model, find_task

NAMES = ("North", "South", "East")
EXAMPLES = 2_000


def values_of(
    error: FloatArray, noise: float = 0.01, *, own: bool = True, concordance: bool = False
) -> DataValues:
    """As if groups (rows) had these errors on the common test and on each own one (columns)."""
    rng = np.random.default_rng(0)
    tests = np.split(np.arange(EXAMPLES * error.shape[1]), error.shape[1])
    shape = (8, 4, EXAMPLES * error.shape[1])
    errors = np.repeat(error, EXAMPLES, axis=1)[:, np.newaxis, :] + noise * rng.normal(size=shape)
    scores = GroupScores(all_groups(3), (0, 1, 2, 3), errors, errors, tuple(tests))
    rows = np.zeros((30, 2), dtype=np.float32), np.arange(30) % 2
    if concordance:
        rows = rows[0], 1 + np.arange(30)
    dataset = Dataset("points", *rows, *rows, classes=0 if concordance else 2)
    positions = [np.arange(10 * n, 10 * n + 10) for n in range(3)] if own else []
    partition = OwnPartition(dataset, [10, 10, 10], NAMES, tests=positions)
    model = Model(find_task("cox" if concordance else "softmax"), dataset)
    course = Course(model, partition.reordered, 5, names=NAMES)
    return DataValues(course, scores, Worth(shapley_weights(3)[np.newaxis]))


def falls(*helps: list[float]) -> FloatArray:
    """Errors if each client (columns of `helps`) takes so much off those on each test (rows)."""
    return np.asarray(0.9 - all_groups(3) @ np.array(helps).T)


def test_the_largest_help_comes_first_and_harm_is_named() -> None:
    found = values_of(falls([0.1, 0.1, 0.1], [0.2, 0.15, -0.04], [0.3, 0.2, 0.0], [0.01, 0.0, 0.1]))
    helped, hurt, noise, better, *rest = value_sentences(found)
    start = "Whose data helps whom most, in points of accuracy on the other's own test: "
    assert helped.startswith(f"{start}North's helps South (+30.0 ± 0")
    assert "South's helps North (+15.0 ± 0" in helped
    assert "East's" not in helped
    assert hurt.startswith("Everyone's model would be better without East for North (4.0 ± 0")
    assert noise.startswith("Within noise, so that even the sign is uncertain: 2 of 12 Shapley")
    assert better.startswith("Better with everyone's model than alone, on its own test: North (")
    assert rest == []


def test_who_is_better_off_alone_is_said() -> None:
    found = values_of(falls([0.1, 0.1, 0.1], [0.2, -0.1, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.1]))
    told = value_sentences(found)
    worse = "North does better alone than with everyone's model, on its own test: by 10.0 ± 0"
    assert any(line.startswith(worse) for line in told)
    assert told[1].startswith("Everyone's model would be better without South for North (10.0")


def test_all_within_noise() -> None:
    found = values_of(np.full((8, 4), 0.4), noise=0.5)
    assert value_sentences(found) == [
        "Nobody's data surely helps anyone else: all of it is within noise.",
        "Nobody's data surely hurts anyone: no model would surely be better without it.",
        "Within noise, so that even the sign is uncertain: 12 of 12 Shapley values and 12 of 12 "
        "leave-one-out values.",
        "For every client the difference between everyone's model and its own, on its own test, is "
        "within noise.",
    ]


def test_without_own_tests() -> None:
    helped, hurt, *_ = value_sentences(values_of(falls([0.2, 0.1, -0.05]), own=False))
    assert helped.startswith(
        "Of the 25.0 points of accuracy that training brings on the common test, most are due to "
        "the data of North (+20.0 ± 0"
    )
    assert hurt.startswith("Everyone's model would be better without East on the common test (5.0")


def test_concordance_is_written_as_it_is() -> None:
    """As `join` and `train` do: 0.784, not 78.4 %."""
    helps = falls([0.1, 0.1, 0.1], [0.2, 0.15, -0.04], [0.3, 0.2, 0.0], [0.01, 0.0, 0.1])
    found = values_of(helps, concordance=True)
    helped, hurt, *_ = value_sentences(found)
    start = "Whose data helps whom most, in concordance on the other's own test: "
    assert helped.startswith(f"{start}North's helps South (+0.300 ± 0.0")
    assert "without East for North (0.040 ± 0.0" in hurt
    assert "points" not in " ".join(value_sentences(found))
    assert tables_note(found).startswith("Differences of concordance; ± is half of a 95 % interval")
    console = Console(width=200, record=True, file=StringIO())
    print_values(console, found)
    told = console.export_text()
    assert "%" not in told.replace("95 %", "")
    assert "All together " in told
    assert "+0.100" in [text.get_text() for text in plot_value(found).axes[1].texts]


def test_the_note_says_why_a_sentence_may_leave_out_what_has_no_brackets() -> None:
    note = tables_note(values_of(np.full((8, 4), 0.4), noise=0.5))
    assert "over seeds and test examples; brackets: within noise. Among this many numbers" in note


def test_a_quality_that_is_not_bounded() -> None:
    weight = QualityWeight("North", 150, (150, 75), (1, 1), 1, -0.44, np.inf, "too uncertain")
    assert quality_sentence(weight).endswith(
        "one of its 150 samples could be worth anything from -0.44 upwards."
    )


@pytest.mark.parametrize("own", [True, False])
def test_the_picture_marks_what_is_within_noise(own: bool) -> None:
    helps = [[0.1, 0.0, 0.1]] + [[0.2, -0.1, 0.0]] * (3 if own else 0)
    figure = plot_value(values_of(falls(*helps), own=own))
    upper, lower = figure.axes[:2]
    for axes in (upper, lower):
        texts = [text.get_text() for text in axes.texts]
        assert len(texts) == 3 * (4 if own else 1)
        hatched = [patch for patch in axes.patches if patch.get_hatch()]
        assert len(hatched) == sum(text.startswith("(") for text in texts) > 0
        assert "+10.0" in texts
        assert ("−10.0" in texts) == own
    names: list[Any] = [label.get_text() for label in lower.get_xticklabels()]
    assert names == ["everyone", *NAMES] if own else ["everyone"]


@pytest.mark.parametrize(
    ("sizes", "said"), [((10, 10, 10), "10"), ((10, 30, 1_200), "10 to 1,200")]
)
def test_how_long_the_tests_are(sizes: tuple[int, ...], said: str) -> None:
    values = values_of(falls([0.1, 0.1, 0.1], *[[0.1, 0.1, 0.1]] * 3))
    tests = (values.scores.tests[0], *map(np.arange, sizes))
    setting = setting_sentence(replace(values, scores=replace(values.scores, tests=tests)))
    assert f"; 2,000 test examples, {said} of them a client's own." in setting
