"""Predicted against measured gain of an agreement, on real data.

`python -m benchmarks.predictions` measures all cases (needs MNIST in `FEDACCORD_DATA`) and writes
the tables of docs/explanation/predictions.md and the file beside it.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.row import Row
from benchmarks.tables import markdown, put_on_page, write_csv

if TYPE_CHECKING:
    from benchmarks.prediction_case import Prediction, Refusal, Setting

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "predictions.md"
FILE = PAGE.with_suffix(".csv")
SPLITS = 3
TARGET = 0.8
"""The part of gains that should lie in their 90 % band."""
UNSTABLE = ("digits", "mlp", 1.0)
"""Steps so long that a few seeds go astray; kept apart, to show what that does."""


def settings() -> "list[Setting]":
    """What is measured; MNIST only if there is a directory for it."""
    from benchmarks.prediction_case import Setting

    small = [
        Setting("digits", "softmax", 870, 463),
        Setting("digits", "mlp", 870, 463, rate=0.5),
        Setting("breast-cancer", "softmax", 290, 139),
        Setting("breast-cancer", "mlp", 290, 139, rate=0.5),
        Setting(UNSTABLE[0], UNSTABLE[1], 870, 463, rate=UNSTABLE[2]),
    ]
    mnist = [Setting("mnist", "softmax", 2320, 2000)]
    return small + mnist if "FEDACCORD_DATA" in os.environ else small


def measure_all() -> "Iterator[Prediction | Refusal]":
    """All cases, setting by setting."""
    from benchmarks.prediction_case import Case

    for setting, split in product(settings(), range(SPLITS)):
        yield from Case(setting, split).predictions()


def run() -> list[Row]:
    if find_spec("torch") is None:
        note = "skipped: needs PyTorch, pip install 'fedaccord[train]'"
        return [Row("predictions", "measured gains", "their bands", note=note)]
    from benchmarks.prediction_case import Prediction

    results = list(measure_all())
    found = stable([one for one in results if isinstance(one, Prediction)])
    refused = len(results) - sum(isinstance(one, Prediction) for one in results)
    return [
        _row(found, "all", "other test examples", lambda one: one.covered, refused),
        _row(found, "all", "the same ones", lambda one: one.covered_same, refused),
        _row(found, "half", "other test examples", lambda one: one.covered, refused),
        _row(found, "half", "the same ones", lambda one: one.covered_same, refused),
    ]


def _row(
    found: "Sequence[Prediction]",
    part: str,
    judged: str,
    covered: "Callable[[Prediction], bool]",
    refused: int,
) -> Row:
    cases = [one for one in found if one.measured_range == part]
    inside = sum(map(covered, cases))
    return Row(
        "predictions",
        f"gains of agreements inside their 90 % band, on {judged}",
        f"training; the law was measured on {part} of the data",
        value=inside / len(cases),
        sense="at least",
        target=TARGET if part == "all" else None,
        unit="of cases",
        note=f"{inside} of {len(cases)}; {refused} curves were refused",
    )


def stable(found: "Sequence[Prediction]") -> "list[Prediction]":
    """All but those that are kept apart."""
    return [one for one in found if (one.dataset, one.task, one.rate) != UNSTABLE]


def tables(found: "Sequence[Prediction]") -> dict[str, str]:
    """The tables of the page, by name."""
    measured = [one for one in found if one.measured_range == "all"]
    return {"summary": _summary(found), "cases": markdown(_HEADINGS, map(_line, measured))}


_HEADINGS = (
    "data",
    "task (rate)",
    "measure",
    "split",
    "made for",
    "`calibrate`",
    "data used, %",
    "predicted",
    "band",
    "measured",
    "inside",
    "band, same examples",
    "measured",
    "inside",
)


def _line(one: "Prediction") -> list[object]:
    return [
        one.dataset,
        f"{one.task} ({one.rate:g})",
        one.measure,
        one.split,
        one.made_for,
        "objects" if one.objections else "",
        f"{one.equilibrium:.0%} to {one.agreed:.0%}".replace("%", ""),
        f"{one.predicted:.4f}",
        f"{one.low:.4f} to {one.high:.4f}",
        f"{one.gain:.4f}",
        "yes" if one.covered else "**no**",
        f"{one.low_same:.4f} to {one.high_same:.4f}",
        f"{one.gain_same:.4f}",
        "yes" if one.covered_same else "**no**",
    ]


def _summary(found: "Sequence[Prediction]") -> str:
    calm = stable(found)
    kinds = list(dict.fromkeys((one.dataset, one.task, one.rate) for one in calm))
    groups = {
        f"{dataset}, {task} (rate {rate:g})": [
            one for one in calm if (one.dataset, one.task, one.rate) == (dataset, task, rate)
        ]
        for dataset, task, rate in kinds
    }
    groups["**all of these**"] = calm
    groups["of them, `calibrate` has no objection"] = [one for one in calm if not one.objections]
    groups["of them, `calibrate` objects"] = [one for one in calm if one.objections]
    groups["kept apart: digits, mlp (rate 1)"] = [one for one in found if one not in calm]
    groups["all, with those"] = list(found)
    headings = ["cases"]
    for part in ("all", "half"):
        headings += [f"{part} of the data: other examples", "same examples", "width of the band"]
    rows = (
        [name, *_counts(group, "all"), *_counts(group, "half")] for name, group in groups.items()
    )
    return markdown(headings, rows)


def _counts(group: "Sequence[Prediction]", part: str) -> list[str]:
    """How many gains are inside, and the median width of their bands over the gain predicted."""
    cases = [one for one in group if one.measured_range == part]
    if not cases:
        return ["–"] * 3
    inside = [sum(one.covered for one in cases), sum(one.covered_same for one in cases)]
    width = median((one.high - one.low) / one.predicted for one in cases)
    return [*(f"{number} of {len(cases)}" for number in inside), f"{width:.1f}"]


def main() -> None:
    from benchmarks.prediction_case import Prediction

    found = []
    for one in measure_all():
        print(one, file=sys.stderr)
        if isinstance(one, Prediction):
            found.append(one)
    write_csv(FILE, found)
    put_on_page(PAGE, tables(found))


if __name__ == "__main__":
    main()
