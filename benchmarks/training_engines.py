"""The vectorised engine against two plain loops, and as a share of the CPU's peak performance.

Ours uses all cores. The plain engine always uses one thread, whatever PyTorch is set to; the other
loop runs with one thread and with one per core, and the better time counts: PyTorch's threads wait
for one another, so that two can be slower than one, especially on a busy machine.
"""

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks import training_setting as setting
from benchmarks.measure import Contestant, Timing, race
from benchmarks.row import Row, faster
from benchmarks.training_loop import torch_loop
from fedaccord.training.engine import GradientStep, PlainEngine, TrainingPlan
from fedaccord.training.vectorised.engine import VectorisedEngine

PLAIN, LOOP = "the plain engine", "a loop with nn.Module and SGD"
GEMM = 2_048
"""Rows and columns of the matrix product that measures peak performance."""


def run() -> Iterator[Row]:
    for task in setting.TASKS:
        what = f"{task}, mini-batches, {setting.CLIENTS} clients x {setting.MINI_BATCH_SAMPLES:,}"
        yield from _compare(what, setting.mini_batch_plan(task), target=3.0)
    ragged = np.random.default_rng(0).integers(1, 99, setting.CLIENTS, endpoint=True).tolist()
    for task in setting.TASKS:
        what = f"{task}, one gradient, {setting.CLIENTS} clients x 1 to 99"
        plan = setting.plan(task, ragged, GradientStep(0.5), rounds=10)
        yield from _compare(what, plan, target=6.0)
    for task in setting.TASKS:
        what = f"{task}, one gradient, {setting.CLIENTS} clients x 10,000 (the paper's)"
        yield from _compare(what, setting.paper_plan(task), target=10.0, repeats=1)


def _compare(what: str, plan: TrainingPlan, target: float, repeats: int = 3) -> list[Row]:
    """One of our rounds against one of each loop, and as a share of peak performance."""
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
        note = f"{threads}; parameters differ by at most {apart:.0e}"
        each = theirs.each(plan.rounds)
        rows.append(faster("training", what, against, ours, each, target=target, note=note))
    return [*rows, _share(what, plan, ours, product)]


def _share(what: str, plan: TrainingPlan, ours: Timing, product: Timing) -> Row:
    """Operations per second of CPU time, against those of one large matrix product."""
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
