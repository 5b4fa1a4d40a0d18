"""What came of detecting, as records, and their means over the repeats as tables."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from fedaccord.baselines.detection.evaluation import Outcome

Record: TypeAlias = dict[str, Any]
Case: TypeAlias = tuple[str, int, str, str]
"""Disguise, number of free riders, detector, and what it was fitted on."""

_TITLES = {"dagmm": "DAGMM", "std-dagmm": "STD-DAGMM", "ecod": "ECOD"}
_WAYS = ("round", "reference")


def record_of(outcome: "Outcome") -> Record:
    """One outcome, as JSON has it."""
    verdict = outcome.verdict
    return {
        "disguise": outcome.disguise,
        "free_riders": outcome.free_riders,
        "detector": outcome.detector,
        "fitted_on": outcome.fitted_on,
        "seed": outcome.seed,
        "auc": verdict.area,
        "precision": verdict.precision,
        "recall": verdict.recall,
        "dropped": verdict.dropped,
        "dropped_contributors": verdict.dropped_contributors,
    }


def means_by_case(records: Iterable[Record]) -> dict[Case, list[str]]:
    """AUC, precision, recall and wrongly dropped contributors of each case."""
    cases: dict[Case, list[Record]] = {}
    for one in records:
        case = (one["disguise"], one["free_riders"], one["detector"], one["fitted_on"])
        cases.setdefault(case, []).append(one)
    return {case: _means(group) for case, group in cases.items()}


def _means(records: Sequence[Record]) -> list[str]:
    """The means over the repeats; of the precision, over those in which anyone was dropped."""
    cells = []
    for field, digits in (
        ("auc", 2),
        ("precision", 2),
        ("recall", 2),
        ("dropped_contributors", 1),
    ):
        known = [record[field] for record in records if record[field] is not None]
        cells.append(f"{fmean(known):.{digits}f}" if known else "–")
    return cells


def markdown_tables(records: Iterable[Record]) -> tuple[str, str]:
    """The AUC of each case; and its precision, recall and wrongly dropped contributors."""
    means = means_by_case(records)
    return _markdown(means, slice(0, 1)), _markdown(means, slice(1, None))


def _markdown(means: dict[Case, list[str]], shown: slice) -> str:
    """A row for each disguise and number, a column for each detector and what it was fitted on."""
    rows = dict.fromkeys((disguise, riders) for disguise, riders, _, _ in means)
    tried = dict.fromkeys((detector, way) for _, _, detector, way in means)
    columns = sorted(tried, key=lambda column: _WAYS.index(column[1]))
    head = [f"{_TITLES.get(detector, detector)}, {way}" for detector, way in columns]
    lines = [f"| disguise | free riders | {' | '.join(head)} |", "|---" * (2 + len(columns)) + "|"]
    for disguise, riders in rows:
        cells = [" / ".join(means[disguise, riders, *column][shown]) for column in columns]
        lines.append(f"| `{disguise}` | {riders} | {' | '.join(cells)} |")
    return "\n".join(lines)
