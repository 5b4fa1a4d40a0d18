"""What is said about clients' own tests: two tables, and who does worse together than alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fedaccord.summaries.training import is_alone, written_score
from fedaccord.summaries.words import Noun, listed
from fedaccord.training.client_scores import fine_tuned_gains
from fedaccord.training.client_scores import own_gains as gains_of
from fedaccord.training.estimates import Estimate

if TYPE_CHECKING:
    from fedaccord.training.comparison import Comparison

Found: TypeAlias = dict[str, list[Estimate]]
"""For each model (a profile's, or its fine-tuned ones) an estimate for each client."""

_TUNED = ", fine-tuned"


@dataclass(frozen=True)
class OwnTable:
    """A row for each client, with a cell for each model; no rows without own tests."""

    headings: tuple[str, ...]
    """The models."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """The names of the clients, and their cells."""


def own_levels(comparison: "Comparison") -> OwnTable:
    """How well every model does on each client's own test."""
    found: Found = {}
    for score in comparison.scores:
        found[score.profile] = [each.accuracy for each in score.clients]
        tuned = [each.fine_tuned for each in score.clients if each.fine_tuned is not None]
        if tuned:
            found[f"{score.profile}{_TUNED}"] = tuned
    return _table(comparison, found, signed=False)


def own_gains(comparison: "Comparison") -> OwnTable:
    """How much better that is than what the client reaches alone; no rows if that is not known."""
    return _table(comparison, dict(_gains_over_alone(comparison)), signed=True)


def own_sentences(comparison: "Comparison", noun: Noun = "client") -> list[str]:
    """Who does worse together than alone, and how much could not be told from chance.

    Nothing is said if nobody has a test of its own, or nobody was trained alone.
    """
    gains, names = dict(_gains_over_alone(comparison)), _names(comparison)
    if not gains:
        return []
    seed = " (with a single seed)" if comparison.seeds == 1 else ""
    warnings = _warnings(gains, names, seed)
    if not warnings:
        certain = all(gain.mean >= 0 for each in gains.values() for gain in each)
        chance = "" if certain else " beyond chance"
        warnings = [f"No {noun} does worse on its own test than alone{chance}{seed}."]
    return warnings + _smallest_seen(gains, comparison.measure)


def own_levels_note(comparison: "Comparison") -> str:
    """What the table of levels shows, and what its intervals are about."""
    unit = " in per cent" if comparison.measure == "accuracy" else ""
    return (
        f"Test {comparison.measure}{unit} on each one's own test, of the model that it has at the "
        f"end of the last slot. The 95 % intervals are about {_source_of_noise(comparison)}: the "
        "smaller the test, the wider."
    )


def own_gains_note(comparison: "Comparison") -> str:
    """What the table of gains shows."""
    unit = ", in points" if comparison.measure == "accuracy" else ""
    return (
        f"Gain against alone, on each one's own test{unit}: seed by seed and example by example, "
        f"with 95 % intervals about {_source_of_noise(comparison)}."
    )


def _source_of_noise(comparison: "Comparison") -> str:
    """What intervals are about: a single seed says nothing about others."""
    if comparison.seeds == 1:
        return "the choice of test examples, but not about the seed, of which there is only one"
    return "the seeds and about the choice of test examples"


def _names(comparison: "Comparison") -> list[str]:
    return [each.name for each in comparison.scores[0].clients]


def _table(comparison: "Comparison", found: Found, *, signed: bool) -> OwnTable:
    clients = comparison.scores[0].clients if found else ()
    return OwnTable(
        tuple(found),
        tuple(
            (
                f"{client.name} ({client.test_examples:,})",
                tuple(_cell(each[n], comparison.measure, signed) for each in found.values()),
            )
            for n, client in enumerate(clients)
        ),
    )


def _cell(found: Estimate, measure: str, signed: bool) -> str:
    """Shorter than in a sentence: the unit is in the note, and one decimal is enough."""
    if measure != "accuracy" or np.isnan(found.mean):
        return written_score(found, measure, signed=signed)
    half = f" ± {100 * found.half_width:.1f}" if np.isfinite(found.half_width) else ""
    return f"{100 * found.mean:{'+' if signed else ''}.1f}{half}"


def _gains_over_alone(comparison: "Comparison") -> Iterator[tuple[str, list[Estimate]]]:
    profiles, weights = [score.profile for score in comparison.scores], comparison.own_weights
    alone = next((comparison.of(name) for name in profiles if is_alone(comparison, name)), None)
    if alone is None or not weights:
        return
    for profile in profiles:
        if is_alone(comparison, profile):
            continue
        runs = comparison.of(profile)
        yield profile, gains_of(alone, runs, weights)
        if tuned := fine_tuned_gains(alone, runs, weights):
            yield f"{profile}{_TUNED}", tuned


def _warnings(gains: Found, names: list[str], seed: str) -> list[str]:
    """A sentence for each client that surely does worse than alone; `seed` is said of each."""
    worse: dict[str, list[str]] = {}
    for model, each in gains.items():
        for name, gain in zip(names, each, strict=True):
            if gain.mean < 0 and gain.sure:
                worse.setdefault(name, []).append(model.replace(_TUNED, " with fine-tuning"))
    return [
        f"{name} does worse on its own test than alone: under {listed(models)}{seed}."
        for name, models in worse.items()
    ]


def _smallest_seen(gains: Found, measure: str) -> list[str]:
    """How large a difference must be to be told from chance."""
    widths = [gain.half_width for each in gains.values() for gain in each]
    widths = [width for width in widths if np.isfinite(width)]
    if not widths:
        return []
    low, high = min(widths), max(widths)
    said = f"{low:.2f} to {high:.2f}"
    if measure == "accuracy":
        said = f"{100 * low:.0f} to {100 * high:.0f} points"
    return [
        f"On tests as small as these, differences of less than {said} of {measure} (depending on "
        "whose test it is) cannot be told from chance."
    ]
