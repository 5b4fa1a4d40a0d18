"""Whether the measured loss falls as 1/sqrt(X G) + 1/G (eq. 3), on real data.

Softmax regression is trained on X samples for G rounds, each a full gradient step: the paper's
batch B = X. The law is fitted with free factors and a floor, the loss that no amount of data and
rounds would lower: a/sqrt(X G) + b/G + c, none of them negative. For comparison,
a/sqrt(X) + b/sqrt(G) + c is fitted in the same way.
"""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import nnls

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, found
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.figures.accuracy import Parts, RunProgress, simple_course
from fedaccord.experiments.figures.paper_law import fit_paper_law
from fedaccord.experiments.presets import TrainingPreset
from fedaccord.experiments.standard import fact, half_width, measured

if TYPE_CHECKING:
    from fedaccord.training.course import Course


def steps(preset: TrainingPreset) -> int:
    """How many different numbers of samples there are."""
    return len(preset.options["samples"])


def run(
    preset: TrainingPreset, progress: RunProgress = lambda *_: None, parts: Parts | None = None
) -> FigureData:
    """One row per pair of X and G: mean loss over seeds, and two laws fitted to it."""
    parts = {} if parts is None else parts
    sizes, rounds = preset.options["samples"], preset.options["rounds"]
    seeds = range(preset.seed, preset.seed + preset.seeds)
    losses = []
    for k, size in enumerate(sizes):
        progress(k, f"Training on {size:,} samples")
        course = simple_course(preset, [size], max(rounds))
        for seed in seeds:
            run_name = f"{size} samples, seed {seed}"
            if run_name not in parts:
                parts[run_name] = _losses(course, size, seed)[np.array(rounds) - 1].tolist()
            losses.append(parts[run_name])
    by_size = np.array(losses).reshape(len(sizes), len(seeds), len(rounds))
    measured = by_size.transpose(1, 0, 2).reshape(len(seeds), -1)
    X, G = (grid.ravel().astype(float) for grid in np.meshgrid(sizes, rounds, indexing="ij"))
    loss = measured.mean(axis=0)
    return FigureData(
        {
            "samples": X,
            "rounds": G,
            "loss": loss,
            "loss_half": half_width(measured),
            "law": fit_paper_law(X, G, loss).predict(X, G),
            "separate": fit_separate(X, G, loss),
        }
    )


def draw(table: FigureData, _: TrainingPreset, width: pictures.Width) -> Figure:
    """Loss by rounds for some X, measured and by the fitted law."""
    return pictures.plot_law(table, width)


def claims(table: FigureData, _: TrainingPreset) -> list[Claim]:
    """The law itself, and what it says about data and rounds together."""
    samples, rounds, loss = table["samples"], table["rounds"], table["loss"]
    law = fit_paper_law(samples, rounds, loss)
    other = loss - fit_separate(samples, rounds, loss)
    explained = 1.0 - float((other**2).sum() / ((loss - loss.mean()) ** 2).sum())
    return [
        found(
            "The loss falls as a/sqrt(X G) + b/G, down to a floor.",
            fact(
                law.fits,
                f"{law.data:.3g}/sqrt(X G) + {law.rounds:.3g}/G + {law.floor:.3g} explains "
                f"{100 * law.explained:.0f} % of the variance; a/sqrt(X) + b/sqrt(G) + c explains "
                f"{100 * explained:.0f} %",
                "; ".join(law.objections),
            ),
        ),
        _data_matters_less(table),
        _more_data_helps(table),
    ]


def _data_matters_less(table: FigureData) -> Claim:
    samples, rounds = table["samples"], table["rounds"]
    few, many = (table.where(samples == size) for size in (samples.min(), samples.max()))
    first, last = (few["loss"] - many["loss"])[[0, -1]]
    ends = [part["loss_half"][end] for part in (few, many) for end in (0, -1)]
    half = float(np.sqrt(np.sum(np.square(ends))))
    return found(
        "The more rounds, the less it matters how much data there is (the term 1/sqrt(X G)).",
        measured(
            first - last,
            half,
            f"between {samples.min():,.0f} and {samples.max():,.0f} samples the loss differs by "
            f"{first:.2f} after {rounds.min():.0f} round and by {last:.2f} after "
            f"{rounds.max():.0f}: {last - first:+.2f} ± {half:.2f}",
            "the difference grows",
        ),
    )


def _more_data_helps(table: FigureData) -> Claim:
    parts = [table.where(table["rounds"] == g) for g in np.unique(table["rounds"])]
    falls = np.array([-np.diff(part["loss"]) for part in parts])
    halves = np.array([np.hypot(p["loss_half"][1:], p["loss_half"][:-1]) for p in parts])
    up, down = int((falls < -halves).sum()), int((falls > halves).sum())
    worst = np.unravel_index(falls.argmin(), falls.shape)
    before, after = parts[0]["samples"][worst[1] : worst[1] + 2]
    rounds = parts[worst[0]]["rounds"][0]
    return found(
        "More data never hurts: the loss falls with X at every G.",
        measured(
            falls,
            halves,
            f"of {falls.size} steps to more data {down} lower and {up} raise the loss by more than "
            f"their interval; the largest rise is {max(-falls[worst], 0.0):.2g} ± "
            f"{halves[worst]:.2g}, from X = {before:,.0f} to {after:,.0f} at G = {rounds:.0f}",
            "it rises by more than chance",
        ),
    )


def fit_separate(X: Column, G: Column, loss: Column) -> Column:
    """The losses by a/sqrt(X) + b/sqrt(G) + c, fitted by least squares with no negative term."""
    terms = np.column_stack([1.0 / np.sqrt(X), 1.0 / np.sqrt(G), np.ones_like(G)])
    factors, _ = nnls(terms, loss)
    return np.asarray(terms @ factors)


def _losses(course: "Course", size: int, seed: int) -> Column:
    """Test loss after each round on this many samples."""
    from fedaccord.training.course import train

    [slot] = train(course, np.array([[size]]), seed=seed).slots
    return np.array([score.loss for score in slot.rounds])
