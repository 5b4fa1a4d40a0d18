"""The paper's figures by the batch interface against solving every point separately."""

from collections.abc import Iterator
from dataclasses import asdict

import fedaccord as fa
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster
from fedaccord.experiments.presets import Preset, find_preset
from fedaccord.experiments.sweep import solve_sweep

ONE_IN = 20
"""How many points are solved separately; the time for all is extrapolated."""


def run() -> Iterator[Row]:
    yield _compare("D, G, E and δ", ("fig5", "fig11", "fig13", "fig15"), target=15.0)
    yield _compare("N (all as large as the largest)", ("fig3",), target=None)


def _compare(swept: str, names: tuple[str, ...], target: float | None) -> Row:
    """One figure of each sweep: the others show the same points."""
    presets = [find_preset(name) for name in names]
    points = sum(len(preset.values) for preset in presets)
    some = [(preset, value) for preset in presets for value in preset.values[::ONE_IN]]

    def by_batch(_: object) -> object:
        return [solve_sweep(p.setting, p.parameter, p.values) for p in presets]

    def by_itself(_: object) -> object:
        return [_solve(preset, value) for preset, value in some]

    ours, theirs = race(Contestant(by_batch), Contestant(by_itself), repeats=3)
    return faster(
        "figures",
        f"{points:,} points of the paper's figures, over {swept}",
        "one call each",
        ours,
        theirs.extrapolated(len(some) / points),
        target=target,
        note=f"equilibrium and both agreements; {len(some)} solved one by one, extrapolated",
    )


def _solve(preset: Preset, value: float) -> list[float]:
    whole = preset.parameter in ("clients", "rounds")
    fields = asdict(preset.setting) | {preset.parameter: int(value) if whole else value}
    alone = fa.solve_equilibrium(fa.paper_consortium(**fields))
    return [fa.solve_agreement(alone, kind).total for kind in ("uniform", "individual")]
