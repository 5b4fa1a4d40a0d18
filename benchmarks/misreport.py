"""Every client's lies in one call against solving each report by itself."""

import numpy as np

import fedaccord as fa
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster

CLIENTS, REPORTS = 100, 200
ONE_BY_ONE = 200
"""How many of the reports are solved one by one; the time for all is extrapolated."""


def run() -> list[Row]:
    consortium = fa.paper_consortium(clients=CLIENTS)

    def all_at_once(_: object) -> object:
        return fa.best_misreport(consortium, reports=REPORTS)

    def one_by_one(_: object) -> list[float]:
        factors = np.linspace(0.01, 0.99, ONE_BY_ONE)
        return [fa.solve_agreement(_reported(consortium, factor)).total for factor in factors]

    ours, theirs = race(Contestant(all_at_once), Contestant(one_by_one), repeats=5)
    return [
        faster(
            "misreport",
            f"the best of {REPORTS} reports for each of {CLIENTS} clients, individual agreement",
            "one solve for each report",
            ours,
            theirs.extrapolated(ONE_BY_ONE / (CLIENTS * REPORTS)),
            target=5.0,
            note=f"{ONE_BY_ONE} reports solved one by one, extrapolated; all at once should take "
            "less than 2 seconds",
        )
    ]


def _reported(consortium: fa.Consortium, factor: float) -> fa.Consortium:
    """The consortium if its first client says that its valuation is so much lower."""
    valuation = consortium.valuation.copy()
    valuation[0] *= factor
    return fa.Consortium(
        valuation=valuation,
        cost_per_sample=consortium.cost_per_sample,
        samples=consortium.samples,
        rounds=consortium.rounds,
        discount_factor=consortium.discount_factor,
    )
