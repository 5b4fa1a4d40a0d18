"""The equilibrium against NashOpt, a general solver for Nash equilibria.

NashOpt gets the contributions as fractions of each client's data, x in [0, 1], and an interior
starting point. It recompiles the game at each call; that time, as it reports it, is subtracted.
Garbage collection is off, as in all timings here, which makes NashOpt much faster.
"""

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import fedaccord as fa
from benchmarks.consortia import fresh
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster

CLIENTS, SAMPLES = 20, 50_000.0
AT_ONCE = 50
REPEATS = 3
WHAT, AGAINST = f"equilibrium of {CLIENTS} clients", "NashOpt"


def run() -> list[Row]:
    if find_spec("nashopt") is None or find_spec("jax") is None:
        return [Row("nashopt", WHAT, AGAINST, note="skipped: needs `make bench PEERS=1`")]
    consortium = fa.paper_consortium(clients=CLIENTS, samples=SAMPLES)
    game = _general_game(consortium)
    start = np.full(CLIENTS, 0.5)
    answers: list[Any] = []

    def solve(prepared: list[fa.Consortium]) -> None:
        for one in prepared:
            fa.solve_equilibrium(one)

    def solve_generally(_: object) -> None:
        answers.append(game.solve(start, verbose=0))

    ours, whole = race(
        Contestant(solve, prepare=lambda: [fresh(consortium) for _ in range(AT_ONCE)]),
        Contestant(solve_generally),
        repeats=REPEATS,
    )
    timed = [answer.stats for answer in answers[1:]]  # the first was the warm-up
    solving = min(stats.elapsed_time - stats.jax_jit_time for stats in timed)
    profile = fa.solve_equilibrium(consortium).profile
    apart = float(np.abs(answers[-1].x * SAMPLES - profile).max())
    return [
        faster(
            "nashopt",
            WHAT,
            AGAINST,
            ours.each(AT_ONCE),
            replace(whole, wall=solving, cpu=None),
            note=f"the answers differ by at most {apart:.0e} samples; with compilation, whose "
            f"reported time is subtracted, NashOpt takes {whole.wall:.1f} s",
        )
    ]


def _general_game(consortium: fa.Consortium) -> Any:
    """The stage game in NashOpt's form: one JAX function per client."""
    jax, numpy, nashopt = map(import_module, ("jax", "jax.numpy", "nashopt"))
    pull = consortium.ratio / np.sqrt(consortium.rounds) / SAMPLES**1.5

    def cost_of(n: int) -> Any:
        return jax.jit(lambda x: pull[n] / numpy.sqrt(numpy.sum(x)) + x[n])

    return nashopt.GNEP(
        [1] * CLIENTS,
        f=[cost_of(n) for n in range(CLIENTS)],
        lb=np.zeros(CLIENTS),
        ub=np.ones(CLIENTS),
    )
