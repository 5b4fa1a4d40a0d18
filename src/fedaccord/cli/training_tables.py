"""What `train --format text` prints: how each profile did, then slot by slot."""

import numpy as np
from rich.console import Console

from fedaccord.cli.tables import LISTED, plain_table
from fedaccord.game.writing import write
from fedaccord.report import gain_sentence, percent, setting_sentence
from fedaccord.training.comparison import Comparison, Estimate
from fedaccord.training.course import TrainingRun


def print_training(console: Console, comparison: Comparison) -> None:
    """The scores, what they mean, and how they came about."""
    console.print(setting_sentence(comparison))
    table = plain_table("Profile", ["Trained on", "Test loss", "Test accuracy", "Gain"])
    totals = write([round(score.total) for score in comparison.scores])
    for score, total in zip(comparison.scores, totals, strict=True):
        first = score is comparison.scores[0]
        gain = "" if first else percent(score.accuracy_gain, signed=True)
        table.add_row(score.profile, total, _loss(score.loss), percent(score.accuracy), gain)
    console.print(table)
    for score in comparison.scores[1:]:
        console.print(gain_sentence(comparison, score))
    for note in comparison.notes:
        console.print(f"  {note}", soft_wrap=True)
    if len(comparison.runs[0].slots) > 1:
        _print_slots(console, comparison)


def _print_slots(console: Console, comparison: Comparison) -> None:
    """Test accuracy after each slot, and what was trained on in it."""
    profiles = [score.profile for score in comparison.scores]
    slots = len(comparison.runs[0].slots)
    table = plain_table("After slot", profiles)
    chosen = np.unique(np.linspace(0, slots - 1, min(slots, LISTED)).round().astype(int))
    for k in chosen.tolist():
        table.add_row(str(k + 1), *(_slot(comparison.of(name), k) for name in profiles))
    console.print(table)
    if len(chosen) < slots:
        console.print(f"{len(chosen)} of {slots:,} slots; --csv and --format json have them all.")


def _slot(runs: list[TrainingRun], k: int) -> str:
    """Mean accuracy after a slot, and on how many examples it was trained."""
    records = [run.slots[k] for run in runs]
    accuracy = np.mean([record.final.accuracy for record in records])
    phase = ", punishing" if records[0].phase == "punishing" else ""
    return f"{100 * accuracy:.2f} % ({records[0].total:,}{phase})"


def _loss(estimate: Estimate) -> str:
    width = f" ± {estimate.half_width:.4f}" if np.isfinite(estimate.half_width) else ""
    return f"{estimate.mean:.4f}{width}"
