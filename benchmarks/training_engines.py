"""The vectorised engine against two plain loops, and against what the processor can do at best.

Ours works on all processors. The plain engine keeps to one thread, whatever PyTorch is told; the
other loop runs with one and with all, and the better time counts: PyTorch's threads wait for one
another, and two can be slower than one, by far if others need the processors, too.
"""

import numpy as np
import torch

from benchmarks import training_setting as setting
from benchmarks.measure import Contestant, Timing, race
from benchmarks.row import Row, quicker
from benchmarks.training_loop import torch_loop
from fedaccord.training.engine import GradientStep, PlainEngine, TrainingPlan
from fedaccord.training.vectorised.engine import VectorisedEngine

PLAIN, LOOP = "the plain engine", "a loop with nn.Module and SGD"
GEMM = 2_048
"""Rows and columns of the product of matrices that shows the processor at its best."""


def run() -> list[Row]:
    rows = []
    for task in setting.TASKS:
        what = f"{task}, mini-batches, {setting.CLIENTS} clients x {setting.MINI_BATCH_SAMPLES:,}"
        rows += _compare(what, setting.mini_batch_plan(task), bar=3.0)
    ragged = np.random.default_rng(0).integers(1, 99, setting.CLIENTS, endpoint=True).tolist()
    for task in setting.TASKS:
        what = f"{task}, one gradient, {setting.CLIENTS} clients x 1 to 99"
        rows += _compare(what, setting.plan(task, ragged, GradientStep(0.5), rounds=10), bar=6.0)
    for task in setting.TASKS:
        what = f"{task}, one gradient, {setting.CLIENTS} clients x 10,000 (the paper's)"
        rows += _compare(what, setting.paper_plan(task), bar=10.0, repeats=1)
    return rows


def _compare(what: str, plan: TrainingPlan, bar: float, repeats: int = 3) -> list[Row]:
    """A round of ours against one of both loops, and as a share of the processor's best."""
    matrix = torch.rand(GEMM, GEMM)
    ours, product, plain, *loop = race(
        setting.our_engine(plan),
        Contestant(setting.with_threads(1, lambda: matrix @ matrix)),
        Contestant(setting.with_threads(1, lambda: setting.final(PlainEngine(), plan))),
        *setting.with_one_and_all_threads(lambda: torch_loop(plan)),
        repeats=repeats,
    )
    ours = ours.each(plan.rounds)
    apart = setting.apart(
        setting.final(VectorisedEngine(), plan), setting.final(PlainEngine(), plan)
    )
    rows = []
    for against, tried in ((PLAIN, [plain]), (LOOP, loop)):
        theirs, threads = setting.better(tried)
        note = f"{threads}; parameters differ by {apart:.0e} at most"
        each = theirs.each(plan.rounds)
        rows.append(quicker("training", what, against, ours, each, bar=bar, note=note))
    return [*rows, _share(what, plan, ours, product)]


def _share(what: str, plan: TrainingPlan, ours: Timing, product: Timing) -> Row:
    """Operations in a second of processor time, against those of one large product of matrices."""
    distinct = isinstance(plan.local, GradientStep)
    samples = len(np.unique(np.concatenate(plan.shares))) if distinct else plan.total
    done = setting.operations(plan.model.start(seed=0), samples) / (ours.cpu or ours.wall)
    possible = 2.0 * GEMM**3 / (product.cpu or product.wall)
    return Row(
        "training",
        what,
        f"a product of {GEMM:,} x {GEMM:,} matrices, one thread",
        value=100.0 * done / possible,
        unit="%",
        ours=ours,
        note=f"{done / 1e9:.1f} of {possible / 1e9:.1f} GFLOP/s"
        + (f", for {samples:,} distinct samples" if distinct else ""),
    )
